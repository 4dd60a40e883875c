//! What is uploaded: the sdist, and the wheel that is built from it. Both are checked as PyPI and
//! those who install them see them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use super::{Systems, check, finish, folder, maturin, notices, only_file};
use crate::cache::remove;
use crate::environment::{Environment, NEWEST, OLDEST};
use crate::native::Native;
use crate::{cargo, tar};

const REQUIREMENTS: &str = include_str!("../../requirements/packaging.txt");
const CONTENTS: &str = include_str!("contents.py");
/// Where the sdist is unpacked, below the workspace: its build shares `target` with the others.
const SOURCES: &str = "target/sdist";

/// The files for PyPI.
#[derive(Debug)]
pub(super) struct Packages {
    pub(super) wheel: PathBuf,
    sdist: PathBuf,
}

impl Packages {
    /// Packs the sources, and builds the wheel from them alone; the exit code if the build failed
    /// and printed why.
    pub(super) fn build(profile: &str, systems: Systems) -> anyhow::Result<Result<Self, ExitCode>> {
        let folder = folder(profile);
        remove(&folder)?;
        notices::write()?;
        let (_, maturin) = maturin()?;
        let mut pack = cargo::command(maturin.as_os_str(), &Native::default());
        let manifest = cargo::workspace_root().join("python/Cargo.toml");
        pack.args(["sdist", "--manifest-path"]).arg(manifest).arg("--out").arg(&folder);
        let status = cargo::run(&mut pack)?;
        if !status.success() {
            return Ok(Err(cargo::exit_code(status)));
        }
        let sdist = only_file(&folder, "gz")?;
        // Without `--locked`: the lock file also has what only other parts of the workspace need.
        let mut build = cargo::command(maturin.as_os_str(), &Native::default());
        build.arg("build").current_dir(unpacked(&sdist)?);
        build.env("CARGO_TARGET_DIR", cargo::workspace_root().join("target"));
        let built = finish(build, profile, systems)?;
        Ok(built.map(|wheel| Self { wheel, sdist }))
    }

    /// Whether both have what PyPI and the licences ask for, and the module only what the stable
    /// ABI has. The checks print what fails.
    pub(super) fn pass(&self) -> anyhow::Result<bool> {
        let python = environment().prepare(|python| check(python, &["-c", "import abi3audit"]))?;
        let twine = command(&python, &["-m", "twine", "check", "--strict"]);
        let audit = command(&python, &["-m", "abi3audit", "--strict"]);
        let contents = command(&python, &["-c", CONTENTS]);
        for (mut command, takes_sdist) in [(contents, true), (twine, true), (audit, false)] {
            command.arg(&self.wheel).args(takes_sdist.then_some(&self.sdist));
            let status = command.status().context("cannot run a check of the packages")?;
            if !status.success() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn command(python: &Path, arguments: &[&str]) -> Command {
    let mut command = cargo::command(python.as_os_str(), &Native::default());
    command.args(arguments);
    command
}

/// The folder with the sources of an sdist.
fn unpacked(sdist: &Path) -> anyhow::Result<PathBuf> {
    let sources = cargo::workspace_root().join(SOURCES);
    tar::unpack(sdist, &sources)?;
    let mut entries = std::fs::read_dir(&sources)?;
    let Some(folder) = entries.next() else { bail!("{} is empty", sdist.display()) };
    Ok(folder?.path())
}

fn environment() -> Environment {
    Environment {
        folder: "python-packaging".to_owned(),
        what: "twine and abi3audit".to_owned(),
        requirements: REQUIREMENTS.to_owned(),
        download: "about 20 MB".to_owned(),
        instead: "run twine and abi3audit by hand".to_owned(),
        oldest: OLDEST,
        newest: NEWEST,
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::environment::assert_pinned;

    #[test]
    fn the_checks_are_pinned() {
        assert_pinned(REQUIREMENTS);
    }
}
