//! The results folder of a run. A generated name has date, machine and data, and is never reused.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bench_report::{HostInfo, check_folder};
use clap::Args;

use crate::shard::Shard;

/// Most runs of the same day, host and data.
const MOST_RUNS: u32 = 9999;

/// Flags of every command that measures: where its results go.
#[derive(Debug, Args)]
pub struct ResultsFlags {
    /// The commit that is measured, with -dirty where files differ from it
    #[arg(long, hide = true)]
    pub revision: Option<String>,
    /// Where folders for results are made
    #[arg(long, hide = true, default_value = "results")]
    pub results_root: PathBuf,
}

impl ResultsFlags {
    /// Returns the folder `named` on the command line, or makes one for `data`. Fails if it cannot
    /// be made or rows cannot be added to it.
    pub fn folder(
        &self,
        named: Option<&Path>,
        host: &HostInfo,
        data: &str,
    ) -> anyhow::Result<ResultsFolder> {
        self.folder_of_shard(named, host, data, None)
    }

    /// Like [`folder`](Self::folder), for a part of a grid: with a folder of its own for this part
    /// on this machine, below the one named.
    pub fn folder_of_shard(
        &self,
        named: Option<&Path>,
        host: &HostInfo,
        data: &str,
        shard: Option<Shard>,
    ) -> anyhow::Result<ResultsFolder> {
        let data = match shard {
            Some(shard) => format!("{data}-{}", shard.folder_name()),
            None => data.to_owned(),
        };
        let folder = if let Some(path) = named {
            let below =
                shard.map(|shard| format!("{}-{}", plain(&host.hostname), shard.folder_name()));
            let path = below.map_or_else(|| path.to_owned(), |below| path.join(below));
            ResultsFolder { path, to_remove: false }
        } else {
            let date = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
            let path = make(&self.results_root, &date, &host.hostname, &data)?;
            ResultsFolder { path, to_remove: true }
        };
        check_folder(&folder.path).context("nothing was measured")?;
        Ok(folder)
    }
}

/// The results folder. On drop, a folder with a generated name and without rows is removed.
#[derive(Debug, Default)]
pub struct ResultsFolder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Whether to remove it when it is dropped.
    pub to_remove: bool,
}

impl Drop for ResultsFolder {
    fn drop(&mut self) {
        if self.to_remove {
            // An empty folder does no harm if it stays.
            let _removed = fs::remove_dir_all(&self.path);
        }
    }
}

/// Makes `<root>/<date>-<host>-<data>`, or the same with `-2`, `-3` ... if that exists.
fn make(root: &Path, date: &str, host: &str, data: &str) -> anyhow::Result<PathBuf> {
    let name = format!("{date}-{}-{}", plain(host), plain(data));
    fs::create_dir_all(root)
        .with_context(|| format!("cannot make the results folder {}", root.display()))?;
    let numbered = (2..=MOST_RUNS).map(|n| format!("{name}-{n}"));
    for candidate in std::iter::once(name.clone()).chain(numbered) {
        let folder = root.join(candidate);
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| {
                    format!("cannot make the results folder {}", folder.display())
                });
            }
        }
    }
    bail!(
        "{} already holds {MOST_RUNS} runs named {name}: move them away, or name a folder with --results",
        root.display()
    )
}

/// Returns the part of a path or URI that names the data: `visium` for `.../visium/soma`.
pub fn data_name(uri: &str) -> String {
    let mut parts = uri
        .trim_end_matches('/')
        .rsplit('/')
        .filter(|part| !part.is_empty() && !part.ends_with(':'));
    let last = parts.next().unwrap_or("data");
    match last {
        "soma" | "experiment" | "." => parts.next().unwrap_or(last).to_owned(),
        _ => last.to_owned(),
    }
}

/// Makes a folder name of at most 60 characters: all but letters, digits and `.-_` become hyphens.
fn plain(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '-' };
    let name: String = text.chars().map(keep).take(60).collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "unnamed".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_never_taken_twice() {
        let root = tempfile::tempdir().unwrap();
        let made = || make(&root.path().join("results"), "2026-11-21", "a host", "x/y").unwrap();
        let names: Vec<_> =
            [made(), made(), made()].map(|p| p.file_name().unwrap().to_owned()).into();
        assert_eq!(
            names,
            ["2026-11-21-a-host-x-y", "2026-11-21-a-host-x-y-2", "2026-11-21-a-host-x-y-3"]
        );
    }

    #[test]
    fn a_root_that_cannot_be_made_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let error = format!("{:#}", make(&file.join("results"), "d", "h", "x").unwrap_err());
        assert!(error.contains("file/results") && error.lines().count() == 1, "{error}");
    }

    #[test]
    fn data_is_named_by_what_tells_it_apart() {
        let check = |uri: &str, expect: &str| assert_eq!(data_name(uri), expect, "{uri}");
        check("/data/visium-2898x19465/soma", "visium-2898x19465");
        check("/data/visium/", "visium");
        check("s3://bucket/census/experiment", "census");
        check("s3://bucket", "bucket");
        check("soma", "soma");
        check("", "data");
    }

    #[test]
    fn plain_names_are_safe_for_folders() {
        assert_eq!(plain("../a b"), "a-b");
        assert_eq!(plain("///"), "unnamed");
        assert_eq!(plain(&"x".repeat(100)).len(), 60);
    }
}
