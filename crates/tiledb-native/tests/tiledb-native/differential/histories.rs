//! Compares reads of random arrays with libtiledb's, at every time of the array's history.
//!
//! A seed determines the array and its history: writes at any time, consolidation (of all
//! fragments, of those in a time window, or of some by name), vacuuming, deletions, a growing
//! shape, attributes that are added and dropped. The array is then opened at every time at which
//! something happened, one millisecond before and one after, and read in several ways. Each read
//! must return libtiledb's cells.
//!
//! The default is 300 arrays. A longer run, with other seeds and a summary at its end:
//!
//! ```text
//! SOMAFEED_RANDOM_ARRAYS=20000 SOMAFEED_RANDOM_SEED=1000000 \
//!     cargo test -p somafeed-tiledb-native --test tiledb-native histories -- --nocapture
//! ```
//!
//! Array `n` of a run has the seed plus `n`. A failure prints that number, the array's history, and
//! the folder where the array is kept. Running one array with that seed makes it again, except for
//! the random names of fragments, which order fragments of equal time. If libtiledb itself crashes,
//! `SOMAFEED_RANDOM_TRACE=1` prints each step as it is done.
#![expect(clippy::print_stdout, reason = "a long run prints a summary")]

mod array;
pub(super) mod draw;
pub(super) mod filters;
mod reads;
mod schema;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use storage::LocalStorage;
use tiledb::{Config, Context};

use crate::stored::write_stored;
use array::History;
pub(super) use array::is_traced;
use draw::Draw;
use reads::Outcome;
pub(super) use reads::described_equally;

const DEFAULT_ARRAYS: u64 = 300;
const DEFAULT_SEED: u64 = 0;
/// Number of failures after which a run ends.
const MOST_FAILURES: usize = 10;

/// Counts of a run.
#[derive(Debug, Default)]
struct Tally {
    arrays: u64,
    /// Arrays whose schema libtiledb rejects.
    refused: u64,
    steps: u64,
    /// Writes and other steps that libtiledb rejects.
    refused_steps: u64,
    /// Arrays that were never read, at any time.
    never_read: u64,
    opened: u64,
    /// Times at which cells had been deleted by condition.
    deleted: u64,
    equal: u64,
    declined: BTreeMap<String, u64>,
    unreadable: BTreeMap<String, u64>,
    disputed: u64,
    failures: Vec<String>,
}

impl Tally {
    /// Percentage of opens that were left to libtiledb.
    fn declined_percent(&self) -> f64 {
        let declined: u64 = self.declined.values().sum();
        100.0 * declined as f64 / self.opened.max(1) as f64
    }
}

pub(super) fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A context with one thread and little memory, because each consolidation allocates a part of its
/// budget.
pub(super) fn context() -> Context {
    let parameters = [
        ("sm.compute_concurrency_level", "1"),
        ("sm.io_concurrency_level", "1"),
        ("sm.mem.total_budget", "16777216"),
    ];
    let config: Config =
        parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Context::new(&config).unwrap()
}

/// A folder in memory, if the machine has one.
pub(super) fn folder() -> tempfile::TempDir {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() {
        tempfile::tempdir_in(shared).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

/// Draws an array from `seed` and compares it at all times.
fn check(seed: u64, context: &Context, tally: &mut Tally) {
    let folder = folder();
    let at = folder.path().join("array");
    let mut draw = Draw::new(seed);
    tally.arrays += 1;
    let Ok(history) = History::make(&mut draw, context, &at) else {
        tally.refused += 1;
        return;
    };
    tally.steps += history.n_steps;
    tally.refused_steps += history.n_refused;
    let around = |time: u64| [time.checked_sub(1), Some(time), Some(time + 1)];
    let mut times: Vec<Option<u64>> =
        history.times.iter().copied().flat_map(around).flatten().map(Some).collect();
    times.push(None);
    times.dedup();
    let (mut was_read, mut difference) = (false, None);
    for time in times {
        tally.opened += 1;
        let compared =
            catch_unwind(AssertUnwindSafe(|| reads::compare(&mut draw, context, &at, time)));
        tally.deleted += u64::from(has_deletes(&at, time));
        match compared {
            Ok(Outcome::Equal) => {
                tally.equal += 1;
                was_read = true;
            }
            Ok(Outcome::Declined(reason)) => reads::count_reason(&mut tally.declined, &reason),
            Ok(Outcome::Unreadable(error)) => reads::count_error(&mut tally.unreadable, &error),
            Ok(Outcome::Disputed) => tally.disputed += 1,
            Ok(Outcome::Differs(what)) => difference = Some((time, what)),
            Err(_) => difference = Some((time, "a panic".to_owned())),
        }
        if difference.is_some() {
            break;
        }
    }
    if let Some((time, what)) = difference {
        let kept = folder.keep();
        let log = &history.log;
        tally
            .failures
            .push(format!("seed {seed}, at {time:?}: {what}\nkept in {}\n{log}", kept.display()));
    }
    tally.never_read += u64::from(!was_read);
}

/// Whether a delete commit counts at `time`.
pub(super) fn has_deletes(at: &Path, time: Option<u64>) -> bool {
    tiledb_native::has_conditions(Arc::new(LocalStorage::new(at)), time).unwrap()
}

/// Deletions by tiledbsoma, some of them consolidated, at every time.
#[test]
fn stored_deletes_are_read_as_libtiledb_reads_them() {
    let folder = folder();
    write_stored("matrix-deleted", folder.path());
    let (context, mut draw) = (context(), Draw::new(7));
    for time in (0..11).map(Some).chain([None]) {
        for _ in 0..5 {
            match reads::compare(&mut draw, &context, folder.path(), time) {
                Outcome::Equal => {}
                Outcome::Declined(what) | Outcome::Unreadable(what) | Outcome::Differs(what) => {
                    panic!("at {time:?}: {what}")
                }
                Outcome::Disputed => panic!("at {time:?}: disputed"),
            }
        }
    }
}

#[test]
fn read_as_libtiledb_reads_at_every_time() {
    let n_arrays = from_environment("SOMAFEED_RANDOM_ARRAYS", DEFAULT_ARRAYS);
    let first = from_environment("SOMAFEED_RANDOM_SEED", DEFAULT_SEED);
    let (context, started) = (context(), Instant::now());
    let mut tally = Tally::default();
    for seed in first..first + n_arrays {
        if is_traced() {
            println!("seed {seed}");
        }
        check(seed, &context, &mut tally);
        if tally.failures.len() >= MOST_FAILURES {
            break;
        }
        if tally.arrays.is_multiple_of(1000) {
            let (n_failures, seconds) = (tally.failures.len(), started.elapsed().as_secs());
            println!("{} arrays in {seconds} s, {n_failures} differ", tally.arrays);
        }
    }
    println!("{:.1?}, {:.1} % declined: {tally:#?}", started.elapsed(), tally.declined_percent());
    assert!(
        tally.failures.is_empty(),
        "{} of {} arrays differ:\n{}",
        tally.failures.len(),
        tally.arrays,
        tally.failures.join("\n")
    );
    if n_arrays >= 100 {
        // Otherwise too little would be compared.
        assert!(tally.declined_percent() < 40.0);
        assert!(tally.deleted * 8 > tally.opened);
        assert!(tally.refused_steps * 4 < tally.steps);
        assert!(tally.refused * 4 < tally.arrays && tally.never_read * 4 < tally.arrays);
        assert!(tally.unreadable.values().sum::<u64>() * 50 < tally.opened);
        assert!(tally.disputed * 50 < tally.opened);
    }
}
