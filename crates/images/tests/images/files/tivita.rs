//! Cubes of Tivita.

use images::files::{CubeFile, FileError, FileFormat, tivita};
use proptest::prelude::{any, prop_assert_eq, proptest};

use super::decode;

/// The value at row `y`, column `x` and channel `c` of a file: the format's definition.
fn naive(file: &[u8], [height, _, channels]: [usize; 3], [y, x, c]: [usize; 3]) -> f32 {
    let at = 12 + 4 * ((x * height + height - 1 - y) * channels + c);
    f32::from_be_bytes(file[at..at + 4].try_into().unwrap())
}

proptest! {
    #[test]
    fn cubes_are_written_and_read(
        height in 1..40_usize, width in 1..9_usize, channels in 1..6_usize, seed in any::<u32>()
    ) {
        let shape = [height, width, channels];
        // Any bits, as those of NaN must be kept, too.
        let bits = (0..(height * width * channels) as u32).map(|idx| {
            seed.wrapping_add(idx).wrapping_mul(0x9e37_79b9)
        });
        let cube: Vec<f32> = bits.map(f32::from_bits).collect();
        let bytes = tivita::write(&cube, shape).unwrap();
        let file = CubeFile::parse(FileFormat::Tivita, &bytes).unwrap();
        prop_assert_eq!(&file.arrays()[0].shape, &shape);
        let decoded = decode(&file, 0).unwrap();
        let native: Vec<u8> = cube.iter().flat_map(|value| value.to_ne_bytes()).collect();
        prop_assert_eq!(decoded, native);
        for (idx, value) in cube.iter().enumerate() {
            let at = [idx / channels / width, idx / channels % width, idx % channels];
            prop_assert_eq!(naive(&bytes, shape, at).to_bits(), value.to_bits());
        }
    }
}

#[test]
fn headers_that_do_not_fit_are_refused() {
    let check = |bytes: &[u8], expected: &str| {
        let error = CubeFile::parse(FileFormat::Tivita, bytes).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    let bytes = tivita::write(&[1.0; 24], [2, 3, 4]).unwrap();
    assert_eq!(bytes[..12], [0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 4]);
    check(&bytes[..11], "the file has 11 bytes, but the header");
    check(&bytes[..107], "the file has 107 bytes, but the values would end at byte 108");
    check(&[&bytes[..], b"x"].concat(), "damaged at byte 108: 1 bytes follow the values");
    for (at, byte) in [(3, 0), (0, 0x80)] {
        let mut damaged = bytes.clone();
        damaged[at] = byte;
        check(&damaged, "damaged at byte 0");
    }
    let huge = [&[0x7f, 0xff, 0xff, 0xff].repeat(3)[..], &bytes[12..]].concat();
    check(&huge, "all together fit the memory");
}

#[test]
fn values_that_are_not_a_cube_are_not_written() {
    for (n_values, shape) in [(5, [1, 2, 3]), (0, [0, 2, 3]), (1, [usize::MAX, 2, 1])] {
        let error = tivita::write(&vec![0.0; n_values], shape).unwrap_err();
        assert!(matches!(error, FileError::Write { .. }), "{error}");
    }
}
