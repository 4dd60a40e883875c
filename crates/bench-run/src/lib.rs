//! Measured child processes: everything that a benchmark's commands share, whatever they measure.
//!
//! A command starts this program again for each measurement. The process reads an [`Order`] from
//! its stdin and reports [`Event`]s on its stdout ([`serve`] is its end); a process of its own
//! gives each measurement its own peak memory and its own heap, and may be killed. The crate knows
//! neither the data nor the loader: tasks and answers are types of the crates above.
//!
//! - [`Session`] runs tasks in processes, shows progress and stops on Ctrl-C; [`Rows`] keeps rows.
//! - [`ProcessSpec`] is one process: its input, its limit, and how it ended.
//! - [`consume_epoch`] takes the batches of an epoch and times the waits.
//! - `limits` limits memory and the rate of reading; `page_cache` makes the cache warm or cold.
//! - [`ResultsFolder`], [`run_info()`] and [`digest()`] say where rows go, which run they belong
//!   to, and which conditions they depend on.
//! - [`Secrets`] keeps credentials out of records, messages and command lines.
#![expect(
    clippy::print_stderr,
    reason = "the library of command line tools: showing progress is its job"
)]

mod data_files;
mod digest;
mod display;
mod epoch;
mod flags;
mod interrupt;
mod limits;
mod order;
mod page_cache;
mod process;
mod results_folder;
mod row_line;
mod run_info;
mod secrets;
mod serve;
mod session;
mod usage_error;

pub use data_files::{DataFile, data_files, folder_bytes};
pub use digest::{digest, digest_of_program};
pub use display::{Display, grouped};
pub use epoch::{ConsumedEpoch, consume_epoch};
pub use flags::{key_value, pairs};
pub use interrupt::{EXIT_CODE as INTERRUPTED_EXIT_CODE, watch as watch_interrupts};
pub use limits::{
    Holder, IoLimit, KernelLimit, LimitBy, MemoryLimit, Rate, Version, check_rate, device_bytes,
    format_rate, from_page_cache,
};
pub use order::{Event, Order};
pub use page_cache::{Cold, PageCache, cool, warm};
pub use process::{Ended, Failure, ProcessSpec, TreePeak};
pub use results_folder::{ResultsFlags, ResultsFolder, data_name};
pub use row_line::format_row;
pub use run_info::{command_line, quoted, run_info, shown_uri};
pub use secrets::{Address, HIDDEN, Secrets, first_hidden, recorded, without_credentials};
pub use serve::{Reporter, serve};
pub use session::{Interrupted, Rows, Session};
pub use usage_error::UsageError;
