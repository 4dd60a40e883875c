//! `relayout` as a user runs it: its output, and the arguments it rejects.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::program;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    program::command(folder, arguments).output().unwrap()
}

fn example(folder: &Path) {
    let made = run(folder, &["generate", "x", "--cells", "300", "--genes", "200", "-q"]);
    assert!(made.status.success(), "{made:?}");
}

#[test]
fn what_it_came_to_is_told_as_json_and_as_text() {
    let folder = tempfile::tempdir().unwrap();
    example(folder.path());
    let out = run(folder.path(), &["relayout", "x", "y", "--shuffle", "3", "--json", "-q"]);
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    let printed: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (&printed["uri"], &printed["cells"], &printed["genes"]),
        (&"y".into(), &300.into(), &200.into())
    );
    assert_eq!((&printed["shuffle_seed"], &printed["chunk_rows"]), (&3.into(), &64.into()));
    assert_eq!(printed["codec"], printed["measured"][0]["codec"]);
    for speed in ["before", "after"] {
        for kind in ["chunk_rows_per_second", "single_rows_per_second"] {
            assert!(printed[speed][kind].as_f64().unwrap() > 0.0, "{printed}");
        }
    }
    assert!(folder.path().join("y/ms/RNA/X/raw").is_dir());

    let out =
        run(folder.path(), &["relayout", "x", "z", "--codec", "zstd,zstd", "--chunk-rows", "16"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("codec zstd,zstd") && text.contains("chunks of 16 rows"), "{text}");
    assert!(!text.contains("bytes a value"), "nothing was measured: {text}");
}

#[test]
fn what_cannot_be_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    example(folder.path());
    for (arguments, code, part) in [
        (&["x", "x"][..], 1, "exists already"),
        (&["nowhere", "y"], 1, "nothing is at"),
        (&["x", "y", "--codec", "lzma,zstd"], 2, "lzma"),
        (&["x", "y", "--codec", "zstd"], 2, "must name two"),
        (&["x", "y", "--chunk-rows", "0"], 2, "chunk is 0"),
        (&["x", "y", "--memory", "1KB"], 2, "memory"),
        (&["x", "y", "--storage-rate", "0"], 2, "storage"),
        (&["x", "y", "--codec", "zstd,zstd", "--storage-rate", "1GB"], 2, "--storage-rate"),
        (&["x", "y", "--layer", "none"], 1, "none"),
        (&["x"], 2, "TARGET"),
    ] {
        let out = run(folder.path(), &[&["relayout"], arguments].concat());
        let stderr = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(code), "{arguments:?}: {stderr}");
        let last = stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: ") && last.contains(part), "{arguments:?}: {stderr}");
        assert!(!folder.path().join("y").exists());
    }
}
