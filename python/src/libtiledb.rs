//! Finds the libtiledb of the running Python's packages, without importing them.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Packages whose wheels contain libtiledb, in the order of preference.
const PACKAGES: [&str; 2] = ["tiledb", "tiledbsoma"];

/// Has libtiledb, if it is needed, loaded from a package of this Python.
pub(crate) fn suggest(py: Python<'_>) -> PyResult<()> {
    if let Some(file) = of_packages(py)? {
        tiledb::suggest(file);
    }
    Ok(())
}

/// Has child processes load libtiledb from a package of this Python, too.
pub(crate) fn export(py: Python<'_>) -> PyResult<()> {
    if let Some(file) = of_packages(py)? {
        py.import("os")?.getattr("environ")?.set_item(tiledb::PATH_VARIABLE, file)?;
    }
    Ok(())
}

/// The file of libtiledb in a package of this Python. `None` if the environment variable names one,
/// which is then used, or if no package has one.
fn of_packages(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    let named =
        py.import("os")?.getattr("environ")?.call_method1("get", (tiledb::PATH_VARIABLE,))?;
    if named.is_truthy()? {
        return Ok(None);
    }
    for package in PACKAGES {
        if let Some(file) = folder_of(py, package)?.as_deref().and_then(library_beside) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// The folder of a package that is installed.
fn folder_of(py: Python<'_>, package: &str) -> PyResult<Option<PathBuf>> {
    let find = py.import("importlib.util")?.getattr("find_spec")?;
    // A broken package raises what it likes; then there is no libtiledb in it.
    let Ok(spec) = find.call1((PyString::new(py, package),)) else { return Ok(None) };
    if spec.is_none() {
        return Ok(None);
    }
    let folders = spec.getattr("submodule_search_locations")?;
    if folders.is_none() {
        return Ok(None);
    }
    folders.try_iter()?.next().map(|folder| folder?.extract()).transpose()
}

/// The library in a package's folder, or in the folder beside it in which wheels keep libraries.
fn library_beside(package: &Path) -> Option<PathBuf> {
    let name = package.file_name()?.to_str()?;
    let folders = [package.with_file_name(format!("{name}.libs")), package.to_owned()];
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(std::fs::read_dir)
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_library(path))
        .collect();
    files.sort();
    files.into_iter().next()
}

fn is_library(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("libtiledb")
        && (name.contains(".so") || name.contains(".dylib"))
        && !name.starts_with("libtiledbsoma")
}
