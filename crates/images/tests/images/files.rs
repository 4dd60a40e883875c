//! Files of cubes: written and read, damaged, and compared with those of Python.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod blosc;
mod damage;
mod python;
mod tivita;

use arrays::ElementType;
use images::files::{CubeFile, DecodeScratch, FileError, StoredArray};

/// Elements of the files of `tests/python/blosc_files.py`, as bytes.
pub(crate) fn values(element_bytes: usize, n_elements: usize) -> Vec<u8> {
    let element = |idx: u64| idx / 3 + (idx * idx / 64 % 32) * 256 + ((idx / 1000) << 33);
    let mut values = Vec::with_capacity(element_bytes * n_elements);
    for idx in 0..n_elements as u64 {
        values.extend_from_slice(&element(idx).to_le_bytes()[..element_bytes]);
    }
    values
}

pub(crate) fn stored(name: &str, shape: &[usize], element: ElementType) -> StoredArray {
    StoredArray::new(name, shape, element).unwrap()
}

/// Decodes an array whole, and once more piece by piece from the last one.
#[track_caller]
pub(crate) fn decode(file: &CubeFile<'_>, idx: usize) -> Result<Vec<u8>, FileError> {
    let n_bytes = file.arrays()[idx].n_bytes().unwrap();
    let mut scratch = DecodeScratch::new();
    let mut whole = vec![0xa5; n_bytes];
    file.decode(idx, &mut whole, &mut scratch)?;
    let mut in_pieces = vec![0x5a; n_bytes];
    let pieces = in_pieces.chunks_mut(file.piece_bytes(idx)?).enumerate();
    for (piece, into) in pieces.rev() {
        file.decode_piece(idx, piece, into, &mut scratch)?;
    }
    assert!(whole == in_pieces, "array {idx} in pieces is another one");
    Ok(whole)
}

#[test]
fn a_wrong_destination_is_refused() {
    use images::files::{FileFormat, tivita};
    let bytes = tivita::write(&[0.0; 24], [3, 2, 4]).unwrap();
    let file = CubeFile::parse(FileFormat::Tivita, &bytes).unwrap();
    let scratch = &mut DecodeScratch::new();
    let error = file.decode(0, &mut [0; 95], scratch).unwrap_err();
    assert!(matches!(error, FileError::Destination { expected: 96, given: 95 }), "{error}");
    let error = file.decode_piece(0, 0, &mut [0; 97], scratch).unwrap_err();
    assert!(matches!(error, FileError::Destination { expected: 96, given: 97 }), "{error}");
    let error = file.decode_piece(0, 1, &mut [0; 96], scratch).unwrap_err();
    assert!(matches!(error, FileError::Absent { what: "piece", index: 1, count: 1 }), "{error}");
    let error = file.decode(1, &mut [0; 96], scratch).unwrap_err();
    assert!(matches!(error, FileError::Absent { what: "array", index: 1, count: 1 }), "{error}");
}
