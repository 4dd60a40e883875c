//! Numbers of requests and of unneeded bytes of a read; the native reader's counts equal the
//! server's.

use std::fs;

use soma_io::{
    Experiment, GeneSelection, OpenOptions, ReadStats, ReaderChoice, RowRanges, XReader,
};

use crate::cells::read_csr;
use crate::s3::places::{READERS, Stored, empty, reader_of, rows};
use crate::small::{Small, csr, frame};
use test_storage::PUBLIC;
use test_storage::Seen;

/// A fragment contains a multiple of a tile's 2,048 rows.
const FRAGMENTS: usize = 5;

/// 20,000 cells by 300 genes in fragments of 4,096 rows.
fn fragmented() -> Stored {
    let mut small = Small::new(400, 300, 0);
    small.spec.n_obs = 20_000;
    small.spec.fragment_rows = Some(4_000);
    small.obs = frame(20_000, 3);
    small.x = csr(20_000, 300, 30);
    Stored::put(PUBLIC, small)
}

/// 16 chunks of 16 rows from everywhere.
fn chunks() -> RowRanges {
    rows((0..16).map(|chunk| chunk * 1_250 + (chunk * 977) % 1_000).map(|row| row..row + 16))
}

/// The requests of one read, and the read's statistics.
fn asked(stored: &Stored, reader: &dyn XReader, rows: &RowRanges) -> (Vec<Seen>, ReadStats) {
    drop(stored.server.seen());
    let stats = reader.read_csr(rows, &GeneSelection::All, &mut empty()).unwrap();
    (stored.server.seen(), stats)
}

fn n_bytes(seen: &[Seen]) -> u64 {
    seen.iter().filter(|seen| seen.is_get()).map(|seen| seen.n_bytes).sum()
}

#[test]
fn a_block_of_random_chunks_takes_few_requests() {
    let stored = fragmented();
    let fragments = fs::read_dir(stored.folder().join("ms/RNA/X/raw/__fragments")).unwrap();
    let fragments: Vec<_> = fragments.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(fragments.len(), FRAGMENTS);
    let file_bytes = |names: &[&str]| -> u64 {
        let files = fragments.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
        files.map(|file| fs::metadata(file).unwrap().len()).sum()
    };
    let reader = stored.reader(ReaderChoice::Native).unwrap();
    let (first, first_stats) = asked(&stored, &*reader, &chunks());
    let (second, stats) = asked(&stored, &*reader, &chunks());
    let say = format!("{} then {} requests, {first_stats:?}, {stats:?}", first.len(), second.len());
    // The first read learns where the rows are, which is cached: for each fragment the sizes of
    // three files, its metadata, its rows.
    assert!(first.len() <= 12 * FRAGMENTS, "{say}");
    assert!(second.len() <= 4 * FRAGMENTS, "{say}");
    // Before its chunks are known a tile is read whole, by both threads that need it if it lies on
    // the border of their rows.
    assert!(n_bytes(&first) <= 2 * file_bytes(&["d0.tdb", "d1.tdb", "a0.tdb"]), "{say}");
    // From then on at most the cells of two filter chunks, 64 KiB of columns each, are decoded for
    // each chunk of rows. Their bytes, with the gaps that are cheaper than a request, are less than
    // half of the decoded size.
    let decoded = stats.values_decoded.unwrap();
    assert!(decoded <= 16 * 2 * 8192, "{say}");
    assert!(n_bytes(&second) <= decoded * 12 / 2, "{say}");
    assert_eq!(stats.requests, Some(second.len() as u64), "{say}");
    assert_eq!(first_stats.requests, Some(first.len() as u64), "{say}");
    assert_eq!(stats.bytes_read, Some(n_bytes(&second)), "{say}");
    assert_eq!(first_stats.bytes_read, Some(n_bytes(&first)), "{say}");
}

#[test]
fn opening_takes_few_requests() {
    let stored = fragmented();
    let experiment = stored.open(stored.server.config()).unwrap();
    let x = experiment.measurement("RNA").unwrap().x("raw").unwrap();
    drop(stored.server.seen());
    x.reader(ReaderChoice::Native).unwrap();
    let n_requests = stored.server.seen().len();
    assert!(n_requests <= 10 + 2 * FRAGMENTS, "{n_requests}");
}

/// Both readers read the same chunks; no requests are counted for a folder, or by libtiledb.
#[test]
fn requests_are_counted_where_they_are_known() {
    let stored = fragmented();
    let folder = stored.folder();
    let local = Experiment::open(folder.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let local = reader_of(&local, ReaderChoice::Native).unwrap();
    let expect = read_csr(&*local, &chunks(), &GeneSelection::All).unwrap();
    assert_eq!(asked(&stored, &*local, &chunks()).1.requests, None);
    for choice in READERS {
        let reader = stored.reader(choice).unwrap();
        let (seen, stats) = asked(&stored, &*reader, &chunks());
        assert!(!seen.is_empty());
        assert_eq!(stats.requests.is_some(), choice == ReaderChoice::Native);
        assert_eq!(read_csr(&*reader, &chunks(), &GeneSelection::All).unwrap(), expect);
    }
}
