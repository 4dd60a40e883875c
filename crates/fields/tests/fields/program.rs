//! The command line: exit codes, messages, defaults.

use std::path::Path;
use std::process::{Command, Output};

fn fields(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fields")).current_dir(folder).args(arguments).output().unwrap()
}

/// Runs the program and returns its exit code and its messages.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let output = fields(folder, &arguments);
    assert!(output.stdout.is_empty());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

const TINY: &str = "--samples 3 --lat 2 --lon 4 --inputs 3 --targets 2";

#[test]
fn a_store_is_reported_with_size_and_rate() {
    let folder = tempfile::tempdir().unwrap();
    let (code, messages) =
        run(folder.path(), &format!("generate a {TINY} --element f16 --codec zstd:3"));
    assert_eq!(code, Some(0), "{messages}");
    let last = messages.lines().last().unwrap();
    assert!(last.starts_with("a: 3 samples of 2 x 4 x (3 + 2) f16: 240 B in "), "{last}");
    assert!(last.ends_with(" on disk") && last.contains(" MB/s)"), "{last}");
    assert!(folder.path().join("a/targets/c/2/0/0/0").is_file());

    let (code, messages) = run(folder.path(), &format!("generate b {TINY} -q --zarr 2"));
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    assert!(folder.path().join("b/targets/2.0.0.0").is_file());
}

#[test]
fn errors_are_one_line_with_their_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &format!("generate there {TINY} -q"));
    for (arguments, expect, part) in [
        (format!("generate there {TINY} -q"), 1, "exists already"),
        (format!("generate x {TINY} -q --zarr 2 --shard-samples 2"), 2, "Zarr 2 has no shards"),
        (format!("generate x {TINY} -q --chunk-samples 0"), 2, "between 1 and"),
        (format!("generate x {TINY} -q --codec zstd:30"), 2, "between 1 and 22"),
        (format!("generate x {TINY} -q --codec lz4"), 2, "expected none, zstd, gzip or blosc"),
        ("generate".to_owned(), 2, "PATH"),
    ] {
        let (code, messages) = run(folder.path(), &arguments);
        assert_eq!(code, Some(expect), "{messages}");
        assert!(messages.starts_with("error: ") && messages.contains(part), "{messages}");
        assert_eq!(messages.lines().count(), 1, "{messages}");
    }
    assert!(!folder.path().join("x").exists());
}

#[test]
fn help_has_the_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let output = fields(folder.path(), &["generate", "--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    for part in ["192", "384", "186", "83", "[default: all]", "[default: none]", "[default: f32]"] {
        assert!(help.contains(part), "{part} is missing:\n{help}");
    }
}

#[test]
fn commands_go_on_if_nobody_reads_their_output() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = "sweep a -B 1 -t 1 --strategies stacked -d swept";
    for arguments in ["--help".to_owned(), format!("generate a {TINY}"), sweep.to_owned()] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_fields"));
        command.current_dir(folder.path()).args(arguments.split(' '));
        let both = writer.try_clone().unwrap();
        let status = command.stdout(writer).stderr(both).status().unwrap();
        assert_eq!(status.code(), Some(0), "{arguments}");
    }
}
