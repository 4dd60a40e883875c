//! Compares reads of random tables with libtiledb's, at every time of the table's history: rows,
//! schema, extent and number of rows.
//!
//! A seed determines the table and its history, as in `histories`: writes at any time, attributes
//! that are added, dropped and added again, deletions, consolidation, vacuuming, a growing current
//! domain. A longer run:
//!
//! ```text
//! SOMAFEED_RANDOM_TABLES=20000 SOMAFEED_RANDOM_SEED=1000000 \
//!     cargo test -p somafeed-tiledb-native --test tiledb-native tables -- --nocapture
//! ```
#![expect(clippy::print_stdout, reason = "a long run prints a summary")]

mod fixed;
mod history;
mod reads;
mod schema;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::histories::draw::Draw;
use super::histories::{context, folder, from_environment, has_deletes};
use crate::stored::write_stored;
use history::History;
use reads::Outcome;

const DEFAULT_TABLES: u64 = 150;
const DEFAULT_SEED: u64 = 0;
const MOST_FAILURES: usize = 5;

/// Counts of a run.
#[derive(Debug, Default)]
struct Tally {
    tables: u64,
    /// Tables whose schema libtiledb rejects.
    refused: u64,
    steps: u64,
    refused_steps: u64,
    opened: u64,
    /// Times at which rows had been deleted by condition.
    deleted: u64,
    equal: u64,
    rows: u64,
    declined: BTreeMap<String, u64>,
    unreadable: BTreeMap<String, u64>,
    disputed: u64,
    failures: Vec<String>,
}

/// Draws a table from `seed` and compares it at all times.
fn check(seed: u64, context: &tiledb::Context, tally: &mut Tally) {
    let folder = folder();
    let at = folder.path().join("table");
    let mut draw = Draw::new(seed);
    tally.tables += 1;
    let Ok(history) = History::make(&mut draw, context, &at) else {
        tally.refused += 1;
        return;
    };
    tally.steps += history.n_steps;
    tally.refused_steps += history.n_refused;
    let around = |time: u64| [time.checked_sub(1), Some(time), Some(time + 1)];
    let times = history.times.iter().copied().flat_map(around).flatten().map(Some);
    let mut times: Vec<Option<u64>> = times.chain([None]).collect();
    times.dedup();
    let mut difference = None;
    for time in times {
        tally.opened += 1;
        tally.deleted += u64::from(has_deletes(&at, time));
        let compare = || reads::compare(&mut draw, context, &at, time);
        match catch_unwind(AssertUnwindSafe(compare)) {
            Ok(Outcome::Equal(n_rows)) => {
                tally.equal += 1;
                tally.rows += n_rows;
            }
            Ok(Outcome::Declined(reason)) => *tally.declined.entry(reason).or_default() += 1,
            Ok(Outcome::Unreadable(error)) => *tally.unreadable.entry(error).or_default() += 1,
            Ok(Outcome::Disputed) => tally.disputed += 1,
            Ok(Outcome::Differs(what)) => difference = Some((time, what)),
            Err(_) => difference = Some((time, "a panic".to_owned())),
        }
        if difference.is_some() {
            break;
        }
    }
    if let Some((time, what)) = difference {
        let (kept, log) = (folder.keep(), &history.log);
        let kept = kept.display();
        tally.failures.push(format!("seed {seed}, at {time:?}: {what}\nkept in {kept}\n{log}"));
    }
}

/// Deletions by tiledbsoma, some of them consolidated, at every time.
#[test]
fn stored_deletes_are_read_as_libtiledb_reads_them() {
    let folder = folder();
    write_stored("table-deleted", folder.path());
    let (context, mut draw) = (context(), Draw::new(7));
    for time in (1..11).map(Some).chain([None]) {
        for _ in 0..5 {
            match reads::compare(&mut draw, &context, folder.path(), time) {
                Outcome::Equal(_) => {}
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
    let n_tables = from_environment("SOMAFEED_RANDOM_TABLES", DEFAULT_TABLES);
    let first = from_environment("SOMAFEED_RANDOM_SEED", DEFAULT_SEED);
    let context = context();
    let mut tally = Tally::default();
    for seed in first..first + n_tables {
        check(seed, &context, &mut tally);
        if tally.failures.len() >= MOST_FAILURES {
            break;
        }
    }
    println!("{tally:#?}");
    let (failures, n_tables) = (&tally.failures, tally.tables);
    assert!(
        failures.is_empty(),
        "{} of {n_tables} tables differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
    if n_tables >= 100 {
        // Otherwise too little would be compared.
        assert!(tally.equal * 10 > tally.opened * 7, "{tally:?}");
        assert!(tally.deleted * 8 > tally.opened, "{tally:?}");
        assert!(tally.rows > 10 * tally.equal && tally.refused * 4 < tally.tables, "{tally:?}");
        assert!(tally.refused_steps * 4 < tally.steps, "{tally:?}");
        assert!(tally.disputed * 50 < tally.opened, "{tally:?}");
    }
}
