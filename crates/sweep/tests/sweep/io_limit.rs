//! `--io-limit` limits the rate at which points read.
//!
//! Each row records how the limit was enforced and the rate reached; a limit that cannot be
//! enforced is rejected.

use std::path::Path;
use std::process::Output;

use bench_report::{EpochRecord, Status, read};
use tempfile::TempDir;

use crate::program;

const RATE: u64 = 2_000_000;

fn generated() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = ["generate", "experiment", "--cells", "1500", "--genes", "2000", "--quiet"];
    let made = program::command(folder.path(), &made).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    folder
}

fn sweep(folder: &Path, arguments: &[&str]) -> Output {
    let always = ["sweep", "--uri", "experiment", "--results", "results", "-b", "8x64"];
    program::command(folder, &[&always[..], arguments].concat()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn rows(folder: &Path) -> Vec<EpochRecord> {
    read(&folder.join("results")).unwrap_or_default()
}

#[test]
fn a_rate_is_held_and_told_with_each_row() {
    let folder = generated();
    let limited = ["--io-limit", "2MB/s", "-m", "native,scipy.csr", "-E", "2"];
    let output = sweep(folder.path(), &limited);
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stderr(&output);
    assert!(printed.contains("reading is held to 2.0 MB/s by bucket, which counts"), "{printed}");
    assert!(printed.contains(" GB peak, read at "), "{printed}");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("native, warm, 2.0 MB/s by bucket"), "{table}");
    let rows = rows(folder.path());
    assert_eq!(rows.len(), 4);
    for EpochRecord { point, measured, .. } in &rows {
        assert_eq!(
            (point.settings.number("io_limit"), point.settings.get("io_limit_by")),
            (Some(RATE), Some("bucket"))
        );
        assert_eq!((measured.status, &measured.message), (Status::Ok, &None));
        let bytes = measured.io_bytes.unwrap();
        // Enough bytes for several bursts, and no fewer than the loader reports; footers and
        // indices come on top.
        assert!(10 * RATE / 100 < bytes, "{measured:?}");
        assert!(measured.bytes_read.unwrap() <= bytes, "{measured:?}");
        let (secs, rate) = (measured.io_secs.unwrap(), measured.io_bytes_per_sec.unwrap());
        assert_eq!(rate, bytes as f64 / secs);
        assert!(rate <= 1.05 * RATE as f64 + RATE as f64 / 100.0 / secs, "{rate}");
        // The epoch takes at least the time of its bytes, less the first burst.
        assert!((bytes as f64 / RATE as f64) - 0.01 <= measured.elapsed.unwrap(), "{measured:?}");
    }
}

#[test]
fn without_a_limit_nothing_is_noted() {
    let folder = generated();
    let output = sweep(folder.path(), &["-m", "native", "-q"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = rows(folder.path());
    let EpochRecord { point, measured, .. } = &rows[0];
    assert_eq!((point.settings.get("io_limit"), point.settings.get("io_limit_by")), (None, None));
    assert_eq!(
        (measured.io_bytes, measured.io_secs, measured.io_bytes_per_sec),
        (None, None, None)
    );
}

#[test]
fn what_cannot_be_held_is_refused_in_a_line_before_anything_is_measured() {
    let folder = generated();
    for (arguments, expect) in [
        (&["--io-limit", "fast"][..], "1000MB/s or 250MiB/s"),
        (&["--io-limit", "1000MB"], "1000MB/s or 250MiB/s"),
        (&["--io-limit", "1kB/s"], "64KiB/s is the least"),
        (&["--io-limit-by", "bucket"], "--io-limit"),
        (
            &["--io-limit", "2MB/s", "--io-limit-by", "bucket", "--reader", "libtiledb"],
            "does not hold libtiledb",
        ),
        (
            &["--io-limit", "2MB/s", "--io-limit-by", "kernel", "--uri", "s3://bucket/x"],
            "not on a disk of this machine",
        ),
    ] {
        // Repeating --uri would be an error.
        let output = if arguments.contains(&"--uri") {
            let own = ["sweep", "--results", "results"];
            program::command(folder.path(), &[&own[..], arguments].concat()).output().unwrap()
        } else {
            sweep(folder.path(), arguments)
        };
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(expect) && printed.lines().count() == 1, "{printed}");
        assert!(rows(folder.path()).is_empty());
    }
}

/// libtiledb's reads are limited by the kernel if control groups can be created.
///
/// Otherwise the limit is rejected with the reason.
#[test]
fn libtiledb_is_held_by_the_kernel_or_not_at_all() {
    let folder = generated();
    let output =
        sweep(folder.path(), &["--io-limit", "20MB/s", "--reader", "libtiledb", "-m", "native"]);
    let (printed, rows) = (stderr(&output), rows(folder.path()));
    if output.status.success() {
        assert!(printed.contains("reading is held to 20.0 MB/s by kernel"), "{printed}");
        let EpochRecord { point, measured, .. } = &rows[0];
        let held = (point.reader.as_str(), point.settings.get("io_limit_by"), point.cache.as_str());
        assert_eq!(held, ("libtiledb", Some("kernel"), "unknown"));
        assert!(measured.io_bytes.is_some() && measured.io_secs == measured.elapsed);
        assert!(!groups_left(), "a control group is left behind");
    } else {
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(
            printed.contains("the kernel's limit cannot be had: ") && rows.is_empty(),
            "{printed}"
        );
        assert_eq!(printed.lines().count(), 1, "{printed}");
    }
}

/// Whether a control group of a finished process is left.
fn groups_left() -> bool {
    let mut folders = vec!["/sys/fs/cgroup".into(), "/sys/fs/cgroup/blkio".into()];
    let mut left = false;
    while let Some(folder) = folders.pop() {
        let folder: std::path::PathBuf = folder;
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(process) = name.strip_prefix("somafeed-") {
                left |= !Path::new("/proc").join(process).exists();
            } else if entry.path().join("cgroup.procs").exists() {
                folders.push(entry.path());
            }
        }
    }
    left
}
