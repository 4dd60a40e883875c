//! `growth` as a user runs it: sizes are generated, swept and compared.

use std::fs;
use std::path::Path;
use std::process::Output;

use bench_report::read;

use crate::program;

fn growth(folder: &Path, arguments: &[&str], sweep: &[&str]) -> Output {
    let always = ["growth", "--genes", "200", "--data", "data", "--results", "out"];
    let all = [&always[..], arguments, &["--"], sweep].concat();
    program::command(folder, &all).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_size_is_generated_swept_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sweep = ["-b", "8x16", "-b", "4x16", "-m", "native", "-B", "32"];
    let output = growth(folder, &["--cells", "600,200,400", "--keep"], &sweep);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = read(&folder.join("out")).unwrap();
    let measured: Vec<_> =
        rows.iter().map(|row| (row.data.total_rows, row.point.chunks_per_block)).collect();
    assert_eq!(measured, [(200, 8), (200, 4), (400, 8), (400, 4), (600, 8), (600, 4)]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.ends_with("out/growth.md\n"), "{printed}");
    let report = fs::read_to_string(folder.join("out/growth.md")).unwrap();
    for expect in ["--cells 600,200,400", "| csr 4x16 b32 dense, native, warm", "µs per cell"] {
        assert!(report.contains(expect), "{expect}: {report}");
    }
    // One line for time and peak, one for the parts of memory.
    assert_eq!(report.lines().filter(|line| line.starts_with("| csr")).count(), 12);
    for part in ["joinids", "row index", "all parts", "growth-parts.svg"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(fs::read_to_string(folder.join("out/growth-parts.svg")).unwrap().contains("<svg"));
    let memory = |row: &bench_report::EpochRecord| {
        // A code of cell_type has one byte, and the order one number.
        (
            row.measured.joinid_bytes,
            row.measured.obs_bytes.map(|bytes| bytes >= row.data.total_rows),
        )
    };
    assert!(rows.iter().all(|row| memory(row) == (Some(0), Some(true))));
    assert!(rows.iter().all(|row| 0 < row.measured.order_bytes.unwrap()));
    assert_eq!(report.matches("the sizes lie within").count(), 4);
    let kept = || fs::read_dir(folder.join("data")).unwrap().count();
    assert_eq!(kept(), 3);
    // Another run uses the existing experiment, adds rows, and then removes the experiment.
    let output = growth(folder, &["--cells", "400", "-q"], &sweep);
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    assert_eq!((read(&folder.join("out")).unwrap().len(), kept()), (8, 2));
}

#[test]
fn what_cannot_be_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (arguments, sweep, expect) in [
        (&["--cells", "0,100"][..], &[][..], "--cells must be numbers of 1 or more"),
        (&["--cells", "many"], &[], "many"),
        (&["--cells", "100"], &["-b", "7 / 3"], "is no sweep's command line"),
        (&["--cells", "100"], &["--config", "rest.token=abc"], "rest.token=*** behind -- may hold"),
        (&["--cells", "100"], &["-M", "from=s3://a:b'c@d/e"], "from=s3://d/e behind -- may hold"),
    ] {
        let output = growth(folder, arguments, sweep);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.lines().last().unwrap().contains(expect), "{printed}");
        // Nothing was started.
        let is_refused = expect.contains("may hold");
        assert!(!is_refused || !folder.join("data").join("growth-100x200-seed0").exists());
    }
}
