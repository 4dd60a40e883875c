//! The command `tune` as a user runs it: the proposal meets the goal, and its order is as mixed as
//! it says.

use std::path::Path;
use std::sync::Arc;

use bench_report::read;
use pipeline::{Pipeline, PipelineSpec};
use sequences::{SequenceBatch, SequenceFiles, SequenceSamples, SequenceSpec};
use serde_json::{Value, json};
use storage::LocalStorage;

use crate::run;

const N_SEQUENCES: u64 = 640;
const BATCH: u64 = 16;

fn store(folder: &Path) {
    let families = "--families 64 --members 10 --letters 256 -q";
    for arguments in [&format!("generate file.txt {families}"), "import file.txt store -q"] {
        let (code, _, messages) = run(folder, arguments);
        assert_eq!((code, messages.as_str()), (Some(0), ""));
    }
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
    let store = SequenceFiles::open(Arc::new(LocalStorage::new(folder.join("store")))).unwrap();
    let spec = SequenceSpec { letters: true, ..SequenceSpec::default() };
    let samples = SequenceSamples::new(Arc::new(store), spec).unwrap();
    let spec = PipelineSpec {
        chunk_rows: settings["chunk_rows"].as_u64().unwrap(),
        chunks_per_block: settings["chunks_per_block"].as_u64().unwrap(),
        batch_rows: BATCH,
        ..PipelineSpec::default()
    };
    let pipeline = Pipeline::new(Arc::new(samples), spec, SequenceBatch::n_sequences).unwrap();
    let mut bits = Vec::new();
    for batch in pipeline.epoch(0).unwrap() {
        let classes: Vec<u64> = batch.unwrap().rows().iter().map(|row| class(*row)).collect();
        let share = |one: &u64| {
            classes.iter().filter(|other| *other == one).count() as f64 / classes.len() as f64
        };
        let of_batch: f64 = classes.iter().map(|one| share(one).log2()).sum();
        bits.push(-of_batch / classes.len() as f64);
    }
    assert_eq!(bits.len() as u64, N_SEQUENCES / BATCH);
    bits.iter().sum::<f64>() / bits.len() as f64
}

#[test]
fn a_proposal_keeps_to_memory_and_mixing_and_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    let goal = "--memory 256MiB --entropy 90% -k 3";
    let (code, text, messages) =
        run(folder, &format!("tune store -B {BATCH} {goal} --json -q -d out"));
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    let proposal = of_kind(&text, "proposal");
    let settings = &proposal["settings"];
    let memory = f64::from(256 << 20);
    assert!(number(&settings["peak_bytes"]) <= 0.9 * memory, "{proposal}");
    let wanted = number(&proposal["wanted_bits"]);
    assert!((wanted - 0.9 * number(&proposal["perfect_bits"])).abs() < 1e-9, "{proposal}");
    assert_eq!((&proposal["label"], &proposal["threads"]), (&json!("position"), &json!(2)));

    let verified = of_kind(&text, "verification")["figures"].clone();
    assert_eq!(verified["n_rows"], N_SEQUENCES);
    assert!(verified["fits"].as_bool().unwrap(), "{verified}");
    let measured = number(&verified["entropy_bits"]["measured"]);
    // Chance alone may take a tenth of a bit of the mean of 40 batches.
    assert!(wanted - 0.1 < measured, "{measured} {proposal}");
    let counted = entropy_of_delivered(folder, settings, |row| row * 64 / N_SEQUENCES);
    assert!((counted - measured).abs() < 1e-9, "{counted} {measured}");

    // The printed command repeats the verification.
    let rows = read(&folder.join("out")).unwrap();
    let last = rows.last().unwrap();
    assert_eq!(last.run.metadata["tune"], "verification");
    let command = proposal["command"].as_str().unwrap();
    let command = command.strip_prefix("cargo xtask sequences ").unwrap();
    let (code, _, messages) = run(folder, &format!("{command} -q -d again"));
    assert_eq!(code, Some(0), "{command}: {messages}");
    let again = read(&folder.join("again")).unwrap().remove(0);
    assert_eq!(again.point, last.point);
    assert_eq!(again.measured.order_entropy[0].mean, Some(measured));
    let python = proposal["python"].as_str().unwrap();
    let expect = "SequenceDataset(\"store\", kmers=Kmers(3, stride=3, frames=3, padding=3), \
                  batch_size=16, io_batch_size=";
    assert!(python.starts_with(expect) && python.ends_with(", threads=2)"), "{python}");
}

#[test]
fn families_are_a_label_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    let arguments = "tune store -B 16 --form letters --label name:_member_ --no-verify";
    let (code, text, messages) = run(folder, &format!("{arguments} --json -q -d out"));
    assert_eq!(code, Some(0), "{messages}");
    let proposal = of_kind(&text, "proposal");
    assert_eq!(proposal["label"], "name:_member_");
    // Sequence `i` is of family `i % 64`.
    let counted = entropy_of_delivered(folder, &proposal["settings"], |row| row % 64);
    assert!(number(&proposal["wanted_bits"]) - 0.1 < counted, "{counted} {proposal}");
    // All names differ after a separator that is nowhere.
    let (_, text, _) =
        run(folder, "tune store -B 16 --form letters --label name:| --no-verify --json -q -d out");
    assert_eq!(number(&of_kind(&text, "proposal")["perfect_bits"]), 4.0);
}

#[test]
fn what_cannot_be_proposed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    store(folder);
    for (arguments, code, part) in [
        ("tune nowhere", 1, "nowhere"),
        ("tune store --label family", 2, "expected position, or name:"),
        ("tune store --entropy 12", 2, "is more than the"),
        ("tune store --memory 1MB --entropy none", 1, "nothing fits --memory"),
    ] {
        let (found, out, messages) = run(folder, &format!("{arguments} -q -d out"));
        assert_eq!((found, out.as_str()), (Some(code), ""), "{arguments}: {messages}");
        let last = messages.lines().last().unwrap();
        assert!(last.starts_with("error: ") && last.contains(part), "{arguments}: {messages}");
    }
}
