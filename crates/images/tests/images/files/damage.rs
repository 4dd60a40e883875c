//! Damaged files: an error or other values, and nothing else.

use arrays::ElementType;
use images::files::{CubeFile, FileFormat, blosc, tivita};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, proptest};
use proptest::sample::Index;

use super::blosc::OF_PYTHON;
use super::{decode, stored, values};

/// More than any array that is decoded here: a larger one is that of a damaged header.
const MAX_BYTES: usize = 1 << 22;

fn files() -> Vec<(FileFormat, Vec<u8>)> {
    let cube = tivita::write(&[1.5; 60], [5, 4, 3]).unwrap();
    let array = stored("a", &[20, 1000], ElementType::U16);
    let (ours, copied) = (values(2, 20_000), vec![7; 100]);
    let one = blosc::write_array(&array, &ours, 1).unwrap();
    let small = stored("b", &[100], ElementType::Bool);
    let several = blosc::write_dictionary(&[(&array, &ours), (&small, &copied)], 2).unwrap();
    vec![
        (FileFormat::Tivita, cube),
        (FileFormat::Blosc, one),
        (FileFormat::Blosc, several),
        (FileFormat::Blosc, OF_PYTHON.to_vec()),
    ]
}

/// Reads all arrays of a file that may be damaged.
fn read(format: FileFormat, bytes: &[u8]) {
    let Ok(file) = CubeFile::parse(format, bytes) else { return };
    for (idx, array) in file.arrays().iter().enumerate() {
        if array.n_bytes().unwrap() <= MAX_BYTES {
            let _values_or_error = decode(&file, idx);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_files_do_no_harm(
        cut in any::<Index>(), changes in vec((any::<Index>(), any::<u8>()), 1..5)
    ) {
        for (format, bytes) in files() {
            read(format, &bytes[..cut.index(bytes.len())]);
            let mut changed = bytes.clone();
            for (at, byte) in &changes {
                changed[at.index(bytes.len())] ^= byte;
            }
            read(format, &changed);
            // Mostly headers.
            let mut changed = bytes.clone();
            for (at, byte) in &changes {
                changed[at.index(160)] = *byte;
            }
            read(format, &changed);
        }
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm(bytes in vec(any::<u8>(), 0..300)) {
        for format in [FileFormat::Tivita, FileFormat::Blosc] {
            read(format, &bytes);
            read(format, &[b"\x80\x04", &bytes[..]].concat());
        }
    }
}
