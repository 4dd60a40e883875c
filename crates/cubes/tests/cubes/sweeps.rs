//! The command that measures feeding: rows, tables and figures of a tiny data set, and errors.

use std::path::Path;
use std::process::Command;

use bench_report::{EpochRecord, Status, read};

/// Runs the program in `folder`; returns its exit code, stdout and stderr.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cubes"));
    let output = command.current_dir(folder).args(arguments.split(' ')).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const STRATEGIES: [&str; 6] = ["original", "blosc", "fp16", "gpu-aug", "ring-buffer", "event-ring"];

/// A folder with 8 small cubes in all forms, which lies on a disk.
fn data() -> tempfile::TempDir {
    let target = Path::new(env!("CARGO_BIN_EXE_cubes")).parent().unwrap();
    let folder = tempfile::tempdir_in(target).unwrap();
    let (code, _, messages) = run(
        folder.path(),
        "generate data --images 8 --size 12x16x10 --formats dat,raw32,raw16,zarr -q",
    );
    assert_eq!(code, Some(0), "{messages}");
    folder
}

fn with<'r>(rows: &'r [EpochRecord], strategy: &str) -> Vec<&'r EpochRecord> {
    rows.iter().filter(|row| row.point.settings.get("strategy") == Some(strategy)).collect()
}

#[test]
fn every_strategy_and_limit_is_measured_tabled_and_drawn() {
    let folder = data();
    let (code, table, messages) = run(
        folder.path(),
        "sweep data --strategies original,blosc,fp16,gpu-aug,ring-buffer,event-ring -B 3 -E 3 \
         --warmup 1 --repetitions 1 --cold advise --step-ms 3 --io-limit none,20MB/s --published \
         -q -d results",
    );
    assert_eq!(code, Some(0), "{table}{messages}");
    let rows = read(&folder.path().join("results")).unwrap();
    let floors = rows.iter().filter(|row| row.point.settings.get("strategy").is_none()).count();
    assert_eq!(floors, 3 + 3, "a decoder and a plain read of each form");
    for strategy in STRATEGIES {
        let these = with(&rows, strategy);
        assert_eq!(these.len(), 3 * 2);
        for row in these {
            let measured = &row.measured;
            assert_eq!(measured.status, Status::Ok, "{row:?}");
            assert_eq!((measured.n_rows, measured.n_batches), (Some(8), Some(3)));
            assert_eq!(row.point.workload.as_deref(), Some("cubes"));
            assert!(row.point.consumer.as_ref().unwrap().starts_with("stand-in:3ms"));
            assert_eq!(measured.pinned_bytes, Some(0));
            // 8 cubes at 3 ms for 6.
            let busy = measured.device_busy_share.unwrap() * measured.elapsed.unwrap();
            assert!((busy - 0.004).abs() < 1e-6, "{strategy}: {busy}");
            // The first batch has 3 of the cubes.
            let utilization = measured.accelerator_utilization.unwrap();
            assert!(0.0 < utilization && utilization <= 1.0, "{strategy}: {utilization}");
            assert!(0 < measured.bytes_read.unwrap());
            assert_eq!(row.point.form == "f16", !["original", "blosc"].contains(&strategy));
            assert_eq!(measured.io_bytes.is_some(), row.point.settings.get("io_limit").is_some());
        }
        let label = if strategy == "original" { strategy } else { &format!("+{strategy}") };
        assert_eq!(table.matches(&format!("| {label} |")).count(), 2, "{table}");
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join("results").join(name));
    let page = read("README.md").unwrap();
    for part in ["cubes sweep data", "stand-in", "original / ring-buffer", "without a limit"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // Epochs this short have too few samples for curves.
    assert!(read("utilization-curves.svg").unwrap().contains("no read limit"));
    for name in ["durations", "utilization"] {
        assert!(read(&format!("{name}.svg")).unwrap().contains("+event-ring"), "{name}");
        assert!(folder.path().join(format!("results/{name}.png")).is_file());
    }
    assert!(read("durations.svg").unwrap().contains("outline: published"));
}

#[test]
fn the_loader_alone_is_measured_over_settings() {
    let folder = data();
    let (code, table, messages) = run(
        folder.path(),
        "sweep data --strategies ring-buffer --consumer none --form raw16,zarr \
         --mode single,collaborative -w 1,2 -B 3 -E 1 --warmup 0 --repetitions 1 --warm --shuffled \
         --no-floors -q -d results",
    );
    assert_eq!(code, Some(0), "{table}{messages}");
    let rows = read(&folder.path().join("results")).unwrap();
    assert_eq!(rows.len(), 8);
    for row in &rows {
        assert_eq!((row.point.consumer.as_ref(), row.measured.device_busy_share), (None, None));
        assert_eq!(row.measured.accelerator_utilization, None);
        assert_eq!((row.point.cache.as_str(), row.point.order.as_str()), ("warm", "shuffled"));
        assert!(
            row.point.settings.get("augmentation").unwrap().contains("not executed"),
            "{row:?}"
        );
    }
    assert!(table.contains("+ring-buffer, form zarr, mode collaborative, workers 2"), "{table}");
    assert!(folder.path().join("results/rates.svg").is_file());
    assert!(!folder.path().join("results/utilization.svg").exists());
}

#[test]
fn a_model_is_trained_on_the_batches() {
    let folder = data();
    let (code, table, messages) = run(
        folder.path(),
        "sweep data --strategies fp16,event-ring --consumer cpu --model-width 2 -B 3 -E 2 \
         --warmup 1 --repetitions 2 --cold advise --shuffled -q -d results",
    );
    assert_eq!(code, Some(0), "{table}{messages}");
    let rows = read(&folder.path().join("results")).unwrap();
    let seeds: Vec<u64> = with(&rows, "fp16").iter().map(|row| row.point.seed).collect();
    assert_eq!(seeds, [0, 0, 1, 1], "a repetition has a seed of its own");
    let steps = |row: &&EpochRecord| row.point.chunk_method == "steps";
    let steps: Vec<&EpochRecord> = rows.iter().filter(steps).collect();
    let augments =
        steps.iter().map(|row| row.point.settings.get("augmentation")).collect::<Vec<_>>();
    assert_eq!(augments, [None, Some("device")], "one for each kind of step");
    for strategy in ["fp16", "event-ring"] {
        for row in with(&rows, strategy) {
            let measured = &row.measured;
            assert_eq!((measured.status, measured.n_rows), (Status::Ok, Some(8)), "{row:?}");
            let consumer = row.point.consumer.as_deref().unwrap();
            assert!(consumer.starts_with("cpu: U-Net of width 2"), "{consumer}");
            assert!(consumer.contains("in order") && consumer.contains("share of time in steps"));
            assert!(row.versions.libtorch.is_some() && row.versions.tch.is_some());
            assert_eq!(measured.pinned_bytes, Some(0));
            let busy = measured.device_busy_share.unwrap();
            assert!(0.0 < busy && busy <= 1.0, "{strategy}: {busy}");
        }
        // A floor of the device beside each of them.
        let line = table.lines().find(|line| line.starts_with(&format!("| +{strategy} |")));
        let floors = line.unwrap().split(" | ").nth(3).unwrap();
        assert!(floors.split(", ").all(|secs| secs.parse::<f64>().is_ok()), "{floors}");
    }
    let page = std::fs::read_to_string(folder.path().join("results/README.md")).unwrap();
    assert!(page.contains("A model was trained") && !page.contains("stand-in"), "{page}");
}

#[test]
fn what_cannot_be_measured_is_named() {
    let folder = data();
    for (arguments, code, part) in [
        ("sweep nowhere -q", 1, "nowhere"),
        ("sweep data -E 2 --warmup 2 -q", 2, "leave none to time"),
        ("sweep data --consumer cuda:99 -q", 1, "there is no cuda:99"),
        ("sweep data --consumer cpu --copies beside -q", 2, "copies in order"),
    ] {
        let (found, out, messages) = run(folder.path(), arguments);
        assert_eq!((found, out.as_str()), (Some(code), ""), "{messages}");
        assert!(messages.contains(part) && messages.lines().count() == 1, "{messages}");
    }
    assert!(!folder.path().join("results").exists());

    // A point that fails is a row, and the others are measured.
    std::fs::write(folder.path().join("data/raw16/P001_000001.blosc"), [0; 9]).unwrap();
    let (code, table, _) = run(
        folder.path(),
        "sweep data --strategies blosc,ring-buffer --consumer none -B 3 -E 1 --warmup 0 \
         --repetitions 1 --cold advise --no-floors -q -d results",
    );
    assert_eq!(code, Some(1));
    assert!(table.contains("| failed: error: "), "{table}");
    assert!(table.contains("P001_000001.blosc"), "{table}");
    let rows = read(&folder.path().join("results")).unwrap();
    assert_eq!(with(&rows, "blosc")[0].measured.status, Status::Ok);
    assert_eq!(with(&rows, "ring-buffer")[0].measured.status, Status::Error);
}
