//! Measurements of a data loader: records epochs, stores them without loss, and reports them.
//!
//! The crate depends on no other of this workspace. It has
//! - the record of an epoch ([`EpochRecord`]), computed from the times of its batches
//!   ([`Measured::from_batches`]),
//! - the machine ([`HostInfo`]) and this process's true peak memory and CPU time
//!   ([`ProcessMeter`]),
//! - the Parquet file of a results folder ([`append`], [`read`]), which several processes may
//!   append to,
//! - the summary of a grid point over epochs and repetitions ([`summarize`]) and its table
//!   ([`markdown`]),
//! - the picture of speed against memory and the page that works offline ([`write_report`]),
//! - what the rows recommend, and why they may mislead ([`Advice`]),
//! - reports of several results folders side by side, and each view as a picture
//!   ([`write_side_by_side`]),
//! - the ranks that loaded together ([`RanksSummary`]), with the largest number of them that still
//!   has an accelerator utilisation ([`most_ranks`]),
//! - means over the rounds of a comparison ([`Rounds`]) and charts of bars ([`draw_bars`])
//!   and lines ([`draw_lines`]).
//!
//! Only this crate names a column of the Parquet file.
//!
//! ```
//! use bench_report::{BatchSample, EpochRecord, GridPoint, Measured, append, read};
//!
//! let batch = BatchSample { wait_secs: 0.5, consume_secs: 0.25, n_rows: 1024, nnz: 1_500_000 };
//! let record = EpochRecord {
//!     point: GridPoint { batch_size: 1024, ..GridPoint::default() },
//!     measured: Measured::from_batches(&[batch, batch], 0.0),
//!     ..EpochRecord::default()
//! };
//! assert_eq!(record.measured.elapsed, Some(1.5));
//!
//! let folder = tempfile::tempdir()?;
//! append(folder.path(), &[record.clone()])?;
//! append(folder.path(), &[record])?;
//! assert_eq!(read(folder.path())?.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod advice;
mod bar_chart;
mod column;
mod csv_table;
mod curves;
mod error;
#[cfg(test)]
mod fixture;
mod folder;
mod host;
mod kernel_file;
mod link_table;
mod mean_std;
mod measured;
mod options;
mod order_entropy;
mod page;
mod peak;
mod picture;
mod pixels;
mod published;
mod ranks;
mod ranks_table;
mod record;
mod report;
mod rounds;
mod run_description;
mod series;
mod settings;
mod side_by_side;
mod source;
mod stage_table;
mod stages;
mod statistics;
mod store;
mod summary;
mod table;

pub use advice::Advice;
pub use bar_chart::{Bar, BarChart, BarGroup, BarKind, Best, Floor, draw_bars};
pub use error::Error;
pub use folder::write_text;
pub use host::HostInfo;
pub use kernel_file::kernel_entry;
pub use link_table::{LINK_HEADER, LINK_LEGEND, LinkSummary, link_markdown, link_rows};
pub use mean_std::MeanStd;
pub use measured::{BatchSample, Measured, accelerator_utilization};
pub use options::{MarkedPoint, ReportOptions};
pub use order_entropy::OrderEntropy;
pub use peak::{
    CpuTime, ProcessMeter, peak_bytes, proportional_bytes, reset_peak, resident_bytes,
    thread_cpu_secs,
};
pub use picture::{Dimension, LineChart, LinePanel, LinePoint, LineSeries, LineStyle, draw_lines};
pub use pixels::to_png;
pub use ranks::{LEAST_UTILIZATION, RankSummary, RanksSummary, most_ranks};
pub use ranks_table::{
    RANK_HEADER, RANKS_HEADER, RANKS_LEGEND, most_ranks_lines, rank_rows, ranks_markdown,
    ranks_rows,
};
pub use record::{DataInfo, EpochRecord, GridPoint, OWN_LOADER, RunInfo, Status, Versions};
pub use report::{ReportFiles, write_report};
pub use rounds::{Figure, Rounds};
pub use run_description::describe_run;
pub use settings::{IO_LIMIT, IO_LIMIT_BY, LINK, LINK_CORES, LINK_FAULTS, Settings};
pub use side_by_side::{ReportFormat, WrittenFile, write_side_by_side};
pub use source::Source;
pub use stage_table::{STAGE_HEADER, STAGE_LEGEND, stage_markdown, stage_rows};
pub use stages::{STAGES, StageTimes};
pub use statistics::{Spread, percentile};
pub use store::{EPOCHS_FILE, append, append_unless_there, check_folder, read};
pub use summary::{EntropySummary, PointSummary, StageSummary, summarize};
pub use table::{
    ENTROPY_HEADER, TABLE_HEADER, TABLE_LEGEND, UTILIZATION_HEADER, grouped, markdown, table_rows,
};
