//! `cargo xtask peers`: makes a Python environment for each loader that is compared with, builds `sweep` and becomes it.
//!
//! A peer is two files of `benches/peers`: `NAME.txt` pins its packages, `NAME.py` runs it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, bail};

use crate::environment::Environment;
use crate::interpreter::last_line;
use crate::progress::say;
use crate::sweep::Program;
use crate::{cargo, sweep};

/// Passes `arguments` on; the program knows what they mean, and says which peers are wanted.
pub(crate) fn run(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let program = match sweep::build()? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let scripts = cargo::workspace_root().join("benches/peers");
    let command = || -> anyhow::Result<Command> {
        let mut command = program.command("peers")?;
        command.arg("--scripts").arg(&scripts).args(sweep::of_results());
        Ok(command)
    };
    let mut started = command()?;
    if !asks_for_help(arguments) {
        // A slip on the command line, or a missing experiment, should not be told after a download of gigabytes.
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
            match prepare(name, &scripts) {
                Ok(python) => started.arg("--environment").arg(setting(name, &python)),
                Err(error) => {
                    eprintln!("error: {name}: {error:#}");
                    started.arg("--unavailable").arg(name)
                }
            };
        }
    }
    started.args(arguments);
    Program::become_it(started)
}

/// Whether clap will print its help, before `--`.
pub(crate) fn asks_for_help(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h")
}

fn setting(name: &str, python: &Path) -> OsString {
    let mut setting = OsString::from(format!("{name}="));
    setting.push(python);
    setting
}

/// The interpreter of a peer's environment. One that the user names wins.
fn prepare(name: &str, scripts: &Path) -> anyhow::Result<PathBuf> {
    let check = |python: &Path| check_script(python, &scripts.join(format!("{name}.py")));
    let variable = format!("SOMAFEED_PYTHON_{}", name.to_uppercase().replace('-', "_"));
    if let Some(named) = std::env::var_os(&variable).filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        check(&named).with_context(|| format!("{variable}={} cannot be used", named.display()))?;
        say(&format!("using {variable}={}", named.display()));
        return Ok(named);
    }
    let path = scripts.join(format!("{name}.txt"));
    let requirements = fs::read_to_string(&path)
        .with_context(|| format!("cannot read the peer's packages from {}", path.display()))?;
    environment(name, requirements, &variable)
        .with_context(|| path.display().to_string())?
        .prepare(check)
}

fn environment(name: &str, requirements: String, variable: &str) -> anyhow::Result<Environment> {
    let Some(version) = pinned(&requirements, name) else {
        bail!("it pins no version of {name}");
    };
    let download = requirements.lines().find_map(|line| line.strip_prefix("# Download: "));
    Ok(Environment {
        folder: format!("python-peer-{name}-{version}"),
        what: format!("{name} {version} to compare with"),
        download: download.unwrap_or("hundreds of MB").trim().to_owned(),
        instead: format!("set {variable} to an interpreter that has {name} {version}"),
        requirements,
    })
}

fn pinned<'a>(requirements: &'a str, name: &str) -> Option<&'a str> {
    let mut pins = requirements.lines().filter_map(|line| line.trim().split_once("=="));
    pins.find(|(package, _)| *package == name).map(|(_, version)| version)
}

/// Sees whether the script finds all that it imports.
fn check_script(python: &Path, script: &Path) -> anyhow::Result<()> {
    let output = Command::new(python)
        .arg("-B")
        .arg(script)
        .arg("--help")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", python.display()))?;
    if !output.status.success() {
        let said = last_line(&String::from_utf8_lossy(&output.stderr));
        bail!("{} does not run {}: {said}", python.display(), script.display());
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
            let environment = environment(name, requirements, "X").unwrap();
            assert!(environment.folder.starts_with(&format!("python-peer-{name}-")));
            assert!(environment.download.contains("GB") || environment.download.contains("MB"));
            assert!(path.with_extension("py").is_file(), "{name} has no script");
            n_peers += 1;
        }
        assert_ne!(n_peers, 0);
    }

    #[test]
    fn a_peer_without_its_own_version_is_refused() {
        let error = environment("x", "x-extra==1.0\ny==2.0\n".to_owned(), "X").unwrap_err();
        assert!(error.to_string().contains("pins no version of x"), "{error}");
        let made = environment("x", "# Download: 1 GB\nx==1.5\n".to_owned(), "X").unwrap();
        assert_eq!((made.folder.as_str(), made.download.as_str()), ("python-peer-x-1.5", "1 GB"));
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
