//! Checks the readers of X against their contract, over arrays of several layouts: native, with and
//! without a rate limit, libtiledb and memory.

use std::num::NonZeroU64;
use std::sync::Arc;

use soma_io::{
    Experiment, Extent, MemoryReader, OpenOptions, ReadLimit, ReaderChoice, XLayout, contract,
};

use crate::small::Small;

/// Writes the experiment and checks the readers of its X; `packs`: whether the native one returns
/// packed rows.
fn check(small: &Small, packs: bool) {
    let folder = tempfile::tempdir().unwrap();
    let uri = folder.path().join("experiment").to_str().unwrap().to_owned();
    small.write(&uri).unwrap();
    let experiment = Experiment::open(&uri, &OpenOptions::default()).unwrap();
    let x = experiment.measurement("RNA").unwrap().x("raw").unwrap();
    for choice in [ReaderChoice::Native, ReaderChoice::Libtiledb] {
        let reader = x.reader(choice).unwrap();
        assert_eq!(reader.name(), choice.name());
        assert_eq!(
            reader.packs(&soma_io::GeneSelection::All),
            packs && choice == ReaderChoice::Native
        );
        contract::check(&*reader, &small.x);
    }
    let limit = Arc::new(ReadLimit::new(NonZeroU64::new(1 << 40).unwrap()));
    let x = experiment.with_read_limit(limit).measurement("RNA").unwrap().x("raw").unwrap();
    contract::check(&*x.reader(ReaderChoice::Native).unwrap(), &small.x);
    contract::check(&MemoryReader::new(small.x.clone()).unwrap(), &small.x);
}

#[test]
fn one_fragment_in_the_layout_of_the_census() {
    check(&Small::new(90, 60, 9), true);
}

#[test]
fn counts_in_small_tiles_of_several_fragments() {
    let mut small = Small::new(97, 41, 6);
    small.x.values.iter_mut().for_each(|value| *value = (*value * 4.0).trunc());
    let layout = XLayout { tile_rows: 16, tile_columns: 8, capacity: 50, ..XLayout::census(1) };
    small.spec.x_layout = layout;
    small.spec.fragment_rows = Some(32);
    check(&small, true);
    small.spec.consolidate = true;
    small.spec.extent = Extent::FixedDomain;
    check(&small, true);
}

#[test]
fn more_genes_than_can_be_packed() {
    check(&Small::new(40, 70_000, 30), false);
}

#[test]
fn rows_without_values() {
    check(&Small::new(25, 10, 0), true);
}
