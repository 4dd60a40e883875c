//! A fuzz target: feeds arbitrary bytes to the reading of files of cubes, and panics if a promise
//! is broken.
//!
//! Compiled for this crate's tests, which run every kept input, and with `--cfg
//! somafeed_fuzz`, for the package in `fuzz/` that runs it under libFuzzer.

use crate::files::{CubeFile, DecodeScratch, FileFormat, StoredArray, blosc};

/// A target's name, which is also that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: [Target; 1] = [("cube_file", cube_file)];

/// Bytes of values of the largest array that is decoded, and of the largest file written again.
const MAX_BYTES: [usize; 2] = [1 << 20, 1 << 14];

/// The format (1 byte), and the file.
fn cube_file(input: &[u8]) {
    let Some((format, bytes)) = input.split_first() else { return };
    let format = if format % 2 == 0 { FileFormat::Tivita } else { FileFormat::Blosc };
    let Ok(file) = CubeFile::parse(format, bytes) else { return };
    let mut decoded = Vec::new();
    for (idx, array) in file.arrays().iter().enumerate() {
        let n_bytes = array.n_bytes();
        let n_bytes = n_bytes.unwrap_or_else(|| panic!("{array:?} exceeds the memory"));
        if n_bytes <= MAX_BYTES[0]
            && let Some(values) = decode(&file, idx, n_bytes)
        {
            decoded.push((array, values));
        }
    }
    let n_bytes: usize = decoded.iter().map(|(_, values)| values.len()).sum();
    if format == FileFormat::Blosc && n_bytes <= MAX_BYTES[1] {
        write_again(&decoded);
    }
}

/// The values of an array, which are the same if its pieces are decoded in another order.
fn decode(file: &CubeFile<'_>, idx: usize, n_bytes: usize) -> Option<Vec<u8>> {
    let scratch = &mut DecodeScratch::new();
    let mut whole = vec![0xa5; n_bytes];
    let is_decoded = file.decode(idx, &mut whole, scratch).is_ok();
    let mut in_pieces = vec![0x5a; n_bytes];
    let piece_bytes = file.piece_bytes(idx);
    let piece_bytes = piece_bytes.unwrap_or_else(|error| panic!("array {idx}: {error}"));
    let mut pieces = in_pieces.chunks_mut(piece_bytes).enumerate().rev();
    let are_decoded =
        pieces.all(|(piece, into)| file.decode_piece(idx, piece, into, scratch).is_ok());
    assert_eq!(is_decoded, are_decoded, "array {idx}");
    assert!(!is_decoded || whole == in_pieces, "array {idx} in pieces is another one");
    is_decoded.then_some(whole)
}

/// Arrays that were read are written and read again.
fn write_again(arrays: &[(&StoredArray, Vec<u8>)]) {
    let borrowed: Vec<_> = arrays.iter().map(|(array, values)| (*array, &values[..])).collect();
    let bytes = blosc::write_dictionary(&borrowed, 1);
    let bytes = bytes.unwrap_or_else(|error| panic!("{borrowed:?}: {error}"));
    let file = CubeFile::parse(FileFormat::Blosc, &bytes);
    let file = file.unwrap_or_else(|error| panic!("{borrowed:?}: {error}"));
    assert_eq!(file.arrays().len(), arrays.len());
    for (idx, (array, values)) in arrays.iter().enumerate() {
        assert_eq!(&file.arrays()[idx], *array);
        assert_eq!(decode(&file, idx, values.len()).as_ref(), Some(values));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_kept_input_breaks_a_promise() {
        fuzz_corpus::run_kept_inputs(&super::TARGETS);
    }
}
