//! Finds the libtiledb of the running Python's packages, without importing them.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;

/// Packages whose wheels contain libtiledb, in the order of preference.
const PACKAGES: [&str; 2] = ["tiledb", "tiledbsoma"];
/// Makes a folder a package.
const INIT: &str = "__init__.py";

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
        // A path would become one of pathlib, which is no value of an environment variable.
        let file = file.into_os_string();
        py.import("os")?.getattr("environ")?.set_item(tiledb::PATH_VARIABLE, file)?;
    }
    Ok(())
}

/// The file of libtiledb in a package of this Python. `None` if the environment variable names one,
/// which is then used, or if no package has one.
///
/// Runs no code of Python, as `importlib.util.find_spec` does: if the interpreter ends meanwhile,
/// it ends the threads that run its code, and a thread must not end within a call from Rust.
fn of_packages(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    if tiledb::named_by_environment().is_some() {
        return Ok(None);
    }
    let path = py.import("sys")?.getattr("path")?.extract::<Vec<Bound<'_, PyAny>>>()?;
    // Other entries than paths are for finders of other packages.
    let folders: Vec<PathBuf> = path.iter().filter_map(|entry| entry.extract().ok()).collect();
    let mut packages = PACKAGES.iter().filter_map(|package| {
        folders.iter().map(|folder| folder.join(package)).find(|of| of.join(INIT).is_file())
    });
    Ok(packages.find_map(|package| library_beside(&package)))
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
