//! `tune` as a user runs it: the proposal meets the goal, and its figures are verified.

use std::path::Path;
use std::process::Output;

use bench_report::read;
use serde_json::Value;
use tempfile::TempDir;

use crate::program;

const N_CELLS: u64 = 6000;

/// A folder with an experiment in it.
fn bed() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let cells = N_CELLS.to_string();
    let generate = ["generate", "experiment", "--cells", &cells, "--genes", "500", "-q"];
    let output = program::command(folder.path(), &generate).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    folder
}

fn tune(folder: &Path, arguments: &[&str]) -> Output {
    // Small read buffers: allocating the default ones takes longer than reading this experiment.
    let small = "soma.init_buffer_bytes=1000000";
    let always =
        ["tune", "--uri", "experiment", "--results", "out", "--config", small, "-B", "128"];
    program::command(folder, &[&always[..], arguments].concat()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn objects(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

#[test]
fn a_proposal_keeps_to_memory_and_entropy_and_is_run() {
    let folder = bed();
    let folder = folder.path();
    let output = tune(folder, &["--memory", "1GiB", "--entropy", "99%", "--json", "-q"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    let lines = objects(&output);
    let proposal = of_kind(&lines, "proposal")[0];
    let number = |value: &Value| value.as_f64().unwrap();
    let settings = &proposal["settings"];
    assert!(number(&settings["peak_bytes"]) <= 0.9 * f64::from(1 << 30), "{proposal}");
    let wanted = number(&proposal["wanted_bits"]);
    assert!((wanted - 0.99 * number(&proposal["perfect_bits"])).abs() < 1e-9, "{proposal}");
    assert!(wanted <= number(&settings["entropy_bits"]), "{proposal}");
    assert_eq!(of_kind(&lines, "model").len(), 1);
    let candidates = of_kind(&lines, "candidate");
    assert!(candidates.iter().any(|one| one["settings"] == *settings), "{candidates:?}");

    // Entropy does not depend on timing. Below 64 chunks per block, chance matters more.
    let verification = &of_kind(&lines, "verification")[0]["figures"];
    assert_eq!(verification["n_rows"], N_CELLS);
    let entropy = &verification["entropy_bits"];
    let off = (number(&entropy["measured"]) - number(&entropy["predicted"])).abs();
    let is_close = 64 <= settings["chunks_per_block"].as_u64().unwrap();
    assert!(off <= if is_close { 0.05 } else { 0.2 }, "{settings} {entropy}");
    for figure in ["samples_per_sec", "peak_bytes"] {
        assert!(number(&verification[figure]["measured"]) > 0.0, "{verification}");
    }

    // Every measurement is an ordinary row.
    let rows = read(&folder.join("out")).unwrap();
    let verified = rows.last().unwrap();
    assert_eq!(verified.run.metadata["tune"], "verification");
    assert_eq!(verified.point.chunk_size, settings["chunk_rows"].as_u64().unwrap());
    // A row leaves out the usual number, 0.
    let ahead = verified.point.settings.number("prefetch_blocks").unwrap_or(0);
    assert_eq!(ahead, settings["prefetch_blocks"].as_u64().unwrap());
    let rows_of = |what: &str| {
        rows.iter().filter(|row| row.run.metadata["tune"].starts_with(what)).collect::<Vec<_>>()
    };
    let [probes, refinements, verifications] = ["probe", "refinement", "verification"].map(rows_of);
    assert_eq!(probes.len() + refinements.len() + verifications.len(), rows.len());
    // The proposal was run before the verification.
    let before = refinements.iter().filter(|row| row.point == verified.point).count() as u64;
    assert!(0 < before && before <= settings["n_runs"].as_u64().unwrap(), "{settings}");
    assert_eq!(verification["n_runs"], verifications.len());
    assert!(rows.iter().any(|row| row.point.reader == "libtiledb"));

    // The printed command repeats the proposal.
    let command = proposal["command"].as_str().unwrap().strip_prefix("cargo xtask ").unwrap();
    let words: Vec<&str> = command.split(' ').chain(["--results", "again", "-q"]).collect();
    let output = program::command(folder, &words).output().unwrap();
    assert!(output.status.success(), "{command}: {}", stderr(&output));
    let again = read(&folder.join("again")).unwrap().remove(0);
    assert_eq!(again.point, verified.point);
}

#[test]
fn tables_and_settings_are_printed_and_nothing_is_run_when_not_asked_for() {
    let folder = bed();
    let folder = folder.path();
    let few = ["--entropy", "none", "--no-verify", "--reader", "native", "--batch-form", "csr"];
    let output = tune(folder, &[&few[..], &["-v", "100", "--obs-filter", "nnz > 1"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    for expect in [
        "Speed against memory, however random it is",
        "proposal: ",
        "--batch-form csr",
        "--entropy-of none -v 100 --obs-filter 'nnz > 1' --config soma.init_buffer_bytes=1000000",
        "LoaderSpec { pipeline: PipelineSpec { chunk_rows: ",
        "ReaderChoice::Native",
        "ExperimentDataset(uri=\"experiment\", obs_filter=\"nnz > 1\", batch_size=128, ",
        "form=\"torch_csr\", obs_form=\"codes\", seed=",
        "out/epochs.parquet",
    ] {
        assert!(printed.contains(expect), "{expect}: {printed}");
    }
    assert!(
        !printed.contains("Verified") && !printed.contains("Speed against entropy"),
        "{printed}"
    );
    let rows = read(&folder.join("out")).unwrap();
    assert!(
        rows.iter().all(|row| row.run.metadata["tune"] != "verification" && row.data.n_cols == 100)
    );
    assert!(rows.iter().all(|row| row.point.reader == "native"));
}

#[test]
fn a_proposal_over_a_link_was_measured_over_it() {
    let folder = bed();
    let folder = folder.path();
    let link = ["--link", "1ms,100MB/s", "--link-faults", "cut=1/50,seed=3"];
    let few = ["--entropy", "none", "--reader", "native", "--batch-form", "csr", "--json", "-q"];
    let output = tune(folder, &[&few[..], &link].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = read(&folder.join("out")).unwrap();
    for row in &rows {
        assert_eq!(row.point.settings.get("link"), Some(link[1]), "{row:?}");
        assert_eq!(row.point.settings.get("link_faults"), Some(link[3]), "{row:?}");
        assert!(Some(0) < row.measured.link_requests, "{row:?}");
    }
    assert!(rows.iter().any(|row| row.run.metadata["tune"] == "verification"));
    let lines = objects(&output);
    let command = of_kind(&lines, "proposal")[0]["command"].as_str().unwrap();
    assert!(command.contains("--link 1ms,100MB/s --link-faults cut=1/50,seed=3"), "{command}");
    let far = ["tune", "--uri", "s3://bucket/x", "--link", "1ms"];
    let far = program::command(folder, &far).output().unwrap();
    assert_eq!(far.status.code(), Some(2), "{}", stderr(&far));
    assert!(stderr(&far).contains("--link takes data on a local disk"), "{}", stderr(&far));
}

#[test]
fn what_cannot_be_is_told() {
    let folder = bed();
    let folder = folder.path();
    for (arguments, code, expect) in [
        (&["--entropy", "12"][..], 2, "is more than the"),
        (&["--entropy", "much"], 2, "expected bits, as 3.4, a share from 0% to 100%, or none"),
        (&["--label", "species"], 1, "--label names another, --entropy none does without"),
        (&["--memory", "much"], 2, "much"),
        (&["-s", "5", "-e", "5"], 2, "leave no cell"),
        (&["--memory", "50MB", "--reader", "native"], 1, "nothing fits --memory"),
    ] {
        let output = tune(folder, arguments);
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{printed}");
        let last = printed.lines().last().unwrap();
        assert!(last.starts_with("error: ") && last.contains(expect), "{expect}: {printed}");
    }
    // The error names enough memory, and the command succeeds with it.
    let output = tune(folder, &["--memory", "50MB", "--reader", "native", "-q"]);
    let printed = stderr(&output);
    assert!(
        printed.contains("the least for it is ") && printed.contains("runs in less than"),
        "{printed}"
    );
}
