//! A soak: all kinds of samples in one process, for as long as is asked.
//!
//! Each round takes an epoch of one kind under random settings, from a folder or from a server that
//! fails: cells of SOMA and of AnnData, fields, image cubes, sequences. The epoch is left early and
//! resumed, by other numbers of ranks, until it is complete. Each sample must come once with its
//! values, and memory, threads and descriptors must not grow.
//!
//! ```text
//! SOMAFEED_SOAK_MINUTES=60 cargo xtask test -p somafeed --test somafeed soak -- --nocapture
//! ```
//!
//! prints a line each minute. `SOMAFEED_SOAK_SEED` draws other rounds; by default it is 1.

mod kinds;
mod process;
mod rounds;
mod stored;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;

use self::process::Watch;
use self::rounds::{Counts, Soak, below};

const MINUTES: &str = "SOMAFEED_SOAK_MINUTES";
const SEED: &str = "SOMAFEED_SOAK_SEED";
/// Set in the process of the soak.
const IS_SOAK: &str = "SOMAFEED_SOAK_PROCESS";
/// Without [`MINUTES`].
const QUICK: Duration = Duration::from_secs(20);
/// Longer than any round takes beyond the end.
const PATIENCE: Duration = Duration::from_mins(5);

#[test]
fn each_sample_comes_once_in_a_process_that_does_not_grow() {
    if std::env::var_os(IS_SOAK).is_some() {
        return soak();
    }
    let quick = std::env::var_os(MINUTES).is_none();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["soak::each_sample_comes_once_in_a_process_that_does_not_grow", "--exact"])
        .arg("--nocapture")
        .env(IS_SOAK, "1")
        .stdout(if quick { Stdio::null() } else { Stdio::inherit() })
        .spawn()
        .unwrap();
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "the soak ended with {status}");
            return;
        }
        if duration() + PATIENCE < started.elapsed() {
            child.kill().unwrap();
            panic!("a round of the soak hangs");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn number(variable: &str) -> Option<f64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

fn duration() -> Duration {
    number(MINUTES).map_or(QUICK, |minutes| Duration::from_secs_f64(60.0 * minutes))
}

#[expect(clippy::print_stdout, reason = "a line each minute")]
fn soak() {
    let seed = number(SEED).map_or(1, |seed| seed as u64);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut counts = Counts::default();
    // zarrs starts idle threads of rayon, which stay, when the first array is opened.
    let soak = Soak::new();
    let mut watch = Watch::start(duration());
    println!("soak of {:?} with seed {seed}: {}", duration(), watch.machine());
    let mut minute = 1;
    while watch.elapsed() < duration() {
        let kind = below(&mut random, soak.n_kinds());
        soak.round(kind, &mut random, &mut counts).unwrap_or_else(|problem| {
            panic!("round {} of seed {seed}: {problem}", counts.n_rounds())
        });
        watch.note();
        if Duration::from_secs(60 * minute) <= watch.elapsed() {
            println!("minute {minute}: {counts}; {}", Watch::now());
            minute += 1;
        }
    }
    println!("end: {counts}; {}", Watch::now());
    let verdict = watch.verdict();
    println!("{verdict}");
    assert!(counts.n_failures > 0, "no store failed");
    assert!(verdict.is_good(), "{verdict}");
}
