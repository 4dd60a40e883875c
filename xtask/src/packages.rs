//! `cargo xtask package`: packs the crates that are published, builds each from its package, and
//! builds a program outside the workspace on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::cache::remove;
use crate::native::{self, Native, Wanted};
use crate::progress::print_line;
use crate::tidy::is_published;
use crate::{cargo, tar};

/// What users name.
const FACADE: &str = "somafeed";
/// The folder of other paths to the build folder.
const PATHS: &str = "target/packing";
/// The program outside; no folder of the workspace, for cargo.
const FOLDER: &str = "target/outside";

/// Packs and builds; ends at the first failure.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let native = native::prepare(Wanted::Libtorch)?;
    let metadata = cargo::metadata(&native)?;
    let all = metadata["packages"].as_array().context("the metadata lists no packages")?;
    let published: Vec<&Value> = all.iter().filter(|package| is_published(package)).collect();
    if published.is_empty() {
        bail!("no crate may be published");
    }
    // A release is made of a clean tree, which `release-check` looks at.
    let mut pack = cargo::cargo(["package", "--locked", "--allow-dirty"], &native);
    pack.args(published.iter().map(|package| format!("--package={}", text(package, "name"))));
    pack.env("CARGO_BUILD_BUILD_DIR", new_path_of_target()?);
    let status = cargo::run(&mut pack)?;
    // A folder that contains itself is a trap for whoever walks it.
    remove(&cargo::workspace_root().join(PATHS))?;
    if !status.success() {
        return Ok(cargo::exit_code(status));
    }
    let facade = published.iter().find(|package| text(package, "name") == FACADE);
    let facade = facade.context("the facade is not published")?;
    let folder = cargo::workspace_root().join(FOLDER);
    write_program(&folder, &published)?;
    build_outside(&folder, facade, &native)
}

/// A path of the build folder that cargo has not seen. Packages that it packs at a path and a
/// version which it has seen are to cargo those of then, and other packages are built on these.
fn new_path_of_target() -> anyhow::Result<PathBuf> {
    let folder = cargo::workspace_root().join(PATHS);
    remove(&folder)?;
    fs::create_dir_all(&folder)?;
    let path = folder.join(UNIX_EPOCH.elapsed()?.as_millis().to_string());
    std::os::unix::fs::symlink("..", &path)?;
    Ok(path)
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap_or_default()
}

/// Writes a program that depends on the packed facade: the one that docs/loader.md shows.
fn write_program(folder: &Path, published: &[&Value]) -> anyhow::Result<()> {
    let root = cargo::workspace_root();
    let program = fs::read_to_string(root.join("crates/somafeed/tests/outside/in_memory.rs"))?;
    let version = text(published[0], "version");
    remove(folder)?;
    fs::create_dir_all(folder.join("src"))?;
    // The packages stand in the place of the registry.
    let mut patches = Vec::new();
    for package in published {
        let name = text(package, "name");
        let archive = root.join(format!("target/package/{name}-{version}.crate"));
        let unpacked = format!("packages/{name}");
        tar::unpack(&archive, &folder.join(&unpacked))?;
        patches.push(format!("{name} = {{ path = \"{unpacked}/{name}-{version}\" }}\n"));
    }
    let manifest = format!(
        "[package]\nname = \"outside\"\nedition = \"2024\"\n\n[dependencies]\n{FACADE} = \
         \"{version}\"\n\n[patch.crates-io]\n{}\n[workspace]\n",
        patches.concat()
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::write(folder.join("src/main.rs"), program)?;
    // The versions of others that the workspace is tested with.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    Ok(())
}

/// Runs the program with the default features, and checks it with each other feature and with all.
fn build_outside(folder: &Path, facade: &Value, native: &Native) -> anyhow::Result<ExitCode> {
    let features = facade["features"].as_object().context("the facade has no features")?;
    let others = features.keys().filter(|name| *name != "default");
    let one = others.map(|name| vec!["check".to_owned(), format!("--features={FACADE}/{name}")]);
    let all = vec!["check".to_owned(), format!("--features={}", all_of(features))];
    for arguments in [vec!["run".to_owned()]].into_iter().chain(one).chain([all]) {
        let mut build = cargo::cargo(&arguments, native);
        build.current_dir(folder).env("CARGO_TARGET_DIR", folder.join("target"));
        let status = cargo::run(&mut build)?;
        if !status.success() {
            print_line("a program outside the workspace cannot use the packed crates");
            return Ok(cargo::exit_code(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The features together, but not the one that links nothing.
fn all_of(features: &serde_json::Map<String, Value>) -> String {
    let names = features.keys().filter(|name| !["default", "doc-only"].contains(&name.as_str()));
    names.map(|name| format!("{FACADE}/{name}")).collect::<Vec<_>>().join(",")
}
