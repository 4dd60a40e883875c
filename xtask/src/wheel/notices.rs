//! The third-party notices of the wheel: the licence texts of all that is compiled into it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::cargo;
use crate::native::Native;

/// Below the workspace. `license-files` of python/pyproject.toml takes it into the wheel and the
/// sdist.
const FILE: &str = "python/LICENSE-THIRD-PARTY.txt";
const APACHE: &str = include_str!("../../../LICENSE-APACHE");
/// Packages that carry no text of their own, and whose licence is not Apache's.
const TEXTS: [(&str, &str); 2] = [
    ("blosc-src", include_str!("../../licenses/c-blosc.txt")),
    ("noodles-bgzf", include_str!("../../licenses/noodles.txt")),
];
/// What names of files with licences contain, in small letters; the last two are of fonts.
const NAMES: [&str; 6] = ["license", "licence", "copying", "notice", "ofl.txt", "ufl.txt"];
/// Folders of programs that are not compiled into a library.
const NOT_COMPILED: [&str; 7] =
    ["benches", "contrib", "doc", "examples", "fuzz", "programs", "tests"];
const HEAD: &str = "\
somafeed is licensed under MIT or Apache-2.0, at your option. Its native module also contains the
packages below, Rust's standard library (MIT or Apache-2.0) among them, under their own licences.
The texts follow after the list, each once.
";
const RULE: &str =
    "--------------------------------------------------------------------------------";

/// A package that is compiled into the wheel.
#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    /// As SPDX writes it.
    license: String,
    folder: PathBuf,
    is_ours: bool,
}

/// Writes the notices. Fails if a package has no licence text.
pub(super) fn write() -> anyhow::Result<()> {
    let file = cargo::workspace_root().join(FILE);
    let text = notices(&packages()?)?;
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// The packages of the Python module on this system, by name.
fn packages() -> anyhow::Result<Vec<Package>> {
    let nothing = Native::default();
    let tree = ["tree", "--locked", "--package=somafeed-python", "--edges=normal", "--prefix=none"];
    let tree = cargo::output(tree, &nothing)?;
    let compiled: BTreeSet<(&str, &str)> = tree.lines().filter_map(name_and_version).collect();
    let metadata = cargo::output(["metadata", "--locked", "--format-version=1"], &nothing)?;
    let metadata: Value = serde_json::from_str(&metadata).context("cannot read the metadata")?;
    let all = metadata["packages"].as_array().context("the metadata has no packages")?;
    let packages = all.iter().map(package).collect::<anyhow::Result<Vec<_>>>()?;
    let is_compiled =
        |package: &Package| compiled.contains(&(package.name.as_str(), package.version.as_str()));
    Ok(packages.into_iter().filter(is_compiled).collect())
}

/// Parses a line of `cargo tree`, like `zstd v0.14.0 (*)`.
fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

fn package(value: &Value) -> anyhow::Result<Package> {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let manifest = PathBuf::from(text("manifest_path"));
    let folder = manifest.parent().context("a package without a folder")?;
    Ok(Package {
        name: text("name"),
        version: text("version"),
        license: text("license"),
        folder: folder.to_owned(),
        is_ours: value["source"].is_null(),
    })
}

fn notices(packages: &[Package]) -> anyhow::Result<String> {
    let mut list = Vec::new();
    // By their words: lines are broken differently in copies of a text.
    let mut texts: BTreeMap<Vec<String>, (String, BTreeSet<&str>)> = BTreeMap::new();
    for package in packages {
        let found = texts_of(package)?;
        if package.is_ours && found.is_empty() {
            continue;
        }
        let Package { name, version, license, is_ours, .. } = package;
        if !is_ours {
            list.extend([name.as_str(), " ", version, ": ", license, "\n"]);
        }
        for text in found {
            let words = text.split_whitespace().map(str::to_owned).collect();
            texts.entry(words).or_insert_with(|| (text, BTreeSet::new())).1.insert(name);
        }
    }
    let mut sections: Vec<String> = texts
        .into_values()
        .map(|(text, names)| {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            format!("{RULE}\n{names}\n\n{}\n", text.trim_matches('\n'))
        })
        .collect();
    sections.sort();
    Ok(iter::once(format!("{HEAD}\n{}", list.concat()))
        .chain(sections)
        .collect::<Vec<_>>()
        .join("\n"))
}

/// The licence texts of a package: in its folder and, for code of others in it, below.
fn texts_of(package: &Package) -> anyhow::Result<Vec<String>> {
    let Package { name, license, folder, .. } = package;
    // The workspace's licence is a file of its own in the wheel.
    let within = if package.is_ours { folder.join("src") } else { folder.clone() };
    let mut files = Vec::new();
    find(&within, &mut files)?;
    let has_own = files.iter().any(|file| file.parent() == Some(folder));
    let mut texts = Vec::new();
    for file in files {
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        texts.push(String::from_utf8_lossy(&bytes).replace('\r', ""));
    }
    // Zstandard is offered under the GPL or another licence, which is the one that is taken.
    texts.retain(|text| !text.trim_start().starts_with("GNU GENERAL PUBLIC LICENSE"));
    if has_own || package.is_ours {
        return Ok(texts);
    }
    if let Some((_, text)) = TEXTS.iter().find(|(named, _)| named == name) {
        texts.push((*text).to_owned());
    } else if license.contains("Apache-2.0") {
        texts.push(APACHE.to_owned());
    } else {
        bail!(
            "{name} {} ({license}) has no licence text, which the wheel must contain: add it to \
             xtask/licenses and to TEXTS in xtask/src/wheel/notices.rs",
            package.version
        );
    }
    Ok(texts)
}

/// Finds the files with licences in a folder and below it.
fn find(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder);
    let entries = entries.with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_lowercase();
        if path.is_dir() {
            if !NOT_COMPILED.contains(&name.as_str()) {
                find(&path, files)?;
            }
        } else if NAMES.iter().any(|part| name.contains(part))
            && !matches!(path.extension().and_then(OsStr::to_str), Some("rs" | "c" | "h"))
        {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    fn package(folder: &Path, name: &str, license: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.to_owned(),
            folder: folder.join(name),
            is_ours: false,
        }
    }

    fn write(folder: &Path, file: &str, text: &str) {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn each_text_stands_once_with_its_packages() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(folder, "a/LICENSE", "Do what\nyou want.\n");
        write(folder, "b/LICENCE.md", "Do  what you want.\r\n");
        write(folder, "b/vendored/COPYING", "Say where it is from.");
        write(folder, "b/programs/COPYING", "of a program");
        write(folder, "b/other/COPYING", "  GNU GENERAL PUBLIC LICENSE\nVersion 2");
        write(folder, "b/src/license.rs", "// code");
        write(folder, "c/README", "no licence");
        let packages = [package(folder, "a", "MIT"), package(folder, "b", "MIT")];
        let text = notices(&packages).unwrap();
        assert!(text.contains("a 1.0.0: MIT\nb 1.0.0: MIT\n"), "{text}");
        assert!(text.contains("\na, b\n\nDo what\nyou want.\n"), "{text}");
        assert!(text.contains("\nb\n\nSay where it is from.\n"), "{text}");
        assert_eq!(text.matches(RULE).count(), 2, "{text}");
        let error = notices(&[package(folder, "c", "Zlib")]).unwrap_err().to_string();
        assert!(error.contains("c 1.0.0 (Zlib) has no licence text"), "{error}");
        let text = notices(&[package(folder, "c", "MIT OR Apache-2.0")]).unwrap();
        assert!(text.contains("Apache License"), "{text}");
    }

    #[test]
    fn all_that_the_wheel_contains_is_named() {
        let text = notices(&packages().unwrap()).unwrap();
        for part in [
            "\nzstd-sys ",
            "\nblosc-src ",
            "SIL OPEN FONT LICENSE",
            "UBUNTU FONT LICENCE",
            "Mike Bostock",
            "Observable",
            "Francesc Alted",
            "BoringSSL",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("\nwindows-sys "), "of another system");
    }
}
