//! The Rust files and manifests of the workspace, read once for all rules.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// A source file, its path relative to the workspace.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    pub(super) fn is_rust(&self) -> bool {
        is_rust(Path::new(&self.path))
    }
}

/// Reads all Rust files and manifests of the workspace, ordered by path.
pub(super) fn read_all(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for folder in ["benches", "crates", "python", "xtask"] {
        collect(root, &root.join(folder), &mut sources)?;
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn collect(root: &Path, folder: &Path, into: &mut Vec<Source>) -> anyhow::Result<()> {
    let what = || format!("cannot read {}", folder.display());
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).with_context(what)? {
        paths.push(entry.with_context(what)?.path());
    }
    for path in paths {
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(root, &path, into)?;
            }
        } else if name == "Cargo.toml" || is_rust(&path) {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            into.push(Source::new(path, text));
        }
    }
    Ok(())
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}
