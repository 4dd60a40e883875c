//! Describes a layer of X, and with it a whole experiment, as plain JSON, like
//! `python/described.py`.

use std::collections::BTreeSet;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use serde_json::{Value, json};
use soma_io::{Experiment, GeneSelection, Matrix, ReaderChoice, RowRanges};

use crate::described::{assert_same_frames, frames, same_lists, type_name, values};

/// A layer of X, read piece by piece as stored.
pub(crate) fn layer(x: &Matrix) -> Value {
    let reader = x.reader(ReaderChoice::Libtiledb).unwrap();
    let rows = RowRanges::new(vec![0..x.shape().0]).unwrap();
    let mut cells: Vec<(i64, i64, Value)> = Vec::new();
    let mut value_type = None;
    let each = &mut |batch: &RecordBatch| {
        let joinids = |column_idx: usize| batch.column(column_idx).as_primitive::<Int64Type>();
        let joinids = joinids(0).values().iter().zip(joinids(1).values());
        let found = joinids.zip(values(batch.column(2)));
        cells.extend(found.map(|((row, gene), value)| (*row, *gene, value)));
        let schema = batch.schema_ref();
        value_type = Some(type_name(schema.field(2), schema.field(2).data_type()));
        Ok(())
    };
    reader.read_coo(&rows, &GeneSelection::All, each).unwrap();
    cells.sort_by_key(|(row, gene, _)| (*row, *gene));
    json!({ "shape": [x.shape().0, x.shape().1], "type": value_type, "cells": cells })
}

/// A whole experiment with one measurement `RNA`.
pub(crate) fn experiment(experiment: &Experiment) -> Value {
    let measurement = experiment.measurement("RNA").unwrap();
    let layers = measurement.layers().unwrap();
    let layers = layers.iter().map(|name| (name.clone(), layer(&measurement.x(name).unwrap())));
    let mut holds = frames(experiment);
    holds["X"] = layers.collect::<serde_json::Map<_, _>>().into();
    holds
}

/// Compares two experiments in this form, and names the first difference. A layer without values
/// has no type when it is read in pieces.
#[track_caller]
pub(crate) fn assert_same(found: &Value, expected: &Value) {
    assert_same_frames(found, expected);
    let layers = |side: &Value| side["X"].as_object().unwrap().clone();
    // As sets: the order of a JSON object depends on a feature of serde_json.
    let names = |side: &Value| layers(side).keys().cloned().collect::<BTreeSet<String>>();
    assert_eq!(names(found), names(expected), "the layers of X");
    for (name, expected) in &layers(expected) {
        let found = &found["X"][name];
        assert_eq!(found["shape"], expected["shape"], "the shape of layer {name}");
        same_lists(&found["cells"], &expected["cells"], name);
        if expected["cells"] != json!([]) {
            assert_eq!(found["type"], expected["type"], "the type of layer {name}");
        }
    }
}
