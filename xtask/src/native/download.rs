//! Downloads a pinned wheel with pip, which respects the user's index, proxy and cache.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::pins::{WHEEL_PYTHON, Wheel};
use crate::interpreter::{BY_HAND, Python, last_line, run_watched};
use crate::progress::{self, Step, megabytes};

/// Downloads `wheel` into `folder`. Temporary files go below it, too, because /tmp may be small.
pub(super) fn download(wheel: &Wheel, folder: &Path, python: &Python) -> anyhow::Result<PathBuf> {
    let temporary = folder.join("pip");
    crate::cache::remove(&temporary)?;
    fs::create_dir_all(&temporary)
        .with_context(|| format!("cannot write {}", temporary.display()))?;
    let requirements = temporary.join("requirements.txt");
    let line = format!("{}=={} --hash=sha256:{}\n", wheel.project, wheel.version, wheel.sha256);
    fs::write(&requirements, line)
        .with_context(|| format!("cannot write {}", requirements.display()))?;

    let shown = progress::on_terminal();
    let mut command =
        python.command(["-m", "pip", "download", "--no-deps", "--require-hashes", "--no-input"]);
    command.args(["--disable-pip-version-check", "--only-binary=:all:", "--implementation", "cp"]);
    command.args(["--python-version", WHEEL_PYTHON, "--platform", &wheel.platform]);
    command.arg("--dest").arg(folder).arg("--requirement").arg(&requirements);
    command.args(["--progress-bar", if shown { "on" } else { "off" }]);
    // Some users make pip refuse to run outside a virtual environment; nothing is installed here.
    command.env("TMPDIR", &temporary).env("PIP_REQUIRE_VIRTUALENV", "0");

    let step = Step::start(format!(
        "downloading {} {} ({})",
        wheel.project,
        wheel.version,
        megabytes(wheel.bytes)
    ));
    let outcome = run_watched(command, shown, || step.so_far(size_below(&temporary), wheel.bytes))?;
    if !outcome.status.success() {
        bail!(explain(wheel, &outcome.output));
    }
    let file = folder.join(&wheel.file);
    if !file.is_file() {
        bail!("pip downloaded {} {} but not as {}", wheel.project, wheel.version, wheel.file);
    }
    crate::cache::remove(&temporary)?;
    step.done();
    Ok(file)
}

/// Bytes in the files below `folder`, as far as they are readable.
fn size_below(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => size_below(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Summarizes pip's output in one line.
fn explain(wheel: &Wheel, output: &str) -> String {
    let name = format!("{} {}", wheel.project, wheel.version);
    let has = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
    if has(&["DO NOT MATCH THE HASHES"]) {
        let got = output
            .lines()
            .find_map(|line| line.trim().strip_prefix("Got"))
            .map_or("another", str::trim);
        return format!(
            "the package index gave another file as {name} than the pinned one (sha256 expected {}, got {got}); nothing was \
             installed: check which index `pip config list` names, {BY_HAND}",
            wheel.sha256
        );
    }
    if has(&["No space left on device", "Disk quota exceeded"]) {
        return format!(
            "the disk is full: no room for {name} ({}); set XDG_CACHE_HOME to a larger one",
            megabytes(wheel.bytes)
        );
    }
    if has(&[
        "Failed to establish a new connection",
        "Max retries exceeded",
        "Temporary failure in name resolution",
        "Name or service not known",
        "NameResolutionError",
        "NewConnectionError",
        "ConnectTimeout",
        "Read timed out",
        "ReadTimeoutError",
        "ProxyError",
        "Connection refused",
        "Connection reset",
        "Network is unreachable",
    ]) {
        return format!(
            "cannot download {name}: pip does not reach the package index; check the network and pip's proxy and index settings, {BY_HAND}"
        );
    }
    if has(&["No matching distribution found", "Could not find a version"]) {
        return format!(
            "cannot download {name}: the package index that pip uses does not have {}; check `pip config list`, {BY_HAND}",
            wheel.file
        );
    }
    let reason = output.lines().rev().find_map(|line| line.trim().strip_prefix("ERROR: "));
    format!(
        "pip could not download {name}: {}",
        reason.map_or_else(|| last_line(output), str::to_owned)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, expect: &str) {
        let message = explain(&super::super::pins::libtorch().wheels[0], output);
        assert!(message.contains(expect) && message.lines().count() == 1, "{message}");
        assert!(message.contains("torch 2.11.0"), "{message}");
    }

    #[test]
    fn pip_output_is_explained_in_one_line() {
        check(
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n    torch==2.11.0:\n        Expected sha256 7aa2\n             Got        deadbeef\n",
            "got deadbeef",
        );
        check(
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
            "the disk is full",
        );
        check(
            "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)'\nERROR: Could not find a version that satisfies the requirement torch==2.11.0\nERROR: No matching distribution found for torch==2.11.0\n",
            "does not reach the package index",
        );
        check(
            "ERROR: No matching distribution found for torch==2.11.0\n",
            "does not have torch-2.11.0-cp311",
        );
        check("ERROR: something new\n\nnotice: a newer pip\n", "something new");
        check("Killed\n", "Killed");
    }

    #[test]
    fn sizes_are_summed_below_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/x"), [0; 10]).unwrap();
        fs::write(folder.path().join("y"), [0; 5]).unwrap();
        assert_eq!(size_below(folder.path()), 15);
        assert_eq!(size_below(&folder.path().join("absent")), 0);
    }
}
