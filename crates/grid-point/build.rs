//! Lets this package's tests find libtorch when they run, passes its folder to dependents, and
//! records the versions of the build.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(folder) = variable("DEP_TORCH_FEED_LIB_DIR") {
        // The same arguments as in torch-feed's build script, which gives the reasons.
        println!("cargo::metadata=lib_dir={folder}");
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
        println!("cargo::rustc-link-arg=-L{folder}");
        println!("cargo::rustc-link-arg=-Wl,--no-as-needed,-ltorch,--as-needed");
        note("GRID_POINT_LIBTORCH", libtorch_version(Path::new(&folder)));
    }
    note("GRID_POINT_RUSTC", rustc_version());
    note("GRID_POINT_TCH", tch_version());
}

fn variable(name: &str) -> Option<String> {
    println!("cargo::rerun-if-env-changed={name}");
    env::var(name).ok()
}

/// Passes a version to the program, if it is known.
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

fn rustc_version() -> Option<String> {
    let output = Command::new(variable("RUSTC")?).arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok()
}

/// Reads the resolved version of tch from the lock file.
fn tch_version() -> Option<String> {
    let lock = Path::new(&env::var("CARGO_MANIFEST_DIR").ok()?).join("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(lock).ok()?;
    let (_, after) = text.split_once("name = \"tch\"\nversion = \"")?;
    after.split('"').next().map(str::to_owned)
}
