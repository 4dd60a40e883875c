//! The command line: exit codes, messages, defaults.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn cubes(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cubes")).current_dir(folder).args(arguments).output().unwrap()
}

/// Runs the program and returns its exit code and its messages.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let output = cubes(folder, &arguments);
    assert!(output.stdout.is_empty());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

const TINY: &str = "--images 3 --size 6x8x10";

#[test]
fn both_commands_report_sizes_and_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (code, messages) =
        run(folder.path(), &format!("generate a {TINY} --formats dat,raw16 --normalize l1"));
    assert_eq!(code, Some(0), "{messages}");
    let lines: Vec<&str> = messages.lines().collect();
    assert_eq!(lines[0], "writing 3 cubes of 6 x 8 x 10 as dat, raw16 to a");
    assert!(lines[1].starts_with("a: 3 cubes of 6 x 8 x 10 as dat, raw16: "), "{messages}");
    assert!(lines[1].ends_with(" cubes/s)"), "{messages}");
    assert!(lines[2].starts_with("error of f16: mean 1."), "{messages}");

    let (code, messages) = run(folder.path(), "preprocess a --to raw32,zarr --zarr-codec none");
    assert_eq!(code, Some(0), "{messages}");
    let lines: Vec<&str> = messages.lines().collect();
    assert!(lines[0].starts_with("a: raw32, zarr of 3 cubes: 5.8 kB in, "), "{messages}");
    assert!(lines[0].contains(" MB/s in, ") && lines[0].ends_with(" MB/s out)"), "{messages}");
    assert!(lines[1].starts_with("error of f16: mean "), "{messages}");
    let (code, messages) = run(folder.path(), "preprocess a --to raw32");
    assert_eq!((code, &*messages), (Some(0), "a: raw32 of 0 cubes, 3 were there already\n"));
    let (code, messages) = run(folder.path(), &format!("generate b {TINY} -q --formats dat"));
    assert_eq!((code, &*messages), (Some(0), ""));
}

#[test]
fn skipped_files_are_listed_and_the_exit_code_is_1() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &format!("generate a {TINY} -q --formats dat"));
    fs::write(folder.path().join("a/dat/P001_000002_SpecCube.dat"), "short").unwrap();
    let (code, messages) = run(folder.path(), "preprocess a --to raw16");
    assert_eq!(code, Some(1));
    assert!(messages.starts_with("error: cannot use a/dat/P001_000002_SpecCube.dat: "));
    let (code, messages) = run(folder.path(), "preprocess a --to raw16 --skip-bad");
    assert_eq!(code, Some(1));
    assert!(messages.contains("1 skipped"), "{messages}");
    let last = messages.lines().last().unwrap();
    assert!(last.starts_with("skipped: cannot use a/dat/P001_000002_SpecCube.dat: "), "{last}");
}

#[test]
fn errors_are_one_line_with_their_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &format!("generate there {TINY} -q --formats dat"));
    for (arguments, expect, part) in [
        (format!("generate there {TINY} -q --formats dat"), 1, "exists already"),
        (format!("generate x {TINY} -q --level 10"), 2, "between 0 and 9"),
        (format!("generate x {TINY} -q --noise 2"), 2, "between 0 and 1"),
        ("generate x -q --size 6x8x10 --images 0".to_owned(), 2, "between 1 and"),
        (format!("generate x {TINY} -q --formats raw8"), 2, "expected one of dat, raw32, raw16"),
        (format!("generate x {TINY} -q --zarr-codec lz4"), 2, "expected none, blosc, or zstd"),
        ("generate x -q --size 480x640".to_owned(), 2, "like 480x640x100"),
        ("generate".to_owned(), 2, "FOLDER"),
        ("preprocess there --to dat -q".to_owned(), 2, "choose other forms"),
        ("preprocess there -q".to_owned(), 2, "--to"),
        ("preprocess absent --to raw16 -q".to_owned(), 1, "cannot read cubes from absent"),
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
    let output = cubes(folder.path(), &["generate", "--help"]);
    let help = String::from_utf8(output.stdout).unwrap();
    for part in ["480x640x100", "[default: none]", "[default: 9]", "[default: blosc]"] {
        assert!(help.contains(part), "{part} is missing:\n{help}");
    }
}

#[test]
fn commands_go_on_if_nobody_reads_their_output() {
    let folder = tempfile::tempdir().unwrap();
    let sweep =
        "sweep a --strategies blosc --consumer none -B 2 -E 1 --warmup 0 --warm --no-floors";
    for arguments in ["--help".to_owned(), format!("generate a {TINY}"), sweep.to_owned()] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_cubes"));
        command.current_dir(folder.path()).args(arguments.split(' '));
        let both = writer.try_clone().unwrap();
        let status = command.stdout(writer).stderr(both).status().unwrap();
        assert_eq!(status.code(), Some(0), "{arguments}");
    }
}
