//! Measures one point of a grid of loader settings, on cells, in a process of its own.
//!
//! - [`Data`] and its flags ([`DataFlags`], [`SelectionFlags`]) select the experiment, the cells
//!   and the genes, and limit the read rate.
//! - [`Point`] contains the settings of one point, [`bench_run::BlockSpec`] those of its blocks;
//!   [`Consumer`] takes the batches.
//! - [`point_process`] makes the process that a command starts, and [`serve`] runs in it:
//!   [`OpenData`] opens the data, epochs are measured one by one, [`Labels`] measure how random the
//!   order was.
//! - A point with a rank is one of several processes that begin at the same time; their
//!   [`CellDigest`]s show that together they delivered each cell once.
//! - [`as_asked`] and [`Conditions`] give the settings and the digest that a row records.
//!
//! `bench-run` starts processes and does not depend on cells; other kinds of samples will have
//! crates beside this one.

mod cell_digest;
mod check;
mod conditions;
mod consumer;
mod data;
mod feed;
mod label_entropy;
mod measure;
mod open;
mod point;
mod record;
mod task;

pub use cell_digest::CellDigest;
pub use check::{check, point_process};
pub use conditions::Conditions;
pub use consumer::Consumer;
pub use data::{
    Data, DataFlags, DataSource, FormFlag, IoLimitInForce, Opened, ReaderFlag, SelectionFlags,
    decide_io_limit, environment_secrets, format_leftover, names_anndata, share_with_libtiledb,
    write_example,
};
pub use label_entropy::{DEFAULT_COLUMNS, Labels};
pub use measure::serve;
pub use open::OpenData;
#[cfg(feature = "torch")]
pub use open::point_loader as tensor_loader;
pub use point::Point;
pub use record::{as_asked, versions};
pub use task::{PointAnswer, PointTask, PointWork};

/// The subcommand of the program that runs [`serve`].
pub const SUBCOMMAND: &str = "point";
