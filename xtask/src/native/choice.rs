//! The choice of libraries: the environment's first, then the recorded ones, then our own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use super::pins::LIBTORCH_VERSION;
use super::record::Record;
use crate::interpreter::last_line;
use crate::progress;

pub(super) const LIBTORCH: &str = "LIBTORCH";
pub(super) const USE_PYTORCH: &str = "LIBTORCH_USE_PYTORCH";
pub(super) const LIBTILEDB: &str = "SOMAFEED_LIBTILEDB";
/// Disables torch-sys's version check, and ours.
const BYPASS: &str = "LIBTORCH_BYPASS_VERSION_CHECK";

/// The user's environment variables, as far as they matter here.
#[derive(Debug, Clone, Default)]
pub(super) struct Variables {
    libtorch: Option<OsString>,
    /// These replace parts of LIBTORCH in torch-sys.
    libtorch_lib: Option<OsString>,
    libtorch_include: Option<OsString>,
    use_pytorch: bool,
    libtiledb: Option<OsString>,
    bypass: bool,
}

impl Variables {
    /// The variables of this process, without those that cargo set from `.cargo/native.toml`.
    pub(super) fn of_process(recorded: &Record) -> Self {
        let of_user = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty() && !recorded.is_source_of(name, value))
        };
        Self {
            libtorch: of_user(LIBTORCH),
            libtorch_lib: of_user("LIBTORCH_LIB"),
            libtorch_include: of_user("LIBTORCH_INCLUDE"),
            use_pytorch: of_user(USE_PYTORCH).is_some(),
            libtiledb: of_user(LIBTILEDB),
            bypass: of_user(BYPASS).is_some(),
        }
    }
}

/// The source of libtorch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Libtorch {
    /// The PyTorch that `python3` imports.
    PyTorch,
    /// A folder with `include/` and `lib/`.
    Folder(PathBuf),
    /// Our own, in the cache or to be downloaded.
    Install,
}

/// The source of libtiledb.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Libtiledb {
    /// This shared object.
    File(PathBuf),
    /// Our own, in the cache or to be downloaded.
    Install,
}

/// Chooses libtorch. A library that the user names must be usable; a recorded one that is not is
/// dropped.
pub(super) fn libtorch(
    variables: &Variables,
    recorded: &Record,
    cache: &Path,
) -> anyhow::Result<Libtorch> {
    if variables.use_pytorch {
        check_pytorch(variables.bypass).with_context(|| format!("{USE_PYTORCH} is set"))?;
        progress::print_line(&format!("using the PyTorch of python3, since {USE_PYTORCH} is set"));
        return Ok(Libtorch::PyTorch);
    }
    if let Some(named) = &variables.libtorch {
        let folder = absolute(named)?;
        check_libtorch(&folder, variables)
            .with_context(|| format!("{LIBTORCH}={} cannot be used", folder.display()))?;
        progress::print_line(&format!("using {LIBTORCH}={}", folder.display()));
        return Ok(Libtorch::Folder(folder));
    }
    if recorded.get(USE_PYTORCH).is_some() && check_pytorch(variables.bypass).is_ok() {
        progress::print_line(&format!(
            "using the PyTorch of python3, as recorded in .cargo/native.toml from {USE_PYTORCH}"
        ));
        return Ok(Libtorch::PyTorch);
    }
    match recorded.get(LIBTORCH) {
        Some(folder) if !folder.starts_with(cache) && check_libtorch(folder, variables).is_ok() => {
            progress::print_line(&format!(
                "using {LIBTORCH}={}, as recorded in .cargo/native.toml",
                folder.display()
            ));
            Ok(Libtorch::Folder(folder.to_owned()))
        }
        _ => Ok(Libtorch::Install),
    }
}

/// Chooses libtiledb like [`libtorch`].
pub(super) fn libtiledb(
    variables: &Variables,
    recorded: &Record,
    cache: &Path,
) -> anyhow::Result<Libtiledb> {
    if let Some(named) = &variables.libtiledb {
        let file = absolute(named)?;
        check_libtiledb(&file)
            .with_context(|| format!("{LIBTILEDB}={} cannot be used", file.display()))?;
        progress::print_line(&format!("using {LIBTILEDB}={}", file.display()));
        return Ok(Libtiledb::File(file));
    }
    match recorded.get(LIBTILEDB) {
        Some(file) if !file.starts_with(cache) && check_libtiledb(file).is_ok() => {
            progress::print_line(&format!(
                "using {LIBTILEDB}={}, as recorded in .cargo/native.toml",
                file.display()
            ));
            Ok(Libtiledb::File(file.to_owned()))
        }
        _ => Ok(Libtiledb::Install),
    }
}

/// Makes a path absolute, because tests and benches run in other folders than this process.
fn absolute(named: &OsString) -> anyhow::Result<PathBuf> {
    std::path::absolute(named).with_context(|| format!("`{}` is no path", named.display()))
}

fn check_libtorch(folder: &Path, variables: &Variables) -> anyhow::Result<()> {
    let part = |replaced: &Option<OsString>, name: &str| {
        replaced.as_ref().map_or(folder, Path::new).join(name)
    };
    for (what, path) in [
        ("library", part(&variables.libtorch_lib, "lib/libtorch_cpu.so")),
        (
            "header",
            part(&variables.libtorch_include, "include/torch/csrc/api/include/torch/torch.h"),
        ),
    ] {
        if !path.exists() && cfg!(target_os = "linux") {
            bail!("there is no {what} {}", path.display());
        }
    }
    if let Ok(version) = std::fs::read_to_string(folder.join("build-version")) {
        check_version(version.trim(), variables.bypass)?;
    }
    Ok(())
}

fn check_pytorch(bypass: bool) -> anyhow::Result<()> {
    // torch-sys uses the same interpreter.
    let program = if std::env::var_os("VIRTUAL_ENV").is_some() { "python" } else { "python3" };
    let output = Command::new(program)
        .args(["-c", "import torch; print(torch.__version__)"])
        .output()
        .with_context(|| format!("cannot run `{program}`"))?;
    if !output.status.success() {
        bail!(
            "`{program}` cannot import torch: {}",
            last_line(&String::from_utf8_lossy(&output.stderr))
        );
    }
    check_version(String::from_utf8_lossy(&output.stdout).trim(), bypass)
}

/// Checks a version like `2.11.0` or `2.11.0+cu130`.
fn check_version(found: &str, bypass: bool) -> anyhow::Result<()> {
    if !bypass && found.split('+').next() != Some(LIBTORCH_VERSION) {
        bail!("it is version {found}, needed is {LIBTORCH_VERSION}");
    }
    Ok(())
}

fn check_libtiledb(file: &Path) -> anyhow::Result<()> {
    let found = std::fs::metadata(file).context("cannot read it")?;
    if !found.is_file() {
        bail!("it must be the shared object itself, such as libtiledb.so.2.30");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn fake_libtorch(folder: &Path, version: &str) {
        for file in ["lib/libtorch_cpu.so", "include/torch/csrc/api/include/torch/torch.h"] {
            fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
            fs::write(folder.join(file), "").unwrap();
        }
        fs::write(folder.join("build-version"), version).unwrap();
    }

    fn named(folder: &Path) -> Variables {
        Variables { libtorch: Some(folder.into()), ..Variables::default() }
    }

    const CACHE: &str = "/nonexistent/cache";

    #[test]
    fn nothing_named_means_our_own() {
        let (variables, recorded) = (Variables::default(), Record::default());
        assert_eq!(libtorch(&variables, &recorded, Path::new(CACHE)).unwrap(), Libtorch::Install);
        assert_eq!(libtiledb(&variables, &recorded, Path::new(CACHE)).unwrap(), Libtiledb::Install);
    }

    #[test]
    fn a_named_libtorch_wins_if_it_fits() {
        let folder = tempfile::tempdir().unwrap();
        fake_libtorch(folder.path(), "2.11.0+cu130\n");
        let other = Record::new(&[(LIBTORCH, "/other".into())]);
        let chosen = libtorch(&named(folder.path()), &other, Path::new(CACHE)).unwrap();
        assert_eq!(chosen, Libtorch::Folder(folder.path().to_owned()));
    }

    #[test]
    fn a_named_libtorch_that_does_not_fit_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let check = |variables: &Variables| {
            let error = libtorch(variables, &Record::default(), Path::new(CACHE)).unwrap_err();
            format!("{error:#}")
        };
        assert!(check(&named(folder.path())).contains("there is no library"));
        fake_libtorch(folder.path(), "2.10.0");
        let message = check(&named(folder.path()));
        assert!(
            message.contains("is version 2.10.0, needed is 2.11.0")
                && message.contains("LIBTORCH="),
            "{message}"
        );
        let bypass = Variables { bypass: true, ..named(folder.path()) };
        assert!(libtorch(&bypass, &Record::default(), Path::new(CACHE)).is_ok());
    }

    #[test]
    fn parts_of_libtorch_may_lie_elsewhere() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fake_libtorch(elsewhere.path(), "2.11.0");
        let variables = Variables {
            libtorch_lib: Some(elsewhere.path().into()),
            libtorch_include: Some(elsewhere.path().into()),
            ..named(folder.path())
        };
        assert!(libtorch(&variables, &Record::default(), Path::new(CACHE)).is_ok());
    }

    #[test]
    fn a_recorded_library_is_kept_while_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libtiledb.so");
        fs::write(&file, "").unwrap();
        fake_libtorch(folder.path(), "2.11.0");
        let recorded = Record::new(&[(LIBTORCH, folder.path().into()), (LIBTILEDB, file.clone())]);
        let variables = Variables::default();
        let elsewhere = Path::new(CACHE);
        assert_eq!(
            libtorch(&variables, &recorded, elsewhere).unwrap(),
            Libtorch::Folder(folder.path().into())
        );
        assert_eq!(
            libtiledb(&variables, &recorded, elsewhere).unwrap(),
            Libtiledb::File(file.clone())
        );
        // A recorded library in our own cache may be outdated, so it is looked up by name instead.
        assert_eq!(libtorch(&variables, &recorded, folder.path()).unwrap(), Libtorch::Install);
        fs::remove_file(&file).unwrap();
        assert_eq!(libtiledb(&variables, &recorded, elsewhere).unwrap(), Libtiledb::Install);
    }

    #[test]
    fn a_named_libtiledb_must_be_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let check = |path: &Path| {
            let variables = Variables { libtiledb: Some(path.into()), ..Variables::default() };
            libtiledb(&variables, &Record::default(), Path::new(CACHE))
                .map_err(|e| format!("{e:#}"))
        };
        assert!(check(folder.path()).unwrap_err().contains("must be the shared object itself"));
        assert!(check(&folder.path().join("absent")).unwrap_err().contains("cannot read it"));
    }
}
