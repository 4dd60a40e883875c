//! Describes a run for each of its rows: start, commit and command.

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::Context as _;
use bench_report::{HostInfo, RunInfo};
use jiff::Timestamp;

use crate::secrets;

/// Describes a run that begins now. `revision` comes from `cargo xtask`. Fails if `arguments` are
/// empty.
pub fn run_info(
    revision: Option<&str>,
    metadata: &BTreeMap<String, String>,
    host: &HostInfo,
    arguments: &[OsString],
) -> anyhow::Result<RunInfo> {
    let start = Timestamp::now();
    let (sha, git_dirty) = commit(revision);
    Ok(RunInfo {
        run_id: format!(
            "{}-{}-{}",
            start.strftime("%Y%m%dT%H%M%SZ"),
            host.hostname,
            std::process::id()
        ),
        run_start_dt: start,
        command: command_line(arguments)?,
        sha,
        git_dirty,
        metadata: secrets::noted(metadata),
    })
}

/// Splits a revision into the commit and whether files differ from it.
fn commit(revision: Option<&str>) -> (Option<String>, Option<bool>) {
    match revision {
        None | Some("unknown") => (None, None),
        Some(revision) => match revision.strip_suffix("-dirty") {
            Some(commit) => (Some(commit.to_owned()), Some(true)),
            None => (Some(revision.to_owned()), Some(false)),
        },
    }
}

/// Flags with a value that `cargo xtask` adds, and adds again if the command is repeated.
const OF_XTASK: [&str; 5] =
    ["--revision", "--results-root", "--scripts", "--environment", "--unavailable"];

/// Flags with a value that `cargo xtask` adds too, but that can also be typed.
const ALSO_OF_XTASK: [&str; 2] = ["--python", "--script"];

/// Formats the command so that it can be typed again, without the flags that `cargo xtask` adds and
/// without secrets. The first argument is the program; fails without it.
pub fn command_line(arguments: &[OsString]) -> anyhow::Result<String> {
    let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    let program = arguments.next().context("started without a name")?;
    let through_xtask = arguments.clone().any(|argument| OF_XTASK.contains(&argument.as_str()));
    let mut words = Vec::new();
    while let Some(argument) = arguments.next() {
        let is_added = OF_XTASK.contains(&argument.as_str())
            || (through_xtask && ALSO_OF_XTASK.contains(&argument.as_str()));
        if is_added {
            arguments.next();
        } else {
            words.push(argument);
        }
    }
    let name = program.rsplit('/').next().unwrap_or(&program).to_owned();
    let start = match (through_xtask, name.as_str()) {
        (false, _) => name,
        (true, "sweep") => "cargo xtask".to_owned(),
        (true, name) => format!("cargo xtask {name}"),
    };
    let words = secrets::command_words(&words).into_iter().map(|word| quoted(&word));
    Ok(std::iter::once(start).chain(words).collect::<Vec<_>>().join(" "))
}

/// Quotes a word for a shell, if it needs quotes.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns an address for results, with `~` for the user's home.
pub fn shown_uri(uri: &str) -> String {
    without_home(uri, std::env::var("HOME").ok().as_deref())
}

fn without_home(uri: &str, home: Option<&str>) -> String {
    let below = home
        .filter(|home| 1 < home.len())
        .and_then(|home| uri.strip_prefix(home.trim_end_matches('/')));
    match below.filter(|below| below.starts_with('/')) {
        Some(below) => format!("~{below}"),
        None => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_not_shown() {
        assert_eq!(without_home("/home/ada/.cache/x", Some("/home/ada")), "~/.cache/x");
        assert_eq!(without_home("/home/adam/x", Some("/home/ada")), "/home/adam/x");
        assert_eq!(without_home("s3://b/x", Some("/home/ada")), "s3://b/x");
        assert_eq!(without_home("/x", Some("/")), "/x");
        assert_eq!(without_home("/x", None), "/x");
    }

    #[test]
    fn revisions_say_whether_files_differ() {
        assert_eq!(commit(Some("abc")), (Some("abc".into()), Some(false)));
        assert_eq!(commit(Some("abc-dirty")), (Some("abc".into()), Some(true)));
        assert_eq!(commit(Some("unknown")), (None, None));
        assert_eq!(commit(None), (None, None));
    }

    #[test]
    fn the_command_can_be_typed_again_and_keeps_secrets() {
        let check = |arguments: &[&str], expect: &str| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(command_line(&arguments).unwrap(), expect);
        };
        check(&["/x/sweep", "sweep", "-b", "8 / [1,2]"], "sweep sweep -b '8 / [1,2]'");
        check(
            &["/x/sweep", "sweep", "--revision", "abc", "--results-root", "/r", "-n", "3"],
            "cargo xtask sweep -n 3",
        );
        check(&["/x/fields", "peers", "--python", "p", "s"], "fields peers --python p s");
        check(
            &["/x/fields", "peers", "--revision", "abc", "--python", "/p", "--script", "/s", "s"],
            "cargo xtask fields peers s",
        );
        check(
            &[
                "sweep",
                "sweep",
                "--config",
                "vfs.s3.aws_secret_access_key=abc",
                "--config=vfs.s3.aws_session_token=x=y",
            ],
            "sweep sweep --config 'vfs.s3.aws_secret_access_key=***' '--config=vfs.s3.aws_session_token=***'",
        );
    }
}
