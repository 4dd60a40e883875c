//! `ranks` as a user runs it: started here, searched, killed, and as a launcher starts them.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Output, Stdio};

use bench_report::{EpochRecord, Status, read};

use crate::bed::{Bed, N_CELLS, SMALL_BUFFERS, signal, stderr, wait_for};

/// 13 batches for one rank, the last with padding.
const SETTINGS: [&str; 10] =
    ["--uri", "experiment", "--config", SMALL_BUFFERS, "-b", "4x8", "-B", "16", "-E", "2"];

/// A consumer that is never done.
const FOREVER: [&str; 2] = ["--consumer", "60000ms"];

fn command(bed: &Bed, arguments: &[&str]) -> Command {
    bed.command(&[&["ranks"], &SETTINGS[..], arguments].concat())
}

/// One rank of `n`, with the variables that mpirun sets.
fn launched(bed: &Bed, (rank, n): (u64, u64), arguments: &[&str]) -> Command {
    let mut command = command(bed, &[&["--results", "out"], arguments].concat());
    command.env("OMPI_COMM_WORLD_RANK", rank.to_string());
    command.env("OMPI_COMM_WORLD_SIZE", n.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Number of ranks, rank and epoch of each row.
fn numbers(rows: &[EpochRecord]) -> Vec<(u64, u64, u64)> {
    let place = |row: &EpochRecord| {
        let measured = &row.measured;
        (row.point.world_size.unwrap(), measured.rank.unwrap(), measured.epoch.unwrap())
    };
    rows.iter().map(place).collect()
}

/// Checks the rows of `n` ranks that delivered all cells in two epochs.
#[track_caller]
fn check_rows(rows: &[EpochRecord], n: u64) {
    let expected: Vec<_> =
        (0..2).flat_map(|epoch| (0..n).map(move |rank| (n, rank, epoch))).collect();
    assert_eq!(numbers(rows), expected);
    for epoch in rows.chunks(n as usize) {
        let n_rows: u64 = epoch.iter().map(|row| row.measured.n_rows.unwrap()).sum();
        assert_eq!(n_rows, N_CELLS);
        for row in epoch {
            let found = row.measured.accelerator_utilization.unwrap();
            assert!(0.0 < found && found <= 1.0, "{found}");
            assert_eq!(row.point.consumer.as_deref(), Some("fixed:2"));
        }
    }
}

/// The processes of the ranks that a command measures. Each of its threads has a list.
fn ranks_of(command: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{command}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| thread.path().join("children"));
    let lists: Vec<String> = lists.filter_map(|list| fs::read_to_string(list).ok()).collect();
    let ids = lists.iter().flat_map(|list| list.split_whitespace());
    let mut ids: Vec<u32> = ids.map(|id| id.parse().unwrap()).collect();
    ids.sort_unstable();
    ids
}

fn output(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

#[test]
fn ranks_share_the_cells_and_one_report_has_all() {
    let bed = Bed::new();
    let ran =
        command(&bed, &["-n", "2", "--consumer", "2ms", "--results", "out"]).output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    let rows = read(&bed.path("out")).unwrap();
    check_rows(&rows, 2);
    let runs: BTreeSet<&String> = rows.iter().map(|row| &row.run.run_id).collect();
    assert_eq!(runs.len(), 1);
    let shown = String::from_utf8(ran.stdout).unwrap();
    for expect in ["samples/s of all", "least AU %", "slowest rank", "(measured: 2)"] {
        assert!(shown.contains(expect), "{expect}: {shown}");
    }
    // `report` draws the same again.
    let table = |name: &str| {
        let text = fs::read_to_string(bed.path("out").join(name)).unwrap();
        let at = text.find("| ranks | samples/s of all").unwrap();
        let lines = text[at..].lines().take_while(|line| !line.starts_with("!["));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n").trim().to_owned()
    };
    let reported = bed.run(&["report", "out", "--format", "md,svg"]);
    assert!(reported.status.success(), "{}", stderr(&reported));
    let readme = table("README.md");
    assert_eq!(readme.split("\n\nEvery epoch").next(), Some(table("table.md").as_str()));
    // One number of ranks is no line.
    assert!(!bed.path("out/ranks-speed.svg").exists());
}

#[test]
fn an_epoch_that_is_cut_off_has_the_cells_of_its_first_batches() {
    let bed = Bed::new();
    let arguments = ["-n", "3", "--max-batches", "2", "--consumer", "none", "--results", "out"];
    let ran = command(&bed, &arguments).output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    let rows = read(&bed.path("out")).unwrap();
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert_eq!(row.measured.n_rows, Some(32));
        assert_eq!(row.measured.accelerator_utilization, None);
    }
}

#[test]
fn the_largest_number_of_ranks_is_searched() {
    let bed = Bed::new();
    // Each number of ranks has this utilisation.
    let search = ["--least-au", "0.0001%", "-n", "3", "--consumer", "2ms", "--results", "out"];
    let ran = command(&bed, &search).output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    let rows = read(&bed.path("out")).unwrap();
    let mut left = &rows[..];
    for n in [1, 2, 3] {
        let (these, rest) = left.split_at(2 * n as usize);
        check_rows(these, n);
        left = rest;
    }
    assert!(left.is_empty());
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert!(shown.contains("AU of 0.0001 % or more are 3 (measured: 1, 2, 3)"), "{shown}");
    for picture in ["ranks-speed.svg", "ranks-utilization.svg"] {
        let svg = fs::read_to_string(bed.path("out").join(picture)).unwrap();
        assert!(svg.contains("ranks") && shown.contains(picture), "{picture}: {shown}");
    }
    // No number has all of it: the first batch alone is left out.
    let ran = command(&bed, &["--least-au", "100%", "--consumer", "2ms", "--results", "none"]);
    let ran = { ran }.output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    assert_eq!(read(&bed.path("none")).unwrap().len(), 2);
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert!(shown.contains("no number of ranks has an AU of 100 %"), "{shown}");
}

#[test]
fn a_rank_that_is_killed_ends_the_run_and_earlier_rows_stay() {
    let bed = Bed::new();
    let first = command(&bed, &["-n", "2", "--consumer", "2ms", "--results", "out"]);
    assert!({ first }.output().unwrap().status.success());
    let arguments = [&["-n", "2", "--results", "out"], &FOREVER[..]].concat();
    let mut run = command(&bed, &arguments);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ranks = wait_for("two ranks", || Some(ranks_of(run.id())).filter(|ids| ids.len() == 2));
    signal("-KILL", ranks[1]);
    let ended = output(run);
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    let message = stderr(&ended);
    assert!(message.contains(" of 2: killed (signal 9)"), "{message}");
    // The other rank has ended, too.
    assert!(!fs::exists(format!("/proc/{}", ranks[0])).unwrap());
    let rows = read(&bed.path("out")).unwrap();
    check_rows(&rows[..4], 2);
    let [failed] = &rows[4..] else { panic!("{} rows", rows.len()) };
    assert_eq!((failed.measured.status, failed.point.world_size), (Status::Oom, Some(2)));
    assert!(failed.measured.message.as_ref().unwrap().contains(" of 2: killed (signal 9)"));
    let readme = fs::read_to_string(bed.path("out/README.md")).unwrap();
    assert!(readme.contains("killed (signal 9)") && readme.contains("0 + 1 failed"), "{readme}");
}

#[test]
fn ranks_of_a_launcher_meet_and_rank_0_writes_the_rows() {
    let bed = Bed::new();
    let consumer = ["--consumer", "2ms"];
    let ranks = [2, 0, 1].map(|rank| launched(&bed, (rank, 3), &consumer).spawn().unwrap());
    let [two, zero, one] = ranks.map(output);
    for ended in [&two, &zero, &one] {
        assert!(ended.status.success(), "{}", stderr(ended));
    }
    check_rows(&read(&bed.path("out")).unwrap(), 3);
    assert!(two.stdout.is_empty() && one.stdout.is_empty());
    let shown = String::from_utf8(zero.stdout).unwrap();
    assert!(shown.contains("(measured: 3)"), "{shown}");
    let left: Vec<_> =
        fs::read_dir(bed.path("out")).unwrap().map(|of| of.unwrap().path()).collect();
    assert!(left.iter().all(|path| !path.to_str().unwrap().contains("meeting")), "{left:?}");
}

#[test]
fn a_launchers_rank_that_is_killed_or_never_comes_ends_the_others() {
    let bed = Bed::new();
    let [zero, one] = [0, 1].map(|rank| launched(&bed, (rank, 2), &FOREVER).spawn().unwrap());
    wait_for("both ranks", || {
        let both = [&zero, &one].map(|rank| ranks_of(rank.id()).len());
        (both == [1, 1]).then_some(())
    });
    // The whole rank, not the process that it measures.
    signal("-KILL", one.id());
    let (zero, one) = (output(zero), output(one));
    assert!(!one.status.success());
    assert_eq!(zero.status.code(), Some(1));
    let message = stderr(&zero);
    assert!(message.contains("rank 1 of 2: its connection closed before it was done"), "{message}");

    // Other settings than rank 0's.
    let mut zero = launched(&bed, (0, 2), &FOREVER).spawn().unwrap();
    let one = launched(&bed, (1, 2), &["--consumer", "1ms"]).output().unwrap();
    assert_eq!(one.status.code(), Some(1));
    assert!(stderr(&one).contains("with other settings"), "{}", stderr(&one));
    assert_eq!(zero.wait().unwrap().code(), Some(1));

    // A rank that finds no data, though rank 0 does, and names were left to choose.
    let elsewhere = tempfile::tempdir().unwrap();
    let zero = launched(&bed, (0, 2), &FOREVER).spawn().unwrap();
    let results = bed.path("out").to_str().unwrap().to_owned();
    let words = [&["ranks", "--results", &results][..], &SETTINGS[..], &FOREVER[..]].concat();
    let mut one = bed.command(&words);
    one.env("OMPI_COMM_WORLD_RANK", "1").env("OMPI_COMM_WORLD_SIZE", "2");
    let one = one.current_dir(elsewhere.path()).output().unwrap();
    let zero = output(zero);
    assert_eq!(zero.status.code(), Some(1), "{}", stderr(&one));
    let message = stderr(&zero);
    assert!(message.contains("rank 1 of 2") && message.contains("experiment"), "{message}");

    let late = [&FOREVER[..], &["--start-within", "1"]].concat();
    let alone = launched(&bed, (0, 2), &late).output().unwrap();
    assert_eq!(alone.status.code(), Some(1));
    assert!(stderr(&alone).contains("ranks 1 never came"), "{}", stderr(&alone));
    let alone = launched(&bed, (1, 2), &late).output().unwrap();
    assert_eq!(alone.status.code(), Some(1));
    assert!(stderr(&alone).contains("found no rank 0 within 1 s"), "{}", stderr(&alone));
}

#[test]
fn what_cannot_be_is_said_before_anything_is_measured() {
    let bed = Bed::new();
    for (arguments, code, expect) in [
        (&["-n", "2", "--consumer", "none", "--least-au", "90%"][..], 2, "needs a --consumer"),
        (&["-n", "2", "--consumer", "1ms", "-b", "8 / [1,2]"], 2, "the argument '--block-spec"),
        (&["-n", "2", "--consumer", "linear:no_such_column"], 1, "no_such_column"),
    ] {
        let all = [arguments, &["--results", "out"]].concat();
        let ran = command(&bed, &all).output().unwrap();
        assert_eq!(ran.status.code(), Some(code), "{}", stderr(&ran));
        assert!(stderr(&ran).contains(expect), "{expect}: {}", stderr(&ran));
    }
    let launched = launched(&bed, (0, 2), &["--consumer", "1ms", "-n", "2"]).output().unwrap();
    assert_eq!(launched.status.code(), Some(2));
    assert!(stderr(&launched).contains("leave out -n"), "{}", stderr(&launched));
    assert!(!bed.path("out/epochs.parquet").exists() || read(&bed.path("out")).unwrap().is_empty());
}
