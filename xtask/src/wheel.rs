//! `cargo xtask wheel`: builds the wheel of the Python package; `cargo xtask pytest`: tests it;
//! `cargo xtask test-wheel`: tests the wheel for users.

mod matrix;
mod notices;
mod packaging;
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::cache::remove;
use crate::cargo;
use crate::environment::{Environment, NEWEST, OLDEST};
use crate::interpreter::last_line;
use crate::native::Native;
use crate::progress::{print_answer, print_line};

pub(crate) use matrix::run as test_matrix;
pub(crate) use tests::{
    CPU_TORCH, UNPACKED, environment as test_environment, run as test, unpacked,
};

const MATURIN: &str = include_str!("../requirements/maturin.txt");
const MATURIN_VERSION: &str = "1.16.0";
const ZIG: &str = include_str!("../requirements/zig.txt");
const ZIG_VERSION: &str = "0.17.1";

/// The profile of the wheel for users.
const RELEASE: &str = "wheel";
/// The platform tag of the wheel for users on Linux: glibc 2.17 or newer, the oldest that Rust's
/// standard library supports. docs/python-package.md names it.
const OLDEST_GLIBC: &str = "manylinux_2_17";
/// The library with which gcc's programs, and glibc, unwind stacks.
const UNWINDER: &str = "libgcc_s.so.1";

/// The systems that a wheel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Systems {
    /// All that users have: on Linux, those with the C library of [`OLDEST_GLIBC`].
    OfUsers,
    /// Those with a C library like this one's.
    LikeThis,
}

impl Systems {
    /// Whether zig links the wheel. Only on Linux does the C library of the building machine limit
    /// where the wheel runs; zig links against the symbols of an older one.
    fn needs_zig(self) -> bool {
        self == Self::OfUsers && cfg!(all(target_os = "linux", target_env = "gnu"))
    }
}

/// Builds the wheel for users and prints its path.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    match release()? {
        Ok(wheel) => {
            print_answer(wheel.display())?;
            Ok(ExitCode::SUCCESS)
        }
        Err(code) => Ok(code),
    }
}

/// Builds the wheel for users and returns its path; the exit code if the build failed and printed
/// why.
pub(crate) fn release() -> anyhow::Result<Result<PathBuf, ExitCode>> {
    build(RELEASE, Systems::OfUsers)
}

/// Builds the wheel with a profile of cargo and returns its path; the exit code if the build failed
/// and printed why.
fn build(profile: &str, systems: Systems) -> anyhow::Result<Result<PathBuf, ExitCode>> {
    // Wheels of earlier versions would stand beside the new one.
    remove(&folder(profile))?;
    notices::write()?;
    let (_, maturin) = maturin()?;
    let mut command = cargo::command(maturin.as_os_str(), &Native::default());
    command.args(["build", "--locked"]);
    command.arg("--manifest-path").arg(cargo::workspace_root().join("python/Cargo.toml"));
    finish(command, profile, systems)
}

/// Where the wheel of a profile is put.
fn folder(profile: &str) -> PathBuf {
    cargo::workspace_root().join("target/wheels").join(profile)
}

/// Adds to maturin's command how a wheel is built, and runs it.
fn finish(
    mut command: Command,
    profile: &str,
    systems: Systems,
) -> anyhow::Result<Result<PathBuf, ExitCode>> {
    let (python, _) = maturin()?;
    let zig = systems.needs_zig().then(zig).transpose()?;
    let folder = folder(profile);
    command.args(["--profile", profile, "--interpreter"]).arg(&python).arg("--out").arg(&folder);
    if let Some(zig) = &zig {
        command.args(["--zig", "--compatibility", OLDEST_GLIBC]);
        command.env("CARGO_ZIGBUILD_ZIG_PATH", zig);
        // zig only links: zstd decodes a quarter slower as its compiler builds it. maturin sets the
        // variables with underscores; crate cc prefers those with dashes.
        for (name, compiler) in [("CC", "cc"), ("CXX", "c++")] {
            let name = format!("{name}_{}-unknown-linux-gnu", std::env::consts::ARCH);
            if std::env::var_os(&name).is_none() {
                command.env(name, compiler);
            }
        }
    }
    if zig.is_some() {
        command.args(["--", "-C"]).arg(link_unwinder()?);
    }
    let status = cargo::run(&mut command)?;
    if !status.success() {
        return Ok(Err(cargo::exit_code(status)));
    }
    let wheel = only_file(&folder, "whl")?;
    if zig.is_some() {
        check_tag(&wheel)?;
        check_unwinder(&python, &wheel)?;
    }
    Ok(Ok(wheel))
}

/// The option of rustc that links [`UNWINDER`].
///
/// zig would link an unwinder of its own. When Python ends, glibc ends the daemon threads with the
/// one in that library, and a stack that two unwinders read crashes the process.
fn link_unwinder() -> anyhow::Result<OsString> {
    let asked = Command::new("cc").arg(format!("-print-file-name={UNWINDER}")).output();
    let output = asked.context("cannot run `cc`, which says where its libraries are")?;
    let file = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if !file.is_file() {
        bail!("`cc` has no {UNWINDER}: install gcc's runtime library (Debian, Ubuntu: libgcc-s1)");
    }
    let mut option = OsString::from("link-arg=");
    option.push(file);
    Ok(option)
}

/// Fails unless the wheel's module loads [`UNWINDER`].
fn check_unwinder(python: &Path, wheel: &Path) -> anyhow::Result<()> {
    let script = format!(
        "import sys, zipfile; wheel = zipfile.ZipFile(sys.argv[1]); \
         files = [wheel.read(name) for name in wheel.namelist() if name.endswith('.so')]; \
         sys.exit(not files or any(b'{UNWINDER}\\0' not in file for file in files))"
    );
    let wheel = wheel.to_str().context("the path of the wheel is not UTF-8")?;
    check(python, &["-c", &script, wheel])
        .with_context(|| format!("{wheel} was linked without {UNWINDER}"))
}

/// Fails unless the wheel's name says that it runs with the C library of [`OLDEST_GLIBC`].
fn check_tag(wheel: &Path) -> anyhow::Result<()> {
    let name = wheel.file_name().and_then(OsStr::to_str).unwrap_or_default();
    // name-version-python-abi-platforms.whl, where a dot joins several platforms.
    let platforms = name.strip_suffix(".whl").and_then(|name| name.rsplit('-').next());
    let is_tagged = platforms.is_some_and(|platforms| {
        platforms.split('.').any(|one| one.strip_prefix(OLDEST_GLIBC).is_some_and(is_machine))
    });
    if !is_tagged {
        bail!("maturin made {name}, which is not tagged {OLDEST_GLIBC}");
    }
    Ok(())
}

/// Whether this is the rest of a platform tag, like `_x86_64`.
fn is_machine(rest: &str) -> bool {
    rest.strip_prefix('_').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// A Python, and the program maturin beside its packages.
fn maturin() -> anyhow::Result<(PathBuf, PathBuf)> {
    let environment = Environment {
        folder: format!("python-maturin-{MATURIN_VERSION}"),
        what: format!("maturin {MATURIN_VERSION}"),
        requirements: MATURIN.to_owned(),
        download: "about 10 MB".to_owned(),
        instead: format!(
            "build the wheel by hand: `pip install maturin=={MATURIN_VERSION}`, then `maturin \
             build --profile {RELEASE}` in python/"
        ),
        oldest: OLDEST,
        newest: NEWEST,
    };
    let python = environment.prepare(|python| check(&program(python)?, &["--version"]))?;
    let maturin = program(&python)?;
    Ok((python, maturin))
}

/// The program zig in its package.
pub(crate) fn zig() -> anyhow::Result<PathBuf> {
    let environment = Environment {
        folder: format!("python-ziglang-{ZIG_VERSION}"),
        what: format!("zig {ZIG_VERSION}, which links the wheel for older Linux systems"),
        requirements: ZIG.to_owned(),
        download: "about 100 MB".to_owned(),
        instead: format!(
            "build a wheel for systems like this one by hand: `pip install \
             maturin=={MATURIN_VERSION}`, then `maturin build --profile {RELEASE}` in python/"
        ),
        oldest: OLDEST,
        newest: NEWEST,
    };
    let zig_of = |python: &Path| Ok(packages(python)?.join("ziglang/zig"));
    let python = environment.prepare(|python| check(&zig_of(python)?, &["version"]))?;
    zig_of(&python)
}

/// Where pip puts maturin if it installs into a folder of packages.
fn program(python: &Path) -> anyhow::Result<PathBuf> {
    Ok(packages(python)?.join("bin/maturin"))
}

/// The folder of an interpreter's packages.
pub(crate) fn packages(python: &Path) -> anyhow::Result<PathBuf> {
    let script = "import site; print(site.getsitepackages()[0], end='')";
    let output = Command::new(python).args(["-c", script]).output();
    let output = output.with_context(|| format!("cannot run {}", python.display()))?;
    Ok(PathBuf::from(String::from_utf8(output.stdout)?))
}

/// Fails unless the interpreter succeeds with these arguments.
pub(crate) fn check(python: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let ran = Command::new(python).args(arguments).output();
    let output = ran.with_context(|| format!("cannot run {}", python.display()))?;
    if !output.status.success() {
        let reason = last_line(&String::from_utf8_lossy(&output.stderr));
        bail!("`{} {}` failed: {reason}", python.display(), arguments.join(" "));
    }
    Ok(())
}

/// The file with an extension in a folder that has one.
fn only_file(folder: &Path, extension: &str) -> anyhow::Result<PathBuf> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension() == Some(OsStr::new(extension)));
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file),
        _ => bail!("maturin left no .{extension}, or several, in {}", folder.display()),
    }
}

/// Puts the wheel for users into the environment of an interpreter, in place of an earlier one.
pub(crate) fn install(python: &Path) -> anyhow::Result<()> {
    let Ok(wheel) = release()? else { bail!("cargo could not build the wheel") };
    let script = "import sysconfig; print(sysconfig.get_path('purelib'), end='')";
    let ran = Command::new(python).args(["-c", script]).output();
    let output = ran.with_context(|| format!("cannot run {}", python.display()))?;
    let packages = String::from_utf8(output.stdout).context("the folder of packages")?;
    remove(&Path::new(&packages).join("somafeed"))?;
    let wheel = wheel.to_str().context("the path of the wheel is not UTF-8")?;
    check(python, &["-m", "zipfile", "-e", wheel, &packages])
}

/// Builds the wheel for users and returns the folder in which it is unpacked; the exit code if the
/// build failed and printed why.
pub(crate) fn unpacked_release(python: &Path) -> anyhow::Result<Result<PathBuf, ExitCode>> {
    unpack(python, release()?, "target/python-release")
}

/// Unpacks a wheel that was built, a zip archive, into a folder of the workspace, in place of an
/// earlier one.
fn unpack(
    python: &Path,
    built: Result<PathBuf, ExitCode>,
    folder: &str,
) -> anyhow::Result<Result<PathBuf, ExitCode>> {
    let wheel = match built {
        Ok(wheel) => wheel,
        Err(code) => return Ok(Err(code)),
    };
    let into = cargo::workspace_root().join(folder);
    remove(&into)?;
    let (Some(wheel), Some(to)) = (wheel.to_str(), into.to_str()) else {
        bail!("{} or {} is not UTF-8", wheel.display(), into.display());
    };
    check(python, &["-m", "zipfile", "-e", wheel, to])?;
    Ok(Ok(into))
}

/// Runs pytest over the tests of the package; `cargo xtask pytest`.
pub(crate) fn pytest(arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    print_line("building the wheel for its tests: some minutes at first, later seconds");
    test(arguments)
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::environment::assert_pinned;

    #[test]
    fn maturin_is_pinned() {
        assert_pinned(MATURIN);
        assert!(MATURIN.contains(&format!("maturin=={MATURIN_VERSION}\n")));
    }

    #[test]
    fn zig_is_pinned() {
        assert_pinned(ZIG);
        assert!(ZIG.contains(&format!("ziglang=={ZIG_VERSION}\n")));
    }

    #[test]
    fn the_tag_of_the_wheel_is_the_documented_one() {
        let of_users = "somafeed-0.1.0-cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl";
        check_tag(Path::new(of_users)).unwrap();
        check_tag(Path::new("x/somafeed-0.1.0-cp311-abi3-manylinux_2_17_aarch64.whl")).unwrap();
        for other in [
            "somafeed-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl",
            "somafeed-0.1.0-cp311-abi3-manylinux_2_170_x86_64.whl",
            "somafeed-0.1.0-cp311-abi3-linux_x86_64.whl",
            "manylinux_2_17_x86_64-0.1.0-cp311-abi3-linux_x86_64.whl",
        ] {
            let error = check_tag(Path::new(other)).unwrap_err().to_string();
            assert!(error.contains(other) && error.contains(OLDEST_GLIBC), "{error}");
        }
        let page =
            fs::read_to_string(cargo::workspace_root().join("docs/python-package.md")).unwrap();
        let glibc = OLDEST_GLIBC.trim_start_matches("manylinux_").replace('_', ".");
        assert!(
            page.contains(&format!("`{OLDEST_GLIBC}`")) && page.contains(&format!("glibc {glibc}"))
        );
        // Tests need no zig, and nor does another system.
        assert!(!Systems::LikeThis.needs_zig());
        assert_eq!(Systems::OfUsers.needs_zig(), cfg!(target_os = "linux"));
    }

    #[test]
    fn a_folder_has_one_wheel() {
        let folder = tempfile::tempdir().unwrap();
        let error = only_file(folder.path(), "whl").unwrap_err().to_string();
        assert!(error.contains("no .whl"), "{error}");
        let wheel = folder.path().join("a.whl");
        fs::write(&wheel, "").unwrap();
        fs::write(folder.path().join("a.txt"), "").unwrap();
        assert_eq!(only_file(folder.path(), "whl").unwrap(), wheel);
        fs::write(folder.path().join("b.whl"), "").unwrap();
        assert!(only_file(folder.path(), "whl").is_err());
    }
}
