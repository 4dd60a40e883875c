//! Finds libtiledb and loads it at run time, once per process.
//!
//! The search order: the file that the environment variable [`PATH_VARIABLE`] names; the file that
//! the program [suggested](suggest); the newest `libtiledb-*` folder in the user's cache
//! (`$XDG_CACHE_HOME/somafeed`, otherwise `~/.cache/somafeed`), where `cargo xtask native` unpacks
//! it. A program that insists on one file calls [`load_from`] before anything else.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::os::unix::{Library as UnixLibrary, RTLD_LOCAL, RTLD_NOW};

use crate::libtiledb::Error;
use crate::libtiledb::sys::Functions;

/// The environment variable that names libtiledb's file.
pub const PATH_VARIABLE: &str = "SOMAFEED_LIBTILEDB";

/// The oldest version that has every function used here.
const LEAST: (i32, i32) = (2, 26);

/// The type of `tiledb_version`, which is called before the table of functions exists.
type Version = unsafe extern "C" fn(*mut i32, *mut i32, *mut i32);

/// The library of this process.
pub(crate) struct Loaded {
    pub(crate) functions: Functions,
    pub(crate) path: PathBuf,
    pub(crate) version: (i32, i32, i32),
    // Never unloaded: libtiledb has threads of its own, so unloading is not safe.
    _library: libloading::Library,
}

static LOADED: OnceLock<Loaded> = OnceLock::new();
/// The file that the program suggested.
static SUGGESTED: OnceLock<PathBuf> = OnceLock::new();
/// Locked while a library is loaded, so that two threads do not load two.
static LOADING: Mutex<()> = Mutex::new(());

/// Returns the library of this process, and loads it at the first call.
pub(crate) fn loaded() -> Result<&'static Loaded, Error> {
    match LOADED.get() {
        Some(loaded) => Ok(loaded),
        None => load_once(find),
    }
}

/// Returns the library of this process; if there is none, loads the file that `path` returns.
fn load_once(path: impl FnOnce() -> Result<PathBuf, Error>) -> Result<&'static Loaded, Error> {
    // A panic while loading leaves nothing half done.
    let _guard = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(loaded) = LOADED.get() {
        return Ok(loaded);
    }
    let fresh = load(&path()?)?;
    Ok(LOADED.get_or_init(|| fresh))
}

/// Loads the file at `path` as the libtiledb of this process, instead of searching for one.
///
/// Call it before the first [`crate::libtiledb::Context`] is made. A process has one libtiledb and
/// keeps it: another file than the loaded one is an [`Error::AlreadyLoaded`]; the same file again
/// is not an error.
pub fn load_from(path: &Path) -> Result<(), Error> {
    let loaded = load_once(|| Ok(path.to_owned()))?;
    let file = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if file(&loaded.path) == file(path) {
        return Ok(());
    }
    Err(Error::AlreadyLoaded { path: path.to_owned(), loaded: loaded.path.clone() })
}

/// The version of libtiledb, `(major, minor, patch)`, and its file.
pub fn library() -> Result<((i32, i32, i32), PathBuf), Error> {
    loaded().map(|loaded| (loaded.version, loaded.path.clone()))
}

/// The version and the file of the library that this process uses; `None` if it has loaded none.
pub fn loaded_library() -> Option<((i32, i32, i32), PathBuf)> {
    LOADED.get().map(|loaded| (loaded.version, loaded.path.clone()))
}

/// Names the file to load when a library is first needed, unless [`PATH_VARIABLE`] names one. The
/// first suggestion counts.
pub fn suggest(path: PathBuf) {
    SUGGESTED.get_or_init(|| path);
}

fn load(path: &Path) -> Result<Loaded, Error> {
    let failed = |error: libloading::Error| Error::Load {
        path: path.to_owned(),
        message: error.to_string(),
    };
    // SAFETY: loading runs the library's initialisers. The file is libtiledb, pinned by hash in the
    // user's cache or named by the user; its symbols stay local, so they cannot replace another
    // library's.
    let library =
        unsafe { UnixLibrary::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(failed)?;
    let library = libloading::Library::from(library);
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // Checked first: a library that is too old lacks functions, and the error should say so.
    // SAFETY: the declaration is that of libtiledb's C API, and the three pointers are to live
    // integers.
    unsafe {
        let version = library.get::<Version>(b"tiledb_version").map_err(failed)?;
        version(&raw mut major, &raw mut minor, &raw mut patch);
    }
    if (major, minor) < LEAST {
        return Err(Error::Version { path: path.to_owned(), major, minor, least: "2.26" });
    }
    // SAFETY: the declarations are those of libtiledb's C API, and the library lives beside the
    // table.
    let functions = unsafe { Functions::resolve(&library) }.map_err(failed)?;
    Ok(Loaded {
        functions,
        path: path.to_owned(),
        version: (major, minor, patch),
        _library: library,
    })
}

/// The file that [`PATH_VARIABLE`] names, if it names one.
pub fn named_by_environment() -> Option<PathBuf> {
    std::env::var_os(PATH_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn find() -> Result<PathBuf, Error> {
    if let Some(path) = named_by_environment() {
        return Ok(path);
    }
    if let Some(path) = SUGGESTED.get() {
        return Ok(path.clone());
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

/// The library in the newest `libtiledb-*` folder of `cache`.
fn newest_in(cache: &Path) -> Option<PathBuf> {
    let mut folders = named(cache, |name| name.starts_with("libtiledb-"));
    folders.sort_by_cached_key(|(name, _)| Reverse(version_in(name)));
    folders.iter().find_map(|(_, folder)| {
        let mut files = named(folder, |name| name.starts_with("libtiledb") && name.contains(".so"));
        files.sort();
        files.into_iter().next().map(|(_, path)| path)
    })
}

/// The entries of a folder whose names match, with their names.
fn named(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<(String, PathBuf)> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter_map(|path| {
            let name = path.file_name().and_then(OsStr::to_str)?.to_owned();
            wanted(&name).then_some((name, path))
        })
        .collect()
}

/// The numbers in a name, in order, to compare versions: 2.9 is before 2.30. The name decides
/// between equal versions.
fn version_in(name: &str) -> (Vec<u64>, String) {
    let version = name.strip_prefix("libtiledb-").unwrap_or(name);
    let numbers =
        version.split(['.', '-']).map_while(|number| number.parse().ok()).collect::<Vec<u64>>();
    (numbers, name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_folder_of_the_cache_is_taken() {
        let cache = tempfile::tempdir().unwrap();
        // A parent folder with ".so" in its name must not be mistaken for a library.
        let cache = tempfile::Builder::new().prefix("cache.so").tempdir_in(cache.path()).unwrap();
        for name in ["libtiledb-2.9-0.40", "libtiledb-2.29-a", "libtiledb-2.30-b", "libtorch-3.0"] {
            std::fs::create_dir(cache.path().join(name)).unwrap();
            std::fs::write(cache.path().join(name).join("libtiledb-x.so.2"), "").unwrap();
            std::fs::write(cache.path().join(name).join("libtiledb-license.txt"), "").unwrap();
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
    fn versions_compare_as_numbers() {
        let ascending =
            ["libtiledb-", "libtiledb-2.9-1.0", "libtiledb-2.30-0.9", "libtiledb-2.30-0.36.1"];
        assert!(ascending.is_sorted_by_key(|name| version_in(name)));
    }

    #[test]
    fn a_library_that_is_too_old_is_called_too_old() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("old.rs");
        std::fs::write(
            &source,
            r#"
                #[unsafe(no_mangle)]
                pub unsafe extern "C" fn tiledb_version(major: *mut i32, minor: *mut i32, patch: *mut i32) {
                    unsafe { (*major, *minor, *patch) = (2, 25, 1) }
                }
            "#,
        )
        .unwrap();
        let library = folder.path().join("libtiledb.so");
        let compiled =
            std::process::Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
                .args(["--edition", "2024", "--crate-type", "cdylib", "-o"])
                .args([&library, &source])
                .status()
                .unwrap();
        assert!(compiled.success());
        let error = load(&library).err().unwrap();
        assert!(matches!(error, Error::Version { major: 2, minor: 25, .. }), "{error}");
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
