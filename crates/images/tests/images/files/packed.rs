//! The packed format: what is written is read again, also by Python.

use std::fs;
use std::path::Path;
use std::process::Command;

use arrays::ElementType;
use images::files::{CubeFile, FileError, FileFormat, packed};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, proptest};

use super::decode;
use super::python::python;

/// Bytes of a file of `golden`, written by version 1 of the format.
const GOLDEN: &[u8] = include_bytes!("golden.cube");

/// Cubes of noise over smooth spectra, with extreme values: bits of `f16`, or with `wide` of `f32`.
pub(crate) fn cube(shape: [usize; 3], is_wide: bool) -> Vec<u8> {
    let [height, width, channels] = shape;
    let mut bytes = Vec::new();
    let mut state: u64 = 1;
    for pixel in 0..height * width {
        for channel in 0..channels {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
            let noise = (state >> 60) + (state >> 56) % 16 + (state >> 52) % 16;
            let smooth = 9000 + (channel * channel) % 3000 + (pixel / width * 10) % 700;
            let bits = match state >> 33 & 0xff {
                0 => (state >> 16) as u16,
                1 => 0x7e00,
                2 => 0x8000,
                _ => smooth as u16 + noise as u16 * 3,
            };
            if is_wide {
                bytes.extend((u32::from(bits) << 16 | (state >> 20) as u32 & 0xffff).to_ne_bytes());
            } else {
                bytes.extend(bits.to_ne_bytes());
            }
        }
    }
    bytes
}

fn element(is_wide: bool) -> ElementType {
    if is_wide { ElementType::F32 } else { ElementType::F16 }
}

/// Writes an array and asserts that it is read again. Returns the bytes of the file.
#[track_caller]
fn written(values: &[u8], shape: &[usize], element: ElementType) -> usize {
    let bytes = packed::write(values, shape, element).unwrap();
    let file = CubeFile::parse(FileFormat::Packed, &bytes).unwrap();
    let [array] = file.arrays() else { panic!("{:?}", file.arrays()) };
    assert_eq!((&array.shape[..], array.element, &*array.name), (shape, element, ""));
    assert!(decode(&file, 0).unwrap() == values, "{shape:?} {element:?}");
    bytes.len()
}

/// The bytes that a file may have at most.
fn most(values: &[u8], shape: &[usize]) -> usize {
    let n_blocks = values.len().div_ceil(1 << 20).max(1);
    values.len() + 9 * n_blocks + 24 + 8 * shape.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_bits_come_back(
        shape in vec(0_usize..12, 0..5), is_wide in any::<bool>(), bits in vec(any::<u32>(), 1..99),
    ) {
        let n_values = shape.iter().product();
        let bits = bits.iter().cycle().take(n_values);
        let values: Vec<u8> = if is_wide {
            bits.flat_map(|bits| bits.to_ne_bytes()).collect()
        } else {
            bits.flat_map(|bits| (*bits as u16).to_ne_bytes()).collect()
        };
        let n_bytes = written(&values, &shape, element(is_wide));
        assert!(n_bytes <= most(&values, &shape), "{n_bytes} of {}", values.len());
    }

    #[test]
    fn cubes_come_back(height in 1_usize..4, width in 1_usize..150, channels in 1_usize..40,
        is_wide in any::<bool>(),
    ) {
        let shape = [height, width, channels];
        written(&cube(shape, is_wide), &shape, element(is_wide));
    }
}

#[test]
fn a_cube_of_several_blocks_comes_back_and_is_small() {
    let shape = [53, 200, 100];
    for (is_wide, ratio) in [(false, 0.65), (true, 0.83)] {
        let values = cube(shape, is_wide);
        let n_bytes = written(&values, &shape, element(is_wide));
        assert!((n_bytes as f64) < ratio * values.len() as f64, "{n_bytes} of {}", values.len());
    }
}

#[test]
fn channels_beyond_what_is_predicted_come_back() {
    for shape in [&[3, 1024][..], &[3, 1025], &[1, 1, 1, 1, 1, 1, 2, 7], &[]] {
        let values = cube([1, 1, shape.iter().product()], false);
        written(&values, shape, ElementType::F16);
    }
}

#[test]
fn constants_take_next_to_no_bytes() {
    let n_bytes = written(&vec![0x3c; 200_000], &[10, 100, 100], ElementType::F16);
    assert!(n_bytes < 2000, "{n_bytes}");
    let n_bytes = written(&vec![0x3c; 400_000], &[10, 100, 100], ElementType::F32);
    assert!(n_bytes < 2500, "{n_bytes}");
}

#[test]
fn wrong_arrays_are_not_written() {
    let message = |written: Result<Vec<u8>, FileError>| written.unwrap_err().to_string();
    assert_eq!(
        message(packed::write(&[0; 8], &[4], ElementType::I16)),
        "cannot write: elements of type I16: packed files have f16 or f32"
    );
    assert_eq!(
        message(packed::write(&[0; 7], &[2, 2], ElementType::F16)),
        "cannot write: 7 bytes of shape [2, 2], which has 8"
    );
    assert_eq!(
        message(packed::write(&[], &[usize::MAX, 3], ElementType::F16)),
        format!("cannot write: an array of shape [{}, 3] is too large", usize::MAX)
    );
    assert_eq!(
        message(packed::write(&[0; 2], &[1; 9], ElementType::F16)),
        "cannot write: shape [1, 1, 1, 1, 1, 1, 1, 1, 1] has 9 dimensions: at most 8"
    );
}

#[test]
fn files_of_version_1_stay_readable() {
    let file = CubeFile::parse(FileFormat::Packed, GOLDEN).unwrap();
    assert_eq!(file.arrays()[0].shape, [2, 70, 6]);
    assert!(decode(&file, 0).unwrap() == cube([2, 70, 6], false));
}

#[test]
fn damage_is_found_and_named() {
    let shape = [2, 70, 6];
    let bytes = packed::write(&cube(shape, false), &shape, ElementType::F16).unwrap();
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        let file = CubeFile::parse(FileFormat::Packed, &bytes);
        file.and_then(|file| decode(&file, 0)).unwrap_err().to_string()
    };
    let n = bytes.len();
    assert_eq!(
        error(&|bytes| bytes.truncate(n - 1)),
        format!(
            "the file has {} bytes, but the last block would end at byte {n}: it was cut, or has \
             another format",
            n - 1
        )
    );
    assert_eq!(
        error(&|bytes| bytes.push(0)),
        format!("damaged at byte {n}: bytes follow the last block")
    );
    assert_eq!(
        error(&|bytes| bytes[1] = b'c'),
        "damaged at byte 0: the first bytes are not those of a packed file"
    );
    assert_eq!(
        error(&|bytes| bytes[8] = 2),
        "not supported, at byte 8: version 2 of the format; this program reads 1"
    );
    assert_eq!(
        error(&|bytes| bytes[10] = 9),
        "not supported, at byte 10: element 9: known are 1 and 2"
    );
    assert_eq!(
        error(&|bytes| bytes[44] ^= 1),
        "damaged at byte 44: the header has another checksum"
    );
    for at in [56, 57, n / 2, n - 1] {
        assert_eq!(
            error(&|bytes| bytes[at] ^= 16),
            "damaged at byte 56: the block has another checksum"
        );
    }
}

#[test]
fn python_reads_packed_files() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut n_files = 0;
    let shapes = [[1, 1, 1], [3, 50, 7], [1, 64, 100], [2, 70, 6], [53, 200, 100]];
    for (at, shape) in shapes.into_iter().enumerate() {
        for is_wide in [false, true] {
            let values = cube(shape, is_wide);
            let file = packed::write(&values, &shape, element(is_wide)).unwrap();
            let name = folder.path().join(format!("{at} {is_wide}"));
            fs::write(name.with_extension("cube"), file).unwrap();
            fs::write(name.with_extension("raw"), values).unwrap();
            n_files += 1;
        }
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/packed_files.py");
    let mut command = Command::new(python);
    command.arg(script).arg(folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), n_files.to_string());
}
