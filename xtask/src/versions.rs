//! `cargo xtask versions`: measures six fixed works with this version, adds the rows to those of
//! earlier versions, and draws the speed and memory of each work by version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::cache::{Cache, remove};
use crate::cargo;
use crate::progress::print_answer;
use crate::sweep::{self, Needs, Program, results_arguments};

/// The rows: a folder for each work, in it one for each version.
const FOLDER: &str = "results/versions";
/// The data in the user's cache. Other data have another name: a version is compared with earlier
/// ones.
const DATA: &str = "versions-data-1";
/// What is written there: a program, its command, and the file or folder that it writes.
const WRITTEN: [(&str, &str, &[&str]); 5] = [
    ("sweep", "generate", &["cells", "--cells=20000", "--genes=20000"]),
    ("fields", "generate", &["weather", "--samples=32"]),
    ("cubes", "generate", &["cubes", "--images=32", "--size=240x320x100", "--formats=raw32"]),
    ("sequences", "generate", &["dna.txt", "--size=20MB"]),
    ("sequences", "import", &["dna.txt", "dna"]),
];
/// The works: a name, a program, and the arguments of its command `sweep`.
const WORKS: [(&str, &str, &[&str]); 6] = [
    ("cells-dense", "sweep", &["--uri=cells", "-b64x256", "-mcsr", "-E3"]),
    ("cells-csr", "sweep", &["--uri=cells", "-b64x256", "-mcsr", "--batch-form=csr", "-E3"]),
    ("cells-random", "sweep", &["--uri=cells", "-b1024x1", "-mcsr", "--batch-form=csr", "-E3"]),
    ("fields", "fields", &["weather", "--strategies=stacked", "-B4", "-t1", "-w1", "-E3"]),
    ("cubes", "cubes", &["cubes", "--form=raw32", "--warm", "--no-floors", "-w1", "-t1", "-E5"]),
    ("sequences", "sequences", &["dna", "--form=tokens", "-w1", "-B64", "-E5"]),
];

/// Measures, then draws; ends at the first failure.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let data = Cache::of_user()?.root().join(DATA);
    let written = data.join(".complete");
    if !written.is_file() {
        remove(&data)?;
        fs::create_dir_all(&data)?;
        for (program, command, arguments) in WRITTEN {
            let mut command = build(program)?.command(command)?;
            succeed(command.current_dir(&data).args(arguments).arg("--quiet"))?;
        }
        fs::write(&written, "")?;
    }
    let folder = cargo::workspace_root().join(FOLDER);
    let version = version()?;
    for (name, program, arguments) in WORKS {
        let mut command = build(program)?.command("sweep")?;
        command.current_dir(&data).args(results_arguments()).args(arguments).arg("--quiet");
        succeed(command.arg("--results").arg(folder.join(name).join(&version)))?;
    }
    let report = build("sweep")?;
    for (name, ..) in WORKS {
        let drawn = folder.join(name).join("compared");
        let mut command = report.command("report")?;
        command.args(versions(&folder.join(name))?).arg("--results").arg(&drawn);
        succeed(&mut command)?;
        print_answer(drawn.join("speed-vs-memory.svg").display())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn build(program: &str) -> anyhow::Result<Program> {
    let package = if program == "sequences" { "sequence-bench" } else { program };
    match sweep::build(package, program, &Needs::default())? {
        Ok(program) => Ok(program),
        Err(_) => bail!("cargo could not build {program}"),
    }
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = cargo::run(command)?;
    if !status.success() {
        bail!("{} ended with {status}", command.get_program().display());
    }
    Ok(())
}

/// The workspace's version.
fn version() -> anyhow::Result<String> {
    let metadata = cargo::metadata(&crate::native::Native::default())?;
    let version = metadata["packages"][0]["version"].as_str();
    Ok(version.context("the metadata has no version")?.to_owned())
}

/// The folders of the versions that have rows, in their order.
fn versions(work: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(work)? {
        let path = entry?.path();
        if path.join("epochs.parquet").is_file() {
            found.push(path);
        }
    }
    let numbers = |path: &PathBuf| -> Vec<u64> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.split('.').map_while(|part| part.parse().ok()).collect()
    };
    found.sort_by_key(numbers);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["0.10.0", "0.2.0", "compared", "0.9.1"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            if name != "compared" {
                fs::write(folder.path().join(name).join("epochs.parquet"), "").unwrap();
            }
        }
        let found = versions(folder.path()).unwrap();
        let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, ["0.2.0", "0.9.1", "0.10.0"]);
        assert!(version().unwrap().starts_with(|c: char| c.is_ascii_digit()));
    }
}
