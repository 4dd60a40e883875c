//! Runs measurements in child processes: the code that all benchmark commands share.
//!
//! A command starts its own program again for each measurement. The child process reads an
//! [`Order`] from stdin and reports [`Event`]s on stdout; [`serve`] implements the child's side.
//! Separate processes give each measurement its own peak memory and its own heap, and can be
//! killed. The crate depends neither on the data nor on the loader: the crates above define tasks
//! and answers.
//!
//! - [`Session`] runs tasks in processes, shows progress and stops on Ctrl-C; [`Rows`] writes rows;
//!   [`Measuring`] does both for a command that measures the points of a [`Workload`] in turn.
//! - [`RankProcess`], [`gather_ranks`] and [`Meeting`] run ranks, which begin at the same time, on
//!   one machine or several.
//! - [`Script`] runs other readers of the same data; [`Comparison`] compares what they deliver,
//!   measures them beside our loader, and reports.
//! - [`ProcessSpec`] describes one process, with its input and its memory limit, and runs it;
//!   [`Ended`] is the way in which it ended.
//! - [`consume_epoch`] consumes the batches of an epoch and times the waits; [`EpochMeter`] makes
//!   its record.
//! - `limits` limits memory and the read rate; `page_cache` makes the page cache warm or cold.
//! - [`BlockSpec`] is the size of a point's blocks; [`LabelCodes`] say how random their order is,
//!   and an [`OrderMeter`] measures it.
//! - [`LinkFlags`] serve local data over a link; [`LinkMeter`] counts what an epoch asks of it.
//! - [`ResultsFolder`], [`run_info()`] and [`digest()`] give the folder, the run and the conditions
//!   of rows.
//! - [`DataError`], [`Choices`], [`Threads`] and [`claim`] serve the programs that make data from a
//!   seed.
//! - [`Secrets`] keeps credentials out of records, messages and command lines.

mod block_spec;
mod checksums;
mod comparison;
mod data_files;
mod digest;
mod display;
mod engine_point;
mod epoch;
mod flags;
mod interrupt;
mod kernel;
mod limits;
mod made_data;
mod measuring;
mod order;
mod order_entropy;
mod output;
mod over_link;
mod page_cache;
mod process;
mod program;
mod program_end;
mod ranks;
mod reader_script;
mod reader_table;
mod results_folder;
mod row_line;
mod run_info;
mod secrets;
mod serve;
mod session;
mod shard;
mod shared_words;
mod text_table;
mod usage_error;
mod workload;

pub use bench_report::grouped;
pub use block_spec::{BlockSpec, GridError, parse as parse_blocks};
pub use checksums::Checksums;
pub use comparison::{Comparison, ReaderPage, Readers};
pub use data_files::{DataFile, data_files, folder_bytes};
pub use digest::{digest, digest_of_program};
pub use display::Display;
pub use engine_point::{changed, delivered_rows, engine_point};
pub use epoch::{ConsumedBatch, ConsumedEpoch, EpochMeter, consume_epoch, enter_engine};
pub use flags::{key_value, pairs};
pub use interrupt::{EXIT_CODE as INTERRUPTED_EXIT_CODE, watch as watch_interrupts};
pub use limits::{
    Holder, IoLimit, KernelLimit, LimitBy, LimitMeter, MemoryLimit, Rate, Version, format_rate,
};
pub use link::LinkCounts;
pub use made_data::{
    Cause, Choices, DataError, PositionHash, Threads, check_interrupted, claim, finished,
    n_threads, reserved, show_leftover,
};
pub use measuring::{Job, MeasuredEpoch, Measuring, OutputFlags};
pub use order::{Event, Order};
pub use order_entropy::{Curve, LabelCodes, OrderMeter, first_chunks};
#[doc(hidden)]
pub use output::{print_to_stderr, print_to_stdout};
pub use over_link::{
    LinkAccess, LinkFlags, LinkMeter, LinkServers, SERVE_LINK, ServeLinkArgs, serve_link,
};
pub use page_cache::{Cold, MOST_CACHED_IF_COLD, PageCache, cached_share, cool, evict, warm};
pub use process::{Ended, Failure, ProcessSpec, StartSignal, TreePeak};
pub use program::Program;
pub use program_end::{exit_code, refused_command_line, run_program};
pub use ranks::{
    Meeting, RankEvent, RankProcess, RankZero, RanksEnd, follow_rank_zero, gather_ranks,
};
pub use reader_script::{ReadEpoch, ReaderAnswer, Script, format_versions};
pub use reader_table::{SampleUnits, Side, reader_table};
pub use results_folder::{ResultsFlags, ResultsFolder, data_name};
pub use row_line::format_row;
pub use run_info::{command_line, quoted, run_info, shown_uri};
pub use secrets::{Address, HIDDEN, Secrets, first_hidden, recorded, without_credentials};
pub use serve::{Reporter, serve};
pub use session::{Interrupted, Rows, Session};
pub use shard::{Shard, ShardError, ShardFlag, TASK_VARIABLES};
#[doc(hidden)]
pub use shared_words::{documented_commands, unlike_words};
pub use text_table::{TableStyle, text_table};
pub use usage_error::UsageError;
pub use workload::{POINT, Workload};
