//! `sweep` as a user runs it, on a small generated experiment.

use std::fs;
use std::process::Command;

use bench_report::{OrderEntropy, Status, read};

use crate::bed::{Bed, N_CELLS, SMALL_BUFFERS, child_of, rows, signal, stderr, wait_for};

#[test]
fn a_grid_is_measured_row_by_row() {
    let bed = Bed::new();
    let records = bed.sweep(
        "out",
        &["-b", "64 / [1,2]", "-b", "100", "-B", "30", "-E", "2", "-M", "disk=fast", "--seed", "7"],
    );
    assert_eq!(records.len(), 3 * 3 * 2);
    for record in &records {
        let measured = &record.measured;
        assert_eq!(measured.status, Status::Ok, "{record:?}");
        assert_eq!((measured.n_rows, measured.n_batches), (Some(N_CELLS), Some(7)));
        assert_eq!(measured.nnz, records[0].measured.nnz);
        assert!(
            0 < measured.nnz.unwrap()
                && 0.0 < measured.samples_per_sec.unwrap()
                && 0 < measured.max_mem.unwrap()
        );
        assert_eq!(measured.batch_wait_secs.len(), 7);
        assert_eq!((record.data.total_rows, record.data.n_cols), (N_CELLS, 300));
        assert_eq!(
            (record.point.batch_size, record.point.seed, record.point.max_batches),
            (30, 7, None)
        );
        assert_eq!(
            (record.point.order.as_str(), record.point.form.as_str()),
            ("shuffled", "dense")
        );
        assert_eq!(
            (record.point.cache.as_str(), record.run.metadata["disk"].as_str()),
            ("warm", "fast")
        );
        assert_eq!(record.point.settings.number("soma_buffer_size"), Some(1_000_000));
        assert_eq!(record.run.run_id, records[0].run.run_id);
        assert!(
            record.run.command.starts_with("sweep sweep --uri experiment"),
            "{}",
            record.run.command
        );
    }
    let printed: Vec<String> = records
        .iter()
        .map(|r| {
            format!(
                "{} {}x{} {}",
                r.point.chunk_method,
                r.point.chunks_per_block,
                r.point.chunk_size,
                r.measured.epoch.unwrap()
            )
        })
        .collect();
    assert_eq!(
        printed[..4],
        ["np.array 1x64 0", "np.array 1x64 1", "scipy.csr 1x64 0", "scipy.csr 1x64 1"]
    );
    assert_eq!(
        printed[12..],
        [
            "np.array 1x100 0",
            "np.array 1x100 1",
            "scipy.csr 1x100 0",
            "scipy.csr 1x100 1",
            "csr 1x100 0",
            "csr 1x100 1"
        ]
    );
}

#[test]
fn the_table_and_the_files_are_shown() {
    let bed = Bed::new();
    let output = bed.run(&["sweep", "--uri", "experiment", "-b", "100", "-m", "native,np"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("csr") && printed.contains("np.array"), "{printed}");
    let files: Vec<&str> = printed.lines().filter(|line| line.starts_with("results/")).collect();
    assert_eq!(files.len(), 4, "{printed}");
    assert!(files.iter().all(|file| 0 < fs::metadata(bed.path(file)).unwrap().len()));
    let progress = stderr(&output);
    assert!(
        progress.contains("page cache: warm") && progress.contains("csr 1x100: "),
        "{progress}"
    );
    // Another sweep gets another folder.
    assert!(
        bed.run(&["sweep", "--uri", "experiment", "-b", "100", "-m", "native", "--quiet"])
            .status
            .success()
    );
    assert_eq!(fs::read_dir(bed.path("results")).unwrap().count(), 2);
}

#[test]
fn limits_orders_and_forms_are_taken() {
    let bed = Bed::new();
    let records = bed.sweep("cut", &["-b", "50", "-B", "30", "-n", "2", "-q"]);
    assert_eq!(records.len(), 3);
    for record in &records {
        assert_eq!(
            (record.measured.n_rows, record.measured.n_batches, record.point.max_batches),
            (Some(60), Some(2), Some(2))
        );
    }
    let all = bed.sweep(
        "all",
        &[
            "-b",
            "50",
            "-n",
            "0",
            "-m",
            "native",
            "--order",
            "in-order",
            "--batch-form",
            "csr",
            "-q",
        ],
    );
    assert_eq!((all[0].measured.n_rows, all[0].point.max_batches), (Some(N_CELLS), None));
    assert_eq!((all[0].point.order.as_str(), all[0].point.form.as_str()), ("in-order", "csr"));
    let part = bed.sweep(
        "part",
        &[
            "-b",
            "50",
            "-m",
            "s",
            "-s",
            "20",
            "-e",
            "120",
            "-v",
            "40",
            "--obs-columns",
            "cell_type",
            "-q",
        ],
    );
    assert_eq!(
        (part[0].data.total_rows, part[0].data.n_cols, part[0].measured.n_rows),
        (100, 40, Some(100))
    );
    let whole = bed.sweep("drop", &["-b", "50", "-m", "s", "-B", "30", "--drop-last", "-q"]);
    assert_eq!((whole[0].measured.n_rows, whole[0].measured.n_batches), (Some(180), Some(6)));
}

#[test]
fn filters_and_transforms_are_taken_and_noted() {
    let bed = Bed::new();
    let filtered = [
        ["--obs-filter", "soma_joinid < 90 and soma_joinid not in [3, 4]"],
        ["--var-filter", "soma_joinid >= 100"],
        ["--target-sum", "10000"],
        ["--totals", "raw_sum"],
        ["--clip", "0,10"],
        ["--batch-form", "f16"],
    ]
    .concat();
    let arguments = [&["-b", "50", "-m", "native", "-e", "100", "--log1p", "-q"], &filtered[..]];
    let [record] = &bed.sweep("chosen", &arguments.concat())[..] else { panic!("one point") };
    assert_eq!((record.data.total_rows, record.data.n_cols), (88, 200));
    assert_eq!(record.measured.n_rows, Some(88));
    assert_eq!(record.point.settings.get("obs_filter"), Some(filtered[1]));
    assert_eq!(record.point.settings.get("var_filter"), Some(filtered[3]));
    let done = record.point.settings.get("transform");
    assert_eq!(done, Some("per 10000 of raw_sum, log1p, clipped to 0..10"));
    assert_eq!(record.point.form, "f16");
}

#[test]
fn how_random_the_order_is_stands_beside_the_speed() {
    let bed = Bed::new();
    let entropies = |results: &str, arguments: &[&str]| -> Vec<OrderEntropy> {
        let all = [&["-m", "native", "-B", "20", "-q"], arguments].concat();
        let [record] = &bed.sweep(results, &all)[..] else { panic!("one point") };
        record.measured.order_entropy.clone()
    };
    let default = entropies("default", &["-b", "10x10"]);
    let [cell_type, donor] = &default[..] else { panic!("two labels") };
    assert_eq!((&cell_type.label[..], &donor.label[..]), ("cell_type", "donor_id"));
    assert_eq!(cell_type.expected_by.as_deref(), Some("simulation"));

    // One block holds all data, which is a perfect shuffle. The columns are a dictionary, integers
    // and booleans.
    let columns = "cell_type,soma_joinid,is_primary_data";
    let perfect = entropies("perfect", &["-b", "20x10", "--entropy-of", columns]);
    let labels: Vec<&str> = perfect.iter().map(|one| one.label.as_str()).collect();
    assert_eq!(labels.join(","), columns);
    assert_eq!(perfect[0].data, cell_type.data);
    for one in &perfect {
        let [expected, perfect] = [one.expected, one.perfect].map(Option::unwrap);
        assert!((expected - perfect).abs() < 1e-9);
        assert_eq!(one.expected_by.as_deref(), Some("formula"));
    }
    // 200 distinct numbers, 20 in each batch.
    let numbers = &perfect[1];
    assert!((numbers.mean.unwrap() - 20_f64.log2()).abs() < 1e-9);
    assert!((numbers.expected.unwrap() - 20_f64.log2()).abs() < 1e-9);
    assert!((numbers.data.unwrap() - 200_f64.log2()).abs() < 1e-9);
    assert!(numbers.standard_deviation.unwrap() < 1e-9);

    let ordered = entropies("ordered", &["-b", "10x10", "--order", "in-order", "-n", "4"]);
    let [mean, expected] = [ordered[0].mean, ordered[0].expected].map(Option::unwrap);
    assert!((mean - expected).abs() < 1e-9 && mean < perfect[0].mean.unwrap());
    assert!(entropies("off", &["-b", "10x10", "--entropy-of", "none"]).is_empty());
}

#[test]
fn bad_input_is_one_line_and_loses_nothing() {
    let bed = Bed::new();
    let before = bed.sweep("kept", &["-b", "100", "-m", "native", "-q"]);
    fs::create_dir(bed.path("no-experiment")).unwrap();
    fs::write(bed.path("file"), "").unwrap();
    let (data, usage) = (1, 2);
    for (code, arguments, expect) in [
        (data, &["--uri", "absent"][..], "absent"),
        (data, &["--uri", "no-experiment"], "no-experiment"),
        (data, &["--uri", "experiment/obs"], "experiment/obs"),
        (data, &["--measurement", "ATAC"], "ATAC"),
        (data, &["--layer", "other"], "other"),
        (data, &["--obs-columns", "no_such_column"], "no_such_column"),
        (data, &["--entropy-of", "no_such_column"], "no_such_column"),
        (data, &["--entropy-of", "raw_mean_nnz"], "no entropy of raw_mean_nnz"),
        (usage, &["--entropy-of", "cell_type,none"], "--entropy-of none"),
        (data, &["--obs-filter", "no_such_column == 1"], "no_such_column"),
        (data, &["--obs-filter", "nnz ="], "character 5"),
        (data, &["--obs-filter", "nnz < 0"], "no cells"),
        (data, &["--target-sum", "0"], "not above 0"),
        (data, &["--target-sum", "1", "--totals", "cell_type"], "cell_type"),
        (usage, &["--totals", "raw_sum"], "--target-sum"),
        (usage, &["--clip", "1"], "two numbers"),
        (data, &["-v", "301"], "300"),
        (data, &["-s", "200"], "200"),
        (data, &["-e", "99999"], "200"),
        (data, &["--config", "sm.no_such_setting_of_any_kind=1", "--uri", "absent"], "absent"),
        (data, &["--results", "file/below"], "file/below"),
        (usage, &["-b", "100 / 3"], "cannot be divided"),
        (usage, &["-b", "0"], "1 or more"),
        (usage, &["-b", "4x"], "rows of a chunk"),
        (usage, &["-B", "0"], "--batch"),
        (usage, &["-E", "0"], "--epochs"),
        (usage, &["-m", "n"], "np.array, native"),
        (usage, &["-M", "novalue"], "key=value"),
        (usage, &["-B", "many"], "--batch"),
        (usage, &["--no-such-flag"], "--no-such-flag"),
    ] {
        let mut all = vec!["sweep", "-b", "50", "-q"];
        if arguments[0] == "-b" {
            all = vec!["sweep", "-q"];
        }
        for (flag, value) in [("--uri", "experiment"), ("--results", "kept")] {
            if !arguments.contains(&flag) {
                all.extend([flag, value]);
            }
        }
        all.extend(arguments);
        let output = bed.run(&all);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {printed}");
        assert_eq!(printed.lines().count(), 1, "{arguments:?}: {printed}");
        assert!(
            printed.starts_with("error: ") && printed.contains(expect),
            "{arguments:?}: {printed}"
        );
        assert!(output.stdout.is_empty());
    }
    assert_eq!(read(&bed.path("kept")).unwrap(), before);
    // A results folder is removed again if nothing was measured.
    assert!(!bed.run(&["sweep", "--uri", "absent", "-q"]).status.success());
    assert_eq!(fs::read_dir(bed.path("results")).unwrap().count(), 0);
}

#[test]
fn results_are_added_to_those_that_are_there() {
    let bed = Bed::new();
    assert_eq!(bed.sweep("out", &["-b", "100", "-m", "native", "-q"]).len(), 1);
    let both = bed.sweep("out", &["-b", "50", "-m", "native,s", "-q"]);
    assert_eq!(both.len(), 3);
    assert_ne!(both[0].run.run_id, both[1].run.run_id);
}

#[test]
fn a_killed_point_is_a_row_and_the_sweep_goes_on() {
    let bed = Bed::new();
    let sweep = bed.start("out", &["-b", "128 / [1,8]", "-m", "native"]);
    wait_for("the first row", || (0 < rows(&bed.path("out"))).then_some(()));
    // Kills the next point while it loads its libraries; the first has just written its row.
    let first = child_of(sweep.id());
    let next = wait_for("another point", || child_of(sweep.id()).filter(|id| Some(*id) != first));
    signal("-KILL", next);
    let output = sweep.wait_with_output().unwrap();
    // Running out of memory is a result, not a failure of the sweep.
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let records = read(&bed.path("out")).unwrap();
    assert_eq!(records.len(), 4);
    let killed: Vec<_> =
        records.iter().filter(|record| record.measured.status == Status::Oom).collect();
    assert_eq!(killed.len(), 1);
    assert!(killed[0].measured.message.as_ref().unwrap().contains("killed (signal 9)"));
    assert_eq!(killed[0].point.block_size, 128);
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let bed = Bed::new();
    let sweep = bed.start("out", &["-b", "128 / [1,128]", "-b", "64 / [1,64]", "-m", "native"]);
    wait_for("the first row", || (0 < rows(&bed.path("out"))).then_some(()));
    signal("-INT", sweep.id());
    let id = sweep.id();
    let output = sweep.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let n_rows = rows(&bed.path("out"));
    assert!((1..15).contains(&n_rows), "{n_rows}");
    assert!(stderr(&output).contains(&format!("interrupted: {n_rows} rows are kept")));
    assert!(bed.path("out/report.html").is_file() && bed.path("out/speed-vs-memory.svg").is_file());
    assert_eq!(child_of(id), None);
}

#[test]
fn the_reader_is_chosen_and_noted() {
    let bed = Bed::new();
    let mut nnz = Vec::new();
    for (choice, name) in [("auto", "native"), ("native", "native"), ("libtiledb", "libtiledb")] {
        for record in bed.sweep(choice, &["-b", "64", "--reader", choice]) {
            assert_eq!(record.point.reader, name, "{choice}");
            nnz.push(record.measured.nnz.unwrap());
        }
    }
    assert_eq!(nnz.len(), 9);
    nnz.dedup();
    assert_eq!(nnz.len(), 1);
}

#[test]
fn the_readers_are_compared() {
    let bed = Bed::new();
    let bench = |arguments: &[&str]| {
        let all = ["bench-readers", "--uri", "experiment", "--config", SMALL_BUFFERS];
        bed.run(&[&all, arguments].concat())
    };
    let output = bench(&["--repetitions", "2", "--reads", "4x16,10x1,whole"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    let (first, table) = printed.split_once('\n').unwrap();
    assert!(first.starts_with("RNA/raw of experiment: 200 cells x 300 genes"), "{first}");
    for (kind, reads) in [("4x16", "4 x 50"), ("10x1", "1 x 10"), ("whole", "1 x 200")] {
        let row = table.lines().find(|line| line.starts_with(&format!("| {kind} "))).unwrap();
        assert!(row.contains(&format!(" {reads} ")), "{row}");
    }
    for (bad, words) in [
        (["--reads", "0x4"], "block specification \"0x4\""),
        (["--repetitions", "0"], "--repetitions"),
    ] {
        let output = bench(&bad);
        assert_eq!(output.status.code(), Some(2), "{bad:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    let output = bench(&["--layer", "other"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("\"other\"; it has raw"), "{}", stderr(&output));
}

#[test]
fn generate_and_import_refuse_what_cannot_be() {
    let bed = Bed::new();
    for (arguments, expect) in [
        (&["generate", "experiment", "-q"][..], "experiment"),
        (&["generate", "other", "--cells", "0", "-q"], "cells"),
        (&["import", "absent", "imported", "-q"], "absent"),
        (&["import", "experiment", "imported", "-q"], "experiment"),
    ] {
        let output = bed.run(arguments);
        let printed = stderr(&output);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(
            printed.lines().count() == 1
                && printed.starts_with("error: ")
                && printed.contains(expect),
            "{arguments:?}: {printed}"
        );
        assert!(!bed.path("other").exists() && !bed.path("imported").exists());
    }
}

#[test]
fn help_is_plain_text_where_nobody_reads_it_on_a_terminal() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sweep")).args(["sweep", "--help"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("Usage: cargo xtask sweep [OPTIONS]"),
        "{printed}"
    );
    assert!(
        printed.contains("BLOCK / [A,B]")
            && !printed.contains('\u{1b}')
            && !printed.contains("--revision"),
        "{printed}"
    );
}

#[test]
fn a_point_without_a_sweep_says_so() {
    let bed = Bed::new();
    let output = bed.run(&["point"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "error: stdin holds no order; another command of this program starts this one: EOF while parsing a value at line 1 column 0\n"
    );
}

#[test]
fn rows_have_the_settings_of_the_loader_by_their_names() {
    let bed = Bed::new();
    let threads = ["--read-threads", "2", "--batch-threads", "3"];
    let settings = [&["-b", "32x4", "-m", "csr", "-B", "10", "-q"], &threads[..]].concat();
    let [row] = &bed.sweep("out", &settings)[..] else { panic!("one point") };
    let number = |name: &str| row.point.settings.number(name);
    assert_eq!((number("read_threads"), number("batch_threads")), (Some(2), Some(3)));
    let [usual] = &bed.sweep("usual", &settings[..7])[..] else { panic!("one point") };
    let number = |name: &str| usual.point.settings.number(name);
    assert_eq!((number("read_threads"), number("batch_threads")), (None, None));
}

#[test]
fn growing_blocks_are_recorded_with_the_entropy_of_their_first_batches() {
    let bed = Bed::new();
    let settings = ["-b", "32x4", "-m", "native", "-B", "10", "--ramp-blocks", "2"];
    let [row] = &bed.sweep("out", &settings)[..] else { panic!("one point") };
    assert_eq!(
        (row.point.settings.number("ramp_blocks"), row.measured.n_rows),
        (Some(2), Some(N_CELLS))
    );
    let entropy = &row.measured.order_entropy[0];
    let (found, expected) = (entropy.first_mean.unwrap(), entropy.first_expected.unwrap());
    // Three batches of one epoch.
    assert!((found - expected).abs() < 1.0, "{entropy:?}");
    assert_eq!(entropy.expected_by.as_deref(), Some("simulation"));
    let [even] = &bed.sweep("even", &settings[..6])[..] else { panic!("one point") };
    assert_eq!(
        (even.point.settings.number("ramp_blocks"), even.measured.order_entropy[0].first_mean),
        (None, None)
    );
    assert_ne!(even.point.id(), row.point.id());
}
