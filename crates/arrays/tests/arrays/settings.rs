//! Settings that do not make samples are refused with the reason; dimensions have names.

use std::path::Path;

use arrays::{Dimension, Indices, SampleSpec, Variable};

use crate::oracle::{Stored, write};
use crate::{chain, open, open_with};

fn plain(shape: Vec<u64>) -> Stored {
    Stored { chunk: vec![1; shape.len()], shape, is_sharded: false, codec: None }
}

#[track_caller]
fn refused(folder: &Path, spec: &SampleSpec, words: &[&str]) {
    let text = chain(&open_with(folder, spec).unwrap_err());
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn settings_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a", &plain(vec![5, 3]));
    write(folder.path(), "b", &plain(vec![6, 3]));
    let spec_of = |variable: Variable| SampleSpec::new([variable]);
    let refused = |spec: &SampleSpec, words: &[&str]| refused(folder.path(), spec, words);
    let a = || Variable::new("a");

    refused(&SampleSpec::new([]), &["needs a variable"]);
    refused(&SampleSpec::new([a(), a()]), &["two variables have the name a"]);
    refused(&SampleSpec::new([a(), Variable::new("b")]), &["a has 5 steps and b has 6"]);
    let along = |along: Dimension| SampleSpec { along: Some(along), ..spec_of(a()) };
    refused(&along("lat".into()), &["dimension lat", "without names"]);
    refused(&along(2.into()), &["dimension 2", "2 dimensions"]);
    refused(&spec_of(a().steps([])), &["a has no steps"]);
    refused(&SampleSpec { stride: 0, ..spec_of(a()) }, &["stride"]);
    refused(
        &SampleSpec { start: Some(1), ..spec_of(a().steps([-2])) },
        &["step 1", "2 steps back"],
    );
    refused(&SampleSpec { start: Some(5), ..spec_of(a()) }, &["no sample", "5 steps"]);
    refused(&SampleSpec { end: Some(0), ..spec_of(a()) }, &["no sample", "before step 0"]);
    refused(&SampleSpec { end: Some(6), ..spec_of(a()) }, &["before step 6", "5 steps"]);
    refused(&spec_of(a().steps([-3, 3])), &["no sample", "from -3 to 3"]);
    refused(&spec_of(a().select(1, Indices::Range(0..4))), &["dimension 1", "index 3"]);
    refused(&spec_of(a().select(1, Indices::List(vec![3, 1]))), &["dimension 1", "index 3"]);
    refused(&spec_of(a().select(2, Indices::Range(0..1))), &["dimension 2", "2 dimensions"]);
    refused(&spec_of(a().select("lat", Indices::Range(0..1))), &["dimension lat", "without names"]);
    refused(&spec_of(a().select(0, Indices::Range(0..1))), &["stride"]);
}

#[test]
fn values_are_of_their_own_type() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a", &plain(vec![5, 3]));
    let error = crate::values::<f32>(open(folder.path(), "a").unwrap()).unwrap_err();
    let text = chain(&error);
    assert!(text.contains("float64") && text.contains("f32"), "{text}");
}
