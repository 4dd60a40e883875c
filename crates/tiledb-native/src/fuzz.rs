//! Fuzz targets: functions that feed arbitrary bytes to one part of the reader, and panic if a
//! promise is broken.
//!
//! Compiled for this crate's tests, which run every kept input, and with `--cfg somafeed_fuzz`, for
//! the package in `fuzz/` that runs them under libFuzzer. Hostile input may end in an error, never
//! in a panic. The fuzzer checks memory use, since it counts all allocations of the process.

mod array;
mod condition;
mod dense;
mod directory;
mod fragment;
mod group;
mod schema;
mod table;
mod tile;

/// A target's name, which is also that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: [Target; 13] = [
    ("schema", schema::schema),
    ("generic_tile", schema::generic_tile),
    ("fragment", fragment::fragment),
    ("tile", tile::tile),
    ("directory", directory::directory),
    ("array", array::array),
    ("table", table::table),
    ("table_as_stored", table::as_stored),
    ("dense", dense::dense),
    ("group", group::group),
    ("metadata", group::metadata),
    ("enumeration", group::enumeration),
    ("condition", condition::condition),
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
    #[test]
    fn no_kept_input_breaks_a_promise() {
        fuzz_corpus::run_kept_inputs(&super::TARGETS);
    }
}
