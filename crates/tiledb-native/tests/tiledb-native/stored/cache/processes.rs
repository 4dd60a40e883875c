//! Caches that several processes fill at once, that a killed process left, and whose disk is full.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use storage::{CacheStats, CachedStorage};
use tiledb_native::is_in_fragment;

use super::behind::Behind;
use super::{BLOCK, BLOCK_COST, blocks, cached, check_read, in_fragment};

/// The variable with the cache to fill, for a test that is restarted as a separate process.
const FOLDER: &str = "TILEDB_NATIVE_TEST_CACHE";

const FILE_BLOCKS: u64 = 200;

fn folder_to_fill() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Runs this test again as a process that fills the cache in `folder`, started by the command
/// `through`, if any.
fn again(test: &str, folder: &Path, through: &[&str]) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = match through {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    command
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Reads random ranges of a file for this long, and until blocks were found and evicted, and checks
/// each.
fn fill(folder: &Path, n_blocks: u64, n_threads: u64, millis: u64) -> CacheStats {
    let file = in_fragment("a0.tdb");
    let behind = Behind::new([(file.as_str(), FILE_BLOCKS * BLOCK)]);
    let storage = cached(&behind, folder, n_blocks);
    let end = Instant::now() + Duration::from_millis(millis);
    // On a machine with much else to do, few blocks may be written in that time.
    let at_last = end + Duration::from_mins(1);
    let goes_on = || {
        let CacheStats { hits, evictions, .. } = storage.stats();
        let now = Instant::now();
        now < end || (now < at_last && (hits == 0 || evictions == 0))
    };
    std::thread::scope(|scope| {
        for thread in 0..n_threads {
            let (storage, file, goes_on) = (&storage, &file, &goes_on);
            let mut at = thread + u64::from(std::process::id());
            scope.spawn(move || {
                while goes_on() {
                    at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                    let start = (at >> 33) % ((FILE_BLOCKS - 8) * BLOCK);
                    check_read(storage, file, &[start..start + (at >> 20) % (8 * BLOCK)]);
                }
            });
        }
    });
    storage.stats()
}

/// Bytes of all files of a cache, finished or not.
fn taken(folder: &Path) -> u64 {
    let mut taken = 0;
    let mut folders = vec![folder.join("blocks"), folder.join("unfinished")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            // It may have been removed by now.
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => taken += metadata.len().div_ceil(4096) * 4096,
                Err(_) => {}
            }
        }
    }
    taken
}

#[track_caller]
fn check_success(status: ExitStatus) {
    assert!(status.success(), "{status}");
}

#[test]
fn two_fill_it_at_once_within_its_limit() {
    const LIMIT_BLOCKS: u64 = 40;
    if let Some(folder) = folder_to_fill() {
        let stats = fill(&folder, LIMIT_BLOCKS, 2, 1500);
        assert!(stats.evictions > 0 && stats.hits > 0 && stats.damaged == 0, "{stats:?}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "stored::cache::processes::two_fill_it_at_once_within_its_limit";
    let mut children = [again(test, folder.path(), &[]), again(test, folder.path(), &[])];
    let mut most = 0;
    let statuses = loop {
        most = most.max(taken(folder.path()));
        let ended = children.each_mut().map(|child| child.try_wait().unwrap());
        if let [Some(one), Some(other)] = ended {
            break [one, other];
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    statuses.into_iter().for_each(check_success);
    // Each thread is writing a block; and files that are renamed or removed during the listing
    // count twice or late.
    assert!(most > LIMIT_BLOCKS / 2 * BLOCK_COST, "{most}");
    assert!(most <= (LIMIT_BLOCKS + 4 + LIMIT_BLOCKS / 4) * BLOCK_COST, "{most}");
    assert!(taken(folder.path()) <= LIMIT_BLOCKS * BLOCK_COST);
    // Nothing unfinished is left, and every block is complete.
    assert_eq!(std::fs::read_dir(folder.path().join("unfinished")).unwrap().count(), 0);
    let stats = read_all(folder.path(), 1000);
    assert_eq!(stats.damaged, 0);
    assert!(stats.hits > LIMIT_BLOCKS / 2, "{stats:?}");
}

/// Reads the whole file once, and checks it.
fn read_all(folder: &Path, n_blocks: u64) -> CacheStats {
    let file = in_fragment("a0.tdb");
    let behind = Behind::new([(file.as_str(), FILE_BLOCKS * BLOCK)]);
    let storage: CachedStorage = cached(&behind, folder, n_blocks);
    check_read(&storage, &file, &[0..FILE_BLOCKS * BLOCK]);
    storage.stats()
}

#[test]
fn one_that_is_killed_leaves_nothing_wrong() {
    const LIMIT_BLOCKS: u64 = 60;
    if let Some(folder) = folder_to_fill() {
        fill(&folder, LIMIT_BLOCKS, 3, 60_000);
        panic!("this process was to be killed");
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "stored::cache::processes::one_that_is_killed_leaves_nothing_wrong";
    let mut n_hits = 0;
    for round in 0..8_u32 {
        let mut child = again(test, folder.path(), &[]);
        let started = Instant::now();
        // Killed some time after it began: a different moment each time.
        while std::fs::read_dir(folder.path().join("unfinished"))
            .map_or(0, |writers| writers.flatten().filter(|writer| busy(&writer.path())).count())
            == 0
        {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            assert!(started.elapsed() < Duration::from_mins(1), "it wrote nothing");
        }
        std::thread::sleep(Duration::from_millis(u64::from(round) * 7));
        child.kill().unwrap();
        child.wait().unwrap();
        let before = blocks(folder.path()).len() as u64;
        let stats = read_all(folder.path(), LIMIT_BLOCKS);
        assert_eq!((stats.damaged, stats.not_kept), (0, 0), "round {round}: {stats:?}");
        assert_eq!(stats.hits, before, "round {round}: {stats:?}");
        n_hits += before;
        assert_eq!(std::fs::read_dir(folder.path().join("unfinished")).unwrap().count(), 0);
        assert!(taken(folder.path()) <= LIMIT_BLOCKS * BLOCK_COST);
    }
    assert!(n_hits > 0);
}

/// Whether a writer's folder contains more than its lock.
fn busy(writer: &Path) -> bool {
    std::fs::read_dir(writer).is_ok_and(|files| files.count() > 1)
}

#[test]
fn a_full_disk_is_said_and_reading_goes_on() {
    if let Some(folder) = folder_to_fill() {
        let file = in_fragment("a0.tdb");
        let behind = Behind::new([(file.as_str(), 40 << 16)]);
        let spec = storage::CacheSpec {
            block_bytes: 1 << 16,
            ..storage::CacheSpec::new(&folder, 1 << 30)
        };
        let storage = CachedStorage::new(behind, &spec, is_in_fragment).unwrap();
        for _ in 0..2 {
            check_read(&storage, &file, &[5..40 << 16]);
        }
        let stats = storage.stats();
        assert_eq!((stats.hits, stats.misses, stats.not_kept), (0, 80, 80), "{stats:?}");
        let problem = storage.problem().unwrap();
        assert!(problem.starts_with("could not keep a block in /"), "{problem}");
        assert!(problem.contains("File too large"), "{problem}");
        assert_eq!(taken(&folder), 0);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "stored::cache::processes::a_full_disk_is_said_and_reading_goes_on";
    // Files are limited to 16 KiB: writing more fails halfway, like on a full disk.
    let small_files = ["sh", "-c", "trap '' XFSZ && ulimit -f 32 && exec \"$0\" \"$@\""];
    check_success(again(test, folder.path(), &small_files).wait().unwrap());
    assert_eq!(blocks(folder.path()), Vec::<PathBuf>::new());
}
