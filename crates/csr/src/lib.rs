//! Compressed sparse rows (CSR) of `f32` values, in memory that is used again from read to read.
//!
//! | type | rows in | bytes per value with its column |
//! |---|---|---|
//! | [`CsrBuffers`], [`CsrView`] | `u32` columns and `f32` values | 8 |
//! | [`PackedCsr`], [`PackedView`] | `u16` columns; values as `u16` if all are whole numbers below 65,536, otherwise as `f32` | 4 or 6 |
//!
//! [`CooList`] collects values in any order and counts them into [`CsrBuffers`]. [`Narrowing`] says
//! how stored numbers of other types become `f32`, and [`ColumnSelection`] which columns are read.
//! The crate does no I/O, keeps no threads and knows no format.
//!
//! ```
//! use csr::{CooList, CsrBuffers, PackedCsr, PackedValues};
//!
//! let mut coo = CooList::default();
//! for (row, column, value) in [(1, 2, 4.0), (0, 1, 1.0), (1, 0, 3.0)] {
//!     coo.push(row, column, value);
//! }
//! let mut csr = CsrBuffers::default();
//! coo.check(2, 3)?;
//! coo.count_into(2, 3, &mut csr);
//! csr.check()?;
//! assert_eq!(csr.row(1), (&[0, 2][..], &[3.0, 4.0][..]));
//!
//! let packed = PackedCsr::pack(&csr)?;
//! assert_eq!(packed.values(), PackedValues::Counts(&[1, 3, 4]));
//! assert_eq!(packed.unpack(), csr);
//! # Ok::<(), csr::Error>(())
//! ```
#![forbid(unsafe_code)]

mod buffers;
mod coo;
mod error;
mod insert;
mod narrowing;
mod packed;
mod selection;

pub use buffers::{CsrBuffers, CsrView};
pub use coo::CooList;
pub use error::Error;
pub use narrowing::{INEXACT, Narrow, Narrowing, first_inexact};
pub use packed::{PackedCsr, PackedValues, PackedValuesMut, PackedView, pack_counts};
pub use selection::ColumnSelection;
