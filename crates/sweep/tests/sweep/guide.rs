//! Runs every command of `docs/guide.md` in order in one folder.
//!
//! The output and the files must be those that the page shows.
//!
//! `somafeed NAME` runs as the program of this crate. An example runs as the binary that
//! `cargo test --workspace` has built beside this test. Blocks marked `sh no-run` need a network; a
//! unit test (`documented`) checks that their commands parse.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use soma_io::{Experiment, OpenOptions};

use crate::markdown::{Block, blocks, commands};
use crate::program;

/// Commands of the wheel that this program has.
const COMMANDS: [&str; 8] =
    ["sweep", "tune", "growth", "report", "generate", "import", "slice", "relayout"];

/// Files that the page names as written, by command.
const WRITTEN: [&str; 19] = [
    "results/first/epochs.parquet",
    "results/first/speed-vs-memory.svg",
    "results/first/report.html",
    "results/first/README.md",
    "results/with-consumer/report.html",
    "pictures/report.html",
    "pictures/speed-vs-memory.png",
    "pictures/speed-by-chunk-size.svg",
    "pictures/speed-vs-entropy.png",
    "pictures/waits.png",
    "pictures/stages.svg",
    "pictures/table.md",
    "pictures/table.csv",
    "results/tuned/report.html",
    "results/kept/epochs.parquet",
    "results/relaid/epochs.parquet",
    "compared/report.html",
    "compared/speed-by-chunk-size.svg",
    "model.safetensors",
];

/// Experiments that exist at the end, with their numbers of cells.
const EXPERIMENTS: [(&str, u64); 3] =
    [("my-experiment", 50_000), ("pbmc", 3), ("for-training", 50_000)];

fn guide() -> String {
    fs::read_to_string(root().join("docs/guide.md")).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the example built with this test.
///
/// `<target>/<profile>/deps/guide-...` has `examples/` beside `deps/`.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(
        path.is_file(),
        "{} is not there: build it with `cargo build --workspace --example {name}`, or test with `cargo test --workspace`",
        path.display()
    );
    path
}

/// Returns the process that runs a command of the page.
fn started(folder: &Path, words: &[&str]) -> Command {
    match words {
        ["somafeed", name, ..] if COMMANDS.contains(name) => program::command(folder, &words[1..]),
        [
            "cargo",
            "run",
            "--release",
            "-p",
            "somafeed-torch-feed",
            "--example",
            name,
            "--",
            arguments @ ..,
        ] => {
            let mut command = Command::new(example(name));
            command.args(arguments).current_dir(folder).stdin(Stdio::null());
            command
        }
        _ => panic!("the test does not know how to run `{}`", words.join(" ")),
    }
}

/// Runs the commands of a block and returns their output.
fn run(folder: &Path, block: &Block) -> String {
    let mut printed = String::new();
    for command in commands(block).unwrap() {
        let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
        let output = started(folder, &words).envs(command.variables).output().unwrap();
        let both = [output.stderr, output.stdout].concat();
        let both = String::from_utf8_lossy(&both);
        assert!(
            output.status.success(),
            "docs/guide.md:{}: `{}` ended with {}:\n{both}",
            block.line,
            words.join(" "),
            output.status
        );
        printed.push_str(&both);
    }
    printed
}

/// Checks that the words the page shows were printed; numbers depend on the machine.
fn check_shown(block: &Block, printed: &str) {
    let is_word = |part: &&str| 4 <= part.chars().count();
    for word in block.text.split(|c: char| !c.is_alphabetic()).filter(is_word) {
        assert!(
            printed.contains(word),
            "docs/guide.md:{}: {word} is not in\n{printed}",
            block.line
        );
    }
}

/// Writes a 10x Genomics folder with three cells.
fn write_matrix(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let matrix =
        "%%MatrixMarket matrix coordinate integer general\n2 3 4\n1 1 5\n2 1 1\n2 2 7\n1 3 2\n";
    fs::write(folder.join("matrix.mtx"), matrix).unwrap();
    fs::write(folder.join("barcodes.tsv"), "AAA-1\nAAC-1\nAAG-1\n").unwrap();
    let features = "ENSG1\tone\tGene Expression\nENSG2\ttwo\tGene Expression\n";
    fs::write(folder.join("features.tsv"), features).unwrap();
}

#[test]
fn every_command_runs_and_gives_what_the_page_says() {
    let text = guide();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_matrix(&folder.join("filtered_feature_bc_matrix"));
    let mut printed = String::new();
    for block in blocks(&text).unwrap() {
        match block.kind.as_str() {
            "sh" => printed = run(folder, &block),
            "text" => check_shown(&block, &printed),
            "sh no-run" => {
                for command in commands(&block).unwrap() {
                    let is_remote = |word: &String| word.contains("://");
                    assert!(command.words.iter().any(is_remote), "{command:?} could be run");
                }
            }
            "rust" | "toml" => {}
            other => panic!("docs/guide.md:{}: what is a block of {other:?}?", block.line),
        }
    }
    for path in WRITTEN {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        assert!(text.contains(parent) && text.contains(name), "the page says nothing of {path}");
        let length = fs::metadata(folder.join(path)).map(|found| found.len());
        assert!(length.as_ref().is_ok_and(|&length| 0 < length), "{path}: {length:?}");
    }
    for (name, n_cells) in EXPERIMENTS {
        let uri = folder.join(name).to_string_lossy().into_owned();
        let experiment = Experiment::open(&uri, &OpenOptions::default()).unwrap();
        assert_eq!(experiment.obs().unwrap().n_rows().unwrap(), n_cells, "{name}");
    }
}

#[test]
fn the_program_on_the_page_is_the_example_that_is_run() {
    let text = guide();
    let blocks = blocks(&text).unwrap();
    let [on_page] = &blocks.iter().filter(|block| block.kind == "rust").collect::<Vec<_>>()[..]
    else {
        panic!("the page has one program")
    };
    let example = fs::read_to_string(root().join("crates/torch-feed/examples/train.rs")).unwrap();
    // The first lines are for readers of the repository, and the lints are the workspace's.
    let not_shown = |line: &&str| !line.starts_with("//!") && !line.starts_with("#[expect(");
    let shown: String = example.lines().filter(not_shown).flat_map(|line| [line, "\n"]).collect();
    assert_eq!(on_page.text.trim(), shown.trim(), "copy the example to the page");
}
