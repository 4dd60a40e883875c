//! The commands that measure: rows, tables and pictures of a tiny store, and errors.

use std::path::Path;
use std::process::Command;

use bench_report::{Status, read};

/// Runs the program in `folder`; returns its exit code, stdout and stderr.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fields"));
    let output = command.current_dir(folder).args(arguments.split(' ')).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn store(folder: &Path) {
    let (code, _, messages) =
        run(folder, "generate store --samples 24 --lat 4 --lon 8 --inputs 3 --targets 2 -q");
    assert_eq!(code, Some(0), "{messages}");
}

#[test]
fn a_sweep_measures_every_point_of_its_grid() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let (code, table, messages) =
        run(folder.path(), "sweep store -B 4,8 -t 1,2 --repeat 2 -q -d results");
    assert_eq!(code, Some(0), "{messages}");
    let rows = read(&folder.path().join("results")).unwrap();
    assert_eq!(rows.len(), 2 * 2 * 3 * 2);
    for row in &rows {
        assert_eq!(row.measured.status, Status::Ok);
        assert_eq!(row.measured.n_rows, Some(24));
        assert_eq!(row.point.workload.as_deref(), Some("fields"));
        // 24 samples of 4 x 8 x 5 values.
        assert_eq!(row.measured.bytes_read, Some(24 * 4 * 8 * 5 * 4), "{row:?}");
    }
    for how in ["stacked", "per-sample", "plain-read"] {
        assert_eq!(table.matches(&format!("| {how} |")).count(), 4, "{table}");
    }
    let readme = std::fs::read_to_string(folder.path().join("results/README.md")).unwrap();
    assert!(readme.contains("fields sweep store") && readme.contains("| stacked |"), "{readme}");
}

#[test]
fn queues_are_measured_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let arguments = "queue store --depth 0,2 -w 0,1,2 -B 4 --consumer 2 --fill 0.05 -q -d results";
    let (code, table, messages) = run(folder.path(), arguments);
    assert_eq!(code, Some(0), "{messages}");
    let rows = read(&folder.path().join("results")).unwrap();
    // Without workers there is no queue.
    assert_eq!(rows.len(), 1 + 2 * 2);
    for row in &rows {
        assert_eq!(row.measured.n_batches, Some(6));
        let ready = &row.measured.batch_ready_blocks;
        let most = row.point.settings.number("prefetch_blocks").unwrap_or(0) as f64 + 1.0;
        assert!(ready.len() == 6 && ready.iter().all(|n| *n <= most), "{ready:?}");
        if row.point.settings.number("read_threads") == Some(0) {
            assert!(ready.iter().all(|n| *n == 0.0), "{ready:?}");
        }
    }
    assert!(table.contains("| 0 | 0 |") && table.contains("| 2 | 2 |"), "{table}");
    let picture = std::fs::read_to_string(folder.path().join("results/queue.svg")).unwrap();
    assert!(picture.contains("2 workers") && picture.contains("queue 2"));
}

#[test]
fn what_cannot_be_measured_is_named() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    for (arguments, parts) in [
        ("sweep nowhere -q", &["nowhere", "inputs"][..]),
        ("sweep store --arrays inputs,absent -q", &["absent"]),
        ("queue store --arrays inputs,inputs -q", &["two variables", "inputs"]),
    ] {
        let (code, out, messages) = run(folder.path(), arguments);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{messages}");
        assert!(messages.starts_with("error: ") && messages.lines().count() == 1, "{messages}");
        assert!(parts.iter().all(|part| messages.contains(part)), "{messages}");
    }
    assert!(!folder.path().join("results").exists());

    // A point that fails is a row, and the others are measured.
    let (code, table, _) = run(folder.path(), "sweep store -B 4,25 -t 1 -q -d results");
    assert_eq!(code, Some(1));
    assert!(table.contains("| 25 | 1 | stacked | failed |"), "{table}");
    let rows = read(&folder.path().join("results")).unwrap();
    let failed = rows.iter().find(|row| row.measured.status != Status::Ok).unwrap();
    assert!(failed.measured.message.as_ref().unwrap().contains("do not fill a batch of 25"));
}

#[test]
fn a_damaged_chunk_ends_the_point_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    std::fs::write(folder.path().join("store/targets/c/7/0/0/0"), [0; 9]).unwrap();
    let (code, _, _) = run(folder.path(), "sweep store -B 4 -t 1 --strategies stacked -q -d r");
    assert_eq!(code, Some(1));
    let rows = read(&folder.path().join("r")).unwrap();
    let message = rows[0].measured.message.as_ref().unwrap();
    for part in ["targets", "chunk [7, 0, 0, 0]", "has 9 bytes, 256 are expected"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn epochs_and_a_validation_loader_are_measured_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let arguments = "sweep store -B 4 -t 1 -w 1 --queue 1 -E 2 --validation 8 --strategies stacked,plain-read \
                     -q -d results";
    let (code, table, messages) = run(folder.path(), arguments);
    assert_eq!(code, Some(0), "{messages}");
    let rows = read(&folder.path().join("results")).unwrap();
    let part_rows = |part: Option<&'static str>| {
        let these = rows.iter().filter(move |row| row.point.settings.get("part") == part);
        these.map(|row| (row.measured.epoch, row.measured.n_rows)).collect::<Vec<_>>()
    };
    assert_eq!(part_rows(Some("training")), [(Some(0), Some(16)), (Some(1), Some(16))]);
    assert_eq!(part_rows(Some("validation")), [(Some(0), Some(8)), (Some(1), Some(8))]);
    // The floor reads all.
    assert_eq!(part_rows(None), [(Some(0), Some(24)), (Some(1), Some(24))]);
    assert!(table.contains("| stacked | validation | 1 |"), "{table}");
    let picture = std::fs::read_to_string(folder.path().join("results/rates.svg")).unwrap();
    assert!(picture.contains("stacked, training") && picture.contains("published"), "{picture}");
    let (code, _, messages) = run(folder.path(), "sweep store -B 4 -t 1 --validation 24 -q");
    assert!(code == Some(1) && messages.contains("none to training"), "{messages}");
}

#[test]
fn a_link_is_in_the_way_of_every_read() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    // 24 samples in 12 batches: each reads 2 chunks of 2 samples, all at once.
    let arguments = "sweep store -B 2 -t 1 -q -d results --link 20ms,4MB/s,8MB/s";
    let (code, _, messages) = run(folder.path(), arguments);
    assert_eq!(code, Some(0), "{messages}");
    let rows = read(&folder.path().join("results")).unwrap();
    assert_eq!(rows.len(), 3);
    for row in &rows {
        assert_eq!(row.measured.status, Status::Ok, "{row:?}");
        assert_eq!(row.measured.n_rows, Some(24));
        assert_eq!(row.measured.bytes_read, Some(24 * 4 * 8 * 5 * 4), "{row:?}");
        assert_eq!(row.point.settings.get("link"), Some("20ms,4MB/s,8MB/s"));
        assert!(row.point.id().contains("link=20ms,4MB/s,8MB/s"), "{}", row.point.id());
        assert!(12.0 * 0.02 <= row.measured.elapsed.unwrap(), "{row:?}");
    }
    let loaded = rows.iter().find(|row| row.point.chunk_method == "stacked").unwrap();
    assert_eq!(loaded.measured.requests, Some(48));
    let readme = std::fs::read_to_string(folder.path().join("results/README.md")).unwrap();
    assert!(readme.contains("Read over a link of 20ms,4MB/s,8MB/s."), "{readme}");
}

#[test]
fn a_cache_keeps_the_chunks_of_a_link() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let arguments = "queue store --depth 2 -w 1 -B 4 --consumer 0 --fill 0 -q --repeat 2 -d results \
                     --link 1ms --cache kept --cache-size 1GiB";
    let (code, _, messages) = run(folder.path(), arguments);
    assert_eq!(code, Some(0), "{messages}");
    let rows = read(&folder.path().join("results")).unwrap();
    assert_eq!(rows.len(), 2);
    for (row, hits, misses) in [(&rows[0], 0, 48), (&rows[1], 48, 0)] {
        assert_eq!(row.measured.status, Status::Ok, "{row:?}");
        assert_eq!(row.point.settings.number("storage_cache"), Some(1 << 30));
        let counts = (row.measured.cache_hits, row.measured.cache_misses);
        assert_eq!(counts, (Some(hits), Some(misses)));
    }
    let (code, _, messages) = run(folder.path(), "sweep store -q --cache kept");
    assert_eq!(code, Some(2), "{messages}");
    assert!(messages.contains("--link"), "{messages}");
}

#[test]
fn the_server_of_a_link_ends_with_its_parent() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fields"));
    command.arg("serve-link").arg(folder.path()).args(["--link", "30ms"]);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut address).unwrap();
    std::net::TcpStream::connect(address.trim()).unwrap();
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
    assert!(std::net::TcpStream::connect(address.trim()).is_err());
}
