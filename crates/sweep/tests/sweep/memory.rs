//! `--memory` limits a point: the peak of its process less the memory it started with.

use std::path::Path;
use std::process::Output;

use bench_report::read;

use crate::program;

const MIB: u64 = 1 << 20;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    program::command(folder, arguments).output().unwrap()
}

#[test]
fn a_limit_on_memory_holds_and_one_that_cannot_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let made =
        run(folder, &["generate", "experiment", "--cells", "6000", "--genes", "20000", "--quiet"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // Dense blocks of 80 and of 160 MB; four more would be read ahead without the limit.
    let sweep = ["sweep", "--uri", "experiment", "-m", "np.array", "-B", "256", "-q"];
    let points = ["-b", "1x1000", "-b", "1x2000", "--prefetch-blocks", "4", "--results", "results"];
    let done = run(folder, &[&sweep[..], &points, &["--memory", "400MiB"]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let rows = read(&folder.join("results")).unwrap();
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let taken = row.measured.max_mem.unwrap() - row.measured.start_mem_bytes.unwrap();
        assert!(taken <= 400 * MIB, "{} took {} MiB", row.point.id(), taken / MIB);
        assert_eq!(row.point.settings.number("memory_limit"), Some(400 * MIB));
    }
    assert!(rows.iter().any(|row| row.point.settings.number("prefetch_blocks").unwrap_or(0) < 4));

    let refused = run(folder, &[&sweep[..], &points, &["--memory", "100MiB"]].concat());
    assert!(!refused.status.success());
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(printed.contains("--memory 100.0 MiB is too little"), "{printed}");
    assert_eq!(read(&folder.join("results")).unwrap().len(), 2, "nothing was measured");
}
