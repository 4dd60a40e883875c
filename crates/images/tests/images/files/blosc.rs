//! Files of blosc.

use arrays::ElementType;
use images::files::{CubeFile, FileError, FileFormat, blosc};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::{decode, stored, values};

const ELEMENTS: [ElementType; 12] = [
    ElementType::Bool,
    ElementType::I8,
    ElementType::I16,
    ElementType::I32,
    ElementType::I64,
    ElementType::U8,
    ElementType::U16,
    ElementType::U32,
    ElementType::U64,
    ElementType::F16,
    ElementType::F32,
    ElementType::F64,
];

/// Files that Python's blosc 1.11.4 wrote: a dictionary of arrays whose keys are codec, bytes of an
/// element and shuffle, each with 1,000 elements of `values`.
pub(crate) const OF_PYTHON: &[u8] = include_bytes!("../../python/codecs.blosc");

/// Lengths around those of blocks: of level 1 has 32 KiB, and fewer than 128 bytes are copied.
fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![0..40_usize, Just(127), Just(128), 8185..8200_usize, 20_000..20_020_usize]
}

proptest! {
    #[test]
    fn arrays_are_written_and_read(
        arrays in vec((0..ELEMENTS.len(), lengths(), any::<bool>()), 1..4), level in 0..=2_u8
    ) {
        let arrays: Vec<_> = arrays
            .into_iter()
            .enumerate()
            .map(|(idx, (element, length, is_random))| {
                let element = ELEMENTS[element];
                let mut values = values(element.n_bytes(), length);
                if is_random {
                    let mut state = 1_u64;
                    for value in &mut values {
                        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                        *value = (state >> 56) as u8;
                    }
                }
                (stored(&format!("ä {idx}"), &[1, length], element), values)
            })
            .collect();
        let borrowed: Vec<_> = arrays.iter().map(|(array, values)| (array, &values[..])).collect();
        let bytes = blosc::write_dictionary(&borrowed, level).unwrap();
        let file = CubeFile::parse(FileFormat::Blosc, &bytes).unwrap();
        prop_assert_eq!(file.arrays().len(), arrays.len());
        for (idx, (array, values)) in arrays.iter().enumerate() {
            prop_assert_eq!(file.index(&array.name), Some(idx));
            prop_assert_eq!(&file.arrays()[idx], array);
            prop_assert_eq!(&decode(&file, idx).unwrap(), values);
        }
        let (array, values) = &arrays[0];
        let bytes = blosc::write_array(array, values, level).unwrap();
        let file = CubeFile::parse(FileFormat::Blosc, &bytes).unwrap();
        prop_assert_eq!(&file.arrays()[0].name, "");
        prop_assert_eq!(&file.arrays()[0].shape, &array.shape);
        prop_assert_eq!(&decode(&file, 0).unwrap(), values);
    }
}

#[test]
fn files_of_python_are_read() {
    let file = CubeFile::parse(FileFormat::Blosc, OF_PYTHON).unwrap();
    assert_eq!(file.arrays().len(), 5 * 2 * 3);
    for (idx, array) in file.arrays().iter().enumerate() {
        let element_bytes = array.element.n_bytes();
        assert!(array.name.contains(&format!(" {element_bytes} ")), "{array:?}");
        let expected = values(element_bytes, 1000);
        assert!(decode(&file, idx).unwrap() == expected, "{}", array.name);
    }
}

#[test]
fn every_level_is_read_back() {
    let array = stored("", &[300, 1000], ElementType::U16);
    let values = values(2, 300_000);
    let mut lengths = Vec::new();
    for level in [0, 1, 5, 9] {
        let bytes = blosc::write_array(&array, &values, level).unwrap();
        let file = CubeFile::parse(FileFormat::Blosc, &bytes).unwrap();
        assert!(decode(&file, 0).unwrap() == values, "level {level}");
        lengths.push(bytes.len());
    }
    assert!(lengths.is_sorted_by(|longer, shorter| longer > shorter), "{lengths:?}");
}

#[test]
fn what_the_format_does_not_have_is_not_written() {
    let array = stored("labels", &[2, 3], ElementType::BF16);
    let check = |written: Result<Vec<u8>, FileError>, expected: &str| {
        let error = written.unwrap_err().to_string();
        assert!(error.starts_with("cannot write: ") && error.contains(expected), "{error}");
    };
    check(blosc::write_array(&array, &[0; 12], 5), "numpy has no such array");
    let array = stored("labels", &[2, 3], ElementType::U8);
    check(blosc::write_array(&array, &[0; 5], 5), "5 bytes for `labels` of shape [2, 3]");
    check(blosc::write_array(&array, &[0; 6], 10), "level 10 of c-blosc");
    let twice = [(&array, &[0; 6][..]), (&array, &[0; 6][..])];
    check(blosc::write_dictionary(&twice, 5), "two arrays are called `labels`");
}

#[test]
fn other_pickles_are_refused() {
    let check = |pickle: &[u8], expected: &str| {
        let error = CubeFile::parse(FileFormat::Blosc, pickle).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}, and not {expected}");
    };
    let numpy = |code: &str, order: &str| {
        let state = b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb";
        let begin = b"\x80\x02(K\x01tcnumpy\ndtype\nX\x02\x00\x00\x00";
        let call = b"\x89\x88\x87R(K\x03X\x01\x00\x00\x00";
        [begin, code.as_bytes(), call, order.as_bytes(), state, b"\x86."].concat()
    };
    check(&numpy("f4", "<"), "the file has 58 bytes, but the header of a c-blosc buffer");
    check(&numpy("O8", "|"), "elements of numpy's type `O8`: numbers and bool are");
    check(&numpy("M8", "<"), "elements of numpy's type `M8`");
    check(&numpy("f4", "|"), "byte order Some(\"|\") of numpy's type `f4`");
    check(b"", "the file has 0 bytes, but the pickle");
    check(b"hello", "a file of this format begins with a pickle");
    check(b"\x9e\xa8b2frame\0", "the file is a frame of Blosc2");
    check(b"\x80\x01N.", "protocol 1 of pickle");
    check(b"\x80\x04N.", "a pickle of neither (shape, type) nor a dictionary");
    check(b"\x80\x04).", "a pickle of neither");
    check(b"\x80\x04]q\x00.", "operation 0x5d of pickle");
    check(
        b"\x80\x04cos\nsystem\nX\x02\x00\x00\x00ls\x85R.",
        "os.system in the pickle: numpy.dtype is",
    );
    check(b"\x80\x04h\x00.", "a value that was not kept in the pickle");
    check(b"\x80\x04t.", "the stack has no mark");
    check(b"\x80\x04}}.", "a second dictionary");
    check(b"\x80\x04}(K\x01K\x01u.", "the key Integer(1): text is");
    check(b"\x80\x04}(X\x01\x00\x00\x00aK\x01u.", "`a` has another value than (shape, type, size)");
    // Deeply nested tuples take no stack when they are dropped.
    let nested = [b"\x80\x04N".to_vec(), vec![0x85; 900_000], b".".to_vec()].concat();
    check(&nested, "a pickle of neither");
    let long = [b"\x80\x04".to_vec(), b"N".repeat(1 << 21)].concat();
    check(&long, "a pickle of more than 1048576 bytes");
}

#[test]
fn buffers_that_contradict_the_pickle_are_refused() {
    let array = stored("", &[1000], ElementType::U16);
    let bytes = blosc::write_array(&array, &values(2, 1000), 5).unwrap();
    let buffer = bytes.windows(4).position(|four| four == [2, 1, 0x91, 2]).unwrap();
    let check = |at: usize, byte: u8, expected: &str| {
        let mut damaged = bytes.clone();
        damaged[buffer + at] = byte;
        let parsed = CubeFile::parse(FileFormat::Blosc, &damaged);
        let error = parsed.and_then(|file| decode(&file, 0)).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}, and not {expected}");
    };
    check(0, 6, "format 6 of c-blosc");
    check(0, 5, "it was compressed by Blosc2");
    check(1, 2, "version 2 of Zstd");
    check(2, 0x99, "format 2 of c-blosc with flags 0x99");
    check(2, 0x51, "snappy: zstd, lz4, zlib and blosclz are");
    check(2, 0xf1, "codec 7 of c-blosc");
    check(3, 0, "elements of 0 bytes");
    check(4, 0xd1, "2001 bytes of values, and the shape has 2000");
    check(9, 0xff, "blocks of 65488 bytes for 2000 bytes");
    check(14, 1, "and there are");
    check(18, 1, "begins at byte");
    check(21, 0x7f, "compressed data would end at byte");
    check(24, 0, "cannot decompress the zstd data at byte");
    let check_length = |bytes: &[u8], expected: &str| {
        let error = CubeFile::parse(FileFormat::Blosc, bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}, and not {expected}");
    };
    check_length(&bytes[..bytes.len() - 1], "and there are");
    check_length(&[&bytes[..], b"x"].concat(), "and there are");
    let dictionary = blosc::write_dictionary(&[(&array, &values(2, 1000))], 5).unwrap();
    check_length(&[&dictionary[..], b"x"].concat(), "1 bytes follow the last array");
    let cut = &dictionary[..dictionary.len() - 1];
    check_length(cut, "but a compressed array would end at byte");
}
