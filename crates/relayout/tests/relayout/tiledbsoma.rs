//! The reference implementation reads the same data from the copy as from the source.

use example_data::{GenerateSpec, generate};
use relayout::{CodecChoice, Codecs, GENE_CODECS, RelayoutSpec, VALUE_CODECS};
use serde_json::json;

use crate::python;
use crate::small::lay_out;

#[test]
fn tiledbsoma_finds_every_cell_with_every_value() {
    let Some(python) = python::interpreter() else { return };
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from");
    let example =
        GenerateSpec { n_cells: 2_500, n_genes: 3_000, seed: 4, ..GenerateSpec::default() };
    let nnz = generate(from.to_str().unwrap(), &example, &mut |_| {}).unwrap().nnz;
    let pairs = GENE_CODECS.into_iter().zip(VALUE_CODECS);
    for (idx, (genes, values)) in (0..).zip(pairs) {
        let to = folder.path().join(format!("to-{idx}"));
        let codec = CodecChoice::Named(Codecs { genes, values });
        let shuffle_seed = (idx < 2).then_some(idx);
        let spec = RelayoutSpec { codec, shuffle_seed, ..RelayoutSpec::default() };
        lay_out(&from, &to, &spec).unwrap();
        let expected = json!({ "cells": 2_500, "genes": 3_000, "nnz": nnz, "shuffled": idx < 2, "type": "float" });
        let compared =
            python::run(&python, "compare.py", &[from.to_str().unwrap(), to.to_str().unwrap()]);
        assert_eq!(compared, expected, "{genes:?} {values:?}");
    }
}
