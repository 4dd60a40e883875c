//! The command `tune` as a user runs it: the proposal meets the goal, and its order is as mixed as
//! it says.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrays::{ArrayBatch, ArraySamples, SampleSpec, Variable};
use bench_report::read;
use pipeline::{Pipeline, PipelineSpec};
use serde_json::{Value, json};
use storage::LocalStorage;

const N_SAMPLES: u64 = 256;
const BATCH: u64 = 8;

/// Runs the program in `folder`; returns its exit code, stdout and stderr.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fields"));
    let output = command.current_dir(folder).args(arguments.split(' ')).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn store(folder: &Path) {
    let size = "--lat 8 --lon 16 --inputs 3 --targets 2 --chunk-samples 4 --codec zstd";
    let (code, _, messages) =
        run(folder, &format!("generate store --samples {N_SAMPLES} {size} -q"));
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

/// The mean entropy, in bits, of `class` in the batches of an epoch with a proposal's settings.
fn entropy_of_delivered(folder: &Path, settings: &Value, class: impl Fn(u64) -> u64) -> f64 {
    let storage = Arc::new(LocalStorage::new(folder.join("store")));
    let spec = SampleSpec::new(["inputs", "targets"].map(Variable::new));
    let samples = ArraySamples::open(storage, &spec).unwrap();
    let spec = PipelineSpec {
        chunk_rows: settings["chunk_rows"].as_u64().unwrap(),
        chunks_per_block: settings["chunks_per_block"].as_u64().unwrap(),
        batch_rows: BATCH,
        ..PipelineSpec::default()
    };
    let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
    let mut bits = Vec::new();
    for batch in pipeline.epoch(0).unwrap() {
        let classes: Vec<u64> = batch.unwrap().samples().iter().map(|at| class(*at)).collect();
        let share = |one: &u64| {
            classes.iter().filter(|other| *other == one).count() as f64 / classes.len() as f64
        };
        let of_batch: f64 = classes.iter().map(|one| share(one).log2()).sum();
        bits.push(-of_batch / classes.len() as f64);
    }
    assert_eq!(bits.len() as u64, N_SAMPLES / BATCH);
    bits.iter().sum::<f64>() / bits.len() as f64
}

#[test]
fn a_proposal_keeps_to_memory_and_mixing_and_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    let goal = "--memory 256MiB --entropy 90%";
    let (code, text, messages) =
        run(folder, &format!("tune store -B {BATCH} {goal} --json -q -d out"));
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    let proposal = of_kind(&text, "proposal");
    let settings = &proposal["settings"];
    let memory = f64::from(256 << 20);
    assert!(number(&settings["peak_bytes"]) <= 0.9 * memory, "{proposal}");
    let wanted = number(&proposal["wanted_bits"]);
    assert!((wanted - 0.9 * number(&proposal["perfect_bits"])).abs() < 1e-9, "{proposal}");
    assert_eq!((&proposal["label"], &proposal["threads"]), (&json!("time"), &json!(2)));
    // A batch is a part of one block.
    let block =
        settings["chunk_rows"].as_u64().unwrap() * settings["chunks_per_block"].as_u64().unwrap();
    assert!(block.is_multiple_of(BATCH) || N_SAMPLES <= block, "{settings}");

    let verified = of_kind(&text, "verification")["figures"].clone();
    assert_eq!(verified["n_rows"], N_SAMPLES);
    assert!(verified["fits"].as_bool().unwrap(), "{verified}");
    assert!(number(&verified["peak_bytes"]["measured"]) <= memory, "{verified}");
    let measured = number(&verified["entropy_bits"]["measured"]);
    // Chance alone may take a tenth of a bit of the mean of 32 batches.
    assert!(wanted - 0.1 < measured, "{measured} {proposal}");
    let counted = entropy_of_delivered(folder, settings, |sample| sample * 64 / N_SAMPLES);
    assert!((counted - measured).abs() < 1e-9, "{counted} {measured}");

    // Every measurement is a row, and the printed command repeats the last.
    let rows = read(&folder.join("out")).unwrap();
    let last = rows.last().unwrap();
    assert_eq!(last.run.metadata["tune"], "verification");
    assert!(rows.iter().any(|row| row.run.metadata["tune"] == "refinement"));
    let command = proposal["command"].as_str().unwrap();
    let command = command.strip_prefix("cargo xtask fields ").unwrap();
    let (code, _, messages) = run(folder, &format!("{command} -q -d again"));
    assert_eq!(code, Some(0), "{command}: {messages}");
    let again = read(&folder.join("again")).unwrap().remove(0);
    assert_eq!(again.point, last.point);
    assert_eq!(again.measured.order_entropy[0].mean, Some(measured));
    let python = proposal["python"].as_str().unwrap();
    let expect = format!(
        "FieldDataset(\"store\", [\"inputs\", \"targets\"], batch_size=8, io_batch_size={block}, \
         shuffle_chunk_size={}, seed=0",
        settings["chunk_rows"]
    );
    assert!(python.starts_with(&expect) && python.ends_with(", threads=2)"), "{python}");
}

#[test]
fn months_are_a_label_if_steps_have_times() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    let arguments = "tune store -B 8 --label month --entropy 90% --no-verify";
    let (code, _, messages) = run(folder, &format!("{arguments} -q -d out"));
    assert_eq!(code, Some(1), "{messages}");
    for part in ["the months of inputs are not known", "`units`", "--label time is of any store"] {
        assert!(messages.starts_with("error: ") && messages.contains(part), "{messages}");
    }
    // The samples become days of 2019, which begins with 31 days of January.
    let path = folder.join("store/sample/zarr.json");
    let mut metadata: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    metadata["attributes"]["units"] = json!("days since 2019-01-01");
    fs::write(&path, metadata.to_string()).unwrap();
    let (code, text, messages) = run(folder, &format!("{arguments} --json -q -d out"));
    assert_eq!(code, Some(0), "{messages}");
    let proposal = of_kind(&text, "proposal");
    assert_eq!(proposal["label"], "month");
    let first_days = [0, 31, 59, 90, 120, 151, 181, 212, 243];
    let month = |day: u64| first_days.iter().filter(|first| **first <= day).count() as u64;
    let counted = entropy_of_delivered(folder, &proposal["settings"], month);
    let wanted = number(&proposal["wanted_bits"]);
    assert!(wanted - 0.1 < counted, "{counted} {proposal}");
}

#[test]
fn what_cannot_be_proposed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    for (arguments, code, part) in [
        ("tune nowhere", 1, "nowhere"),
        ("tune store -B 257", 2, "256 samples do not fill a batch of 257"),
        ("tune store --entropy 12", 2, "is more than the"),
        ("tune store --memory 1MB --entropy none", 1, "nothing fits --memory"),
        ("tune store --label place", 2, "place"),
    ] {
        let (found, out, messages) = run(folder, &format!("{arguments} -q -d out"));
        assert_eq!((found, out.as_str()), (Some(code), ""), "{arguments}: {messages}");
        let last = messages.lines().last().unwrap();
        assert!(last.starts_with("error: ") && last.contains(part), "{arguments}: {messages}");
    }
}
