//! One round: an epoch in pieces, under random settings.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::thread;

use link::{BUCKET, LinkFaults, LinkServer, ServeOptions};
use loader::{Budget, LoaderState, Order, Remainder, World};
use pipeline::PipelineSpec;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;
use tempfile::TempDir;

use super::kinds::{Beginning, Kind, Sample, all};

/// Failures in a round after which its server fails no more.
const MAX_FAILURES: usize = 8;

/// The data of all kinds, and what each sample is.
pub(crate) struct Soak {
    folder: TempDir,
    kinds: Vec<(Box<dyn Kind>, Vec<u64>)>,
}

/// Rounds, samples and failures so far.
#[derive(Default)]
pub(crate) struct Counts {
    rounds: BTreeMap<&'static str, u64>,
    n_samples: u64,
    n_pieces: u64,
    pub(crate) n_failures: u64,
}

impl Counts {
    pub(crate) fn n_rounds(&self) -> u64 {
        self.rounds.values().sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_samples, n_pieces, n_failures, .. } = self;
        write!(f, "{} rounds (", self.n_rounds())?;
        let kinds: Vec<String> =
            self.rounds.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        write!(f, "{}) in {n_pieces} pieces, {n_samples} samples, ", kinds.join(", "))?;
        write!(f, "{n_failures} failures of stores")
    }
}

/// A random number from 0 on.
pub(crate) fn below(random: &mut ChaCha8Rng, bound: u64) -> u64 {
    random.next_u64() % bound
}

fn one_of<T: Copy>(random: &mut ChaCha8Rng, choices: &[T]) -> T {
    choices[below(random, choices.len() as u64) as usize]
}

/// The folder, or a server over it.
pub(crate) enum Place<'a> {
    Folder(&'a Path),
    Server(Box<LinkServer>),
}

impl Place<'_> {
    /// The address of a file or folder of the data, and the settings with which it is read.
    pub(crate) fn address(&self, name: &str) -> (String, BTreeMap<String, String>) {
        match self {
            Self::Folder(folder) => (folder.join(name).display().to_string(), BTreeMap::new()),
            Self::Server(server) => {
                let mut config = server.config();
                // So few tries that some reads fail.
                config.insert("vfs.s3.connect_max_tries".to_owned(), "2".to_owned());
                config.insert("soma.retry_limit_ms".to_owned(), "100".to_owned());
                (format!("s3://{BUCKET}/{name}"), config)
            }
        }
    }

    fn can_fail(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

/// The settings that stay the same in all pieces of a round.
struct Settings {
    spec: PipelineSpec,
    worlds: Vec<u64>,
    global_batch_rows: u64,
    epoch: u64,
    /// Each rank is like a process, which has as much.
    memory: Option<u64>,
}

impl Settings {
    fn draw(random: &mut ChaCha8Rng) -> Self {
        // Equal blocks and batches, as rings of memory need.
        let is_even = below(random, 3) == 0;
        let worlds =
            if is_even { vec![1] } else { one_of(random, &[&[1][..], &[1, 2, 3, 4]]).to_vec() };
        let global_batch_rows = one_of(random, &[12, 24, 48]);
        let remainder = match worlds.len() {
            1 => one_of(random, &[Remainder::Short, Remainder::Drop, Remainder::Pad]),
            _ => one_of(random, &[Remainder::Drop, Remainder::Pad]),
        };
        let limit = one_of(random, &[None, Some(1 << 30)]);
        let spec = PipelineSpec {
            chunk_rows: if is_even { 1 } else { one_of(random, &[1, 2, 5, 16]) },
            chunks_per_block: if is_even { global_batch_rows } else { one_of(random, &[2, 7, 16]) },
            ramp_blocks: if is_even { 0 } else { one_of(random, &[0, 2]) },
            order: one_of(random, &[Order::Shuffled, Order::Shuffled, Order::InOrder]),
            seed: random.next_u64(),
            remainder,
            prefetch_blocks: one_of(random, &[0, 1, 3]),
            read_threads: one_of(random, &[0, 1, 2]),
            prefetch_batches: one_of(random, &[0, 1, 3]),
            keep_bytes: limit.map(|bytes| bytes / 8),
            ..PipelineSpec::default()
        };
        Self { spec, worlds, global_batch_rows, epoch: below(random, 1000), memory: limit }
    }

    /// Fails unless the samples that were seen are those of this number of global batches.
    fn check_complete(&self, seen: &[u32], n_batches: u64) -> Result<(), String> {
        let count = |n: u32| seen.iter().filter(|one| **one == n).count();
        let (n_missing, n_once) = (count(0), count(1));
        let n_expected = match self.spec.remainder {
            Remainder::Drop => (n_batches * self.global_batch_rows) as usize,
            Remainder::Pad | Remainder::Short => seen.len(),
        };
        if n_once == n_expected && n_once + n_missing == seen.len() {
            return Ok(());
        }
        Err(format!("{n_missing} samples missing, {n_once} once of {}", seen.len()))
    }

    fn of_rank(&self, rank: u64, size: u64) -> PipelineSpec {
        PipelineSpec {
            world: World { rank, size },
            batch_rows: self.global_batch_rows / size,
            memory: self.memory.map_or_else(Budget::unlimited, Budget::new),
            ..self.spec.clone()
        }
    }
}

/// The batches of one rank in one piece of an epoch.
struct OfRank {
    batches: Vec<Vec<Sample>>,
    /// The place after the last batch, and the number of all global batches; `None` if the epoch
    /// did not begin.
    end: Option<(LoaderState, u64)>,
    failure: Option<String>,
}

impl OfRank {
    /// Takes batches up to this global batch, and leaves the epoch.
    fn take(
        (kind, place, variety): (&dyn Kind, &Place<'_>, u64),
        spec: &PipelineSpec,
        beginning: Beginning<'_>,
        n_batches: u64,
    ) -> Self {
        let mut batches = Vec::new();
        let mut running = match kind.begin(place, spec, variety, beginning) {
            Ok(running) => running,
            Err(failure) => return Self { batches, end: None, failure: Some(failure) },
        };
        let mut failure = None;
        while (batches.len() as u64) < n_batches {
            match running.next_batch() {
                Some(Ok(batch)) => batches.push(batch),
                Some(Err(text)) => failure = Some(text),
                None => break,
            }
        }
        Self { batches, end: Some((running.place(), running.n_all())), failure }
    }
}

impl Soak {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kinds = all(folder.path()).into_iter().map(|kind| {
            let expected = expected(&*kind, folder.path());
            (kind, expected)
        });
        Self { kinds: kinds.collect(), folder }
    }

    pub(crate) fn n_kinds(&self) -> u64 {
        self.kinds.len() as u64
    }

    /// An epoch of a kind.
    pub(crate) fn round(
        &self,
        kind: u64,
        random: &mut ChaCha8Rng,
        counts: &mut Counts,
    ) -> Result<(), String> {
        let (kind, expected) = &self.kinds[kind as usize];
        let settings = Settings::draw(random);
        let faults = draw_faults(random);
        let mut place = self.place(faults.as_deref());
        let mut seen = vec![0_u32; expected.len()];
        let (mut state, mut n_done, mut n_all, mut n_failures) = (None, 0, None, 0);
        while n_all.is_none_or(|n_all| n_done < n_all) {
            let left = n_all.map_or(8, |n_all| n_all - n_done);
            let n_batches = if below(random, 3) == 0 { u64::MAX } else { 1 + below(random, left) };
            let size = one_of(random, &settings.worlds);
            let (variety, at_once) = (random.next_u64(), below(random, 2) == 0);
            let take = |rank: u64| {
                let beginning = state.as_ref().map_or(Beginning::Of(settings.epoch), Beginning::At);
                let from = (&**kind, &place, variety);
                OfRank::take(from, &settings.of_rank(rank, size), beginning, n_batches)
            };
            let ranks: Vec<OfRank> = if at_once {
                thread::scope(|scope| {
                    let take = &take;
                    let ranks: Vec<_> =
                        (0..size).map(|rank| scope.spawn(move || take(rank))).collect();
                    ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
                })
            } else {
                (0..size).map(take).collect()
            };
            counts.n_pieces += 1;
            // All ranks go on from the batch that all have.
            let n_common = ranks.iter().map(|rank| rank.batches.len()).min().unwrap_or(0);
            for rank in &ranks {
                check(rank, expected, place.can_fail(), kind.name())?;
                let samples = rank.batches[..n_common].iter().flatten();
                samples.filter(|one| !one.is_padding).for_each(|one| seen[one.row as usize] += 1);
            }
            n_done += n_common as u64;
            if let Some((end, n)) = ranks.iter().find_map(|rank| rank.end.as_ref()) {
                state = Some(end.before(n_done));
                n_all = Some(*n);
            }
            if ranks.iter().any(|rank| rank.failure.is_some()) {
                n_failures += 1;
                counts.n_failures += 1;
                place = self.after_failure(place, n_failures);
            }
        }
        counts.n_samples += seen.iter().map(|n| u64::from(*n)).sum::<u64>();
        *counts.rounds.entry(kind.name()).or_default() += 1;
        settings.check_complete(&seen, n_done).map_err(|problem| {
            format!("{}, faults {faults:?}: {problem}; {:?}", kind.name(), settings.spec)
        })
    }

    fn place(&self, faults: Option<&str>) -> Place<'_> {
        let Some(faults) = faults else { return Place::Folder(self.folder.path()) };
        let options = ServeOptions {
            spec: "0ms".parse().unwrap(),
            faults: faults.parse().unwrap(),
            name: String::new(),
        };
        let server = LinkServer::start_with(self.folder.path(), &options).unwrap();
        Place::Server(Box::new(server))
    }

    /// The place for another try: faults that last begin again, and end after some tries.
    fn after_failure<'a>(&'a self, place: Place<'a>, n_failures: usize) -> Place<'a> {
        match place {
            Place::Server(_) if MAX_FAILURES <= n_failures => self.place(Some("seed=0")),
            Place::Server(server) => {
                LinkFaults::restart(&server.address().to_string()).unwrap();
                Place::Server(server)
            }
            place @ Place::Folder(_) => place,
        }
    }
}

/// Faults of a server, as text; `None` in half of the rounds, which read from the folder.
fn draw_faults(random: &mut ChaCha8Rng) -> Option<String> {
    if below(random, 2) == 0 {
        return None;
    }
    let mut faults = vec![format!("seed={}", below(random, 1 << 30))];
    for (name, choices) in [
        ("refused", &["1/4", "1/20"][..]),
        ("slow", &["1/10:20ms", "1/50:200ms"]),
        ("cut", &["1/5", "1/30"]),
        ("storm", &["20:5", "100:30"]),
        ("replaced", &["10", "100"]),
        ("expired", &["15", "150"]),
    ] {
        if below(random, 4) == 0 {
            faults.push(format!("{name}={}", one_of(random, choices)));
        }
    }
    Some(faults.join(","))
}

/// Fails unless each sample is what it should be, and each failure that of a store.
fn check(rank: &OfRank, expected: &[u64], can_fail: bool, kind: &str) -> Result<(), String> {
    for sample in rank.batches.iter().flatten() {
        if expected.get(sample.row as usize) != Some(&sample.digest) {
            return Err(format!("{kind}: sample {} has other values", sample.row));
        }
    }
    match &rank.failure {
        Some(text) if !can_fail || text.contains("panic") => Err(format!("{kind}: {text}")),
        _ => Ok(()),
    }
}

/// What each sample is, read in order from the folder.
fn expected(kind: &dyn Kind, folder: &Path) -> Vec<u64> {
    let spec = PipelineSpec { batch_rows: 10, order: Order::InOrder, ..PipelineSpec::default() };
    let place = Place::Folder(folder);
    let from = (kind, &place, 0);
    let rank = OfRank::take(from, &spec, Beginning::Of(0), u64::MAX);
    assert_eq!(rank.failure, None);
    let samples: Vec<&Sample> = rank.batches.iter().flatten().collect();
    assert!(samples.iter().map(|one| one.row).eq(0..samples.len() as u64), "{}", kind.name());
    let digests: Vec<u64> = samples.iter().map(|one| one.digest).collect();
    let mut different = digests.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), digests.len(), "{}", kind.name());
    digests
}
