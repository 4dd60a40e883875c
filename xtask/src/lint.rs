//! `cargo xtask lint`: checks by other people's programs, of Python, words, licences and workflows.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::cargo;
use crate::environment::{Environment, NEWEST, OLDEST};
use crate::native::Native;
use crate::wheel;

const LINT: &str = include_str!("../requirements/lint.txt");
/// The schemas of files that other systems read, and the files.
const SCHEMAS: [(&str, &[&str]); 5] = [
    (
        "vendor.github-workflows",
        &[
            ".github/workflows/ci.yml",
            ".github/workflows/nightly.yml",
            ".github/workflows/release.yml",
        ],
    ),
    (
        "vendor.github-issue-forms",
        &[
            ".github/ISSUE_TEMPLATE/bug.yml",
            ".github/ISSUE_TEMPLATE/feature.yml",
            ".github/ISSUE_TEMPLATE/slow.yml",
            ".github/ISSUE_TEMPLATE/wrong-data.yml",
        ],
    ),
    ("vendor.github-issue-config", &[".github/ISSUE_TEMPLATE/config.yml"]),
    ("vendor.citation-file-format", &["CITATION.cff"]),
    ("vendor.dependabot", &[".github/dependabot.yml"]),
];

/// Runs all checks; ends at the first that fails.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let python =
        environment().prepare(|python| wheel::check(python, &["-m", "mypy", "--version"]))?;
    let types = wheel::test_environment()?;
    let types = types.to_string_lossy();
    let mut checks: Vec<(&str, Vec<&str>)> = vec![
        (
            "ruff",
            vec![
                "check",
                "--quiet",
                "--cache-dir=target/ruff",
                "python",
                "benches",
                "docs/site",
                "xtask",
            ],
        ),
        ("typos", vec!["--format", "brief"]),
        ("cargo-deny", vec!["--all-features", "check", "licenses", "bans", "sources"]),
        ("zizmor", vec!["--offline", "--quiet", ".github/workflows"]),
        (
            "mypy",
            vec![
                "--cache-dir=target/mypy",
                "--config-file",
                "python/pyproject.toml",
                "--python-executable",
                &types,
                "python/somafeed",
            ],
        ),
        ("basedpyright", vec!["--project", "python/pyproject.toml", "--pythonpath", &types]),
    ];
    for (schema, files) in SCHEMAS {
        checks
            .push(("check_jsonschema", [&["--quiet", "--builtin-schema", schema], files].concat()));
    }
    for (name, arguments) in checks {
        let mut command = command(&python, name)?;
        command.args(arguments);
        let status = cargo::run(&mut command)?;
        if !status.success() {
            return Ok(cargo::exit_code(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn environment() -> Environment {
    Environment {
        folder: "python-lint".to_owned(),
        what: "the linters".to_owned(),
        requirements: LINT.to_owned(),
        download: "about 140 MB".to_owned(),
        instead: "install the packages of xtask/requirements/lint.txt and run the commands of \
                  xtask/src/lint.rs by hand"
            .to_owned(),
        oldest: OLDEST,
        newest: NEWEST,
    }
}

/// A linter: a module of Python, or a program where pip puts it beside the packages.
fn command(python: &Path, name: &str) -> anyhow::Result<Command> {
    if ["basedpyright", "check_jsonschema", "mypy"].contains(&name) {
        let mut command = cargo::command(python.as_os_str(), &Native::default());
        command.args(["-m", name]);
        return Ok(command);
    }
    let program = wheel::packages(python)?.join("bin").join(name);
    Ok(cargo::command(program.as_os_str(), &Native::default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::assert_pinned;

    #[test]
    fn the_linters_are_pinned() {
        assert_pinned(LINT);
    }

    #[test]
    fn all_workflows_are_checked() {
        let folder = cargo::workspace_root().join(".github/workflows");
        let mut found: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| format!(".github/workflows/{}", entry.unwrap().file_name().display()))
            .collect();
        found.sort();
        assert_eq!(found, SCHEMAS[0].1);
    }
}
