//! Reads all of a small experiment with libtiledb.

use std::path::Path;

use arrow_array::RecordBatch;
use soma_io::{
    Config, CsrBuffers, Experiment, GeneSelection, OpenOptions, ReaderChoice, RowRanges,
};

/// The contents of an experiment.
#[derive(Debug, PartialEq)]
pub(crate) struct Contents {
    pub(crate) obs: RecordBatch,
    pub(crate) var: RecordBatch,
    pub(crate) x: CsrBuffers,
}

pub(crate) fn open(path: &Path) -> Experiment {
    let config = Config::from([("soma.init_buffer_bytes".into(), "1048576".into())]);
    Experiment::open(path.to_str().unwrap(), &OpenOptions { config, ..OpenOptions::default() })
        .unwrap()
}

pub(crate) fn contents(path: &Path) -> Contents {
    let experiment = open(path);
    let measurement = experiment.measurement("RNA").unwrap();
    let obs = experiment.obs().unwrap().read(None, None).unwrap();
    let var = measurement.var().unwrap().read(None, None).unwrap();
    let reader = measurement.x("raw").unwrap().reader(ReaderChoice::Libtiledb).unwrap();
    let mut x = CsrBuffers::default();
    let rows = RowRanges::new(vec![0..obs.num_rows() as u64]).unwrap();
    reader.read_csr(&rows, &GeneSelection::All, &mut x).unwrap();
    Contents { obs, var, x }
}
