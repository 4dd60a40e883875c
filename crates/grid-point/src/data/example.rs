//! The example experiment, measured if no other is named. It is written to the user's cache once.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bench_run::{Address, Display, grouped};
use example_data::GenerateSpec;

const N_CELLS: u64 = 20_000;
const N_GENES: u64 = 20_000;
const SEED: u64 = 0;

/// Returns the path of the example and writes it if needed. It appears there only once it is
/// complete; a second process waits for the first. Fails if it cannot be written.
pub(super) fn ensure(quiet: bool) -> anyhow::Result<PathBuf> {
    let cache = cache_folder(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))?;
    let spec =
        GenerateSpec { n_cells: N_CELLS, n_genes: N_GENES, seed: SEED, ..GenerateSpec::default() };
    ensure_in(&cache, &spec, quiet)
}

fn ensure_in(cache: &Path, spec: &GenerateSpec, quiet: bool) -> anyhow::Result<PathBuf> {
    let name = format!("example-{}x{}-seed{}", spec.n_cells, spec.n_genes, spec.seed);
    let path = cache.join(&name);
    if path.is_dir() {
        return Ok(path);
    }
    let what =
        || format!("cannot write the example experiment to the cache folder {}", cache.display());
    fs::create_dir_all(cache).with_context(what)?;
    let lock = File::create(cache.join("example.lock")).with_context(what)?;
    lock.lock().with_context(what)?;
    if path.is_dir() {
        return Ok(path);
    }
    write_example(&path.to_str().with_context(what)?.into(), spec, quiet).with_context(what)?;
    Ok(path)
}

/// Writes an experiment and shows progress. Fails if it cannot be written.
pub fn write_example(uri: &Address, spec: &GenerateSpec, quiet: bool) -> anyhow::Result<()> {
    let display = Display::new(spec.n_cells, "cells", quiet);
    let (cells, genes) = (grouped(spec.n_cells), grouped(spec.n_genes));
    display.line(&format!("writing an experiment of {cells} cells x {genes} genes to {uri}"));
    let report = example_data::generate(uri.full(), spec, &mut |n_cells| display.position(n_cells));
    display.finish();
    let report = report?;
    if let Some(path) = report.leftover.as_deref() {
        display.line(&format_leftover(path));
    }
    display.line(&format!("{uri}: {} values, in {:.1} s", grouped(report.nnz), report.seconds));
    Ok(())
}

/// Formats a message about removed leftovers of a run that was killed.
pub fn format_leftover(path: &Path) -> String {
    format!("{}: what a run that was killed had left there is removed", path.display())
}

/// Returns `${XDG_CACHE_HOME:-$HOME/.cache}/somafeed`, which also contains the libraries of `cargo
/// xtask`. Fails if neither variable is an absolute path.
fn cache_folder(xdg: Option<OsString>, home: Option<OsString>) -> anyhow::Result<PathBuf> {
    let absolute =
        |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    match (absolute(xdg), absolute(home)) {
        (Some(xdg), _) => Ok(xdg.join("somafeed")),
        (None, Some(home)) => Ok(home.join(".cache/somafeed")),
        (None, None) => bail!(
            "no cache folder for the example: set XDG_CACHE_HOME or HOME to an absolute path, or name data with --uri"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_follows_the_xdg_rules() {
        let check = |xdg: Option<&str>, home: Option<&str>, expect: Option<&str>| {
            let found = cache_folder(xdg.map(Into::into), home.map(Into::into));
            assert_eq!(found.ok(), expect.map(PathBuf::from));
        };
        check(Some("/x"), Some("/h"), Some("/x/somafeed"));
        check(Some("relative"), Some("/h"), Some("/h/.cache/somafeed"));
        check(None, None, None);
    }

    #[test]
    fn the_example_is_written_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let spec = GenerateSpec { n_cells: 50, n_genes: 300, seed: 3, ..GenerateSpec::default() };
        let path = ensure_in(&cache, &spec, true).unwrap();
        assert_eq!(path, cache.join("example-50x300-seed3"));
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(ensure_in(&cache, &spec, true).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
    }
}
