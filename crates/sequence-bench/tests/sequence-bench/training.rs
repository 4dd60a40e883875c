//! Doc2Vec on a store.

use std::fs;

use crate::{run, store};

/// The loss of each epoch.
fn losses(out: &str) -> Vec<f64> {
    let of_line = |line: &str| {
        let loss = line.split_once(": loss ")?.1.split(' ').next()?;
        Some(loss.parse().unwrap())
    };
    out.lines().filter_map(of_line).collect()
}

#[test]
fn relatives_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let generate = "generate file --families 12 --members 6 --mutations 0.03 --letters 400 -q";
    for arguments in [generate, "import file store -q"] {
        assert_eq!(run(folder, arguments).0, Some(0));
    }
    let arguments = "train store --model dbow -E 20 --alpha 0.1 -B 16 --threads 2 -o vectors";
    let (code, out, messages) = run(folder, arguments);
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    let losses = losses(&out);
    assert_eq!(losses.len(), 20, "{out}");
    assert!(losses[19] < losses[1], "{losses:?}");
    let (_, score) = out.split_once("nearest neighbour of the same family: ").unwrap();
    let score: f64 = score.split(' ').next().unwrap().parse().unwrap();
    // By chance it would be 7 %.
    assert!(60.0 < score, "{out}");

    let vectors = fs::read_to_string(folder.join("vectors/sequences.txt")).unwrap();
    assert!(vectors.starts_with("72 24\nfamily_0_member_0 "), "{vectors}");
    assert_eq!(vectors.lines().count(), 73);
    let words = fs::read_to_string(folder.join("vectors/words.txt")).unwrap();
    assert!(words.contains("\nXXXX "), "{words}");
    assert!(folder.join("vectors/embeddings.safetensors").is_file());

    let (code, _, messages) = run(folder, arguments);
    assert_eq!(code, Some(1), "the folder exists");
    assert!(messages.contains("cannot create vectors"), "{messages}");
}

#[test]
fn training_is_the_same_again_and_both_models_learn() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let train = |model: &str| {
        let arguments = format!("train store --model {model} -E 3 -B 8 --threads 2 --seed 4");
        let (code, out, messages) = run(folder.path(), &arguments);
        assert_eq!((code, messages.as_str()), (Some(0), ""));
        assert!(!out.contains("family"), "names are not those of families: {out}");
        losses(&out)
    };
    for model in ["dm", "dbow"] {
        let losses = train(model);
        assert_eq!(losses, train(model));
        assert!(losses[2] < losses[0], "{model}: {losses:?}");
    }
    let (code, _, messages) = run(folder.path(), "train store -E 0");
    assert_eq!(code, Some(2), "{messages}");
}

/// Names with blanks are noticed before training, and so is a rate that is too large soon after its
/// begin. The next try finds no folder.
#[test]
fn what_would_end_badly_ends_early() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("file"), "ACGTTGCAACGT,my gene\nACGGTTTACGTT,other\n").unwrap();
    assert_eq!(run(folder, "import file store -q").0, Some(0));
    let (code, out, messages) = run(folder, "train store -E 1000000 -o vectors");
    assert_eq!((code, out.as_str()), (Some(1), ""), "{messages}");
    assert!(
        messages.contains("\"my gene\"") && messages.contains("--safetensors-only"),
        "{messages}"
    );
    assert!(!folder.join("vectors").exists());

    let arguments = "train store -E 1000000 --alpha 1e30 -o vectors --safetensors-only";
    let (code, out, messages) = run(folder, arguments);
    assert_eq!(code, Some(1), "{out}{messages}");
    assert!(messages.contains("the loss is not a number any more"), "{messages}");
    assert!(messages.contains("an alpha lower than"), "{messages}");
    assert!(out.lines().count() < 100 && !out.contains("NaN"), "{out}");

    let (code, out, messages) = run(folder, "train store -E 1 -o vectors --safetensors-only");
    assert_eq!((code, messages.as_str()), (Some(0), ""), "{out}");
    let files: Vec<_> = fs::read_dir(folder.join("vectors")).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
}
