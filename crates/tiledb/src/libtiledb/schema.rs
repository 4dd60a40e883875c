//! Makes schemas, changes them, and reads them.
//!
//! Reading a schema back shows libtiledb's defaults: coordinates or offsets created without filters
//! have the filter `[Filter::Zstd(-1)]`. Use `[Filter::None]` for none.

use crate::{CellOrder, Error};

mod build;
mod evolution;
mod raw;
mod read;

pub(crate) use build::create;
pub use evolution::Evolution;
pub(crate) use evolution::evolve;
pub(crate) use read::read;

fn cell_order(number: i32, uri: &str) -> Result<CellOrder, Error> {
    CellOrder::from_number(number).ok_or_else(|| Error::Unknown {
        what: "an order",
        value: number.into(),
        uri: uri.to_owned(),
    })
}

/// libtiledb's number of values for a var-sized attribute.
const VAR_SIZED: u32 = u32::MAX;
