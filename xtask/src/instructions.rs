//! `cargo xtask instructions`: counts the instructions of hot kernels under valgrind, before a
//! change and after it. Clocks differ by more than 3 % from run to run; these numbers do not.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::cache::remove;
use crate::debian::{Needed, runs};
use crate::git::git;
use crate::native::Native;
use crate::progress::{print_answer, print_line};
use crate::{UsageError, cargo, tar};

const PACKAGE: &str = "benches/kernels";
/// New values that are accepted, one a line: a kernel, its instructions, and why.
const ACCEPTED: &str = "benches/kernels/accepted.txt";
const FOLDER: &str = "target/instructions";
/// A kernel may need so much more than before.
const MOST: f64 = 1.03;
/// Threads that look for work would count, so there is one; the data are the same for all.
const ENVIRONMENT: [(&str, &str); 1] = [("RAYON_NUM_THREADS", "1")];
/// Runs of a kernel within a process. The difference of the two counts is without the preparation;
/// what threads count while they wait for each other is divided by many runs.
const REPEATS: [u64; 2] = [1, 17];

/// Instructions of one repeat, by kernel.
type Counts = BTreeMap<String, u64>;

/// Counts at a revision and now, and fails if a kernel became slower.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let (profile, revision) = parse(arguments)?;
    let valgrind = Needed {
        purpose: "instructions are counted by valgrind",
        package: "valgrind",
        by_hand: "install valgrind so that it is on the PATH (Debian, Ubuntu: apt install valgrind)",
        service: None,
    };
    valgrind.prepare(|| runs("valgrind".as_ref()).then_some(()))?;
    let folder = cargo::workspace_root().join(FOLDER);
    fs::create_dir_all(&folder)?;
    let now = build(&cargo::workspace_root(), profile, &folder.join("now"))?;
    let sources = unpack(&revision, &folder)?;
    let before = if sources.join(PACKAGE).is_dir() {
        Some(build(&sources, profile, &folder.join("before"))?)
    } else {
        print_line(&format!("{revision} has no {PACKAGE}: there is nothing to compare with"));
        None
    };
    let data = folder.join("data");
    remove(&data)?;
    prepare(before.as_ref().unwrap_or(&now), &data)?;
    let counted_before = before.map(|program| count_all(&program, &data)).transpose()?;
    let counted = count_all(&now, &data)?;
    let accepted = cargo::workspace_root().join(ACCEPTED);
    let accepted = accepted_counts(&fs::read_to_string(&accepted).context(ACCEPTED)?)?;
    let (table, slower) = compare(&counted_before.unwrap_or_default(), &counted, &accepted);
    print_answer(table)?;
    if slower.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    bail!(
        "more instructions than at {revision} by more than 3 %: {}; if that is the price of a gain, \
         add a line to {ACCEPTED}",
        slower.join(", ")
    )
}

/// The profile of cargo and the revision.
fn parse(arguments: &[OsString]) -> anyhow::Result<(&'static str, String)> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let (profile, rest) = match words.split_first() {
        Some((&"--dev", rest)) => ("dev", rest),
        _ => ("release", &words[..]),
    };
    match rest {
        [] => Ok((profile, parent()?)),
        [revision] if !revision.starts_with('-') => Ok((profile, (*revision).to_owned())),
        _ => {
            let usage = "`cargo xtask instructions` takes --dev and a revision";
            Err(UsageError(usage.to_owned()).into())
        }
    }
}

/// The commit before the last change: that of the working tree, or the last commit's.
fn parent() -> anyhow::Result<String> {
    let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Ok(if is_changed { "HEAD" } else { "HEAD^" }.to_owned())
}

/// The folder of the sources at a revision.
fn unpack(revision: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let (archive, sources) = (folder.join("sources.tar"), folder.join("sources"));
    let named = archive.to_str().context("the path of the workspace is not UTF-8")?;
    git(&["archive", "--format=tar", "--output", named, revision])?;
    tar::unpack(&archive, &sources)?;
    Ok(sources)
}

/// Builds the kernels of a workspace and puts the program into a file.
fn build(workspace: &Path, profile: &str, program: &Path) -> anyhow::Result<PathBuf> {
    let target = cargo::workspace_root().join("target");
    let arguments = ["build", "--locked", "--package", "kernels", "--profile", profile];
    let mut command = cargo::cargo(arguments, &Native::default());
    command.current_dir(workspace).env("CARGO_TARGET_DIR", &target);
    if !cargo::run(&mut command)?.success() {
        bail!("cannot build the kernels in {}", workspace.display());
    }
    let folder = if profile == "dev" { "debug" } else { profile };
    let built = target.join(folder).join("kernels");
    fs::copy(&built, program).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(program.to_owned())
}

fn prepare(program: &Path, data: &Path) -> anyhow::Result<()> {
    let status = Command::new(program).arg("prepare").arg(data).status()?;
    if !status.success() {
        bail!("{} cannot write its data", program.display());
    }
    Ok(())
}

/// The instructions of all kernels that a program has.
fn count_all(program: &Path, data: &Path) -> anyhow::Result<Counts> {
    let listed = Command::new(program).arg("list").output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let mut counts = Counts::new();
    for kernel in listed.lines() {
        let [few, many] = REPEATS.map(|repeats| count(program, kernel, repeats, data));
        let one = many?.saturating_sub(few?) / (REPEATS[1] - REPEATS[0]);
        counts.insert(kernel.to_owned(), one);
    }
    Ok(counts)
}

/// The instructions of a process that repeats a kernel.
fn count(program: &Path, kernel: &str, repeats: u64, data: &Path) -> anyhow::Result<u64> {
    let file = data.with_file_name("counted");
    let mut command = Command::new("valgrind");
    command.args(["--tool=cachegrind", "--cache-sim=no", "--quiet"]);
    command.arg(format!("--cachegrind-out-file={}", file.display()));
    command.arg(program).arg(kernel).arg(repeats.to_string()).arg(data).envs(ENVIRONMENT);
    let output = command.output().context("cannot run valgrind")?;
    if !output.status.success() {
        bail!("{kernel} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = fs::read_to_string(&file)?;
    let summary = text.lines().rev().find_map(|line| line.strip_prefix("summary:"));
    let summary = summary.with_context(|| format!("valgrind counted nothing of {kernel}"))?;
    summary.trim().parse().with_context(|| format!("valgrind's summary is {summary:?}"))
}

fn accepted_counts(text: &str) -> anyhow::Result<Counts> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [kernel, count, _, ..] => Ok((kernel.to_owned(), count.parse::<u64>()?)),
            _ => bail!("{line:?} is no kernel, number of instructions, and reason"),
        })
        .collect::<anyhow::Result<_>>()
        .context(ACCEPTED)
}

/// A table, and the kernels that became slower and are not accepted.
fn compare(before: &Counts, now: &Counts, accepted: &Counts) -> (String, Vec<String>) {
    let mut table = vec![format!("{:<18}{:>14}{:>14}{:>9}", "kernel", "before", "now", "change")];
    let mut slower = Vec::new();
    for (kernel, count) in now {
        let Some(earlier) = before.get(kernel) else {
            table.push(format!("{kernel:<18}{:>14}{count:>14}", "-"));
            continue;
        };
        let ratio = *count as f64 / (*earlier).max(1) as f64;
        let change = (ratio - 1.0) * 100.0;
        table.push(format!("{kernel:<18}{earlier:>14}{count:>14}{change:>+8.1}%"));
        let most = accepted.get(kernel).map_or(0.0, |accepted| *accepted as f64 * MOST);
        if MOST < ratio && most < *count as f64 {
            slower.push(format!("{kernel} {count} ({change:+.1} %)"));
        }
    }
    (table.join("\n"), slower)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: &[(&str, u64)]) -> Counts {
        counts.iter().map(|(kernel, count)| ((*kernel).to_owned(), *count)).collect()
    }

    #[test]
    fn a_kernel_may_need_three_percent_more_or_what_is_accepted() {
        let before = counts(&[("a", 1000), ("b", 1000), ("c", 1000)]);
        let now = counts(&[("a", 1030), ("b", 1031), ("c", 2000), ("new", 5)]);
        let slower = |accepted: &str| {
            compare(&before, &now, &accepted_counts(accepted).unwrap()).1.join(" ")
        };
        assert_eq!(slower("# none\n"), "b 1031 (+3.1 %) c 2000 (+100.0 %)");
        assert_eq!(slower("c 2000 checks each value\n"), "b 1031 (+3.1 %)");
        assert_eq!(slower("b 1031 x\nc 1900 an earlier change\n"), "c 2000 (+100.0 %)");
        let (table, _) = compare(&before, &now, &Counts::new());
        assert_eq!(table.lines().count(), 5, "{table}");
    }

    #[test]
    fn an_accepted_value_has_a_reason() {
        let error = format!("{:#}", accepted_counts("plan 5\n").unwrap_err());
        assert!(error.contains("plan 5") && error.contains("reason"), "{error}");
        let kept = fs::read_to_string(cargo::workspace_root().join(ACCEPTED)).unwrap();
        accepted_counts(&kept).unwrap();
    }

    #[test]
    fn arguments_are_a_profile_and_a_revision() {
        let parsed = |words: &[&str]| parse(&words.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(parsed(&["main"]).unwrap(), ("release", "main".to_owned()));
        assert_eq!(parsed(&["--dev", "main"]).unwrap(), ("dev", "main".to_owned()));
        assert!(parsed(&["--fast"]).is_err() && parsed(&["a", "b"]).is_err());
    }
}
