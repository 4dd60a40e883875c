//! The command `relayout`.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::same::levels;
use super::source::{Source, elements};
use super::{files, names};

fn fields(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fields"));
    command.current_dir(folder).args(arguments.split(' ')).output().unwrap()
}

/// Runs the program and returns its exit code, its output and its messages.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = fields(folder, arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

const GENERATE: &str = "generate weather --samples 5 --lat 4 --lon 6 --inputs 3 --targets 2 -q";

#[test]
fn a_generated_store_is_laid_out_and_measured() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), GENERATE).0, Some(0));
    let (code, stdout, messages) = run(
        folder.path(),
        "relayout weather laid --chunks sample=1,input_channels=1 --shards sample=2 --codec zstd",
    );
    assert_eq!((code, stdout.as_str()), (Some(0), ""), "{messages}");
    for part in [
        "copying 7 arrays to 25 chunks",
        "inputs: 5 x 4 x 6 x 3, chunks of 1 x 4 x 6 x 3 to 1 x 4 x 6 x 1 in shards of 2 x 4 x 6 x 1; \
         source chunks decoded once",
        "laid: 7 arrays, ",
        " on disk (before ",
        "next: cargo xtask fields sweep laid --arrays inputs,targets",
    ] {
        assert!(messages.contains(part), "{part} is missing:\n{messages}");
    }
    let [weather, laid] = ["weather", "laid"].map(|name| folder.path().join(name));
    for name in ["inputs", "targets", "sample", "lat", "lon"] {
        assert_eq!(elements(&laid, name), elements(&weather, name), "{name}");
    }
    let (code, _, messages) = run(folder.path(), "sweep laid -B 2 -t 1 -q -d swept");
    assert_eq!(code, Some(0), "{messages}");

    // A part, by indices and by coordinates, of one variable.
    let (code, stdout, messages) = run(
        folder.path(),
        "relayout laid part --variables inputs --isel sample=1: --sel lat=22.5,-67.5 --json -q \
         --sel input_channels=temperature_0 --chunks sample=all --dtype float16",
    );
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((report["resumed"].as_bool(), report["bytes"].as_u64()), (Some(false), Some(192)));
    let arrays = report["arrays"].as_array().unwrap();
    let names: Vec<&str> = arrays.iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["input_channels", "inputs", "lat", "lon", "sample"]);
    assert_eq!(arrays[1]["chunk"], serde_json::json!([4, 2, 6, 1]));
    assert_eq!((&arrays[1]["to"], &arrays[2]["to"]), (&Value::from("float16"), &Value::Null));
    let part = folder.path().join("part");
    assert_eq!(elements(&part, "sample").1.first(), Some(&1));
}

#[test]
fn errors_are_one_line_with_their_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), GENERATE);
    for (arguments, expect, part) in [
        ("relayout absent to -q", 1, "no arrays"),
        ("relayout weather weather -q", 1, "exists already"),
        ("relayout weather to -q --chunks time=1", 2, "no dimension time"),
        ("relayout weather to -q --sel lat=1", 2, "no coordinate 1"),
        ("relayout weather to -q --memory 1kB", 2, "takes at least"),
        ("relayout weather s3://bucket/to -q", 2, "local folder"),
        ("relayout weather to -q --isel sample=1:b", 2, "no index"),
    ] {
        let (code, _, messages) = run(folder.path(), arguments);
        assert_eq!(code, Some(expect), "{arguments}: {messages}");
        assert!(messages.starts_with("error: ") && messages.contains(part), "{messages}");
        assert_eq!(messages.lines().count(), 1, "{messages}");
        assert!(!folder.path().join("to").exists());
    }
    assert_eq!(names(folder.path()), ["weather"]);
}

#[test]
fn memory_is_bounded_and_a_store_may_be_larger() {
    let folder = tempfile::tempdir().unwrap();
    // 96 MB in chunks of 1.5 MB, with 16 MiB of memory.
    let from = Source { shape: vec![64, 6, 250, 250], chunk: vec![1, 6, 250, 250], ..levels(1) };
    from.write(&folder.path().join("from"));
    levels(2).write(&folder.path().join("small"));
    let peak = |from: &str| {
        let arguments = format!(
            "relayout {from} {from}-laid --chunks d0=1,d1=1 --shards d0=16 --codec zstd \
             --memory 16MiB --json -q"
        );
        let (code, stdout, messages) = run(folder.path(), &arguments);
        assert_eq!(code, Some(0), "{messages}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        (report["peak_memory_bytes"].as_u64().unwrap(), report)
    };
    // The program itself. With Blosc the C library keeps up to 64 MiB for each thread beyond that:
    // memory that was aligned is hardly used again (glibc before 2.38).
    let (least, _) = peak("small");
    let (most, report) = peak("from");
    assert_eq!(report["source_chunks_decoded"], 64);
    assert_eq!(report["bytes"], 96_000_000);
    assert!(most < least + (16 << 20), "{most} bytes of memory, {least} for a small store");
}

#[test]
fn a_full_disk_is_an_error_and_the_next_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let from = Source { shape: vec![12, 4, 24, 32], chunk: vec![1, 4, 24, 32], ..levels(1) };
    from.write(&folder.path().join("from"));
    let relayout = "relayout from to --chunks d0=1,d1=1 --shards d0=12 --codec none -q";
    // A limit on file size simulates a full disk: with its signal ignored, writing past it is an
    // error.
    let mut command = Command::new("sh");
    command.arg("-c").arg("trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"");
    command.arg(env!("CARGO_BIN_EXE_fields")).args(relayout.split(' '));
    let output = command.current_dir(folder.path()).output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{messages}");
    for part in ["cannot write", "to.partial", "the same command goes on from there"] {
        assert!(messages.contains(part), "{messages}");
    }
    assert_eq!(names(folder.path()), ["from", "to.partial"]);
    let (code, _, messages) = run(folder.path(), relayout);
    assert_eq!(code, Some(0), "{messages}");
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    assert_eq!(elements(&to, "v"), elements(&from, "v"));
    run(folder.path(), &relayout.replace(" to ", " other "));
    assert_eq!(files(&to), files(&folder.path().join("other")));
}
