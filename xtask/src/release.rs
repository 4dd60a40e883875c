//! `cargo xtask release-check`: what must hold before a version is published, beside the tests.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::cache::remove;
use crate::git::git;
use crate::interpreter::Python;
use crate::progress::print_line;
use crate::{cargo, gpu, packages, platforms, wheel};

/// Where the files of a release are put.
const FOLDER: &str = "target/release-files";
/// Recipes of other registries.
const OTHERS: [&str; 2] = ["packaging/conda-forge-recipe.yaml", "packaging/scverse-meta.yaml"];
/// The most changes of a release in the changelog, and the most letters of each.
const MOST_CHANGES: usize = 60;
const LONGEST_CHANGE: usize = 200;
/// The address that the owner has not filled in yet.
const PLACEHOLDER: &str = "REPOSITORY-ADDRESS";

/// A part of the check, and its name.
type Part = (&'static str, fn() -> anyhow::Result<ExitCode>);

/// The long parts. The bundle, which is made first, has a wheel of its own; that of the second part
/// stays where it is gathered.
const PARTS: [Part; 4] = [
    ("the bundle for a GPU", gpu::bundle),
    ("the wheel and the sdist", || wheel::test_matrix(&[])),
    ("the packages of the crates", packages::run),
    ("other systems", platforms::run),
];

/// Names all that does not fit the version, then checks what would be published.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let root = cargo::workspace_root();
    let read = |file: &str| {
        fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))
    };
    let manifest = read("Cargo.toml")?;
    let version = value(&manifest, "version = ").context("Cargo.toml has no version")?;
    let tags = git(&["tag", "--points-at", "HEAD"])?;
    let changes = git(&["status", "--porcelain"])?;
    let mut problems = texts(&version, &manifest, &read("CITATION.cff")?, &read("CHANGELOG.md")?);
    problems.extend(of_git(&version, &tags, &changes));
    if !read(OTHERS[0])?.contains(&format!("version: \"{version}\"")) {
        problems.push(format!("{}: its version is not {version}", OTHERS[0]));
    }
    for problem in &problems {
        print_line(problem);
    }
    if !problems.is_empty() {
        bail!("version {version} cannot be released: {} problems", problems.len());
    }
    for (name, part) in PARTS {
        print_line(&format!("release {version}: {name}"));
        let code = part()?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    let folder = root.join(FOLDER);
    gather(&folder, &version)?;
    print_line(&format!("version {version} can be released: {}", folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// Puts wheel, sdist, packed crates, notices, list of parts and checksums into one folder.
fn gather(folder: &Path, version: &str) -> anyhow::Result<()> {
    let root = cargo::workspace_root();
    let mut files = uploads(version, &root.join("target/wheels/wheel"))?;
    files.extend(OTHERS.map(|file| root.join(file)));
    for entry in fs::read_dir(root.join("target/package"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(&format!("-{version}.crate")) {
            files.push(path.clone());
        }
    }
    remove(folder)?;
    let script = root.join("xtask/src/release_files.py");
    let mut command = Python::on_path()?.command([OsStr::new("-B"), script.as_os_str()]);
    command.arg(folder).args(&files);
    let status = cargo::run(&mut command)?;
    if !status.success() {
        bail!("{} failed: {status}", script.display());
    }
    Ok(())
}

/// What follows a key at the beginning of a line, without quotes.
fn value(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim().trim_matches('"').to_owned())
}

/// What does not fit the version in the files that name it.
fn texts(version: &str, manifest: &str, citation: &str, changelog: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let waits = |line: &str| line.contains(PLACEHOLDER) && !line.trim_start().starts_with('#');
    if manifest.lines().any(waits) {
        problems.push(format!("Cargo.toml: {PLACEHOLDER} is not filled in"));
    }
    // The crates name each other's version.
    let named = manifest.lines().filter(|line| line.contains("path = \"crates/"));
    for line in named.filter(|line| line.contains("version = ")) {
        if !line.contains(&format!("version = \"{version}\"")) {
            problems.push(format!("Cargo.toml: not version {version}: {line}"));
        }
    }
    if value(citation, "version: ").as_deref() != Some(version) {
        problems.push(format!("CITATION.cff: its version is not {version}"));
    }
    let newest = changelog.lines().filter_map(|line| line.strip_prefix("## "));
    let newest = newest.filter(|heading| *heading != "Unreleased").map(str::trim).next();
    let date = newest.and_then(|heading| heading.strip_prefix(version)?.strip_prefix(" - "));
    if !date.is_some_and(is_date) {
        let heading = newest.unwrap_or("none");
        problems.push(format!(
            "CHANGELOG.md: its newest heading is `{heading}`, not `{version} - YYYY-MM-DD`"
        ));
    }
    let unreleased = changelog.split("## Unreleased").nth(1).unwrap_or_default();
    let unreleased = unreleased.split("\n## ").next().unwrap_or_default();
    if unreleased.lines().any(|line| line.starts_with("- ")) {
        problems.push("CHANGELOG.md: changes stand below `Unreleased`".to_owned());
    }
    problems.extend(too_long(changelog));
    problems
}

/// Releases of the changelog that nobody would read: too many changes, or too long ones.
fn too_long(changelog: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for release in changelog.split("\n## ").skip(1) {
        let heading = release.lines().next().unwrap_or_default();
        let changes: Vec<&str> = release.lines().filter(|line| line.starts_with("- ")).collect();
        if MOST_CHANGES < changes.len() {
            let n_changes = changes.len();
            problems.push(format!(
                "CHANGELOG.md, {heading}: {n_changes} changes, at most {MOST_CHANGES}"
            ));
        }
        for change in changes.iter().filter(|change| LONGEST_CHANGE < change.chars().count()) {
            let start: String = change.chars().take(60).collect();
            problems.push(format!(
                "CHANGELOG.md, {heading}: more than {LONGEST_CHANGE} letters: {start}"
            ));
        }
    }
    problems
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [4, 2, 2] && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Tags of this commit that are of another version, and files that are not of this commit. The tag
/// itself may be missing: this check comes before it.
fn of_git(version: &str, tags: &str, changes: &str) -> Vec<String> {
    let others = tags.lines().filter(|tag| tag.starts_with('v') && tag[1..] != *version);
    let mut problems: Vec<String> =
        others.map(|tag| format!("this commit has the tag {tag}, not v{version}")).collect();
    if !changes.trim().is_empty() {
        problems.push(format!("files differ from the commit:\n{}", changes.trim_end()));
    }
    problems
}

/// The wheel and the sdist of this version; fails unless the folder has these two.
fn uploads(version: &str, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let (wheel, sdist) = (format!("somafeed-{version}-"), format!("somafeed-{version}.tar.gz"));
    match &names[..] {
        [first, second] if first.starts_with(&wheel) && *second == sdist => {
            Ok([first, second].map(|name| folder.join(name)).into())
        }
        _ => bail!("{} has {}, not a wheel and {sdist}", folder.display(), names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "version = \"1.2.0\"\nrepository = \"https://example.org/x\"\n\
                            csr = { path = \"crates/csr\", version = \"1.2.0\" }\n";

    #[test]
    fn files_name_the_version() {
        let good = "# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-11-26\n\n- One.\n";
        assert!(texts("1.2.0", MANIFEST, "version: 1.2.0\n", good).is_empty());
        let waiting = MANIFEST.replace("https://example.org/x", PLACEHOLDER);
        let other = waiting.replace("csr\", version = \"1.2.0\"", "csr\", version = \"1.1.0\"");
        let early = "## Unreleased\n\n- One.\n\n## 1.1.0 - 2026-01-01\n\n- Two.\n";
        let problems = texts("1.2.0", &other, "version: 1.1.0\n", early).join("\n");
        for part in [PLACEHOLDER, "not version 1.2.0", "CITATION", "`1.1.0 - 2026", "Unreleased`"] {
            assert!(problems.contains(part), "{part}: {problems}");
        }
        let undated = texts("1.2.0", MANIFEST, "version: 1.2.0\n", "## 1.2.0\n");
        assert_eq!(undated.len(), 1, "{undated:?}");
    }

    #[test]
    fn the_changelog_can_be_read() {
        let changelog = cargo::workspace_root().join("CHANGELOG.md");
        assert_eq!(too_long(&fs::read_to_string(changelog).unwrap()), [""; 0]);
        let many = format!("# Changelog\n\n## 1.2.0\n\n{}", "- One.\n".repeat(61));
        assert_eq!(too_long(&many), ["CHANGELOG.md, 1.2.0: 61 changes, at most 60"]);
        let long = format!("# Changelog\n\n## 1.2.0\n\n- {}\n", "long ".repeat(40));
        assert_eq!(too_long(&long).len(), 1);
    }

    #[test]
    fn the_commit_is_the_one_with_the_tag() {
        assert!(of_git("1.2.0", "v1.2.0\nnightly\n", "").is_empty());
        assert!(of_git("1.2.0", "", "").is_empty());
        let problems = of_git("1.2.0", "v1.1.0\n", " M README.md\n");
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn uploads_are_a_wheel_and_an_sdist() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = "somafeed-1.2.0-cp311-abi3-manylinux_2_17_x86_64.whl";
        for file in [wheel, "somafeed-1.2.0.tar.gz"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        uploads("1.2.0", folder.path()).unwrap();
        assert!(uploads("1.3.0", folder.path()).is_err());
        fs::write(folder.path().join("other.whl"), "").unwrap();
        assert!(uploads("1.2.0", folder.path()).is_err());
    }
}
