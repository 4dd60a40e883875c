//! Finding and loading libtiledb at run time, once a process.
//!
//! Looked for in this order: the file that the environment variable [`PATH_VARIABLE`] names; the newest `libtiledb-*` folder in
//! the user's cache (`$XDG_CACHE_HOME/somafeed`, else `~/.cache/somafeed`), where `cargo xtask native` unpacks it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{Library as UnixLibrary, RTLD_LOCAL, RTLD_NOW};

use crate::Error;
use crate::sys::Functions;

/// The environment variable that names the file of libtiledb.
pub const PATH_VARIABLE: &str = "SOMAFEED_LIBTILEDB";

/// The least version that has every function that is called.
const LEAST: (i32, i32) = (2, 26);

/// The library of this process.
pub(crate) struct Loaded {
    pub(crate) functions: Functions,
    pub(crate) path: PathBuf,
    pub(crate) version: (i32, i32, i32),
    // Kept for ever: libtiledb has threads of its own, so that unloading it would never be safe.
    _library: libloading::Library,
}

/// The library of this process, loaded at the first call.
pub(crate) fn loaded() -> Result<&'static Loaded, Error> {
    static LOADED: OnceLock<Loaded> = OnceLock::new();
    if let Some(loaded) = LOADED.get() {
        return Ok(loaded);
    }
    // Two threads that come here at once both load; the dynamic loader gives them the same library, and one table is kept.
    let fresh = load(&find()?)?;
    Ok(LOADED.get_or_init(|| fresh))
}

/// The version of libtiledb, `(major, minor, patch)`, and the file that it was loaded from.
pub fn library() -> Result<((i32, i32, i32), PathBuf), Error> {
    loaded().map(|loaded| (loaded.version, loaded.path.clone()))
}

fn load(path: &Path) -> Result<Loaded, Error> {
    let failed = |error: libloading::Error| Error::Load {
        path: path.to_owned(),
        message: error.to_string(),
    };
    // SAFETY: loading runs the library's initialisers. The file is libtiledb, as pinned by hash in the user's cache or as named
    // by the user; its symbols stay local, so that they cannot take the place of another library's.
    let library =
        unsafe { UnixLibrary::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(failed)?;
    let library = libloading::Library::from(library);
    // SAFETY: the declarations are those of libtiledb's C API, and the library lives beside the table.
    let functions = unsafe { Functions::resolve(&library) }.map_err(failed)?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the three pointers are to live integers.
    unsafe { (functions.tiledb_version)(&raw mut major, &raw mut minor, &raw mut patch) };
    if (major, minor) < LEAST {
        return Err(Error::Version { path: path.to_owned(), major, minor, least: "2.26" });
    }
    Ok(Loaded {
        functions,
        path: path.to_owned(),
        version: (major, minor, patch),
        _library: library,
    })
}

fn find() -> Result<PathBuf, Error> {
    if let Some(path) = std::env::var_os(PATH_VARIABLE).filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
        .map(|folder| folder.join("somafeed"));
    cache.as_deref().and_then(newest_in).ok_or_else(|| Error::NotFound {
        variable: PATH_VARIABLE,
        cache: cache.map_or_else(
            || "no cache folder: HOME is not set".into(),
            |folder| folder.display().to_string(),
        ),
    })
}

/// The library in the folder `libtiledb-*` of `cache` whose name sorts last.
fn newest_in(cache: &Path) -> Option<PathBuf> {
    let starts = |path: &PathBuf, prefix: &str| {
        path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(prefix))
    };
    let entries = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect()
    };
    let mut folders: Vec<_> =
        entries(cache).into_iter().filter(|path| starts(path, "libtiledb-")).collect();
    folders.sort();
    folders.iter().rev().find_map(|folder| {
        entries(folder)
            .into_iter()
            .find(|path| starts(path, "libtiledb") && path.to_string_lossy().contains(".so"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_folder_of_the_cache_is_taken() {
        let cache = tempfile::tempdir().unwrap();
        for name in ["libtiledb-2.29-a", "libtiledb-2.30-b", "libtorch-2.11.0"] {
            std::fs::create_dir(cache.path().join(name)).unwrap();
            std::fs::write(cache.path().join(name).join("libtiledb-x.so.2"), "").unwrap();
        }
        assert_eq!(
            newest_in(cache.path()),
            Some(cache.path().join("libtiledb-2.30-b/libtiledb-x.so.2"))
        );
        assert_eq!(newest_in(&cache.path().join("absent")), None);
    }

    #[test]
    fn every_declared_function_resolves() {
        let (version, path) = library().unwrap();
        assert!(version >= (2, 26, 0), "{version:?}");
        assert!(path.is_file());
    }

    #[test]
    fn a_file_that_is_no_library_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libtiledb.so");
        std::fs::write(&path, "not a library").unwrap();
        let message = load(&path).err().unwrap().to_string();
        assert!(message.contains("libtiledb.so"), "{message}");
    }
}
