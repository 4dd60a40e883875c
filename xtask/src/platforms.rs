//! `cargo xtask platforms`: what can be checked here of other systems. The published crates and
//! the Python module are type-checked for macOS and Linux on arm64, and the crates without I/O are
//! tested on an emulated Linux on arm64. zig compiles the C code and links.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use crate::cargo;
use crate::debian::{Needed, runs};
use crate::native::Native;
use crate::progress::print_line;
use crate::wheel;

const FOLDER: &str = "target/platforms";
/// Rust's name of a system, and zig's.
const SYSTEMS: [(&str, &str); 2] =
    [("aarch64-apple-darwin", "aarch64-macos"), (LINUX, "aarch64-linux-gnu")];
const LINUX: &str = "aarch64-unknown-linux-gnu";
/// What users import, without torch, which is not here for these systems; and the Python module.
const CHECKED: [&str; 4] = [
    "--package=somafeed",
    "--package=somafeed-python",
    "--features=somafeed/anndata,somafeed/arrays,somafeed/azure,somafeed/gcs,somafeed/images",
    "--features=somafeed/libtiledb,somafeed/ndarray,somafeed/s3,somafeed/servers,somafeed/sprs,somafeed/web",
];
/// Crates whose tests need nothing but a processor.
const TESTED: [&str; 7] = [
    "doc2vec",
    "somafeed-csr",
    "somafeed-densify",
    "somafeed-pipeline",
    "somafeed-shuffle",
    "somafeed-slots",
    "somafeed-tokens",
];
const EMULATOR: &str = "qemu-aarch64-static";
/// Where Debian puts libraries for arm64.
const ARM64: &str = "/usr/aarch64-linux-gnu";

/// Checks and tests; ends at the first failure.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let zig = wheel::zig()?;
    for (system, name) in SYSTEMS {
        add_system(system)?;
        let tools = Tools::write(&zig, name)?;
        let mut check = cargo::cargo(["check", "--target", system], &Native::default());
        tools.enter(check.args(CHECKED), system);
        if !cargo::run(&mut check)?.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    let emulator = Needed {
        purpose: "tests for arm64 run on an emulator",
        package: "qemu-user-static",
        by_hand: "install qemu's user mode so that qemu-aarch64-static is on the PATH (Debian, \
                  Ubuntu: apt install qemu-user-static)",
        service: None,
    };
    emulator.prepare(|| runs(EMULATOR.as_ref()).then_some(()))?;
    let libraries = Needed {
        purpose: "tests for arm64 need its libraries of C",
        package: "libgcc-s1-arm64-cross",
        by_hand: "install glibc and libgcc for arm64 below /usr/aarch64-linux-gnu (Debian, Ubuntu: \
                  apt install libgcc-s1-arm64-cross)",
        service: None,
    };
    libraries.prepare(|| Path::new(ARM64).join("lib/libgcc_s.so.1").exists().then_some(()))?;
    let tools = Tools::write(&zig, "aarch64-linux-gnu")?;
    let mut test =
        cargo::cargo(["test", "--target", LINUX, "--lib", "--tests"], &Native::default());
    test.args(TESTED.map(|name| format!("--package={name}")));
    tools.enter(&mut test, LINUX);
    test.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", EMULATOR);
    test.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", &tools.compiler);
    test.env("QEMU_LD_PREFIX", ARM64);
    // An emulated processor is some ten times slower.
    test.env("PROPTEST_CASES", "16");
    let status = cargo::run(&mut test)?;
    if status.success() {
        print_line("macOS and Linux on arm64: checked; tests of the crates without I/O passed");
    }
    Ok(cargo::exit_code(status))
}

/// Installs Rust's standard library for a system.
fn add_system(system: &str) -> anyhow::Result<()> {
    let mut command = Command::new("rustup");
    command.current_dir(cargo::workspace_root()).args(["target", "add", system]);
    let status = cargo::run(&mut command).context("rustup installs the standard library")?;
    if !status.success() {
        bail!("rustup cannot install the standard library for {system}: {status}");
    }
    Ok(())
}

/// zig as a compiler of C for one system, in the way in which build scripts call one.
struct Tools {
    compiler: PathBuf,
    cpp_compiler: PathBuf,
    archiver: PathBuf,
}

impl Tools {
    fn write(zig: &Path, system: &str) -> anyhow::Result<Self> {
        let folder = cargo::workspace_root().join(FOLDER).join(system);
        fs::create_dir_all(&folder)?;
        let zig = zig.display();
        // Build scripts name the system in words that zig does not know.
        let compiler = |name: &str| {
            format!(
                "#!/bin/sh\nfor word in \"$@\"; do\n  shift\n  case \"$word\" in\n    \
                 --target=*|-arch|arm64|-mmacosx-version-min=*) ;;\n    *) set -- \"$@\" \"$word\" \
                 ;;\n  esac\ndone\nexec '{zig}' {name} -target {system} \"$@\"\n"
            )
        };
        let archiver = format!("#!/bin/sh\nexec '{zig}' ar \"$@\"\n");
        let written = |name: &str, text: String| -> anyhow::Result<PathBuf> {
            let path = folder.join(name);
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            Ok(path)
        };
        Ok(Self {
            compiler: written("cc", compiler("cc"))?,
            cpp_compiler: written("c++", compiler("c++"))?,
            archiver: written("ar", archiver)?,
        })
    }

    /// Has build scripts compile C by these tools.
    fn enter(&self, command: &mut Command, system: &str) {
        let system = system.replace('-', "_");
        command.env(format!("CC_{system}"), &self.compiler);
        command.env(format!("CXX_{system}"), &self.cpp_compiler);
        command.env(format!("AR_{system}"), &self.archiver);
    }
}
