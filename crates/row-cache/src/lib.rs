//! A cache of rows on a local disk, laid out for training: rows of a matrix that were fetched and
//! decoded once are kept encoded as they are read back fast, for later epochs and processes.
//!
//! The first epoch reads a matrix as it is, remote or in tiles of columns that training does not
//! like; later ones read the folder. Nobody has to rewrite the matrix for that. Rows come back to
//! the bit.
//!
//! A [`RowCache`] belongs to one matrix. [`RowCache::read`] takes rows and a function that reads
//! rows of the matrix. It takes from the folder what is there, has the rest read in one call, and
//! keeps it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use csr::CsrBuffers;
//! use row_cache::{Output, RowCache, RowCacheSpec};
//!
//! let folder = tempfile::tempdir()?;
//! let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build()?);
//! let spec = RowCacheSpec { folder: folder.path().to_owned(), limit_bytes: 1 << 30 };
//! let cache = RowCache::open(&spec, "the matrix, and its version", pool)?;
//! let columns = cache.columns(b"all", 3);
//!
//! let mut n_calls = 0;
//! let mut rows = CsrBuffers::empty(3);
//! for _ in 0..2 {
//!     cache.read(&[0..2], &columns, Output::Csr(&mut rows), |_wanted, out| {
//!         n_calls += 1;
//!         let Output::Csr(csr) = out else { unreachable!("CSR was asked for") };
//!         csr.clone_from(&CsrBuffers {
//!             row_offsets: vec![0, 2, 3],
//!             columns: vec![0, 2, 1],
//!             values: vec![5.0, 1.0, 0.5],
//!             n_columns: 3,
//!         });
//!         Ok::<(), std::io::Error>(())
//!     })?;
//!     assert_eq!(rows.row(0), (&[0, 2][..], &[5.0, 1.0][..]));
//! }
//! assert_eq!(n_calls, 1);
//! assert_eq!((cache.usage().stats.misses, cache.usage().stats.hits), (1, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod cache;
mod output;
mod page;
mod requests;
mod stats;

pub use cache::{Columns, RowCache, RowCacheSpec};
pub use output::Output;
pub use stats::{RowCacheStats, RowCacheUse};
