//! Sweeps that are interrupted, resumed, or share a results folder.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use bench_report::{EpochRecord, Status, append, read};

use crate::bed::{Bed, SMALL_BUFFERS, child_of, rows, signal, stderr, wait_for};

/// Grid of two points.
const GRID: [&str; 4] = ["-b", "128 / [1,2]", "-m", "native"];

/// Sweeps the grid into `results` with `--resume`; returns rows and stderr.
#[track_caller]
fn resumed(bed: &Bed, results: &str, arguments: &[&str]) -> (Vec<EpochRecord>, String) {
    let all = ["sweep", "experiment", "--results", results, "--resume", "--config", SMALL_BUFFERS];
    let output = bed.run(&[&all[..], &GRID, arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    (read(&bed.path(results)).unwrap(), stderr(&output))
}

#[test]
fn what_is_measured_under_the_same_conditions_is_left_out() {
    let bed = Bed::new();
    let (first, printed) = resumed(&bed, "out", &[]);
    assert_eq!(first.len(), 2);
    assert!(printed.contains("resume: 0 of 2 points are measured (0 rows"), "{printed}");
    let (again, printed) = resumed(&bed, "out", &[]);
    assert_eq!(again, first);
    assert!(printed.contains("resume: 2 of 2 points are measured (2 rows"), "{printed}");
    // More repeats: existing rows count.
    let (more, printed) = resumed(&bed, "out", &["--repeat", "2"]);
    assert!(printed.contains("resume: 2 of 4 points"), "{printed}");
    assert_eq!((more.len(), &more[..2]), (4, &first[..]));
    // A second epoch reruns the first, whose row is not added again.
    let (epochs, printed) = resumed(&bed, "out", &["-E", "2"]);
    assert!(printed.contains("it is there already"), "{printed}");
    assert_eq!(epochs.len(), 6);
    assert!(epochs[4..].iter().all(|row| row.measured.epoch == Some(1)));
    // Other settings have rows of their own.
    let (other, printed) = resumed(&bed, "out", &["--seed", "3"]);
    assert!(
        printed.contains(
            "resume: 0 of 2 points are measured (0 rows under the same conditions, 6 of others)"
        ),
        "{printed}"
    );
    assert_eq!(other.len(), 8);
    // Other data at the same place also has rows of its own.
    fs::rename(bed.path("experiment"), bed.path("before")).unwrap();
    let made = bed.run(&[
        "generate",
        "experiment",
        "--cells",
        "200",
        "--genes",
        "300",
        "--seed",
        "5",
        "-q",
    ]);
    assert!(made.status.success());
    let (_, printed) = resumed(&bed, "out", &[]);
    assert!(printed.contains("resume: 0 of 2"), "{printed}");
    // Without --resume, rows are added as repetitions.
    assert_eq!(bed.sweep("out", &[&GRID[..], &["-q"]].concat()).len(), 12);
}

#[test]
fn memory_that_ran_out_is_left_out_and_what_crashed_is_tried_again() {
    let bed = Bed::new();
    let (rows, _) = resumed(&bed, "out", &[]);
    let mut kept = rows;
    for (row, status) in kept.iter_mut().zip([Status::Oom, Status::Crashed]) {
        row.measured.status = status;
    }
    append(&bed.path("other"), &kept).unwrap();
    let (rows, printed) = resumed(&bed, "other", &[]);
    assert!(printed.contains("resume: 1 of 2"), "{printed}");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2].point.chunks_per_block, kept[1].point.chunks_per_block);
}

/// Counts the rows of each epoch of each repeat of each point.
fn counted(records: &[EpochRecord]) -> BTreeMap<(String, Option<u64>, Option<u64>), usize> {
    let mut counts = BTreeMap::new();
    for record in records {
        let measured = &record.measured;
        let key = (record.point.id(), measured.repeat, measured.epoch);
        *counts.entry(key).or_insert(0) += 1;
    }
    counts
}

#[test]
fn two_sweeps_at_once_lose_and_double_nothing() {
    let bed = Bed::new();
    let arguments = [&GRID[..], &["--repeat", "2"]].concat();
    let both: Vec<_> = (0..2).map(|_| bed.start("apart", &arguments)).collect();
    let printed: Vec<Output> =
        both.into_iter().map(|one| one.wait_with_output().unwrap()).collect();
    assert!(printed.iter().all(|output| output.status.success()), "{printed:?}");
    // Without --resume, each sweep measures the whole grid.
    let counts = counted(&read(&bed.path("apart")).unwrap());
    assert_eq!(counts.len(), 4);
    assert!(counts.values().all(|n| *n == 2), "{counts:?}");

    // With --resume, the two sweeps share one pass over the grid.
    let arguments = [&arguments[..], &["--resume"]].concat();
    let both: Vec<_> = (0..2).map(|_| bed.start("together", &arguments)).collect();
    let printed: Vec<Output> =
        both.into_iter().map(|one| one.wait_with_output().unwrap()).collect();
    assert!(printed.iter().all(|output| output.status.success()), "{printed:?}");
    let counts = counted(&read(&bed.path("together")).unwrap());
    assert_eq!(counts.len(), 4);
    assert!(counts.values().all(|n| *n == 1), "{counts:?}");
}

#[test]
fn a_killed_sweep_has_kept_what_it_told_and_goes_on() {
    let bed = Bed::new();
    let arguments = [&GRID[..], &["--repeat", "4", "--resume"]].concat();
    let mut n_before = 0;
    for round in 0..4_u64 {
        let mut sweep = bed.start("out", &arguments);
        wait_for("another row", || {
            (n_before < rows(&bed.path("out")) || sweep.try_wait().unwrap().is_some()).then_some(())
        });
        // Kills the sweep at a different moment in each round.
        sleep(Duration::from_millis(37 * round));
        let point = child_of(sweep.id());
        sweep.kill().unwrap();
        let output = sweep.wait_with_output().unwrap();
        // A point does not outlive its sweep.
        if let Some(point) = point {
            wait_for("the end of the point", || (!is_running(point)).then_some(()));
        }
        let printed = stderr(&output);
        let n_printed = printed.lines().filter(|line| line.starts_with("csr ")).count();
        let records = read(&bed.path("out")).unwrap();
        assert!(
            (n_before + n_printed..=n_before + n_printed + 1).contains(&records.len()),
            "{printed}"
        );
        n_before = records.len();
    }
    let all = ["sweep", "experiment", "--results", "out", "--config", SMALL_BUFFERS];
    let output = bed.run(&[&all[..], &arguments].concat());
    let printed = stderr(&output);
    assert!(output.status.success(), "{printed}");
    assert!(
        printed.contains(" of 8 points are measured") && !printed.contains("resume: 0 of"),
        "{printed}"
    );
    let counts = counted(&read(&bed.path("out")).unwrap());
    assert!(counts.len() == 8 && counts.values().all(|n| *n == 1), "{counts:?}");
}

fn is_running(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z')))
}

#[test]
fn an_interrupted_sweep_goes_on() {
    let bed = Bed::new();
    let sweep = bed.start("out", &[&GRID[..], &["--repeat", "3", "--resume"]].concat());
    wait_for("the first row", || (0 < rows(&bed.path("out"))).then_some(()));
    signal("-INT", sweep.id());
    let output = sweep.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let before = read(&bed.path("out")).unwrap();
    let (after, printed) = resumed(&bed, "out", &["--repeat", "3"]);
    assert!(printed.contains(&format!("resume: {} of 6", before.len())), "{printed}");
    assert_eq!((after.len(), &after[..before.len()]), (6, &before[..]));
}

#[test]
fn a_full_disk_is_said_and_loses_nothing_that_was_kept() {
    let bed = Bed::new();
    let first = bed.sweep("out", &["-b", "64", "-m", "native", "-q"]);
    let path = bed.path("out/epochs.parquet");
    let room_kib = fs::metadata(&path).unwrap().len().div_ceil(1024) + 2;
    // A limit on file size simulates a full disk: with its signal ignored, writing past it is an
    // error.
    let sweep = bed.command(&[
        "sweep",
        "experiment",
        "--results",
        "out",
        "--repeat",
        "40",
        "-b",
        "64",
        "-m",
        "native",
        "--config",
        SMALL_BUFFERS,
    ]);
    let mut command = Command::new("bash");
    command.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {room_kib}; exec \"$0\" \"$@\""));
    command.arg(sweep.get_program()).args(sweep.get_args()).current_dir(bed.path("."));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let last = printed.lines().last().unwrap();
    assert!(
        last.starts_with("error: ")
            && last.contains("cannot write")
            && last.contains("epochs.parquet"),
        "{printed}"
    );
    let n_printed = printed.lines().filter(|line| line.starts_with("csr ")).count();
    let records = read(&bed.path("out")).unwrap();
    assert_eq!((records.len(), &records[..1]), (1 + n_printed, &first[..]), "{printed}");
    assert!(
        last.contains(&format!("{n_printed} rows are kept, this one is not: csr 1x64")),
        "{printed}"
    );
    // Without the limit, the folder accepts rows again.
    assert_eq!(bed.sweep("out", &["-b", "64", "-m", "native", "-q"]).len(), records.len() + 1);
}
