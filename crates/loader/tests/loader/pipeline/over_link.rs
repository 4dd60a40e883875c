//! Whole epochs over a link with faults: no wrong cell and no hang; passing faults are overcome,
//! lasting ones are errors.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use link::{BUCKET, LinkServer, ServeOptions};
use loader::{
    BatchForm, BlockForm, Dataset, DatasetSpec, Loader, LoaderSpec, Matrix, PipelineSpec,
};
use soma_io::{Experiment, OpenOptions};

use crate::pipeline::stopping::within_seconds;

/// The columns of a cell's values, and their bits.
type Cell = (Vec<u32>, Vec<u32>);

/// Longer than all tries of [`OverLink::open`] take.
const BOUND_SECS: u64 = 120;

const N_CELLS: u64 = 600;

/// An experiment of many fragments, and its cells.
struct Stored {
    folder: tempfile::TempDir,
    cells: BTreeMap<i64, Cell>,
}

impl Stored {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
        let spec = example_data::GenerateSpec {
            n_cells: N_CELLS,
            n_genes: 400,
            fragment_rows: Some(100),
            ..example_data::GenerateSpec::default()
        };
        example_data::generate(&uri, &spec, &mut |_| {}).unwrap();
        let experiment = Experiment::open(&uri, &OpenOptions::default()).unwrap();
        let mut cells = BTreeMap::new();
        load(&experiment, 0, &mut |joinid, cell| drop(cells.insert(joinid, cell))).unwrap();
        assert_eq!(cells.len() as u64, N_CELLS);
        Self { folder, cells }
    }

    /// Serves the experiment with these faults.
    fn serve(&self, faults: &str) -> OverLink<'_> {
        let options = ServeOptions {
            spec: "1ms".parse().unwrap(),
            faults: faults.parse().unwrap(),
            name: "data".to_owned(),
        };
        let server = LinkServer::start_with(self.path(), &options).unwrap();
        OverLink { stored: self, server }
    }

    fn path(&self) -> impl AsRef<Path> {
        self.folder.path().join("experiment")
    }
}

/// A server over the experiment.
struct OverLink<'a> {
    stored: &'a Stored,
    server: LinkServer,
}

impl OverLink<'_> {
    fn open(&self) -> Result<Experiment, soma_io::Error> {
        let mut config = self.server.config();
        config.insert("vfs.s3.connect_max_tries".to_owned(), "6".to_owned());
        config.insert("soma.retry_limit_ms".to_owned(), "6000".to_owned());
        let options = OpenOptions { config, ..OpenOptions::default() };
        Experiment::open(&format!("s3://{BUCKET}/data"), &options)
    }

    /// Loads an epoch and checks every cell that comes; returns how many came before an error.
    fn epoch(&self, experiment: &Experiment, epoch: u64) -> (u64, Option<String>) {
        let mut left = self.stored.cells.clone();
        let result = load(experiment, epoch, &mut |joinid, cell| {
            assert_eq!(left.remove(&joinid).as_ref(), Some(&cell), "cell {joinid}");
        });
        (N_CELLS - left.len() as u64, result.err().map(|error| causes(&*error)))
    }
}

/// An error's message with all its causes.
fn causes(error: &dyn Error) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// Loads an epoch, cell by cell.
fn load(
    experiment: &Experiment,
    epoch: u64,
    take: &mut dyn FnMut(i64, Cell),
) -> Result<(), Box<dyn Error>> {
    let dataset = Dataset::from_experiment(experiment, &DatasetSpec::default())?;
    let spec = LoaderSpec {
        pipeline: PipelineSpec {
            chunk_rows: 16,
            chunks_per_block: 4,
            batch_rows: 50,
            ..PipelineSpec::default()
        },
        block_form: BlockForm::Csr,
        batch_form: BatchForm::Csr,
        ..LoaderSpec::default()
    };
    for batch in Loader::new(dataset, spec)?.epoch(epoch)? {
        let batch = batch?;
        let Matrix::Csr(x) = &batch.x else { return Err("a batch is not CSR".into()) };
        let (columns, values) = (x.columns()?, x.values()?);
        for (joinid, row) in batch.joinids.iter().zip(x.row_offsets.windows(2)) {
            let of_row = row[0]..row[1];
            let bits = values[of_row.clone()].iter().map(|value| value.to_bits()).collect();
            take(*joinid, (columns[of_row].to_vec(), bits));
        }
    }
    Ok(())
}

#[test]
fn passing_faults_change_no_cell() {
    within_seconds(BOUND_SECS, || {
        let stored = Stored::new();
        for faults in [
            "cut=1/10,seed=1",
            "refused=1/8,slow=1/20:20ms,storm=60:2,seed=2",
            "refused=1/16,slow=1/40:20ms,cut=1/40,storm=100:2,seed=3",
        ] {
            let over = stored.serve(faults);
            let experiment = over.open().unwrap();
            for epoch in 0..2 {
                assert_eq!(over.epoch(&experiment, epoch), (N_CELLS, None), "{faults}");
            }
            let counts = over.server.counts();
            assert!(0 < counts.faults, "{faults}: none of {} requests", counts.requests);
        }
    });
}

#[test]
fn lasting_faults_in_the_middle_of_an_epoch_are_errors() {
    within_seconds(BOUND_SECS, || {
        let stored = Stored::new();
        let over = stored.serve("seed=0");
        let experiment = over.open().unwrap();
        let mut at_first = None;
        load(&experiment, 0, &mut |_, _| {
            at_first.get_or_insert_with(|| over.server.counts().requests);
        })
        .unwrap();
        let middle = at_first.unwrap().midpoint(over.server.counts().requests);
        for (fault, expected) in [
            (format!("replaced={middle}"), "was replaced"),
            (format!("expired={middle}"), "403"),
            (format!("storm={middle}:1000000000"), "503"),
        ] {
            let over = stored.serve(&fault);
            let experiment = over.open().unwrap();
            let (n_cells, error) = over.epoch(&experiment, 0);
            let error = error.unwrap();
            assert!(n_cells < N_CELLS && error.contains(expected), "{fault}: {n_cells}: {error}");
        }
    });
}

#[test]
fn a_link_that_always_fails_is_an_error() {
    within_seconds(BOUND_SECS, || {
        let stored = Stored::new();
        for fault in ["refused=1/1", "cut=1/1", "expired=1"] {
            let over = stored.serve(fault);
            let opened = over.open().map(|experiment| over.epoch(&experiment, 0));
            assert!(!matches!(opened, Ok((_, None))), "{fault}: {opened:?}");
        }
        // Nobody listens any more.
        let over = stored.serve("seed=0");
        let experiment = over.open().unwrap();
        let OverLink { stored, server } = over;
        drop(server);
        let gone = OverLink { stored, server: stored.serve("seed=0").server };
        let (n_cells, error) = gone.epoch(&experiment, 0);
        assert!(n_cells == 0 && error.is_some(), "{n_cells}: {error:?}");
    });
}
