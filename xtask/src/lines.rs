//! `cargo xtask lines`: counts the lines of code by crate, now or at an earlier revision.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::cargo;
use crate::git::git;
use crate::progress::print_answer;

/// Prints the lines of each folder of `crates`, of the other folders, and of all: Rust, Python and
/// JavaScript, outside of tests and of what others wrote.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let revision = match arguments {
        [] => None,
        [revision] => Some(revision.to_str().context("the revision is not UTF-8")?),
        [..] => bail!("`cargo xtask lines` takes a revision of git, or nothing"),
    };
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for path in paths(revision)? {
        if is_counted(&path) {
            *found.entry(folder(&path)).or_default() += n_lines(&path, &text(revision, &path)?);
        }
    }
    let all: usize = found.values().sum();
    for (folder, n) in &found {
        print_answer(format_args!("{n:>7} {folder}"))?;
    }
    print_answer(format_args!("{all:>7} together"))?;
    Ok(ExitCode::SUCCESS)
}

/// The files of a revision, or those that git knows now.
fn paths(revision: Option<&str>) -> anyhow::Result<Vec<String>> {
    let listed = match revision {
        Some(revision) => git(&["ls-tree", "-r", "--name-only", "--full-tree", revision])?,
        None => git(&["ls-files"])?,
    };
    Ok(listed.lines().map(str::to_owned).collect())
}

fn text(revision: Option<&str>, path: &str) -> anyhow::Result<String> {
    if let Some(revision) = revision {
        return git(&["show", &format!("{revision}:{path}")]);
    }
    let file = cargo::workspace_root().join(path);
    std::fs::read_to_string(&file).with_context(|| format!("cannot read {path}"))
}

/// Whether a file is code, and neither of a test nor of others.
fn is_counted(path: &str) -> bool {
    let is_code = Path::new(path)
        .extension()
        .is_some_and(|of| ["rs", "py", "js"].iter().any(|name| of == *name));
    let mut parts = path.split('/');
    let of_others = |part: &str| part == "vendor" || part == "tests" || part == "examples";
    let name = path.rsplit('/').next().unwrap_or(path);
    is_code && !parts.any(of_others) && name != "tests.rs" && !name.ends_with("_tests.rs")
}

/// The crate or the first folder of a path.
fn folder(path: &str) -> String {
    let n = if path.starts_with("crates/") { 2 } else { 1 };
    path.split('/').take(n).collect::<Vec<_>>().join("/")
}

/// The lines of a file before its module of tests, which is the last thing in it.
fn n_lines(path: &str, text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let is_tests = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    };
    let is_rust = Path::new(path).extension().is_some_and(|extension| extension == "rs");
    let tests = is_rust.then(|| lines.windows(2).position(is_tests)).flatten();
    tests.unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_what_others_wrote_are_not_counted() {
        for path in ["crates/csr/src/lib.rs", "python/somafeed/loader.py", "xtask/src/ci.rs"] {
            assert!(is_counted(path), "{path}");
        }
        let vendored = "crates/bench-report/src/page/vendor/d3.min.js";
        for path in
            ["crates/csr/tests/csr/a.rs", "crates/csr/src/rows/tests.rs", vendored, "docs/a.md"]
        {
            assert!(!is_counted(path), "{path}");
        }
        assert_eq!(folder("crates/csr/src/lib.rs"), "crates/csr");
        assert_eq!(folder("xtask/src/ci.rs"), "xtask");
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n";
        assert_eq!(n_lines("a.rs", text), 2);
        assert_eq!(n_lines("a.rs", "#[cfg(test)]\nmod tests;\nfn a() {}\n"), 3);
    }
}
