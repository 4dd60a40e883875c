//! Measurements: repeats, cold page cache, consumers, stages, and limits on a point's memory.

use std::collections::BTreeMap;

use bench_report::{EpochRecord, Status, read};

use crate::bed::{Bed, N_CELLS, stderr};

#[test]
fn repeats_go_round_the_grid_and_stand_together_in_the_table() {
    let bed = Bed::new();
    let grid = ["-b", "50", "-b", "2x50", "-m", "native", "-E", "2"];
    let records = bed.sweep("out", &[&grid[..], &["--repeat", "3"]].concat());
    let turns: Vec<_> = records
        .iter()
        .map(|row| (row.measured.repeat, row.point.chunks_per_block, row.measured.epoch))
        .collect();
    let expected = (0..3).flat_map(|repeat| {
        [1, 2]
            .into_iter()
            .flat_map(move |chunks| [0, 1].map(|epoch| (Some(repeat), chunks, Some(epoch))))
    });
    assert_eq!(turns, expected.collect::<Vec<_>>());

    let json =
        ["sweep", "--uri", "experiment", "-q", "--json", "--results", "json", "--repeat", "3"];
    let output = bed.run(&[&json[..], &grid].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    let points: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(points.len(), 2);
    let rows = read(&bed.path("json")).unwrap();
    for point in &points {
        let speeds = || {
            let of_point =
                rows.iter().filter(|row| row.point.chunks_per_block == point["chunks_per_block"]);
            of_point.map(|row| row.measured.samples_per_sec.unwrap())
        };
        let printed = &point["samples_per_sec"];
        assert_eq!(printed["n"], 6);
        assert_eq!(printed["max"].as_f64(), speeds().reduce(f64::max));
        assert_eq!(printed["min"].as_f64(), speeds().reduce(f64::min));
        let median = printed["median"].as_f64().unwrap();
        assert_eq!(speeds().filter(|speed| *speed < median).count(), 3);
        assert!(printed["median_absolute_deviation"].as_f64().is_some());
        assert_eq!(point["stages"].as_array().unwrap().len(), 6);
    }
}

#[test]
fn a_cold_point_says_how_it_was_made_cold() {
    let bed = Bed::new();
    let records =
        bed.sweep("cold", &["-b", "50", "-m", "native", "-E", "2", "--cold=advise", "-q"]);
    // If the test's folder is in memory, nothing can be dropped, and the row says so.
    let of_disk = if bed.is_on_disk() { "cold-advised" } else { "unknown" };
    for record in &records {
        assert_eq!(record.point.cache, of_disk);
        assert_eq!(record.measured.n_rows, Some(N_CELLS));
    }
    assert_eq!(records.len(), 2);
    let refused = bed.run(&["sweep", "s3://bucket/x", "--cold", "-q"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--cold puts local files"), "{}", stderr(&refused));
}

/// Returns wall and processor seconds by stage, and checks that none is negative.
fn stages(record: &EpochRecord) -> BTreeMap<&'static str, (Option<f64>, Option<f64>)> {
    let by_stage = record.stages.by_stage();
    for (wall, cpu) in by_stage {
        assert!([wall, cpu].into_iter().flatten().all(|secs| 0.0 <= secs), "{:?}", record.stages);
    }
    bench_report::STAGES.into_iter().zip(by_stage).collect()
}

#[test]
fn stages_add_up_to_what_the_process_did() {
    let bed = Bed::new();
    for (method, ahead) in [("native", "1"), ("np.array", "1"), ("scipy.csr", "0"), ("native", "0")]
    {
        let results = format!("{method}-{ahead}");
        let arguments = ["-b", "2x50", "-B", "30", "-m", method, "--prefetch-batches", ahead, "-q"];
        let [record] = &bed.sweep(&results, &arguments)[..] else { panic!("one point") };
        let (stages, measured) = (stages(record), &record.measured);
        for (stage, (wall, cpu)) in &stages {
            assert!(wall.is_some() && cpu.is_some(), "{method}: {stage}");
        }
        for stage in ["read", "decode", "densify"] {
            assert!(
                0.0 < stages[stage].0.unwrap() && 0.0 < stages[stage].1.unwrap(),
                "{method}: {stage}"
            );
        }
        let known = record.stages.known_cpu_secs().unwrap();
        // The clocks of threads and process are not read at the same instant.
        assert!(known <= measured.cpu_secs.unwrap() + 0.05, "{known} of {:?}", measured.cpu_secs);
        let waited = stages["wait"].0.unwrap();
        assert!(
            waited <= measured.wait_secs.unwrap() + 0.05,
            "{waited} of {:?}",
            measured.wait_secs
        );
        let shares = measured.busy_share.unwrap() + measured.stall_share.unwrap();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");

        assert_eq!((measured.batch_ready_batches.len(), measured.batch_ready_blocks.len()), (7, 7));
        assert!(measured.batch_ready_batches.iter().all(|n| *n <= ahead.parse().unwrap()));
        assert!(measured.batch_ready_blocks.iter().all(|n| *n <= 2.0));
        // Each value needs 8 bytes of row, 8 of column and 4 of value.
        assert_eq!(measured.bytes_needed, measured.nnz.map(|nnz| 20 * nnz));
        assert!(1.0 <= measured.bytes_amplification.unwrap());
    }
    // libtiledb does not separate reading from decoding.
    let arguments = ["-b", "50", "-m", "native", "--reader", "libtiledb", "-q"];
    let [record] = &bed.sweep("libtiledb", &arguments)[..] else { panic!("one point") };
    let stages = stages(record);
    assert!(stages["read"].0.is_some() && stages["read"].1.is_none());
    assert_eq!(stages["decode"], (None, None));
    assert_eq!(record.measured.bytes_needed, None);
}

#[test]
fn the_consumer_is_busy_as_long_as_it_works() {
    let bed = Bed::new();
    let record_of = |results: &str, arguments: &[&str]| -> EpochRecord {
        let all = [&["-b", "50", "-m", "native", "-B", "50", "-q"], arguments].concat();
        let [record] = &bed.sweep(results, &all)[..] else { panic!("one point") };
        record.clone()
    };
    let slept = record_of("slept", &["--consumer", "fixed:20"]);
    assert!(0.08 <= slept.measured.consume_secs.unwrap());
    // Sleeping takes wall time but no processor time.
    assert!(slept.stages.consume_cpu_secs.unwrap() < slept.stages.consume_wall_secs.unwrap());
    for (form, label) in [
        ("dense", "linear"),
        ("csr", "linear:soma_joinid"),
        ("f16", "linear:is_primary_data"),
        ("coo", "linear"),
    ] {
        let learned =
            record_of(form, &["--consumer", label, "--batch-form", form, "--entropy-of", "none"]);
        assert_eq!(learned.measured.n_rows, Some(N_CELLS));
        let noted = learned.point.consumer.as_deref();
        assert_eq!(noted, Some(if label == "linear" { "linear:cell_type" } else { label }));
        assert!(0.0 < learned.stages.consume_cpu_secs.unwrap());
    }
    for (label, words) in [("linear:absent", "absent"), ("linear:raw_mean_nnz", "no classes")] {
        let output = bed.run(&["sweep", "experiment", "-b", "50", "-q", "--consumer", label]);
        assert_eq!(output.status.code(), Some(1));
        let printed = stderr(&output);
        assert!(printed.contains(words) && printed.lines().count() == 1, "{printed}");
    }
}

#[test]
fn a_point_over_its_memory_is_a_row_and_the_sweep_goes_on() {
    let bed = Bed::new();
    // The first point needs 15 GB for the dense rows of all genes; a process starts with about 200
    // MB.
    let made = bed.run(&["generate", "wide", "--cells", "3000", "--genes", "60000", "-q"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let output = bed.run(&[
        "sweep",
        "wide",
        "-b",
        "3000",
        "-b",
        "100",
        "-m",
        "np.array",
        "-B",
        "50",
        "--prefetch-blocks",
        "0",
        "--point-memory-limit",
        "600MiB",
        "--results",
        "out",
        "--entropy-of",
        "none",
        "--config",
        crate::bed::SMALL_BUFFERS,
    ]);
    let printed = stderr(&output);
    // Running out of memory is a result, not a failure.
    assert_eq!(output.status.code(), Some(0), "{printed}");
    let records = read(&bed.path("out")).unwrap();
    let [large, small] = &records[..] else { panic!("{records:?}") };
    assert_eq!(
        (large.measured.status, small.measured.status),
        (Status::Oom, Status::Ok),
        "{printed}"
    );
    assert_eq!(large.measured.message.as_ref().unwrap().lines().count(), 1);
    for record in &records {
        assert_eq!(record.point.reader, "native");
        assert_eq!(record.point.settings.number("point_memory_limit"), Some(600 << 20));
        let by = record.point.settings.get("point_memory_limit_by").unwrap();
        assert!(
            printed.contains(&format!("memory of a point: 600.0 MiB at most, by {by}")),
            "{printed}"
        );
    }
}

#[test]
fn the_utilization_is_that_of_a_consumer_that_computes() {
    let bed = Bed::new();
    let row = |results: &str, consumer: &str| {
        let arguments = ["-b", "50", "-m", "native", "-B", "20", "--consumer", consumer];
        bed.sweep(results, &arguments).pop().unwrap()
    };
    let fixed = row("fixed", "3ms");
    assert_eq!(fixed.point.consumer.as_deref(), Some("fixed:3"));
    // Nine of the ten batches, at 3 ms each.
    let expected = 9.0 * 0.003 / fixed.measured.elapsed_after_first.unwrap();
    let found = fixed.measured.accelerator_utilization.unwrap();
    assert!((found - expected).abs() < 1e-9 && found <= 1.0, "{found}, {expected}");
    let linear = row("linear", "linear").measured;
    let found = linear.accelerator_utilization.unwrap();
    assert!(0.0 < found && found <= 1.0, "{found}");
    assert_eq!(row("none", "none").measured.accelerator_utilization, None);
    let table = std::fs::read_to_string(bed.path("none/README.md")).unwrap();
    assert!(table.contains("| AU % |"), "{table}");
}
