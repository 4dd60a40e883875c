//! The command line: exit codes, messages, what commands print.

use std::fs;
use std::process::Command;

use crate::{run, store};

#[test]
fn files_become_stores_and_stores_have_words() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (code, out, messages) = run(folder, "generate file.gz --size 0.0001GB --compress bgzip");
    assert_eq!((code, out.as_str()), (Some(0), ""), "{messages}");
    assert!(messages.starts_with("file.gz: 106 sequences of 107,270 letters in "), "{messages}");
    let (code, _, messages) = run(folder, "import file.gz store");
    assert_eq!(code, Some(0), "{messages}");
    assert!(messages.starts_with("store: 106 sequences in "), "{messages}");
    // A sequence takes 28 bytes beside 1,012 letters and 13 of its name; the description comes on
    // top.
    assert!(messages.contains("0.1 MB kept, 1.03"), "{messages}");

    let (code, out, messages) = run(folder, "words store --threads 2 --write words.tsv");
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    let expected = "743 words of 4 letters of ACGTU: 431 that occur, 312 more with padding";
    assert!(out.starts_with(expected), "{out}");
    assert!(out.contains(" words counted in ") && out.contains(" million words/s"), "{out}");
    let words = fs::read_to_string(folder.join("words.tsv")).unwrap();
    assert_eq!(words.lines().count(), 743);
    let count = |line: &str| line.split('\t').nth(1).unwrap().parse::<u64>().unwrap();
    assert!(words.lines().is_sorted_by(|one, next| count(next) <= count(one)));
    assert!(words.lines().any(|line| line == "XXXX\t0"));

    let (code, out, _) = run(
        folder,
        "words store -k 2 --stride 1 --padding 0 --alphabet ACG \
                                      --unknown skip",
    );
    assert_eq!(code, Some(0));
    assert!(out.starts_with("9 words of 2 letters of ACG: 9 that occur, 0 more"), "{out}");
}

#[test]
fn families_are_planted() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "generate file --families 3 --members 4 --mutations 0.05 --letters 50 -q \
                     --format fasta";
    let (code, _, messages) = run(folder.path(), arguments);
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    let text = fs::read_to_string(folder.path().join("file")).unwrap();
    assert_eq!(text.matches(">family_").count(), 12);
    assert!(text.starts_with(">family_0_member_0\n"), "{text}");
}

#[test]
fn errors_are_one_line_with_their_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    fs::write(folder.join("bad.txt"), "ACGT,a\nACGT\n").unwrap();
    fs::write(folder.join("twice.txt"), "ACGT,a\nAC,a\n").unwrap();
    fs::write(folder.join("empty.fastq"), "@a\n\n+\n\n").unwrap();
    fs::write(folder.join("some.xz"), b"\xfd7zXZ\0\0\x04").unwrap();
    for (arguments, expect, part) in [
        ("generate file.txt -q", 1, "exists already"),
        ("generate x -q --size 0GB", 2, "no sequences"),
        ("generate x -q --families 2 --mutations 2", 2, "between 0 and 1"),
        ("generate x --size 1TB", 2, "GB, MB or KB"),
        ("import absent x -q", 1, "absent"),
        ("import bad.txt x -q", 1, "line 2: the line has no comma"),
        ("import twice.txt x -q", 1, "both named a"),
        ("import file.txt store -q", 1, "exists already"),
        ("words absent", 1, "is not a store of sequences"),
        ("words store -k 0", 1, "must not be 0"),
        ("words store --alphabet AC", 1, "is not in the alphabet AC"),
        ("words store --write file.txt", 1, "cannot write file.txt"),
        ("sweep absent -q", 1, "is not a store of sequences"),
        ("sweep store -E 1 --warmup 1 -q", 2, "leave none to time"),
        ("peers store --python p --form letters", 2, "readers feed words"),
        ("peers store --python p --unknown skip", 2, "take --unknown fail"),
        ("peers store --python p --fold-case", 2, "leave out --fold-case"),
        ("import empty.fastq x -q", 1, "leave such records out (--skip-empty)"),
        ("import some.xz x -q", 1, "compressed by xz: decompress it first"),
    ] {
        let (code, out, messages) = run(folder, arguments);
        assert_eq!(code, Some(expect), "{arguments}: {messages}");
        assert!(messages.starts_with("error: ") && messages.contains(part), "{messages}");
        assert_eq!(messages.lines().count(), 1, "{messages}");
        assert!(out.is_empty() || arguments.contains("--write"), "{out}");
    }
    assert!(!folder.join("x").exists() && !folder.join("results").exists());
}

#[test]
fn commands_go_on_if_nobody_reads_their_output() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    for arguments in ["--help", "words store", "sweep store --form letters -w 1 -B 4 -E 2"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_sequences"));
        command.current_dir(folder.path()).args(arguments.split(' '));
        let both = writer.try_clone().unwrap();
        let status = command.stdout(writer).stderr(both).status().unwrap();
        assert_eq!(status.code(), Some(0), "{arguments}");
    }
}

#[test]
fn records_are_left_out_on_request_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "@a\nACGT\n+\nIIII\n@b\n\n+\n\n@a x\nGG\n+\nII\n@c\nTTTT\n+\nIIII\n@c\n\n+\n";
    fs::write(folder.join("reads.fastq"), text).unwrap();
    for arguments in ["import reads.fastq s -q", "import reads.fastq s -q --skip-empty"] {
        assert_eq!(run(folder, arguments).0, Some(1), "{arguments}");
    }
    let (code, _, messages) = run(folder, "import reads.fastq s --skip-empty --skip-doubled");
    assert_eq!(code, Some(0), "{messages}");
    for line in [
        "s: 2 sequences in ",
        "s: 2 records without letters were left out",
        "s: 1 records with a name that is there were left out",
    ] {
        assert!(messages.contains(line), "{messages}");
    }
    let (_, out, _) = run(folder, "words s --padding 0 --unknown fail");
    assert!(out.contains("ACGT: 2 that occur"), "{out}");
}

/// Repeats in lower case are words as others are; without the flag both cases differ.
#[test]
fn both_cases_are_counted_as_one_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("soft.fasta"), ">a\nACGTacgtACGT\n>b\nacgtnnnn\n").unwrap();
    assert_eq!(run(folder, "import soft.fasta s -q").0, Some(0));
    let words = |arguments: &str| {
        let (code, out, messages) =
            run(folder, &format!("words s --padding 0 --frames 1 {arguments}"));
        assert_eq!(code, Some(0), "{messages}");
        out
    };
    let out = words("");
    assert!(out.starts_with("3 words of 4 letters of ACGTacgnt"), "{out}");
    let out = words("--fold-case");
    assert!(out.starts_with("2 words of 4 letters of ACGNT: 2 that occur"), "{out}");
    let out = words("--fold-case --alphabet acgt --unknown skip");
    assert!(out.starts_with("1 words of 4 letters of acgt: 1 that occur"), "{out}");
    assert!(out.contains("4 words counted"), "{out}");
}
