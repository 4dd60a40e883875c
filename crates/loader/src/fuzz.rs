//! Fuzz targets: functions that parse arbitrary bytes as saved encoders, and panic if a property
//! does not hold.
//!
//! Compiled for this crate's tests, which run every stored input, and with `--cfg
//! somafeed_fuzz`, for the package in `fuzz/`, which runs them under libFuzzer.

use arrow_array::{Int64Array, RecordBatch, StructArray};

use crate::encode::{BatchKeyEncoder, Encoder, LabelEncoder, Nulls};

/// The name of a target and of its corpus, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: [Target; 1] = [("encoder", encoder)];

/// Parses a saved encoder, of either kind, and checks that it survives a round trip.
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
        // The keys themselves, as obs, encode to their own codes.
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
