//! Whole epochs against a store whose requests fail: passing faults change no value, lasting ones
//! end in an error that names array and chunk, and nothing hangs.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use arrays::{ArrayBatch, ArraySamples, Error, SampleSpec, Variable};
use pipeline::{Pipeline, PipelineSpec, WhenDamaged};
use storage::{Config, OpenOptions, Storage};
use test_storage::{PRIVATE, Server, What};

use crate::chain;
use crate::oracle::{Compression, Stored, expected, write};

/// Longer than any time limit of [`Server::config`] with its tries.
const BOUND: Duration = Duration::from_mins(2);

/// 24 steps in 48 chunks that are files, or in 12 shards.
fn stored(is_sharded: bool) -> Stored {
    let codec = is_sharded.then_some(Compression::Zstd);
    let chunk = if is_sharded { vec![4, 1, 2] } else { vec![1, 1, 2] };
    Stored { shape: vec![24, 2, 2], chunk, is_sharded, codec }
}

/// The store in the folder `store` of the private bucket.
pub(crate) fn far(server: &Server, tries: u64) -> Arc<dyn Storage> {
    far_with(server, "vfs.s3.connect_max_tries", &tries.to_string())
}

fn far_with(server: &Server, parameter: &str, value: &str) -> Arc<dyn Storage> {
    let mut config: Config = server.config();
    config.insert(parameter.to_owned(), value.to_owned());
    let opened = storage::open(&format!("s3://{PRIVATE}/store"), &OpenOptions::new(&config));
    opened.unwrap().storage
}

fn store(server: &Server) -> std::path::PathBuf {
    server.bucket(PRIVATE).join("store")
}

fn open(storage: Arc<dyn Storage>, arrays: &[&str]) -> ArraySamples {
    let variables: Vec<Variable> = arrays.iter().map(|name| Variable::new(*name)).collect();
    let spec = SampleSpec { threads: 2, ..SampleSpec::new(variables) };
    ArraySamples::open(storage, &spec).unwrap()
}

fn spec(read_threads: usize) -> PipelineSpec {
    PipelineSpec {
        chunk_rows: 1,
        chunks_per_block: 4,
        batch_rows: 4,
        read_threads,
        prefetch_blocks: read_threads,
        ..PipelineSpec::default()
    }
}

/// Reads whole epochs and compares every value; returns the number of samples.
fn read_epochs(
    samples: ArraySamples,
    stored: &Stored,
    read_threads: usize,
    n_epochs: u64,
) -> Result<usize, Error> {
    let pipeline = Pipeline::new(Arc::new(samples), spec(read_threads), ArrayBatch::n_samples)?;
    let mut n_samples = 0;
    for epoch in pipeline.epochs(0..n_epochs) {
        for batch in epoch? {
            let batch = batch?;
            for variable in batch.variables() {
                let all = variable.values::<f64>()?;
                let each = all.chunks(all.len() / batch.n_samples());
                for (sample, values) in batch.samples().iter().zip(each) {
                    let step = pipeline.source().step(*sample);
                    assert_eq!(values, expected((&stored.shape, 0), &Variable::new("x"), step));
                }
            }
            n_samples += batch.n_samples();
        }
    }
    Ok(n_samples)
}

/// Runs `read` in a thread; panics if it has not returned after [`BOUND`].
fn bounded<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = channel();
    let thread = std::thread::spawn(move || drop(send.send(read())));
    let returned = receive.recv_timeout(BOUND).expect("the read hangs, or has panicked");
    thread.join().unwrap();
    returned
}

/// The error of reading an epoch of `fields` from a store with a lasting fault.
fn error_of(storage: Arc<dyn Storage>, stored: &Stored, read_threads: usize) -> String {
    let stored = stored.clone();
    let samples = open(storage, &["other", "fields"]);
    let read = bounded(move || read_epochs(samples, &stored, read_threads, 1));
    chain(&read.unwrap_err())
}

fn write_both(folder: &Path, stored: &Stored) {
    write(folder, "fields", stored);
    write(folder, "other", stored);
}

#[test]
fn passing_faults_change_no_value() {
    for is_sharded in [false, true] {
        let (server, stored) = (Server::start(), stored(is_sharded));
        write_both(&store(&server), &stored);
        for (seed, read_threads) in [(1, 0), (2, 2)] {
            let samples = open(far(&server, 8), &["fields", "other"]);
            server.seen();
            server.trouble(seed, 12);
            let stored = stored.clone();
            let read = bounded(move || read_epochs(samples, &stored, read_threads, 2));
            assert_eq!(read.map_err(|error| chain(&error)), Ok(2 * 24));
            server.heal();
            assert!(2 * 2 * 48 < server.seen().len(), "no request was sent again");
        }
    }
}

#[test]
fn lasting_faults_end_in_an_error_that_names_the_chunk() {
    for is_sharded in [false, true] {
        let (server, stored) = (Server::start(), stored(is_sharded));
        write_both(&store(&server), &stored);
        for read_threads in [0, 2] {
            for what in [What::Status(503), What::HangUp, What::CutBody, What::StallBody] {
                let storage = far(&server, 2);
                // One of two arrays that are read together fails, after a few good answers.
                let samples = open(storage, &["other", "fields"]);
                server.fault_after("store/fields/c/", 3, usize::MAX, what.clone());
                let of_read = stored.clone();
                let read = bounded(move || read_epochs(samples, &of_read, read_threads, 1));
                let error = chain(&read.unwrap_err());
                let parts = ["Zarr array fields", "chunk [", "store/fields/c/"];
                assert!(parts.iter().all(|part| error.contains(part)), "{what:?}: {error}");
                server.heal();
            }
        }
    }
}

#[test]
fn a_store_that_is_gone_ends_in_an_error() {
    for (is_sharded, read_threads) in [(false, 0), (true, 2)] {
        let (server, stored) = (Server::start(), stored(is_sharded));
        write_both(&store(&server), &stored);
        let storage = far(&server, 2);
        let samples = open(Arc::clone(&storage), &["other", "fields"]);
        server.refuse(Duration::from_hours(1));
        let of_read = stored.clone();
        let read = bounded(move || read_epochs(samples, &of_read, read_threads, 1));
        let error = chain(&read.unwrap_err());
        assert!(error.contains("Zarr array") && error.contains("chunk ["), "{error}");
    }
}

/// Skips damaged samples; returns how many batches came, how many samples were skipped, and the
/// error.
fn skipping(samples: ArraySamples) -> (usize, u64, Option<String>) {
    let spec = PipelineSpec { when_damaged: WhenDamaged::Skip, ..spec(1) };
    let pipeline = Pipeline::new(Arc::new(samples), spec, ArrayBatch::n_samples).unwrap();
    let mut epoch = pipeline.epoch(0).unwrap();
    let batches: Vec<Result<ArrayBatch, Error>> = epoch.by_ref().collect();
    let n_batches = batches.iter().filter(|batch| batch.is_ok()).count();
    let error = batches.into_iter().find_map(Result::err);
    (n_batches, epoch.n_skipped(), error.map(|error| chain(&error)))
}

#[test]
fn a_store_that_is_gone_is_not_skipped_but_a_chunk_that_it_refuses_is() {
    for is_sharded in [false, true] {
        let (server, stored) = (Server::start(), stored(is_sharded));
        write_both(&store(&server), &stored);
        let samples = || open(far(&server, 2), &["other", "fields"]);
        server.fault("store/fields/c/2/1/0", usize::MAX, What::Status(503));
        let n_in_file = if is_sharded { 4 } else { 1 };
        let of_chunk = samples();
        assert_eq!(bounded(move || skipping(of_chunk)), (6, n_in_file, None));

        let stalls = samples();
        server.fault("store/", usize::MAX, What::StallBody);
        let (n_batches, _, error) = bounded(move || skipping(stalls));
        assert!(n_batches == 0 && !error.unwrap().contains("one after another"));
        server.heal();

        let gone = samples();
        server.refuse(Duration::from_hours(1));
        let (n_batches, _, error) = bounded(move || skipping(gone));
        let error = error.unwrap();
        assert!(n_batches == 0 && error.contains("chunk ["), "{error}");
        assert!(!error.contains("one after another"), "{error}");
    }
}

#[test]
fn a_body_that_ends_early_is_read_again() {
    for is_sharded in [false, true] {
        let (server, stored) = (Server::start(), stored(is_sharded));
        write_both(&store(&server), &stored);
        let samples = open(far(&server, 4), &["fields"]);
        server.fault("store/fields/c/", 2, What::CutBody);
        let of_read = stored.clone();
        let read = bounded(move || read_epochs(samples, &of_read, 2, 1));
        assert_eq!(read.map_err(|error| chain(&error)), Ok(24));
    }
}

#[test]
fn a_shard_that_is_gone_is_no_fill_value() {
    let (server, stored) = (Server::start(), stored(true));
    write_both(&store(&server), &stored);
    let samples = open(far(&server, 2), &["fields"]);
    let file = store(&server).join("fields/c/2/1/0");
    // After its index was read: one request for its size, one for the index.
    let gone = What::First(Arc::new(move || std::fs::remove_file(&file).unwrap_or_default()));
    server.fault_after("store/fields/c/2/1/0", 2, 1, gone);
    let read = bounded(move || read_epochs(samples, &stored, 0, 1));
    let error = chain(&read.unwrap_err());
    assert!(error.contains("Zarr array fields") && error.contains("c/2/1/0"), "{error}");
}

#[test]
fn a_fault_of_one_array_is_not_blamed_on_another() {
    let (server, stored) = (Server::start(), stored(true));
    write_both(&store(&server), &stored);
    let storage = far(&server, 2);
    // After its index was read: its chunks are read together with those of the other array.
    server.fault_after("store/fields/c/0/0/0", 2, usize::MAX, What::Status(503));
    let error = error_of(storage, &stored, 0);
    assert!(error.contains("Zarr array fields") && !error.contains("array other"), "{error}");
}

#[test]
fn forbidden_chunks_are_missing_if_the_user_says_so() {
    let (server, stored) = (Server::start(), stored(false));
    write(&store(&server), "fields", &stored);
    let absent = "store/fields/c/3/1/0";
    std::fs::remove_file(store(&server).join(&absent["store/".len()..])).unwrap();
    let values = |storage| {
        let samples = Arc::new(open(storage, &["fields"]));
        let pipeline = Pipeline::new(samples, spec(0), ArrayBatch::n_samples).unwrap();
        let mut values: Vec<f64> = Vec::new();
        for batch in pipeline.epoch(0).unwrap() {
            let batch = batch.map_err(|error| chain(&error))?;
            for variable in batch.variables() {
                values.extend(variable.values::<f64>().unwrap().iter());
            }
        }
        Ok::<_, String>(values)
    };
    // As a bucket that answers 404.
    let missing = values(far(&server, 2)).unwrap();
    server.fault(absent, usize::MAX, What::Status(403));
    let error = values(far(&server, 2)).unwrap_err();
    assert!(error.contains(absent) && error.contains("soma.forbidden_is_missing=true"), "{error}");
    assert_eq!(values(far_with(&server, "soma.forbidden_is_missing", "true")), Ok(missing));
    // Wrong credentials are never missing objects.
    server.heal();
    server.fault(absent, usize::MAX, What::Status(401));
    assert!(values(far_with(&server, "soma.forbidden_is_missing", "true")).is_err());
}
