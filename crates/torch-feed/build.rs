//! Lets this package's tests and examples find libtorch at run time, and passes its folder to
//! dependents.
//!
//! Cargo does not pass link arguments on to the programs of dependents. `cargo run` and `cargo
//! test` let them find libtorch all the same: they search folders that a build script names, if
//! those lie within the target folder. So the libraries are linked into one there.
//!
//! libtorch's version is for programs that record it.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Set by torch-sys, which resolves LIBTORCH, LIBTORCH_LIB, LIBTORCH_USE_PYTORCH and the
    // system's folders. Not set if torch-sys is built only for documentation, which links nothing.
    println!("cargo::rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    let Some(lib_dir) = env::var_os("DEP_TCH_LIBTORCH_LIB") else { return };
    let Some(lib_dir) = lib_dir.to_str() else {
        println!("cargo::error=the path of libtorch is not UTF-8: {}", lib_dir.display());
        return;
    };
    println!("cargo::metadata=lib_dir={lib_dir}");
    note("TORCH_FEED_LIBTORCH", libtorch_version(Path::new(lib_dir)));
    match link_into_target(Path::new(lib_dir)) {
        Ok(folder) => println!("cargo::rustc-link-search=native={}", folder.display()),
        Err(error) => println!("cargo::error=cannot link to the libraries in {lib_dir}: {error}"),
    }
    println!("cargo::rustc-link-arg=-Wl,-rpath,{lib_dir}");
    // Links all of libtorch: no symbol names libtorch_cuda, so the linker would drop it as not
    // needed, and torch would then see no GPU. In a libtorch for the CPU this adds nothing.
    println!("cargo::rustc-link-arg=-L{lib_dir}");
    println!("cargo::rustc-link-arg=-Wl,--no-as-needed,-ltorch,--as-needed");
}

/// Makes a folder with a symbolic link to each library in `lib_dir`.
fn link_into_target(lib_dir: &Path) -> io::Result<PathBuf> {
    let out_dir = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let folder = Path::new(&out_dir).join("libtorch");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir(&folder)?;
    for entry in fs::read_dir(lib_dir)? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default();
        if name.to_string_lossy().contains(".so") {
            std::os::unix::fs::symlink(&file, folder.join(name))?;
        }
    }
    Ok(folder)
}

/// Passes a version to the library, if it is known.
fn note(name: &str, version: Option<String>) {
    if let Some(version) = version {
        println!("cargo::rustc-env={name}={}", version.trim());
    }
}

/// Reads libtorch's version from files beside `lib/`: `build-version`, or `version.py` if it is
/// part of PyTorch.
fn libtorch_version(lib_dir: &Path) -> Option<String> {
    let beside = lib_dir.parent()?;
    let version = fs::read_to_string(beside.join("build-version")).ok();
    version.or_else(|| {
        let text = fs::read_to_string(beside.join("version.py")).ok()?;
        let line = text.lines().find(|line| line.starts_with("__version__"))?;
        line.split(['\'', '"']).nth(1).map(str::to_owned)
    })
}
