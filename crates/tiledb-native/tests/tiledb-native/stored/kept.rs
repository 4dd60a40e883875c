//! Decoded cells need not be decoded again, within a limit.

use std::sync::Arc;

use tiledb_native::{Array, ColumnSelection, CsrBuffers, OpenOptions, PackedCsr};

use crate::stored::stored;

#[test]
fn what_is_kept_is_neither_read_nor_decoded_again() {
    for name in ["format-22", "format-22-consolidated", "format-09-appended"] {
        let array = Array::open(Arc::new(stored(name)), &OpenOptions::new(2)).unwrap();
        let (all, some) = (ColumnSelection::All, ColumnSelection::Range(10..200));
        let (mut expect, mut out) = (CsrBuffers::new(), CsrBuffers::new());
        let whole = array.read_csr(&[0..100], &all, &mut expect).unwrap();
        assert_eq!(array.decoded_bytes(), 0);

        array.keep_decoded(1 << 20);
        let first = array.read_csr(&[0..100], &all, &mut out).unwrap();
        assert_eq!((first.values_decoded, &out), (whole.values_decoded, &expect), "{name}");
        let kept = array.decoded_bytes();
        assert!(0 < kept && Some(kept) < first.bytes_decoded, "{name}: {kept} bytes");
        let again = array.read_csr(&[0..100], &all, &mut out).unwrap();
        assert_eq!(
            (again.values_decoded, again.bytes_read, &out),
            (Some(0), Some(0), &expect),
            "{name}"
        );
        // Rows and columns that are part of the cached ones, in another form.
        let mut packed = PackedCsr::default();
        let part = array.read_packed(&[7..9, 30..55], &some, &mut packed).unwrap();
        assert_eq!(part.values_decoded, Some(0), "{name}");
        array.keep_decoded(kept - 1);
        assert!(array.decoded_bytes() < kept, "{name}");
        array.keep_decoded(0);
        array.read_csr(&[7..9, 30..55], &some, &mut out).unwrap();
        assert_eq!(packed.unpack(), out, "{name}");

        assert_eq!(array.decoded_bytes(), 0, "{name}");
        array.keep_decoded(kept / 2);
        for _ in 0..2 {
            let stats = array.read_csr(&[0..100], &all, &mut out).unwrap();
            assert_eq!(out, expect, "{name}");
            assert!(array.decoded_bytes() <= kept / 2, "{name}");
            assert!(stats.values_decoded > Some(0), "{name}");
        }
    }
}
