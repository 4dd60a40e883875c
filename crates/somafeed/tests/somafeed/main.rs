//! Tests packages outside this workspace that use the facade: they compile and run with default
//! settings, without libtiledb and libtorch or with torch, and need no build script.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod soak;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn program(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outside").join(name);
    fs::read_to_string(path).unwrap()
}

/// Makes a package with one program in `folder`; `somafeed` is its dependency on the facade.
///
/// The package uses this workspace's versions and profiles, so that compiled crates are reused.
fn package(folder: &Path, source: &str, somafeed: &str) {
    let path = root().join("crates/somafeed").display().to_string();
    let manifest = format!(
        "[package]\nname = \"outside\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nsomafeed = {{ path = \"{path}\", {somafeed} }}\n\n{}",
        profiles(),
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    fs::create_dir(folder.join("src")).unwrap();
    fs::write(folder.join("src/main.rs"), source).unwrap();
}

/// The workspace's profiles, which are at the end of its manifest.
fn profiles() -> String {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    manifest[manifest.find("[profile.").unwrap()..].to_owned()
}

/// Runs cargo in `folder` like a user, without this workspace's settings except those in `keep`.
fn cargo(folder: &Path, arguments: &[&str], keep: &[&str]) -> Output {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let of_the_user = ["CARGO_HOME", "CARGO_NET_OFFLINE"].contains(&name.as_ref());
        let of_this_run = ["CARGO", "LD_LIBRARY_PATH", "LIBTORCH", "SOMAFEED_", "TORCH"];
        if !of_the_user && of_this_run.iter().any(|start| name.starts_with(start)) {
            command.env_remove(name.as_ref());
        }
    }
    for name in keep {
        command.env(name, std::env::var_os(name).unwrap());
    }
    let output = command
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The names of the crates that the package is compiled from.
fn crates(folder: &Path) -> Vec<String> {
    let tree = cargo(folder, &["tree", "--prefix", "none", "--edges", "normal,build"], &[]);
    let text = String::from_utf8(tree.stdout).unwrap();
    text.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
}

#[test]
fn a_program_in_memory_needs_neither_libtiledb_nor_libtorch() {
    let folder = tempfile::tempdir().unwrap();
    package(folder.path(), &program("in_memory.rs"), "default-features = false");
    let crates = crates(folder.path());
    // `libloading` is what crate `tiledb` loads libtiledb by; without it, it is plain data.
    for absent in ["libloading", "tch", "torch-sys", "reqwest", "rustls", "ring", "zarrs"] {
        assert!(!crates.iter().any(|name| name == absent), "{absent} is compiled");
    }
    let output = cargo(folder.path(), &["run", "--quiet"], &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.lines().all(|line| line.starts_with("cells [")), "{text}");
}

#[test]
fn a_program_trains_with_torch() {
    let folder = tempfile::tempdir().unwrap();
    let features = "default-features = false, features = [\"torch\"]";
    package(folder.path(), &program("train.rs"), features);
    assert!(!crates(folder.path()).iter().any(|name| name == "zarrs"), "zarrs is compiled");
    let keep: Vec<&str> = ["LIBTORCH", "LIBTORCH_USE_PYTORCH"]
        .into_iter()
        .filter(|name| std::env::var_os(name).is_some())
        .collect();
    if keep.is_empty() {
        eprintln!("libtorch is not there, so no program trains: `cargo xtask test` fetches it");
        return;
    }
    let output = cargo(folder.path(), &["run", "--quiet"], &keep);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.trim(), "64 of 64 cells right");
}

#[test]
fn the_page_shows_the_program_in_memory() {
    let page = fs::read_to_string(root().join("docs/loader.md")).unwrap();
    let (_, rest) = page.split_once("```rust\n").unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    assert_eq!(shown, program("in_memory.rs"));
}
