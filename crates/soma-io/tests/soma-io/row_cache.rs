//! The cache of rows keeps the contract of its reader, whatever is in its folder, and another state
//! of an array has other rows.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use soma_io::{
    Config, CsrBuffers, Error, Experiment, GeneSelection, MemoryReader, OpenOptions, ReaderChoice,
    RowCacheReader, RowCacheSpec, RowRanges, XReader, contract,
};

use crate::small::Small;

fn open(uri: &str, settings: &[(&str, &str)]) -> Result<Arc<dyn XReader>, Error> {
    let config: Config =
        settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let experiment = Experiment::open(uri, &OpenOptions { config, ..OpenOptions::default() })?;
    experiment.measurement("RNA")?.x("raw")?.reader(ReaderChoice::Native)
}

fn cached(uri: &str, folder: &Path) -> Arc<dyn XReader> {
    open(uri, &[("soma.row_cache_folder", folder.to_str().unwrap())]).unwrap()
}

fn counts(reader: &dyn XReader) -> (u64, u64) {
    let usage = reader.row_cache().unwrap();
    assert_eq!(usage.problem, None);
    (usage.stats.hits, usage.stats.misses)
}

/// The files of all pages in a cache.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder.join("rows/blocks")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

/// Values as X's reader returns them, of rows that reach over several pages.
fn smalls() -> [Small; 3] {
    let mut floats = Small::new(150, 60, 9);
    let specials = [f32::NAN, -0.0, f32::INFINITY, f32::from_bits(0x7fa0_0001), 0.1];
    let values = floats.x.values.iter_mut().step_by(3).zip(specials.iter().cycle());
    values.for_each(|(value, special)| *value = *special);
    let mut whole = Small::new(200, 60, 9);
    whole.x.values.iter_mut().for_each(|value| *value = (*value * 4.0).trunc());
    [floats, whole, Small::new(40, 70_000, 30)]
}

#[test]
fn it_keeps_the_contract_cold_warm_partial_and_damaged() {
    for small in smalls() {
        let experiment = tempfile::tempdir().unwrap();
        let uri = experiment.path().join("experiment").to_str().unwrap().to_owned();
        small.write(&uri).unwrap();
        let folder = tempfile::tempdir().unwrap();
        // Partial: some rows of some pages are there.
        let reader = cached(&uri, folder.path());
        let rows = RowRanges::new(vec![3..10, 20..21, 30..39]).unwrap();
        reader.read_csr(&rows, &GeneSelection::All, &mut CsrBuffers::new()).unwrap();
        assert_eq!(counts(&*reader), (0, 1));
        contract::check(&*reader, &small.x);
        let (_, misses) = counts(&*reader);
        // Warm, in another reader.
        let reader = cached(&uri, folder.path());
        contract::check(&*reader, &small.x);
        let (hits, later_misses) = counts(&*reader);
        assert!(later_misses < misses && later_misses < hits, "{later_misses} of {hits}");
        for (idx, page) in pages(folder.path()).iter().enumerate().step_by(2) {
            let mut bytes = fs::read(page).unwrap();
            let at = bytes.len() * (idx % 7) / 7;
            bytes[at] ^= 1;
            fs::write(page, bytes).unwrap();
        }
        let reader = cached(&uri, folder.path());
        contract::check(&*reader, &small.x);
        assert!(reader.row_cache().unwrap().stats.damaged > 0);
    }
}

#[test]
fn any_reader_can_be_cached() {
    let small = Small::new(150, 30, 5);
    let folder = tempfile::tempdir().unwrap();
    let spec = RowCacheSpec { folder: folder.path().to_owned(), limit_bytes: 1 << 20 };
    let inner = Arc::new(MemoryReader::new(small.x.clone()).unwrap());
    for _ in 0..2 {
        let reader =
            RowCacheReader::open(Arc::<MemoryReader>::clone(&inner), "small", &spec, 2).unwrap();
        contract::check(&reader, &small.x);
    }
}

#[test]
fn later_epochs_read_nothing_of_the_array() {
    let small = Small::new(300, 60, 9);
    let experiment = tempfile::tempdir().unwrap();
    let uri = experiment.path().join("experiment").to_str().unwrap().to_owned();
    small.write(&uri).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let all = RowRanges::new(vec![0..300]).unwrap();
    let mut rows = CsrBuffers::new();
    for file in ["a0.tdb", "d0.tdb", "d1.tdb"] {
        let reader = cached(&uri, folder.path());
        reader.read_csr(&all, &GeneSelection::Range(0..60), &mut rows).unwrap();
        assert_eq!(rows.columns, small.x.columns);
        // What is gone cannot be read.
        let fragments = Path::new(&uri).join("ms/RNA/X/raw/__fragments");
        for fragment in fs::read_dir(fragments).unwrap() {
            fs::write(fragment.unwrap().path().join(file), "").unwrap();
        }
    }
    let reader = cached(&uri, folder.path());
    let stats = reader.read_csr(&all, &GeneSelection::All, &mut rows).unwrap();
    assert_eq!(counts(&*reader), (5, 0));
    assert_eq!(stats.values_decoded, Some(small.x.values.len() as u64));
    assert!(stats.bytes_read > Some(0) && stats.requests.is_none());
    // Other genes were not read before.
    assert!(reader.read_csr(&all, &GeneSelection::Range(0..59), &mut rows).is_err());
}

#[test]
fn a_changed_array_has_other_rows() {
    let experiment = tempfile::tempdir().unwrap();
    let uri = experiment.path().join("experiment").to_str().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let all = RowRanges::new(vec![0..70]).unwrap();
    let mut rows = CsrBuffers::new();
    // Another one at the same place, of the same shape.
    for factor in [1.0, 2.0] {
        let mut small = Small::new(70, 30, 5);
        small.x.values.iter_mut().for_each(|value| *value *= factor);
        if Path::new(&uri).exists() {
            fs::remove_dir_all(&uri).unwrap();
        }
        small.write(&uri).unwrap();
        let reader = cached(&uri, folder.path());
        reader.read_csr(&all, &GeneSelection::All, &mut rows).unwrap();
        assert_eq!(rows.values, small.x.values);
        assert_eq!(counts(&*reader), (0, 2));
    }
}

#[test]
fn settings_that_cannot_be_followed_are_errors() {
    let small = Small::new(70, 30, 5);
    let experiment = tempfile::tempdir().unwrap();
    let uri = experiment.path().join("experiment").to_str().unwrap().to_owned();
    small.write(&uri).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let (name, limit) = ("soma.row_cache_folder", "soma.row_cache_limit_bytes");
    for (settings, problem) in [
        (vec![(limit, "1000000000")], "no soma.row_cache_folder"),
        (vec![(name, path), (limit, "many")], "not a number of bytes"),
        (vec![(name, path), (limit, "1000")], "at least 1 MiB"),
        (vec![(name, "/dev/null/x")], "could not open the cache of rows in /dev/null/x"),
    ] {
        let error = open(&uri, &settings).unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains("soma.row_cache"), "{error}");
    }
    let reader = open(&uri, &[(name, path), (limit, "2000000")]).unwrap();
    assert_eq!(reader.row_cache().unwrap().limit_bytes, 2_000_000);
    assert!(open(&uri, &[(name, "")]).unwrap().row_cache().is_none());
}
