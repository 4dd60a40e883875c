//! Runs fuzz targets on the inputs stored in `fuzz/corpus`. Only tests depend on this crate.

use std::path::Path;

/// A target: its name, which is also that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Runs each target on all inputs of its corpus.
///
/// # Panics
/// If a target panics, or its corpus is missing, damaged or empty.
pub fn run_kept_inputs(targets: &[Target]) {
    for (name, run) in targets {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/corpus/{name}.inputs"));
        let file = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        let inputs = split(&file).unwrap_or_else(|| panic!("{} is damaged", path.display()));
        assert!(!inputs.is_empty(), "{name} has no inputs");
        inputs.into_iter().for_each(run);
    }
}

/// Splits a file of the corpus into its inputs, each stored as its length (u32, little-endian) and
/// its bytes. `None` if the last one is truncated.
fn split(mut rest: &[u8]) -> Option<Vec<&[u8]>> {
    let mut inputs = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk::<4>() {
        let (input, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        inputs.push(input);
        rest = after;
    }
    rest.is_empty().then_some(inputs)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_corpus_is_split_into_its_inputs() {
        let file = [2, 0, 0, 0, b'a', b'b', 0, 0, 0, 0, 1, 0, 0, 0, b'c'];
        assert_eq!(split(&file), Some(vec![&b"ab"[..], b"", b"c"]));
        assert_eq!(split(b""), Some(Vec::new()));
        assert_eq!(split(&file[..5]), None, "an input is cut short");
        assert_eq!(split(&file[..8]), None, "a length is cut short");
    }
}
