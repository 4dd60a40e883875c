//! Targets for fuzzing: functions that give any bytes to what reads saved encoders, and panic if a
//! promise is broken.
//!
//! Compiled for this crate's tests, which run every kept input, and with the feature `fuzz`, for
//! the package in `fuzz/` that runs them under libFuzzer.

use arrow_array::{Int64Array, RecordBatch, StructArray};

use crate::encode::{BatchKeyEncoder, Encoder, LabelEncoder, Nulls};

/// A target's name, which is also that of its corpus, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: [Target; 1] = [("encoder", encoder)];

/// A saved encoder, of either kind.
fn encoder(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    if let Ok(encoder) = LabelEncoder::from_json(text) {
        let json = encoder.to_json();
        let again = json.and_then(|json| LabelEncoder::from_json(&json));
        assert_eq!(again.ok().as_ref(), Some(&encoder));
        let classes = encoder.classes();
        assert_eq!(Some(classes.len()), encoder.n_classes());
        let codes = codes(&encoder);
        assert_eq!(encoder.inverse(&codes).ok().as_ref(), Some(&classes));
        assert_eq!(encoder.encode_labels(&classes).ok(), Some(codes));
    }
    if let Ok(encoder) = BatchKeyEncoder::from_json(text) {
        let json = encoder.to_json();
        let again = json.and_then(|json| BatchKeyEncoder::from_json(&json));
        assert_eq!(again.ok().as_ref(), Some(&encoder));
        let classes: StructArray = encoder.classes();
        assert_eq!(encoder.joined_keys().len(), codes(&encoder).len());
        // What no column can be called, a record batch cannot hold.
        let obs = RecordBatch::from(classes);
        assert_eq!(encoder.encode(&obs).ok(), Some(codes(&encoder)));
        assert!(obs.num_rows() == 0 || encoder.rules().nulls == Nulls::Class || has_no_nulls(&obs));
    }
}

fn codes(encoder: &dyn Encoder) -> Int64Array {
    Int64Array::from_iter_values(0..encoder.n_classes().unwrap_or(0) as i64)
}

fn has_no_nulls(obs: &RecordBatch) -> bool {
    obs.columns().iter().all(|column| column.null_count() == 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_kept_input_breaks_a_promise() {
        fuzz_corpus::run_kept_inputs(&super::TARGETS);
    }
}
