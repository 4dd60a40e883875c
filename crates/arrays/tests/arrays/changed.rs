//! Stores that change while they are read: what is delivered of a chunk file or a shard is of one
//! version, or the read ends with an error.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use arrays::{ArrayBatch, ArraySamples, SampleSpec, Variable};
use pipeline::{Pipeline, PipelineSpec};
use proptest::prelude::*;
use storage::{LocalStorage, Storage};
use test_storage::{PRIVATE, Server, What};
use zarrs::array::{ArrayBuilder, codec, data_type};
use zarrs::filesystem::FilesystemStore;

use crate::chain;
use crate::faults::far;

const STEPS: u64 = 24;
const ROW: u64 = 8;
/// Steps of a shard, or of a chunk that is a file.
const STEPS_IN_FILE: u64 = 4;

/// How an array is stored.
#[derive(Debug, Clone, Copy)]
struct Layout {
    is_sharded: bool,
    is_compressed: bool,
}

/// The value of an element in a version. Those of version 1 do not compress like those of 0, so
/// chunks lie elsewhere in its shards.
fn value(version: u64, element: u64) -> f64 {
    if version == 0 {
        return element as f64;
    }
    let mixed = element.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12;
    1e6 + mixed as f64 / 4096.0
}

fn write(folder: &Path, layout: Layout, version: u64) {
    let store = Arc::new(FilesystemStore::new(folder).unwrap());
    let shape = vec![STEPS, ROW];
    let chunk = vec![STEPS_IN_FILE, ROW];
    let mut builder = ArrayBuilder::new(shape, chunk, data_type::float64(), -1.0_f64);
    if layout.is_compressed {
        builder.bytes_to_bytes_codecs(vec![Arc::new(codec::ZstdCodec::new(1, false))]);
    }
    if layout.is_sharded {
        builder.subchunk_shape(vec![1, ROW]);
    }
    let array = builder.build(store, "/fields").unwrap();
    array.store_metadata().unwrap();
    let values: Vec<f64> = (0..STEPS * ROW).map(|element| value(version, element)).collect();
    array.store_array_subset(&array.subset_all(), &values).unwrap();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    (0..STEPS / STEPS_IN_FILE).map(|at| folder.join(format!("fields/c/{at}/0"))).collect()
}

/// The files of `folder` are old: changes have another time, however coarse the system's clock is.
fn make_old(folder: &Path) {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for file in files(folder) {
        File::options().write(true).open(file).unwrap().set_modified(long_ago).unwrap();
    }
}

/// How a file becomes another version.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// Written anew in place.
    InPlace,
    /// Another file takes its name.
    Rename,
    /// Cut to half of its bytes.
    Truncate,
    /// More bytes at its end.
    Append,
}

impl Change {
    /// Changes the second file of each pair to the first.
    fn make_all(self, pairs: &[(PathBuf, PathBuf)]) {
        for (from, to) in pairs {
            self.make(from, to);
        }
    }

    /// Changes `file` to `from`, or damages it.
    fn make(self, from: &Path, file: &Path) {
        match self {
            Self::InPlace => fs::write(file, fs::read(from).unwrap()).unwrap(),
            Self::Rename => {
                let beside = file.with_extension("new");
                fs::copy(from, &beside).unwrap();
                fs::rename(beside, file).unwrap();
            }
            Self::Truncate => {
                let half = fs::metadata(file).unwrap().len() / 2;
                File::options().write(true).open(file).unwrap().set_len(half).unwrap();
            }
            Self::Append => {
                let mut bytes = fs::read(file).unwrap();
                bytes.extend_from_slice(&[7; 100]);
                fs::write(file, bytes).unwrap();
            }
        }
    }
}

/// What was delivered, and how it ended.
#[derive(Debug, Default)]
struct Delivered {
    /// The step and the version of each sample, in the order of delivery.
    samples: Vec<(u64, u64)>,
    error: Option<String>,
}

/// Reads two epochs, and calls `between` before each batch with its number. Panics on a sample that
/// is of no version.
fn read(
    storage: Arc<dyn Storage>,
    read_threads: usize,
    between: &mut dyn FnMut(usize),
) -> Delivered {
    let spec = SampleSpec::new([Variable::new("fields")]);
    let samples = ArraySamples::open(storage, &spec).unwrap();
    let spec = PipelineSpec {
        chunk_rows: 1,
        chunks_per_block: 3,
        batch_rows: 3,
        read_threads,
        prefetch_blocks: read_threads,
        ..PipelineSpec::default()
    };
    let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
    let mut delivered = Delivered::default();
    let mut n_batches = 0;
    for epoch in pipeline.epochs(0..2) {
        let mut epoch = epoch.unwrap();
        loop {
            between(n_batches);
            n_batches += 1;
            let batch = match epoch.next() {
                None => break,
                Some(Ok(batch)) => batch,
                Some(Err(error)) => {
                    delivered.error = Some(chain(&error));
                    return delivered;
                }
            };
            let values = batch.variables().next().unwrap();
            let rows = values.values::<f64>().unwrap().chunks(ROW as usize);
            for (step, row) in batch.samples().iter().zip(rows) {
                let is_of = |version: u64| {
                    let elements = step * ROW..(step + 1) * ROW;
                    row.iter().copied().eq(elements.map(|element| value(version, element)))
                };
                let version = [0, 1].into_iter().find(|version| is_of(*version));
                let version = version.unwrap_or_else(|| panic!("step {step} is {row:?}"));
                delivered.samples.push((*step, version));
            }
        }
    }
    delivered
}

impl Delivered {
    /// All samples of a file in the order given are of one version.
    fn has_one_version(&self, file: usize) -> bool {
        let mut versions = self
            .samples
            .iter()
            .filter(|(step, _)| step / STEPS_IN_FILE == file as u64)
            .map(|(_, version)| *version);
        let first = versions.next();
        versions.all(|version| Some(version) == first)
    }

    #[track_caller]
    fn check(&self, layout: Layout) {
        if let Some(error) = &self.error {
            let parts = ["Zarr array fields", "chunk ["];
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        } else {
            assert_eq!(self.samples.len() as u64, 2 * STEPS);
        }
        if layout.is_sharded {
            let n_files = (STEPS / STEPS_IN_FILE) as usize;
            assert!((0..n_files).all(|file| self.has_one_version(file)), "{self:?}");
        }
    }
}

/// Two versions of a store: the one that is read, and the one that it becomes.
fn two_versions(folder: &Path, layout: Layout) -> tempfile::TempDir {
    let other = tempfile::tempdir().unwrap();
    write(folder, layout, 0);
    write(other.path(), layout, 1);
    make_old(folder);
    other
}

fn layout() -> impl Strategy<Value = Layout> {
    (any::<bool>(), any::<bool>())
        .prop_map(|(is_sharded, is_compressed)| Layout { is_sharded, is_compressed })
}

fn change() -> impl Strategy<Value = Change> {
    prop::sample::select(vec![Change::InPlace, Change::Rename, Change::Truncate, Change::Append])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn samples_of_a_folder_are_of_one_version(
        layout in layout(),
        changes in prop::collection::vec((change(), 0..6_usize, 0..16_usize), 1..4),
        read_threads in 0..3_usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let other = two_versions(folder.path(), layout);
        let pairs: Vec<_> = files(other.path()).into_iter().zip(files(folder.path())).collect();
        let storage = Arc::new(LocalStorage::new(folder.path()));
        let delivered = read(storage, read_threads, &mut |batch| {
            for (change, file, _) in changes.iter().filter(|(_, _, before)| *before == batch) {
                change.make(&pairs[*file].0, &pairs[*file].1);
            }
        });
        delivered.check(layout);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn samples_of_an_object_store_are_of_one_version(
        layout in layout(),
        file in 0..6_usize,
        before in 0..16_usize,
        read_threads in 0..3_usize,
    ) {
        let server = Server::start();
        let folder = server.bucket(PRIVATE).join("store");
        let other = two_versions(&folder, layout);
        let (from, to) = (files(other.path())[file].clone(), files(&folder)[file].clone());
        let delivered = read(far(&server, 2), read_threads, &mut |batch| {
            if batch == before {
                Change::Rename.make(&from, &to);
            }
        });
        delivered.check(layout);
    }
}

#[test]
fn a_shard_that_is_written_anew_is_named() {
    let layout = Layout { is_sharded: true, is_compressed: true };
    for before in [2, 8] {
        let folder = tempfile::tempdir().unwrap();
        let other = two_versions(folder.path(), layout);
        let pairs: Vec<_> = files(other.path()).into_iter().zip(files(folder.path())).collect();
        let delivered = read(Arc::new(LocalStorage::new(folder.path())), 0, &mut |batch| {
            if batch == before {
                Change::InPlace.make_all(&pairs);
            }
        });
        delivered.check(layout);
        let error = delivered.error.unwrap();
        for part in ["fields/c/", "changed while the array was open", "the array again"] {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn a_replaced_shard_of_an_object_store_is_named() {
    let layout = Layout { is_sharded: true, is_compressed: true };
    let server = Server::start();
    let folder = server.bucket(PRIVATE).join("store");
    let other = two_versions(&folder, layout);
    let pairs: Vec<_> = files(other.path()).into_iter().zip(files(&folder)).collect();
    let deed = move || Change::Rename.make_all(&pairs);
    // Once, between the read of an index and that of its chunks.
    server.fault_after("store/fields/c/3/0", 2, 1, What::First(Arc::new(deed)));
    let delivered = read(far(&server, 2), 0, &mut |_| {});
    delivered.check(layout);
    let error = delivered.error.unwrap();
    assert!(error.contains("was replaced"), "{error}");
}

/// A folder with a deed before each read of bytes.
struct Deeds {
    folder: LocalStorage,
    deed: Box<dyn Fn(usize) + Send + Sync>,
    n_reads: AtomicUsize,
}

impl std::fmt::Debug for Deeds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deeds")
    }
}

impl Storage for Deeds {
    fn place(&self) -> String {
        self.folder.place()
    }

    fn list(&self, folder: &str) -> std::io::Result<Vec<storage::Entry>> {
        self.folder.list(folder)
    }

    fn size(&self, file: &str) -> std::io::Result<u64> {
        self.folder.size(file)
    }

    fn versions(&self, files: &[&str]) -> Vec<std::io::Result<storage::FileVersion>> {
        self.folder.versions(files)
    }

    fn read(&self, pieces: &[storage::Piece<'_>], into: &mut [u8]) -> std::io::Result<()> {
        if pieces.iter().any(|piece| piece.file.contains("/c/")) {
            (self.deed)(self.n_reads.fetch_add(1, Ordering::Relaxed));
        }
        self.folder.read(pieces, into)
    }

    fn coalesce(&self) -> storage::Coalesce {
        self.folder.coalesce()
    }
}

#[test]
fn a_file_that_changes_between_its_size_and_its_bytes_is_an_error() {
    for is_sharded in [false, true] {
        for is_compressed in [false, true] {
            for change in [Change::InPlace, Change::Rename, Change::Truncate, Change::Append] {
                let layout = Layout { is_sharded, is_compressed };
                let folder = tempfile::tempdir().unwrap();
                let other = two_versions(folder.path(), layout);
                let pairs: Vec<_> =
                    files(other.path()).into_iter().zip(files(folder.path())).collect();
                let deed = move |n_reads: usize| {
                    if n_reads == 5 {
                        change.make_all(&pairs);
                    }
                };
                let storage = Deeds {
                    folder: LocalStorage::new(folder.path()),
                    deed: Box::new(deed),
                    n_reads: AtomicUsize::default(),
                };
                let delivered = read(Arc::new(storage), 0, &mut |_| {});
                delivered.check(layout);
                // A file that was open when another took its name is read to the end.
                assert!(
                    delivered.error.is_some() || matches!(change, Change::Rename),
                    "{layout:?} {change:?}"
                );
            }
        }
    }
}
