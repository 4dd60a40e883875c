//! `cargo xtask site`: builds the documentation site from the pages of `docs`, the help of each
//! command, and the sources of the Python package.

use std::process::ExitCode;

use crate::cargo;
use crate::environment::{Environment, NEWEST, OLDEST};
use crate::native::Native;
use crate::progress::print_answer;
use crate::wheel;

const REQUIREMENTS: &str = include_str!("../requirements/site.txt");
/// The folder of the site, below the workspace.
const FOLDER: &str = "target/site";

/// Builds the site and prints the path of its first page.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let code = build()?;
    if code == ExitCode::SUCCESS {
        print_answer(cargo::workspace_root().join(FOLDER).join("html/index.html").display())?;
    }
    Ok(code)
}

/// Builds the site; a warning of Sphinx fails it.
pub(crate) fn build() -> anyhow::Result<ExitCode> {
    let sphinx =
        environment().prepare(|python| wheel::check(python, &["-c", "import furo, griffe"]))?;
    // The commands are those of the wheel.
    let python = wheel::test_environment()?;
    let package = match wheel::unpacked(&python)? {
        Ok(folder) => folder,
        Err(code) => return Ok(code),
    };
    let metadata = cargo::metadata(&Native::default())?;
    let repository = metadata["metadata"]["repository"].as_str().unwrap_or_default();
    let mut command = cargo::command(sphinx.as_os_str(), &Native::default());
    command.args(["docs/site/build.py", "--out", FOLDER, "--version", env!("CARGO_PKG_VERSION")]);
    command.args(["--repository", repository]);
    command.arg("--python").arg(&python).arg("--package").arg(&package);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(cargo::exit_code(cargo::run(&mut command)?))
}

fn environment() -> Environment {
    Environment {
        folder: "python-site".to_owned(),
        what: "Sphinx for the site".to_owned(),
        requirements: REQUIREMENTS.to_owned(),
        download: "about 20 MB".to_owned(),
        instead: "install the packages of xtask/requirements/site.txt and run docs/site/build.py \
                  by hand"
            .to_owned(),
        oldest: OLDEST,
        newest: NEWEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::assert_pinned;

    #[test]
    fn the_packages_are_pinned() {
        assert_pinned(REQUIREMENTS);
    }
}
