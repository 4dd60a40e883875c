//! `cargo xtask gpu-bundle`: puts what `benches/gpu/run.py` needs into one folder, for a machine
//! that has a GPU and PyTorch but neither Rust nor a network. `cargo xtask test` runs the same
//! script on the CPU, with the programs of the tests and little data.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::cache::remove;
use crate::interpreter::Python;
use crate::native::{self, Native, Wanted};
use crate::{cargo, progress, sweep, wheel};

const SCRIPTS: &str = "benches/gpu";
/// Scripts of the bundle; others prepare it, or print what came back.
const SCRIPTS_OF_RUN: [&str; 7] = [
    "run.py",
    "sections.py",
    "checks.py",
    "comparing.py",
    "measured.py",
    "plain_zarr.py",
    "training.py",
];
const FOLDER: &str = "target/gpu-bundle";
/// The largest bundle: more may not fit where it has to travel.
const MOST_BYTES: u64 = 40 << 20;

/// Programs and examples that the script runs; others are commands of the Python package.
const PROGRAMS: [&str; 3] = ["cubes", "feed_device", "train_cell_types"];
const EXAMPLES: [&str; 2] = ["--example=feed_device", "--example=train_cell_types"];
/// Cargo's arguments that build the programs of the bundle, without the examples.
const RELEASE: [&str; 6] = [
    "build",
    "--release",
    "-p=cubes",
    "-p=somafeed-torch-feed",
    "--features=cubes/torch",
    "--bins",
];
/// The unit tests of `torch-feed`: cargo's name of the target, and the script's name.
const TESTS: (&str, &str) = ("torch_feed", "torch-feed-unit-tests");

/// A program, and its name in the script.
struct Program {
    path: PathBuf,
    name: &'static str,
}

/// Builds the bundle and prints its folder.
pub(crate) fn bundle() -> anyhow::Result<ExitCode> {
    let native = native::prepare(Wanted::Libtorch)?;
    let mut programs = built(&native, &[&RELEASE[..], &EXAMPLES].concat())?;
    let tests = ["test", "--no-run", "-p=somafeed-torch-feed", "--lib"];
    programs.extend(built(&native, &tests)?);
    check_all_are_there(&programs)?;
    let wheel = match wheel::release()? {
        Ok(wheel) => wheel,
        Err(code) => return Ok(code),
    };
    let folder = cargo::workspace_root().join(FOLDER);
    remove(&folder)?;
    fs::create_dir_all(&folder)?;
    let scripts = cargo::workspace_root().join(SCRIPTS);
    for script in SCRIPTS_OF_RUN {
        fs::copy(scripts.join(script), folder.join(script))?;
    }
    fs::write(folder.join("bundle.json"), json!({ "revision": sweep::revision() }).to_string())?;
    pack(&scripts.join("pack.py"), &folder.join("bundle.tar.xz"), &wheel, &programs)?;
    let n_bytes = size(&folder)?;
    if n_bytes > MOST_BYTES {
        bail!("{} has {n_bytes} bytes, more than {MOST_BYTES}", folder.display());
    }
    progress::print_answer(folder.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Builds the Python package of the tests, and runs the script on the CPU.
pub(crate) fn check() -> anyhow::Result<ExitCode> {
    let native = native::prepare(Wanted::Both)?;
    match wheel::unpacked(&wheel::test_environment()?)? {
        Ok(_) => test(&native),
        Err(code) => Ok(code),
    }
}

/// Runs the script on the CPU with the programs and the Python package that the tests have built.
pub(crate) fn test(native: &Native) -> anyhow::Result<ExitCode> {
    progress::print_line("the checks for a GPU, on the CPU with little data: one minute");
    // With the features of `cargo xtask test`, so that little is compiled.
    let mut programs =
        built(native, &[&["build", "--workspace", "--bins"][..], &EXAMPLES].concat())?;
    // Python's module has no tests in Rust, and pyo3 would be compiled for this alone.
    let tests = ["test", "--no-run", "--workspace", "--exclude=somafeed-python", "--lib"];
    programs.extend(built(native, &tests)?);
    check_all_are_there(&programs)?;
    let folder = cargo::workspace_root().join("target/gpu-check");
    remove(&folder)?;
    let linked = folder.join("programs");
    fs::create_dir_all(&linked)?;
    for program in programs {
        std::os::unix::fs::symlink(program.path, linked.join(program.name))?;
    }
    let python = wheel::test_environment()?;
    let mut command = cargo::command(python.as_os_str(), native);
    command.arg("-B").arg(cargo::workspace_root().join(SCRIPTS).join("run.py"));
    command.args(["--device", "cpu", "--small", "--programs"]).arg(&linked);
    command.arg("--out").arg(folder.join("out")).arg("--work").arg(&folder);
    command.arg("--package").arg(cargo::workspace_root().join(wheel::UNPACKED));
    Ok(cargo::exit_code(cargo::run(&mut command)?))
}

/// Builds with cargo and returns the programs that the script runs.
fn built(native: &Native, arguments: &[&str]) -> anyhow::Result<Vec<Program>> {
    let mut command = cargo::cargo(arguments, native);
    command.arg("--message-format=json-render-diagnostics");
    command.stderr(Stdio::inherit());
    progress::print_line(&format!("cargo {}", arguments.join(" ")));
    let output = command.output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo could not build the programs: {}", output.status);
    }
    let messages = String::from_utf8(output.stdout).context("cargo's messages")?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    Ok(messages.filter_map(|message: Value| program(&message)).collect())
}

/// The program that a message of cargo is about, if the script runs it.
fn program(message: &Value) -> Option<Program> {
    let path = PathBuf::from(message["executable"].as_str()?);
    let (target, kind) = (message["target"]["name"].as_str()?, &message["target"]["kind"][0]);
    let name = if message["profile"]["test"].as_bool()? {
        (kind == "lib" && target == TESTS.0).then_some(TESTS.1)?
    } else {
        PROGRAMS.into_iter().find(|program| *program == target)?
    };
    Some(Program { path, name })
}

fn check_all_are_there(programs: &[Program]) -> anyhow::Result<()> {
    let wanted = PROGRAMS.into_iter().chain([TESTS.1]);
    let missing: Vec<&str> =
        wanted.filter(|name| programs.iter().all(|program| program.name != *name)).collect();
    if !missing.is_empty() {
        bail!("cargo built no {}", missing.join(", "));
    }
    Ok(())
}

fn pack(script: &Path, archive: &Path, wheel: &Path, programs: &[Program]) -> anyhow::Result<()> {
    let named = programs.iter().map(|program| {
        let mut named = program.path.clone().into_os_string();
        named.push("=");
        named.push(program.name);
        named
    });
    let mut command = Python::on_path()?.command([OsStr::new("-B"), script.as_os_str()]);
    command.arg(archive).arg(wheel).args(named);
    let status = cargo::run(&mut command)?;
    if !status.success() {
        bail!("{} failed: {status}", script.display());
    }
    Ok(())
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> anyhow::Result<u64> {
    let mut n_bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        n_bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(n_bytes)
}
