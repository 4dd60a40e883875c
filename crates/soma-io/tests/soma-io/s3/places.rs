//! An experiment in a folder and in a bucket, and reads of both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use soma_io::{
    Config, CsrBuffers, Error, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges,
    XReader,
};

use crate::cells::{Cell, all_rows, cells_of, read_csr};
use crate::small::Small;
use test_storage::Server;

/// Longer than any call may take despite faults: the config's tries, and libtiledb's own.
const PATIENCE: Duration = Duration::from_mins(1);

/// The name of the experiment in its bucket.
pub(crate) const NAME: &str = "atlas/experiment";

/// Both readers.
pub(crate) const READERS: [ReaderChoice; 2] = [ReaderChoice::Native, ReaderChoice::Libtiledb];

/// An experiment in a bucket of a server.
pub(crate) struct Stored {
    pub(crate) server: Server,
    pub(crate) small: Arc<Small>,
    pub(crate) bucket: &'static str,
}

impl Stored {
    /// 400 cells by 90 genes, in several fragments.
    pub(crate) fn new(bucket: &'static str) -> Self {
        Self::put(bucket, Small::new(400, 90, 12))
    }

    pub(crate) fn put(bucket: &'static str, small: Small) -> Self {
        let server = Server::start();
        let folder = server.bucket(bucket).join(NAME);
        std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
        small.write(folder.to_str().unwrap()).unwrap();
        Self { server, small: Arc::new(small), bucket }
    }

    /// Another server over the same files, with its own faults.
    pub(crate) fn beside(&self) -> Self {
        Self { server: self.server.beside(), small: Arc::clone(&self.small), bucket: self.bucket }
    }

    pub(crate) fn uri(&self) -> String {
        format!("s3://{}/{NAME}", self.bucket)
    }

    pub(crate) fn folder(&self) -> std::path::PathBuf {
        self.server.bucket(self.bucket).join(NAME)
    }

    pub(crate) fn open(&self, config: Config) -> Result<Experiment, Error> {
        Experiment::open(&self.uri(), &OpenOptions { config, ..OpenOptions::default() })
    }

    /// A reader of X with the server's own config.
    pub(crate) fn reader(&self, choice: ReaderChoice) -> Result<Arc<dyn XReader>, Error> {
        reader_of(&self.open(self.server.config())?, choice)
    }

    /// The cells as written.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        cells_of(&self.small.x)
    }
}

pub(crate) fn reader_of(
    experiment: &Experiment,
    choice: ReaderChoice,
) -> Result<Arc<dyn XReader>, Error> {
    experiment.measurement("RNA")?.x("raw")?.reader(choice)
}

/// All cells that a reader returns.
pub(crate) fn every_cell(reader: &dyn XReader) -> Result<Vec<Cell>, Error> {
    read_csr(reader, &all_rows(reader), &GeneSelection::All).map(|csr| cells_of(&csr))
}

pub(crate) fn rows(ranges: impl IntoIterator<Item = std::ops::Range<u64>>) -> RowRanges {
    RowRanges::new(ranges.into_iter().collect()).unwrap()
}

/// Runs `work`, and fails if it takes too long.
#[track_caller]
pub(crate) fn in_time<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let out = work();
    let took = start.elapsed();
    assert!(took < PATIENCE, "it took {took:?}");
    out
}

/// An error with all its causes, as a program prints it.
pub(crate) fn text(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}

/// An empty block.
pub(crate) fn empty() -> CsrBuffers {
    CsrBuffers::default()
}
