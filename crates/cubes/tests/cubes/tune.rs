//! The command `tune` as a user runs it: the proposal meets the goal, and its order is as mixed as
//! it says.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bench_report::read;
use images::{DataSet, Form, ImageBatch, ImageSamples, ImageSpec};
use pipeline::{Pipeline, PipelineSpec};
use serde_json::{Value, json};
use storage::LocalStorage;

const N_IMAGES: u64 = 96;
const BATCH: u64 = 6;

/// Runs the program in `folder`; returns its exit code, stdout and stderr.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cubes"));
    let output = command.current_dir(folder).args(arguments.split(' ')).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn data(folder: &Path, forms: &str) {
    let size = "--size 12x16x10 -q --formats";
    let (code, _, messages) =
        run(folder, &format!("generate data --images {N_IMAGES} {size} {forms}"));
    assert_eq!(code, Some(0), "{messages}");
}

/// The line of a kind among lines of JSON.
fn of_kind(text: &str, kind: &str) -> Value {
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.find(|line| line["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {text}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The mean entropy, in bits, of the subject in the batches of an epoch with a proposal's settings.
fn entropy_of_delivered(folder: &Path, settings: &Value) -> f64 {
    let set = DataSet::open(Arc::new(LocalStorage::new(folder.join("data")))).unwrap();
    let samples = ImageSamples::open(&set, &ImageSpec::new(Form::Raw16)).unwrap();
    let spec = PipelineSpec {
        chunk_rows: settings["chunk_rows"].as_u64().unwrap(),
        chunks_per_block: settings["chunks_per_block"].as_u64().unwrap(),
        batch_rows: BATCH,
        ..PipelineSpec::default()
    };
    let pipeline = Pipeline::new(Arc::new(samples), spec, ImageBatch::n_planned).unwrap();
    let mut bits = Vec::new();
    for batch in pipeline.epoch(0).unwrap() {
        let batch = batch.unwrap();
        let subject = |sample: &u64| batch.image(*sample).unwrap().subject.clone();
        let subjects: Vec<String> = batch.samples().iter().map(subject).collect();
        let share = |one: &String| {
            subjects.iter().filter(|other| *other == one).count() as f64 / subjects.len() as f64
        };
        let of_batch: f64 = subjects.iter().map(|one| share(one).log2()).sum();
        bits.push(-of_batch / subjects.len() as f64);
    }
    assert_eq!(bits.len() as u64, N_IMAGES / BATCH);
    bits.iter().sum::<f64>() / bits.len() as f64
}

#[test]
fn a_proposal_keeps_to_memory_and_mixing_and_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    data(folder, "raw16");
    let goal = "--warm --memory 256MiB --entropy 90%";
    let (code, text, messages) =
        run(folder, &format!("tune data -B {BATCH} {goal} --json -q -d out"));
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    let proposal = of_kind(&text, "proposal");
    let settings = &proposal["settings"];
    let memory = f64::from(256 << 20);
    assert!(number(&settings["peak_bytes"]) <= 0.9 * memory, "{proposal}");
    let wanted = number(&proposal["wanted_bits"]);
    assert!((wanted - 0.9 * number(&proposal["perfect_bits"])).abs() < 1e-9, "{proposal}");
    assert_eq!((&proposal["label"], &proposal["threads"]), (&json!("subject"), &json!(2)));

    let verified = of_kind(&text, "verification")["figures"].clone();
    assert_eq!(verified["n_rows"], N_IMAGES);
    assert!(verified["fits"].as_bool().unwrap(), "{verified}");
    let measured = number(&verified["entropy_bits"]["measured"]);
    // Chance alone may take more than a tenth of a bit of the mean of 16 batches.
    assert!(wanted - 0.2 < measured, "{measured} {proposal}");
    let counted = entropy_of_delivered(folder, settings);
    assert!((counted - measured).abs() < 1e-9, "{counted} {measured}");

    // The printed command repeats the verification.
    let rows = read(&folder.join("out")).unwrap();
    let last = rows.last().unwrap();
    assert_eq!(last.run.metadata["tune"], "verification");
    let command = proposal["command"].as_str().unwrap();
    let command = command.strip_prefix("cargo xtask cubes ").unwrap();
    let (code, _, messages) = run(folder, &format!("{command} -q -d again"));
    assert_eq!(code, Some(0), "{command}: {messages}");
    let again = read(&folder.join("again")).unwrap().remove(0);
    assert_eq!(again.point, last.point);
    assert_eq!(again.measured.order_entropy[0].mean, Some(measured));
    let python = proposal["python"].as_str().unwrap();
    assert!(python.starts_with("ImageDataset(\"data\", batch_size=6, io_batch_size="), "{python}");
    assert!(python.ends_with(", stored=\"raw16\", threads=2)"), "{python}");
}

#[test]
fn what_cannot_be_proposed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    data(folder, "raw16,dat");
    for (arguments, code, part) in [
        ("tune nowhere", 1, "nowhere"),
        ("tune data", 2, "give --form"),
        ("tune data --form raw16 --entropy 12", 2, "is more than the"),
        ("tune data --form raw16 --label organ", 2, "organ"),
        ("tune data --form raw16 --warm --memory 1MB --entropy none", 1, "nothing fits --memory"),
    ] {
        let (found, out, messages) = run(folder, &format!("{arguments} -q -d out"));
        assert_eq!((found, out.as_str()), (Some(code), ""), "{arguments}: {messages}");
        let last = messages.lines().last().unwrap();
        assert!(last.starts_with("error: ") && last.contains(part), "{arguments}: {messages}");
    }
}
