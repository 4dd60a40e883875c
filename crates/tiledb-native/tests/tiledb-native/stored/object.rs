//! Arrays in an object store read like those in a folder, with few requests, many of them
//! concurrent. Failures are reported, and reads never hang.

use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use storage::{Expected, LocalStorage, ObjectOptions, ObjectStorage, Piece, Storage};
use tiledb_native::{Array, ColumnSelection, CsrBuffers, Error, OpenOptions};
use tokio::sync::Barrier;

use crate::stored::packed::MemoryStorage;
use crate::stored::stored;

/// A prefix that a second encoding would change.
const PREFIX: &str = "data/release 1%20~/X";
const PLACE: &str = "memory://data";

/// How a store responds to a request for bytes.
#[derive(Debug)]
enum Behaviour {
    Answer,
    /// Responds when this many requests are pending.
    Together(Barrier),
    /// Waits a little, so that requests pile up.
    Slow,
    /// Waits a little, and never answers one request, of this number.
    Forget(usize),
    /// Fails this many times for keys with this ending.
    Fail(&'static str, AtomicUsize),
    Never,
}

/// A store that counts requests.
#[derive(Debug)]
struct Watched {
    inner: InMemory,
    behaviour: Behaviour,
    n_gets: AtomicUsize,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watched")
    }
}

/// A request under way, until it is answered or cancelled.
struct InFlight<'a>(&'a AtomicUsize);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Watched {
    fn new(files: &MemoryStorage, behaviour: Behaviour) -> Arc<Self> {
        let inner = InMemory::new();
        for (file, bytes) in &files.files {
            let key = Path::parse(format!("{PREFIX}/{file}")).unwrap();
            inner.put(&key, bytes.clone().into()).now_or_never().unwrap().unwrap();
        }
        let [n_gets, in_flight, most_in_flight] = Default::default();
        Arc::new(Self { inner, behaviour, n_gets, in_flight, most_in_flight })
    }

    fn n_gets(&self) -> usize {
        self.n_gets.load(Ordering::SeqCst)
    }

    async fn wait(&self, location: &Path, n_before: usize) -> Result<()> {
        let generic = |text: &str| object_store::Error::Generic {
            store: "Watched",
            source: text.to_owned().into(),
        };
        match &self.behaviour {
            Behaviour::Answer => Ok(()),
            Behaviour::Together(barrier) => {
                let all = tokio::time::timeout(Duration::from_secs(20), barrier.wait()).await;
                all.map(drop).map_err(|_late| generic("the others did not come"))
            }
            Behaviour::Forget(number) if *number == n_before => std::future::pending().await,
            Behaviour::Slow | Behaviour::Forget(_) => {
                tokio::time::sleep(Duration::from_millis(2)).await;
                Ok(())
            }
            Behaviour::Fail(end, times) => {
                let fails = location.as_ref().ends_with(end)
                    && times
                        .try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                        .is_ok();
                if fails { Err(generic("the disk is on fire")) } else { Ok(()) }
            }
            Behaviour::Never => std::future::pending().await,
        }
    }
}

#[async_trait]
impl ObjectStore for Watched {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if !options.head {
            let n_before = self.n_gets.fetch_add(1, Ordering::SeqCst);
            let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_in_flight.fetch_max(now, Ordering::SeqCst);
            let _in_flight = InFlight(&self.in_flight);
            self.wait(location, n_before).await?;
        }
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn storage(store: &Arc<Watched>, options: ObjectOptions) -> Arc<ObjectStorage> {
    let store = Arc::<Watched>::clone(store);
    Arc::new(ObjectStorage::new(store, Path::parse(PREFIX).unwrap(), PLACE, options).unwrap())
}

/// One file "a" with the bytes 0, 1, 2 and so on.
fn one_file() -> MemoryStorage {
    let bytes = (0..40_000_u32).map(|idx| (idx % 251) as u8).collect();
    MemoryStorage { files: [("a".to_owned(), bytes)].into() }
}

fn pieces(ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Piece<'static>> {
    ranges.into_iter().map(|range| Piece { file: "a", range }).collect()
}

#[track_caller]
fn check_read(storage: &ObjectStorage, pieces: &[Piece<'_>]) {
    let expect: Vec<u8> =
        pieces.iter().flat_map(|piece| piece.range.clone().map(|at| (at % 251) as u8)).collect();
    let mut into = vec![0; expect.len()];
    storage.read(pieces, &mut into).unwrap();
    assert!(into == expect, "{pieces:?}");
}

/// Fetching ahead nothing, everything, and less than a read needs, in small parts.
fn all_options() -> [ObjectOptions; 4] {
    let whole = ObjectOptions::default();
    let small = ObjectOptions { request_bytes: 700, gap_bytes: 100, batch_bytes: 1000, ..whole };
    [
        whole,
        ObjectOptions { prefetch_bytes: 0, ..small },
        ObjectOptions { prefetch_bytes: 2000, max_requests: 3, ..small },
        ObjectOptions { prefetch_bytes: 300, max_requests: 1, n_threads: 1, ..small },
    ]
}

/// Ranges that lie apart are requested apart.
fn apart_options() -> ObjectOptions {
    ObjectOptions { gap_bytes: 0, ..ObjectOptions::default() }
}

#[test]
fn reads_what_a_folder_holds() {
    for name in ["format-06", "format-08", "format-11-appended", "format-22-consolidated"] {
        let files = stored(name);
        let folder = tempfile::tempdir().unwrap();
        for (file, bytes) in &files.files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let open = OpenOptions::new(2);
        let local = Array::open(Arc::new(LocalStorage::new(folder.path())), &open).unwrap();
        for options in all_options() {
            let store = Watched::new(&files, Behaviour::Answer);
            let remote = Array::open(storage(&store, options), &open).unwrap();
            let single = (0..100).step_by(7).map(|row| vec![row..row + 1]);
            let chunked = [vec![0..100], vec![80..96, 16..32, 48..64, 0..16], vec![3..9, 70..71]];
            for rows in chunked.into_iter().chain(single) {
                let (mut here, mut there) = (CsrBuffers::new(), CsrBuffers::new());
                let all = ColumnSelection::All;
                let expect = local.read_csr(&rows, &all, &mut here).unwrap();
                let stats = remote.read_csr(&rows, &all, &mut there).unwrap();
                assert_eq!(stats.values, expect.values, "{name} {rows:?}");
                for row in 0..rows.iter().map(|range| range.end - range.start).sum::<u64>() {
                    let row = row as usize;
                    assert_eq!(there.row(row), here.row(row), "{name} {rows:?} {options:?}");
                }
            }
        }
    }
}

#[test]
fn names_and_bytes_are_those_of_the_keys() {
    let store = Arc::new(InMemory::new());
    for name in ["a%20b.tdb", "__1_2_uuid.ok", "c d~", "empty", "__schema/one"] {
        let bytes = if name == "empty" { "" } else { "0123456789" };
        let key = Path::parse(format!("x y/array/{name}")).unwrap();
        store.put(&key, bytes.into()).now_or_never().unwrap().unwrap();
    }
    let prefix = Path::parse("x y/array").unwrap();
    let storage = ObjectStorage::new(store, prefix, "here", ObjectOptions::default()).unwrap();
    let mut names: Vec<_> = storage.list("").unwrap();
    names.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<_> = names.iter().map(|entry| (entry.name.as_str(), entry.is_folder)).collect();
    let files = [("a%20b.tdb", false), ("c d~", false), ("empty", false)];
    assert_eq!(names[..2], [("__1_2_uuid.ok", false), ("__schema", true)]);
    assert_eq!(names[2..], files);
    assert_eq!(storage.list("__fragments").unwrap(), []);
    for (name, _) in &files[..2] {
        assert_eq!(storage.size(name).unwrap(), 10);
        let mut into = [0; 3];
        storage.read(&[Piece { file: name, range: 4..7 }], &mut into).unwrap();
        assert_eq!(&into, b"456");
    }
    assert_eq!(storage.size("empty").unwrap(), 0);
    storage.read(&[Piece { file: "empty", range: 0..0 }], &mut []).unwrap();
    let kind =
        |file, range| storage.read(&[Piece { file, range }], &mut [0; 4]).unwrap_err().kind();
    assert_eq!(kind("c d~", 8..12), io::ErrorKind::UnexpectedEof);
    assert_eq!(kind("c d~", 20..24), io::ErrorKind::UnexpectedEof);
    assert_eq!(kind("absent", 0..4), io::ErrorKind::NotFound);
    assert_eq!(kind("../escape", 0..4), io::ErrorKind::InvalidInput);
    assert_eq!(kind("c d~", 0..5), io::ErrorKind::InvalidInput);
    assert_eq!(storage.size("absent").unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn ranges_beyond_the_end_have_an_error_of_their_own() {
    let store = Watched::new(&one_file(), Behaviour::Answer);
    let storage = storage(&store, ObjectOptions::default());
    for range in [39_990..40_010, 50_000..50_020] {
        let error = storage.read(&pieces([range]), &mut [0; 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
    }
}

#[test]
fn many_pieces_are_asked_for_at_once() {
    let apart = || pieces((0..32).map(|idx| idx * 1000..idx * 1000 + 10));
    let store = Watched::new(&one_file(), Behaviour::Together(Barrier::new(32)));
    let prefetching = storage(&store, apart_options());
    check_read(&prefetching, &apart());
    // Also the parts of a long range, and announced ranges.
    let parts = ObjectOptions { request_bytes: 1000, ..apart_options() };
    check_read(&storage(&store, parts), &pieces([0..32_000]));
    prefetching.prefetch(&apart(), Expected::Now);
    check_read(&prefetching, &apart());
    assert_eq!(store.most_in_flight.load(Ordering::SeqCst), 32);

    let store = Watched::new(&one_file(), Behaviour::Slow);
    let few = ObjectOptions { max_requests: 3, ..apart_options() };
    let storage = storage(&store, few);
    storage.prefetch(&apart()[16..], Expected::Now);
    check_read(&storage, &apart());
    assert_eq!(store.most_in_flight.load(Ordering::SeqCst), 3);
}

#[test]
fn what_was_fetched_ahead_is_not_asked_for_again() {
    let store = Watched::new(&one_file(), Behaviour::Slow);
    let storage = storage(&store, apart_options());
    storage.prefetch(&pieces([0..5000, 9000..10_000]), Expected::Now);
    check_read(&storage, &pieces([0..2000, 2000..5000]));
    check_read(&storage, &pieces([9000..10_000]));
    assert_eq!(store.n_gets(), 2);
    // What was just read is kept for a while; of a read that was announced in part, only the rest
    // is requested.
    check_read(&storage, &pieces([9000..10_000]));
    assert_eq!(store.n_gets(), 2);
    storage.prefetch(&pieces([20_000..21_000]), Expected::Now);
    check_read(&storage, &pieces([19_500..20_500, 20_500..21_000]));
    assert_eq!(store.n_gets(), 4);
    // It was kept until another read was announced.
    check_read(&storage, &pieces([9000..10_000]));
    assert_eq!(store.n_gets(), 5);
}

#[test]
fn what_is_fetched_ahead_goes_on_within_its_bound() {
    let until = |store: &Watched, n_gets| {
        let deadline = Instant::now() + Duration::from_secs(20);
        while store.n_gets() < n_gets && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let store = Watched::new(&one_file(), Behaviour::Slow);
    let few = ObjectOptions { max_requests: 2, ..apart_options() };
    let prefetching = storage(&store, few);
    let apart = pieces((0..20).map(|idx| idx * 1000..idx * 1000 + 10));
    prefetching.prefetch(&apart, Expected::Now);
    until(&store, 20);
    assert_eq!(store.n_gets(), 20);
    check_read(&prefetching, &apart);
    assert_eq!(store.n_gets(), 20);

    let store = Watched::new(&one_file(), Behaviour::Slow);
    let little = ObjectOptions { request_bytes: 500, prefetch_bytes: 1000, ..few };
    let prefetching = storage(&store, little);
    prefetching.prefetch(&pieces([0..20_000]), Expected::Now);
    until(&store, 2);
    // Long enough for more requests to begin.
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(store.n_gets(), 2);
    check_read(&prefetching, &pieces([0..1000]));
    until(&store, 4);
    check_read(&prefetching, &pieces([1000..2000]));
    drop(prefetching);
    assert!((4..=6).contains(&store.n_gets()), "{}", store.n_gets());
}

#[test]
fn a_failure_ahead_is_tried_again_by_the_read() {
    let store = Watched::new(&one_file(), Behaviour::Fail("/a", AtomicUsize::new(1)));
    let prefetching = storage(&store, ObjectOptions::default());
    prefetching.prefetch(&pieces([0..100]), Expected::Now);
    check_read(&prefetching, &pieces([0..100]));
    assert_eq!(store.n_gets(), 2);

    let store = Watched::new(&one_file(), Behaviour::Fail("/a", AtomicUsize::new(usize::MAX)));
    let prefetching = storage(&store, ObjectOptions::default());
    prefetching.prefetch(&pieces([0..100]), Expected::Now);
    let error = prefetching.read(&pieces([0..100]), &mut [0; 100]).unwrap_err();
    assert!(error.to_string().contains("the disk is on fire"), "{error}");
}

/// It would never end without the repetition.
#[test]
fn a_request_that_is_late_is_repeated_and_cancelled() {
    let store = Watched::new(&one_file(), Behaviour::Forget(60));
    let storage = storage(&store, apart_options());
    for idx in 0..100 {
        check_read(&storage, &pieces([idx * 300..idx * 300 + 100]));
    }
    let counts = storage.request_counts().unwrap();
    assert_eq!(counts.sent, 100 + counts.repeated);
    // A busy machine may be late itself.
    assert!((1..=6).contains(&counts.repeated), "{counts:?}");
    assert_eq!(store.in_flight.load(Ordering::SeqCst), 0);
}

#[test]
fn ranges_near_each_other_are_read_as_one() {
    let store = Watched::new(&one_file(), Behaviour::Answer);
    let near = ObjectOptions { gap_bytes: 90, ..ObjectOptions::default() };
    let near = storage(&store, near);
    let ranges = || pieces([0..10, 100..110, 300..310, 250..260, 400..410]);
    check_read(&near, &ranges());
    assert_eq!(store.n_gets(), 4);
    assert_eq!(near.request_counts().unwrap().bytes, 50 + 90);
    near.prefetch(&ranges(), Expected::Now);
    check_read(&near, &ranges());
    assert_eq!(store.n_gets(), 8);
    assert_eq!(near.request_counts().unwrap().bytes, 2 * (50 + 90));
}

/// Also those of a copy of the array, which shares its storage.
#[test]
fn every_request_counts_for_one_read() {
    let store = Watched::new(&stored("format-22-consolidated"), Behaviour::Answer);
    let storage = storage(&store, ObjectOptions::default());
    let array = Array::open(Arc::<ObjectStorage>::clone(&storage), &OpenOptions::new(2)).unwrap();
    let exact = array.exact();
    let before = storage.request_counts().unwrap();
    let (mut sent, mut bytes) = (0, 0);
    let mut out = CsrBuffers::new();
    for (array, rows) in [(&array, 0..20), (&exact, 30..60), (&array, 50..90), (&exact, 0..100)] {
        let stats = array.read_csr(&[rows], &ColumnSelection::All, &mut out).unwrap();
        assert!(stats.requests > Some(0) && stats.bytes_read > Some(0), "{stats:?}");
        sent += stats.requests.unwrap();
        bytes += stats.bytes_read.unwrap();
    }
    let counts = storage.request_counts().unwrap().since(before);
    assert_eq!((sent, bytes), (counts.sent, counts.bytes));
}

#[test]
fn random_chunks_take_fewer_requests_than_there_are_chunks() {
    let store = Watched::new(&stored("format-22-consolidated"), Behaviour::Answer);
    let array =
        Array::open(storage(&store, ObjectOptions::default()), &OpenOptions::new(2)).unwrap();
    let mut out = CsrBuffers::new();
    let rows: Vec<_> = [9, 3, 15, 0, 12, 18, 6].map(|chunk| chunk * 5..chunk * 5 + 3).into();
    array.read_csr(&rows, &ColumnSelection::All, &mut out).unwrap();
    let before = store.n_gets();
    let stats = array.read_csr(&rows, &ColumnSelection::All, &mut out).unwrap();
    assert!(stats.values > 0);
    let n_gets = store.n_gets() - before;
    assert!((1..rows.len()).contains(&n_gets), "{n_gets} requests for {} chunks", rows.len());
    assert_eq!(stats.requests, Some(n_gets as u64));
}

/// The reader announces exactly the ranges that it then reads, so none is requested twice.
#[test]
fn fetching_ahead_takes_no_more_requests() {
    for name in ["format-22", "format-22-consolidated", "format-09-appended"] {
        let n_gets = [0, 64 << 20].map(|prefetch_bytes| {
            let store = Watched::new(&stored(name), Behaviour::Slow);
            let options = ObjectOptions { prefetch_bytes, gap_bytes: 64, ..Default::default() };
            let array = Array::open(storage(&store, options), &OpenOptions::new(1)).unwrap();
            let mut out = CsrBuffers::new();
            [vec![0..100], vec![0..100], vec![20..25, 60..75]].map(|rows| {
                let before = store.n_gets();
                array.read_csr(&rows, &ColumnSelection::All, &mut out).unwrap();
                store.n_gets() - before
            })
        });
        for (without, with) in n_gets[0].iter().zip(&n_gets[1]) {
            assert!(with <= without, "{name}: {n_gets:?}");
        }
    }
}

#[test]
fn several_reads_share_what_is_ahead() {
    let store = Watched::new(&stored("format-22-consolidated"), Behaviour::Slow);
    let options = all_options()[2];
    let array = Array::open(storage(&store, options), &OpenOptions::new(4)).unwrap();
    let mut expect = CsrBuffers::new();
    array.read_csr(&[0..100], &ColumnSelection::All, &mut expect).unwrap();
    std::thread::scope(|scope| {
        for first in 0..6_u64 {
            let (array, expect) = (&array, &expect);
            scope.spawn(move || {
                let mut out = CsrBuffers::new();
                for row in (first..90).step_by(5) {
                    let rows = [row..row + 10];
                    array.read_csr(&rows, &ColumnSelection::All, &mut out).unwrap();
                    for idx in 0..10 {
                        assert_eq!(out.row(idx), expect.row(row as usize + idx));
                    }
                }
            });
        }
    });
}

#[test]
fn failures_name_file_and_cause() {
    let files = stored("format-22");
    let cells = |name: &str| name.ends_with("a0.tdb");
    assert!(files.files.keys().any(|name| cells(name)), "{:?}", files.files.keys());
    for prefetch_bytes in [0, 1 << 20] {
        let behaviour = Behaviour::Fail("a0.tdb", AtomicUsize::new(usize::MAX));
        let store = Watched::new(&files, behaviour);
        let options = ObjectOptions { prefetch_bytes, ..ObjectOptions::default() };
        let array = Array::open(storage(&store, options), &OpenOptions::new(2)).unwrap();
        let mut out = CsrBuffers::new();
        let error = array.read_csr(&[0..100], &ColumnSelection::All, &mut out).unwrap_err();
        let Error::Storage(storage::Error::File { file, source, .. }) = error else {
            panic!("{error}")
        };
        assert!(file.starts_with(PLACE) && file.contains("/__fragments/"), "{file}");
        let source = source.to_string();
        assert!(source.contains("a0.tdb: Generic Watched error: the disk is on fire"), "{source}");
    }
}

#[test]
fn nothing_there_is_not_an_array() {
    let store = Watched::new(&MemoryStorage::default(), Behaviour::Answer);
    let error = Array::open(storage(&store, ObjectOptions::default()), &OpenOptions::new(1));
    assert!(matches!(error, Err(Error::NotAnArray { place }) if place == PLACE));
}

#[test]
fn a_dropped_storage_gives_its_requests_up() {
    let store = Watched::new(&one_file(), Behaviour::Never);
    let storage = storage(&store, apart_options());
    storage.prefetch(&pieces((0..100).map(|idx| idx * 300..idx * 300 + 10)), Expected::Now);
    drop(storage);
    // No thread that uses the store is left.
    assert_eq!(Arc::strong_count(&store), 1);
}

#[test]
fn works_on_the_threads_of_another_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = Watched::new(&stored("format-22"), Behaviour::Slow);
        let array =
            Array::open(storage(&store, ObjectOptions::default()), &OpenOptions::new(2)).unwrap();
        let mut out = CsrBuffers::new();
        array.read_csr(&[0..50], &ColumnSelection::All, &mut out).unwrap();
        assert!(out.nnz() > 0);
        let never = Watched::new(&one_file(), Behaviour::Never);
        let storage = storage(&never, ObjectOptions::default());
        storage.prefetch(&pieces([0..10]), Expected::Now);
        drop(storage);
    });
}
