//! `cargo xtask peers`: makes a Python environment for each compared loader, builds `sweep` and
//! becomes it.
//!
//! A peer is two files in `benches/peers`: `NAME.txt` pins its packages, `NAME.peer.py` runs it.
//! Comments at the head of the former give further facts: `# Python: 3.12 to 3.13` if not every
//! Python will do, `# Package: P` if the peer's own package has another name, `# Download: 3 GB`,
//! `# Environment: tiledbsoma` if the environment of `cargo xtask python` will do, and
//! `# Wheel: somafeed` if the wheel of this workspace belongs to it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, bail};

use crate::cache::Cache;
use crate::environment::{Environment, NEWEST, OLDEST};
use crate::interpreter::last_line;
use crate::progress::print_line;
use crate::sweep::{Needs, Program};
use crate::{cargo, python, sweep, wheel};

/// Passes `arguments` on to `sweep peers`, which parses them and lists the requested peers.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let program = match sweep::build("sweep", "sweep", &Needs::all(false))? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let scripts = cargo::workspace_root().join("benches/peers");
    let command = || -> anyhow::Result<Command> {
        let mut command = program.command("peers")?;
        command.arg("--scripts").arg(&scripts).args(sweep::results_arguments());
        command.arg("--copies").arg(Cache::of_user()?.root().join("peer-copies"));
        Ok(command)
    };
    let mut started = command()?;
    if !asks_for_help(arguments) {
        // Report a wrong argument or a missing experiment before a download of gigabytes.
        let mut check = command()?;
        check.args(arguments).arg("--check");
        let checked = check
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run the program that was built")?;
        if !checked.status.success() {
            return Ok(cargo::exit_code(checked.status));
        }
        for name in String::from_utf8_lossy(&checked.stdout).lines() {
            match prepare(name, &scripts, true) {
                Ok(python) => started.arg("--environment").arg(setting(name, &python)),
                Err(error) => {
                    let why = format!("{error:#}");
                    print_line(&format!("{name}: {why}"));
                    started.arg("--unavailable").arg(setting(name, Path::new(&why)))
                }
            };
        }
    }
    started.args(arguments);
    Program::exec(started)
}

/// Whether clap will print its help: only arguments before `--` count.
pub(crate) fn asks_for_help(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h")
}

fn setting(name: &str, python: &Path) -> OsString {
    let mut setting = OsString::from(format!("{name}="));
    setting.push(python);
    setting
}

/// The interpreter of a peer's environment, with the wheel if that belongs to it and is used. One
/// that the user names is preferred.
pub(crate) fn prepare(name: &str, scripts: &Path, uses_wheel: bool) -> anyhow::Result<PathBuf> {
    let check = |python: &Path| check_script(python, &script(name, scripts));
    let variable = format!("SOMAFEED_PYTHON_{}", name.to_uppercase().replace('-', "_"));
    if let Some(named) = std::env::var_os(&variable).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        check(&named).with_context(|| format!("{variable}={} cannot be used", named.display()))?;
        print_line(&format!("using {variable}={}", named.display()));
        return Ok(named);
    }
    let path = scripts.join(format!("{name}.txt"));
    let requirements = fs::read_to_string(&path)
        .with_context(|| format!("cannot read the peer's packages from {}", path.display()))?;
    if header(&requirements, "Environment") == Some("tiledbsoma") {
        let python = python::prepare()?;
        check(&python)?;
        return Ok(python);
    }
    let with_wheel = uses_wheel && header(&requirements, "Wheel").is_some();
    let environment =
        environment(name, requirements, &variable).with_context(|| path.display().to_string())?;
    if with_wheel {
        let python = environment.prepare(|_| Ok(()))?;
        wheel::install(&python)?;
        check(&python)?;
        return Ok(python);
    }
    environment.prepare(check)
}

/// The script that runs a peer. `cubes.py`, `doc2vec.py`, `fields.py` and `sequences.py` are none
/// of `sweep peers`, so they have other names.
fn script(name: &str, scripts: &Path) -> PathBuf {
    let is_of_a_program = matches!(name, "cubes" | "doc2vec" | "fields" | "sequences");
    let suffix = if is_of_a_program { "py" } else { "peer.py" };
    scripts.join(format!("{name}.{suffix}"))
}

/// The value of a comment at the head of a list of packages, like `# Download: 3 GB`.
fn header<'a>(requirements: &'a str, what: &str) -> Option<&'a str> {
    let comments = requirements.lines().map_while(|line| line.strip_prefix("# "));
    let mut found = comments.filter_map(|line| line.strip_prefix(what)?.strip_prefix(": "));
    found.next().map(str::trim)
}

/// Parses `3.12 to 3.13` as the oldest and the newest version.
fn pythons(text: &str) -> Option<((u32, u32), (u32, u32))> {
    let version = |text: &str| {
        let (major, minor) = text.trim().split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let (oldest, newest) = text.split_once(" to ")?;
    Some((version(oldest)?, version(newest)?))
}

fn environment(name: &str, requirements: String, variable: &str) -> anyhow::Result<Environment> {
    let package = header(&requirements, "Package").unwrap_or(name).to_owned();
    let Some(version) = pinned(&requirements, &package).map(str::to_owned) else {
        bail!("it pins no version of {package}");
    };
    let (oldest, newest) = match header(&requirements, "Python") {
        None => (OLDEST, NEWEST),
        Some(text) => match pythons(text) {
            Some(range) => range,
            None => bail!("its Python versions are {text:?}, expected the form `3.12 to 3.13`"),
        },
    };
    Ok(Environment {
        folder: format!("python-peer-{name}-{version}"),
        what: format!("{name} {version} to compare with"),
        download: header(&requirements, "Download").unwrap_or("hundreds of MB").to_owned(),
        instead: format!("set {variable} to an interpreter that has {package} {version}"),
        requirements,
        oldest,
        newest,
    })
}

fn pinned<'a>(requirements: &'a str, name: &str) -> Option<&'a str> {
    let mut pins = requirements.lines().filter_map(|line| line.trim().split_once("=="));
    pins.find(|(package, _)| *package == name).map(|(_, version)| version)
}

/// Checks that the script's imports work.
fn check_script(python: &Path, script: &Path) -> anyhow::Result<()> {
    let output = Command::new(python)
        .arg("-B")
        .arg(script)
        .arg("--help")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", python.display()))?;
    if !output.status.success() {
        let reason = last_line(&String::from_utf8_lossy(&output.stderr));
        bail!("{} does not run {}: {reason}", python.display(), script.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::assert_pinned;

    fn folder() -> PathBuf {
        cargo::workspace_root().join("benches/peers")
    }

    #[test]
    fn every_peer_pins_every_package() {
        let mut n_peers = 0;
        for file in fs::read_dir(folder()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|kind| kind != "txt") {
                continue;
            }
            let requirements = fs::read_to_string(&path).unwrap();
            assert_pinned(&requirements);
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(script(name, &folder()).is_file(), "{name} has no script");
            n_peers += 1;
            if header(&requirements, "Environment") == Some("tiledbsoma") {
                continue;
            }
            let environment = environment(name, requirements, "X").unwrap();
            assert!(environment.folder.starts_with(&format!("python-peer-{name}-")));
            assert!(environment.download.contains("GB") || environment.download.contains("MB"));
            assert!(OLDEST <= environment.oldest && environment.oldest <= environment.newest);
        }
        assert!(1 < n_peers);
    }

    #[test]
    fn a_peer_without_its_own_version_is_refused() {
        let error = environment("x", "x-extra==1.0\ny==2.0\n".to_owned(), "X").unwrap_err();
        assert!(error.to_string().contains("pins no version of x"), "{error}");
        let made = environment("x", "# Download: 1 GB\nx==1.5\n".to_owned(), "X").unwrap();
        assert_eq!((made.folder.as_str(), made.download.as_str()), ("python-peer-x-1.5", "1 GB"));
    }

    #[test]
    fn the_head_of_a_list_says_what_else_is_to_be_known() {
        let list = "# A peer.\n# Python: 3.12 to 3.13\n# Package: y-z\n# Download: 1 GB\ny-z==1.5\n# Python: 3.9 to 3.9\n";
        let made = environment("x", list.to_owned(), "X").unwrap();
        assert_eq!((made.oldest, made.newest), ((3, 12), (3, 13)));
        assert_eq!(made.folder, "python-peer-x-1.5");
        assert!(made.instead.contains("y-z 1.5"), "{}", made.instead);
        let bad = environment("x", list.replace("3.12 to", "3.12 and"), "X").unwrap_err();
        assert!(bad.to_string().contains("expected the form `3.12 to 3.13`"), "{bad}");
    }

    #[test]
    fn a_script_that_does_not_run_is_told_in_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("x.py");
        fs::write(&script, "import a_module_that_is_not_there\n").unwrap();
        let python = Path::new("python3");
        let error = check_script(python, &script).unwrap_err().to_string();
        assert!(
            error.contains("a_module_that_is_not_there") && error.lines().count() == 1,
            "{error}"
        );
        fs::write(&script, "print('help')\n").unwrap();
        check_script(python, &script).unwrap();
    }

    #[test]
    fn help_needs_no_environment() {
        let asks =
            |words: &[&str]| asks_for_help(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(asks(&["--uri", "x", "--help"]) && asks(&["-h"]));
        assert!(!asks(&["--uri", "x"]) && !asks(&["--", "-h"]));
    }
}
