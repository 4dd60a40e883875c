//! Fuzz targets: functions that feed arbitrary bytes to one part of the reader, and panic if a
//! promise is broken.
//!
//! Compiled for this crate's tests, which run every kept input, and with the feature `fuzz`, for
//! the package in `fuzz/` that runs them under libFuzzer. Hostile input may end in an error, never
//! in a panic. The fuzzer checks memory use, since it counts all allocations of the process.

mod array;
mod blocks;
mod directory;
mod fragment;
mod schema;
mod served;
mod tile;

/// A target's name, which is also that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: [Target; 7] = [
    ("schema", schema::schema),
    ("generic_tile", schema::generic_tile),
    ("fragment", fragment::fragment),
    ("tile", tile::tile),
    ("directory", directory::directory),
    ("cache_block", blocks::cache_block),
    ("array", array::array),
];

/// Splits off the first byte; 0 if there is none.
fn first_byte(input: &[u8]) -> (u8, &[u8]) {
    input.split_first().map_or((0, input), |(first, rest)| (*first, rest))
}

/// Splits off `len` bytes, or all if there are fewer.
fn split_at_most(input: &[u8], len: usize) -> (&[u8], &[u8]) {
    input.split_at(len.min(input.len()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::TARGETS;

    /// The inputs in a file of the corpus: each one's length (u32, little-endian), then its bytes.
    fn inputs(file: &[u8]) -> Vec<&[u8]> {
        let mut inputs = Vec::new();
        let mut rest = file;
        while let Some((len, after)) = rest.split_first_chunk::<4>() {
            let (input, after) = after.split_at(u32::from_le_bytes(*len) as usize);
            inputs.push(input);
            rest = after;
        }
        assert!(rest.is_empty(), "{} bytes behind the last input", rest.len());
        inputs
    }

    #[test]
    fn no_kept_input_breaks_a_promise() {
        for (name, run) in TARGETS {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(format!("../../fuzz/corpus/{name}.inputs"));
            let file = std::fs::read(&path)
                .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
            let inputs = inputs(&file);
            assert!(!inputs.is_empty(), "{name} has no inputs");
            for input in inputs {
                run(input);
            }
        }
    }
}
