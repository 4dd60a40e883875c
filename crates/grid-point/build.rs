//! Lets this package's tests find libtorch when they run, passes its folder to dependents, and
//! records the version of the compiler.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(folder) = variable("DEP_TORCH_FEED_LIB_DIR") {
        // The same arguments as in torch-feed's build script, which gives the reasons.
        println!("cargo::metadata=lib_dir={folder}");
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
        println!("cargo::rustc-link-arg=-L{folder}");
        println!("cargo::rustc-link-arg=-Wl,--no-as-needed,-ltorch,--as-needed");
    }
    note("GRID_POINT_RUSTC", rustc_version());
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

fn rustc_version() -> Option<String> {
    let output = Command::new(variable("RUSTC")?).arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok()
}
