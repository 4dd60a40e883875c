//! Targets for fuzzing: HDF5 files with overwritten bytes, or of any content, listed and read.
//!
//! Compiled for this crate's tests, which run every kept input, and with `--cfg somafeed_fuzz`, for
//! the package in `fuzz/` that runs it under libFuzzer. A damaged file may end in an error or in
//! other bytes, never in a panic.

use std::sync::Arc;

use storage::MemoryStorage;
use storage::Storage;

use crate::Hdf5Storage;

/// A target's name, which is also that of its corpus, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: [Target; 1] = [("hdf5_file", hdf5_file)];

const STORED: [&[u8]; 2] =
    [include_bytes!("../tests/data/kinds.h5"), include_bytes!("../tests/data/latest.h5")];
const NAME: &str = "x.h5";
/// Groups and arrays that are read of a file.
const MOST_NODES: usize = 100;
/// Chunks that are read of an array.
const CHUNKS: [&str; 4] = ["c", "c/0", "c/1", "c/0/0"];

/// Input: which file (1 byte), or beyond those, the file itself; then changes to it, as
/// [`MemoryStorage::changed`] takes them.
fn hdf5_file(input: &[u8]) {
    let (choice, rest) = input.split_first().map_or((0, input), |(of, rest)| (*of, rest));
    let served = match STORED.get(usize::from(choice)) {
        Some(stored) => MemoryStorage::one(NAME, stored).changed(rest),
        None => MemoryStorage::one(NAME, rest),
    };
    let Ok(hdf5) = Hdf5Storage::open(Arc::new(served), NAME) else { return };
    let mut paths = vec![String::new()];
    let mut at = 0;
    while let Some(path) = paths.get(at).cloned() {
        at += 1;
        let within = |name: &str| match path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}/{name}"),
        };
        for chunk in CHUNKS {
            // Errors are acceptable results.
            drop(hdf5.read_files(&[&within(chunk)]));
        }
        drop(hdf5.read_files(&[&within("zarr.json")]));
        let below = hdf5.list(&path).unwrap_or_default();
        let folders = below.iter().filter(|entry| entry.is_folder);
        let n_left = MOST_NODES.saturating_sub(paths.len());
        let found: Vec<String> = folders.map(|entry| within(&entry.name)).take(n_left).collect();
        paths.extend(found);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_kept_input_breaks_a_promise() {
        fuzz_corpus::run_kept_inputs(&super::TARGETS);
    }
}
