//! Output that nobody reads, or that cannot be written.

use std::fs::OpenOptions;
use std::io::pipe;
use std::process::Output;

use crate::bed::{Bed, stderr};

/// Runs the program with pipes that are closed at the other end, as after `| head`: stdout, and
/// stderr, too, if `both`.
fn unread(bed: &Bed, arguments: &[&str], both: bool) -> Output {
    let mut command = bed.command(arguments);
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    if both {
        command.stderr(writer.try_clone().unwrap());
    }
    command.stdout(writer).output().unwrap()
}

const WRITING: [&[&str]; 9] = [
    &["--help"],
    &["sweep", "--help"],
    &["--version"],
    &["generate", "more", "--cells", "20", "--genes", "30"],
    &["slice", "experiment", "part", "-v", "50"],
    &["relayout", "part", "laid"],
    &["relayout", "part", "laid-too", "--json", "-q"],
    &["sweep", "--uri", "experiment", "-b", "64x4", "-m", "native", "--results", "swept"],
    &["report", "swept"],
];

#[test]
fn a_command_goes_on_if_nobody_reads_its_output() {
    for both in [false, true] {
        let bed = Bed::new();
        for arguments in WRITING {
            let done = unread(&bed, arguments, both);
            assert_eq!(done.status.code(), Some(0), "{arguments:?}: {}", stderr(&done));
            assert!(!stderr(&done).contains("panicked"), "{arguments:?}: {}", stderr(&done));
        }
        assert!(bed.path("swept/report.html").is_file());
        // A failure stays one.
        let done = unread(&bed, &["slice", "absent", "other"], both);
        assert_eq!(done.status.code(), Some(1));
        let done = unread(&bed, &["swep"], both);
        assert_eq!(done.status.code(), Some(2));
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let bed = Bed::new();
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let done =
        bed.command(&["slice", "experiment", "part", "-v", "50", "--json"]).stdout(full()).output();
    let done = done.unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(stderr(&done).contains("error: cannot write to stdout: No space left"), "{done:?}");
    // What it wrote elsewhere is complete.
    assert!(bed.run(&["slice", "part", "again", "-v", "20"]).status.success());
}
