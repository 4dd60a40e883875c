#![doc = include_str!("../README.md")]
//!
//! | type | rows in | bytes per value with its column |
//! |---|---|---|
//! | [`CsrBuffers`], [`CsrView`] | `u32` columns and `f32` values | 8 |
//! | [`PackedCsr`], [`PackedView`] | `u16` columns; values as `u16` if all are whole numbers below 65,536, otherwise as `f32` | 4 or 6 |
//!
//! [`CooList`] collects values in any order and counts them into [`CsrBuffers`]. [`Narrowing`] says
//! how stored numbers of other types become `f32`, and [`ColumnSelection`] which columns are read.
//! The crate does no I/O, keeps no threads and knows no format.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod buffers;
mod coo;
mod count;
mod error;
mod insert;
mod narrowing;
mod packed;
mod selection;

pub use buffers::{CsrBuffers, CsrView};
pub use coo::CooList;
pub use count::{Count, pack_counts};
pub use error::Error;
pub use narrowing::{INEXACT, Narrow, Narrowing, first_inexact};
pub use packed::{PackedCsr, PackedValues, PackedValuesMut, PackedView};
pub use selection::ColumnSelection;
