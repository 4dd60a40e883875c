//! `cargo xtask lint`: checks by other people's programs, of Python, words, licences and workflows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context as _;

use crate::cargo;
use crate::environment::{Environment, NEWEST, OLDEST};
use crate::git::git;
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

/// Where the programs in Python that pages show are written.
const PROGRAMS: &str = "target/programs-of-docs";
/// Settings of pyright for them.
const PYRIGHT: &str = r#"{
    "typeCheckingMode": "standard",
    "pythonVersion": "3.11",
    "extraPaths": ["../../python"],
    "reportMissingImports": false,
    "reportMissingModuleSource": false,
    "reportPossiblyUnboundVariable": false,
    "reportRedeclaration": false
}
"#;

/// Runs all checks; ends at the first that fails.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let python =
        environment().prepare(|python| wheel::check(python, &["-m", "mypy", "--version"]))?;
    let types = wheel::test_environment()?;
    let types = types.to_string_lossy();
    let programs = write_programs()?;
    let programs: Vec<&str> = programs.iter().filter_map(|program| program.to_str()).collect();
    let mypy = [
        "--cache-dir=target/mypy",
        "--config-file",
        "python/pyproject.toml",
        "--python-executable",
        &types,
    ];
    let lenient = [
        "--allow-redefinition",
        "--allow-subclassing-any",
        "--allow-untyped-calls",
        "--allow-untyped-defs",
    ];
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
        ("mypy", [&mypy[..], &["python/somafeed"]].concat()),
        ("basedpyright", vec!["--project", "python/pyproject.toml", "--pythonpath", &types]),
        ("mypy", [&mypy[..], &lenient, &programs].concat()),
        ("basedpyright", vec!["--project", PROGRAMS, "--pythonpath", &types]),
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

/// Writes the Python of each page that shows some as one program; returns the files.
fn write_programs() -> anyhow::Result<Vec<PathBuf>> {
    let root = cargo::workspace_root();
    let folder = root.join(PROGRAMS);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("pyrightconfig.json"), PYRIGHT)?;
    let mut programs = Vec::new();
    for page in git(&["ls-files", "README.md", "python/README.md", "docs/*.md"])?.lines() {
        let text = fs::read_to_string(root.join(page)).with_context(|| page.to_owned())?;
        let program = python_of(&text);
        if !program.is_empty() {
            let name = page.trim_end_matches(".md").replace('/', "_").to_lowercase();
            programs.push(folder.join(name).with_extension("py"));
            fs::write(&programs[programs.len() - 1], program)?;
        }
    }
    Ok(programs)
}

/// The Python of a page, each block where it stands there, so that errors name the page's lines.
fn python_of(page: &str) -> String {
    let (mut program, mut is_python) = (String::new(), false);
    for line in page.lines() {
        if line.starts_with("```") {
            is_python = line == "```python";
        } else if is_python {
            program.push_str(line);
        }
        program.push('\n');
    }
    if program.trim().is_empty() { String::new() } else { program }
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
    fn every_page_that_shows_python_is_checked() {
        let page = "# Title\n```python\nx = 1\n```\n```text\nno\n```\n```python\ny\n```\n";
        assert_eq!(python_of(page), "\n\nx = 1\n\n\n\n\n\ny\n\n");
        assert_eq!(python_of("# Title\n"), "");
        let programs = write_programs().unwrap();
        let names = ["readme", "python_readme", "docs_python", "docs_start", "docs_frameworks"];
        for name in names {
            assert!(programs.iter().any(|program| program.file_stem().unwrap() == name), "{name}");
        }
        assert!(
            programs.iter().all(|program| fs::read_to_string(program).unwrap().contains("import"))
        );
    }

    #[test]
    fn all_workflows_are_checked() {
        let folder = cargo::workspace_root().join(".github/workflows");
        let mut found: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| format!(".github/workflows/{}", entry.unwrap().file_name().display()))
            .collect();
        found.sort();
        assert_eq!(found, SCHEMAS[0].1);
    }
}
