//! `cargo xtask native`: makes libtiledb and libtorch available, and records their places for
//! cargo.
//!
//! Sources of each library, in order: the environment; the record of an earlier run in
//! `.cargo/native.toml`; the user's cache; a download of pinned wheels into that cache. The choice
//! is recorded, so that plain cargo uses it, too.

mod choice;
mod download;
mod install;
mod pins;
mod record;

use std::path::PathBuf;

use crate::cache::Cache;
use crate::interpreter::Python;
use crate::{cargo, progress};

use choice::{LIBTILEDB, LIBTORCH, Libtiledb, Libtorch, USE_PYTORCH, Variables};
use record::Record;

/// Environment variables for children of this process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Native {
    /// Variables to set, with their values.
    pub(crate) set: Vec<(&'static str, PathBuf)>,
    /// Variables that would contradict the above.
    pub(crate) unset: Vec<&'static str>,
}

/// Libraries that must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// libtorch, which programs link. libtiledb is used if it is there: few data need it.
    Libtorch,
    /// libtorch and libtiledb.
    Both,
}

/// Chooses the libraries, downloads missing ones that are wanted, and writes `.cargo/native.toml`.
pub(crate) fn prepare(wanted: Wanted) -> anyhow::Result<Native> {
    let file = cargo::workspace_root().join(".cargo/native.toml");
    let recorded = Record::read(&file)?;
    let cache = Cache::of_user()?;
    let variables = Variables::of_process(&recorded);
    let torch = choice::libtorch(&variables, &recorded, cache.root())?;
    let tiledb = choice::libtiledb(&variables, &recorded, cache.root())?;
    let mut python = None;
    let mut native = Native::default();
    match torch {
        Libtorch::PyTorch => {
            native.set.push((USE_PYTORCH, PathBuf::from("1")));
            native.unset.push(LIBTORCH);
        }
        Libtorch::Folder(folder) => set_libtorch(&mut native, folder),
        Libtorch::Install => {
            set_libtorch(&mut native, get(&pins::libtorch(), &cache, &mut python)?);
        }
    }
    match tiledb {
        Libtiledb::File(file) => native.set.push((LIBTILEDB, file)),
        Libtiledb::Install => {
            let library = pins::libtiledb();
            let folder = match wanted {
                Wanted::Both => Some(get(&library, &cache, &mut python)?),
                Wanted::Libtorch => install::find(&library, &cache),
            };
            let file = folder.map(|folder| folder.join(library.key_file()));
            native.set.extend(file.map(|file| (LIBTILEDB, file)));
        }
    }
    Record::new(&native.set).write(&file)?;
    Ok(native)
}

fn set_libtorch(native: &mut Native, folder: PathBuf) {
    native.set.push((LIBTORCH, folder));
    native.unset.push(USE_PYTORCH);
}

/// The library's folder in the cache, made if missing. Python is needed only in that case.
fn get(
    library: &install::Library,
    cache: &Cache,
    python: &mut Option<Python>,
) -> anyhow::Result<PathBuf> {
    if let Some(folder) = install::find(library, cache) {
        return Ok(folder);
    }
    let python = match python {
        Some(python) => python,
        None => python.insert(usable_python()?),
    };
    let folder = install::install(library, cache, python)?;
    progress::print_line(&format!("{} is in {}", library.name, folder.display()));
    Ok(folder)
}

fn usable_python() -> anyhow::Result<Python> {
    pins::check_platform()?;
    let python = Python::on_path()?;
    python.require_pip()?;
    pins::check_glibc(python.glibc)?;
    Ok(python)
}
