//! Whole epochs through the cache of rows: the first over the link, later ones without a request,
//! even when the link is gone.

use std::collections::BTreeMap;
use std::path::Path;

use link::{BUCKET, LinkServer, LinkSpec};
use loader::{
    AxisQuery, BatchForm, BlockForm, Dataset, DatasetSpec, Loader, LoaderSpec, Matrix, PipelineSpec,
};
use soma_io::{Experiment, OpenOptions};

const N_CELLS: u64 = 500;

/// The columns of a cell's values, and their bits.
type Cell = (Vec<u32>, Vec<u32>);

fn over_link(server: &LinkServer, cache: &Path) -> Experiment {
    let mut config = server.config();
    config.insert("vfs.s3.connect_max_tries".to_owned(), "1".to_owned());
    config.insert("soma.row_cache_folder".to_owned(), cache.to_str().unwrap().to_owned());
    let options = OpenOptions { config, ..OpenOptions::default() };
    Experiment::open(&format!("s3://{BUCKET}/experiment"), &options).unwrap()
}

/// Opens the data set of these cells.
fn dataset(experiment: &Experiment, cells: &AxisQuery) -> Dataset {
    let selection = DatasetSpec { cells: cells.clone(), ..DatasetSpec::default() };
    Dataset::from_experiment(experiment, &selection).unwrap()
}

fn loader(dataset: Dataset, block_form: BlockForm) -> Loader {
    let spec = LoaderSpec {
        pipeline: PipelineSpec {
            // Not the rows of a page.
            chunk_rows: 24,
            chunks_per_block: 4,
            batch_rows: 50,
            ..PipelineSpec::default()
        },
        block_form,
        batch_form: BatchForm::Csr,
        ..LoaderSpec::default()
    };
    let spec = if block_form == BlockForm::Dense {
        LoaderSpec { batch_form: BatchForm::Dense, ..spec }
    } else {
        spec
    };
    Loader::new(dataset, spec).unwrap()
}

/// Loads an epoch: the values of each cell that are not zero.
fn epoch(loader: &Loader, epoch: u64) -> BTreeMap<i64, Cell> {
    let mut cells = BTreeMap::new();
    for batch in loader.epoch(epoch).unwrap() {
        let batch = batch.unwrap();
        let n_columns = loader.dataset().n_columns();
        for (row, joinid) in batch.joinids.iter().enumerate() {
            let cell: Cell = match &batch.x {
                Matrix::Dense { .. } => {
                    let values = batch.x.dense().unwrap();
                    let row = &values[row * n_columns..(row + 1) * n_columns];
                    let there = (0_u32..).zip(row).filter(|(_, value)| **value != 0.0);
                    there.map(|(column, value)| (column, value.to_bits())).unzip()
                }
                Matrix::Csr(x) => {
                    let place = x.row_offsets[row]..x.row_offsets[row + 1];
                    let (columns, values) = (x.columns().unwrap(), x.values().unwrap());
                    let values = values[place.clone()].iter().map(|value| value.to_bits());
                    (columns[place].to_vec(), values.collect())
                }
                _ => panic!("batches are dense or CSR"),
            };
            assert!(cells.insert(*joinid, cell).is_none(), "cell {joinid} came twice");
        }
    }
    cells
}

/// Pages that came from the caches, and that did not.
fn counts(loader: &Loader) -> (u64, u64) {
    let usage = loader.dataset().readers().find_map(|reader| reader.row_cache()).unwrap();
    assert_eq!(usage.problem, None);
    (usage.stats.hits, usage.stats.misses)
}

#[test]
fn later_epochs_send_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
    let spec = example_data::GenerateSpec {
        n_cells: N_CELLS,
        n_genes: 300,
        fragment_rows: Some(100),
        ..example_data::GenerateSpec::default()
    };
    example_data::generate(&uri, &spec, &mut |_| {}).unwrap();
    let near = Experiment::open(&uri, &OpenOptions::default()).unwrap();
    let link: LinkSpec = "0".parse().unwrap();
    let server = LinkServer::start(folder.path(), link).unwrap();
    let third: Vec<u64> = (0..N_CELLS).filter(|joinid| joinid % 3 != 1).collect();
    let selections = [AxisQuery::default(), AxisQuery::list(third)];
    let mut warm = Vec::new();
    for cells in &selections {
        let expected = epoch(&loader(dataset(&near, cells), BlockForm::Csr), 0);
        let far = loader(dataset(&over_link(&server, cache.path()), cells), BlockForm::Csr);
        let opened = server.counts().requests;
        assert_eq!(epoch(&far, 0), expected);
        let is_cold = warm.is_empty();
        assert_eq!(server.counts().requests > opened, is_cold);
        for later in 1..3 {
            let before = server.counts().requests;
            assert_eq!(epoch(&far, later), expected);
            assert_eq!(server.counts().requests, before);
        }
        assert_eq!(counts(&far).1 > 0, is_cold);
        // As another process opens it.
        for block_form in BlockForm::ALL {
            let far = over_link(&server, cache.path());
            warm.push((loader(dataset(&far, cells), block_form), expected.clone()));
        }
    }
    drop(server);
    for (far, expected) in warm {
        assert_eq!(epoch(&far, 3), expected);
        assert_eq!(counts(&far).1, 0);
    }
}
