//! Runs that end early, and those that go on with what they left.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fields::Error;
use fields::relayout::{Length, RelayoutEvent, RelayoutSpec};

use super::same::levels;
use super::{files, lay_out, names, watched};

/// Names the working folder for this test, restarted as a separate process.
const FOLDER: &str = "FIELDS_RELAYOUT_TEST_FOLDER";
const TEST: &str = "relayout::unfinished::a_killed_run_never_looks_whole_and_the_next_one_goes_on";

fn spec() -> RelayoutSpec {
    let one = |name: &str, n| (name.to_owned(), Length::Indices(n));
    RelayoutSpec {
        chunks: vec![one("d0", 1), one("d1", 1)],
        shards: vec![one("d0", 4)],
        n_threads: 3,
        ..RelayoutSpec::default()
    }
}

#[test]
fn a_killed_run_never_looks_whole_and_the_next_one_goes_on() {
    if let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) {
        lay_out(&folder.join("from"), &folder.join("to"), &spec()).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [from, to, other] = ["from", "to", "other"].map(|name| folder.path().join(name));
    levels(200).write(&from);
    let whole = lay_out(&from, &other, &spec()).unwrap();
    let expected = files(&other);
    let (mut n_killed, mut n_resumed) = (0, 0);
    for millis in [5, 20, 60, 100, 140, 200, 350, 500] {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST])
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        let ended = child.try_wait().unwrap().is_some();
        if !ended {
            child.kill().unwrap();
            n_killed += 1;
        }
        child.wait().unwrap();
        if to.exists() {
            assert_eq!(files(&to), expected);
            std::fs::remove_dir_all(&to).unwrap();
        } else {
            assert!(!ended, "a run that was not killed ended with nothing");
            // A file that has its name is whole.
            let begun = folder.path().join("to.partial/experiment");
            for (name, bytes) in if begun.exists() { files(&begun) } else { Vec::new() } {
                if name.starts_with("v/c/") && !name.ends_with(".partial") {
                    assert!(expected.contains(&(name.clone(), bytes)), "{name}");
                }
            }
            // What is written wholly is not read again.
            if millis % 20 == 0 {
                let report = lay_out(&from, &to, &spec()).unwrap();
                n_resumed += u64::from(report.resumed && report.n_decoded < whole.n_decoded);
                assert_eq!(files(&to), expected);
                std::fs::remove_dir_all(&to).unwrap();
            }
        }
        assert!(names(folder.path()).iter().all(|name| name != "to"), "{millis}");
    }
    assert!(n_killed > 0, "every run was over before it could be killed");
    assert!(n_resumed > 0, "no run went on with what a killed one had written");
    let left = names(folder.path());
    lay_out(&from, &to, &spec()).unwrap();
    assert_eq!(
        (files(&to), names(folder.path())),
        (expected, vec!["from".to_owned(), "other".to_owned(), "to".to_owned()]),
        "{left:?}"
    );
}

/// Copies until as many chunks are written, and is interrupted then.
fn interrupted_after(from: &Path, to: &Path, n: u64, spec: RelayoutSpec) -> Error {
    let stop: &'static AtomicBool = Box::leak(Box::default());
    let spec = RelayoutSpec { interrupted: Some(stop), n_threads: 1, ..spec };
    watched(from, to, &spec, &mut |event| {
        if let RelayoutEvent::Written { n_chunks } = event
            && n <= n_chunks
        {
            stop.store(true, Ordering::Relaxed);
        }
    })
    .unwrap_err()
}

#[test]
fn an_interrupted_run_goes_on_with_the_next_block() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to, other] = ["from", "to", "other"].map(|name| folder.path().join(name));
    levels(40).write(&from);
    lay_out(&from, &other, &spec()).unwrap();
    for n in [9 * 4, 21 * 4] {
        let error = interrupted_after(&from, &to, n, spec());
        assert!(matches!(error, Error::Interrupted), "{error}");
        assert_eq!(names(folder.path()), ["from", "other", "to.partial"]);
    }
    // 5 blocks of 4 steps are whole.
    let report = lay_out(&from, &to, &spec()).unwrap();
    assert_eq!((report.resumed, report.n_decoded), (true, 20));
    assert_eq!(files(&to), files(&other));
    assert_eq!(names(folder.path()), ["from", "other", "to"]);
}

#[test]
fn with_another_amount_of_memory_an_unfinished_array_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to, other] = ["from", "to", "other"].map(|name| folder.path().join(name));
    levels(40).write(&from);
    // Each chunk needs eight steps and a fourth of the map: with little memory maps are decoded
    // several times.
    let one = |name: &str, n| (name.to_owned(), Length::Indices(n));
    let series = RelayoutSpec { chunks: vec![one("d0", 8), one("d2", 3), one("d3", 4)], ..spec() };
    let series = RelayoutSpec { shards: Vec::new(), ..series };
    let less = RelayoutSpec { memory_bytes: 12_000, ..series.clone() };
    lay_out(&from, &other, &series).unwrap();
    interrupted_after(&from, &to, 8, series);
    let report = lay_out(&from, &to, &less).unwrap();
    assert!(report.resumed && 1.0 < report.arrays[0].times_decoded(), "{report:?}");
    assert!(report.arrays[0].memory_for_fewest.unwrap() > 12_000);
    assert_eq!(files(&to), files(&other));
}

#[test]
fn what_another_run_began_stays() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to, foreign] = ["from", "to", "foreign"].map(|name| folder.path().join(name));
    levels(40).write(&from);
    interrupted_after(&from, &to, 9 * 4, spec());
    let begun = folder.path().join("to.partial");
    let before = files(&begun);
    // Other settings.
    let other = RelayoutSpec { shards: Vec::new(), ..spec() };
    let error = lay_out(&from, &to, &other).unwrap_err().to_string();
    assert!(error.contains("to.partial") && error.contains("other settings"), "{error}");
    // A source that was written anew.
    std::fs::remove_dir_all(&from).unwrap();
    levels(36).write(&from);
    let error = lay_out(&from, &to, &spec()).unwrap_err().to_string();
    assert!(error.contains("another source"), "{error}");
    assert_eq!(files(&begun), before);
    // A folder of somebody else's, and a store that exists.
    let theirs = folder.path().join("foreign.partial");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("thesis"), "mine").unwrap();
    let error = lay_out(&from, &foreign, &spec()).unwrap_err().to_string();
    assert!(error.contains("no marker"), "{error}");
    assert_eq!(files(&theirs), [("thesis".to_owned(), b"mine".to_vec())]);
    let before = files(&from);
    for target in [&from, &from.join("v/inside")] {
        let error = lay_out(&from, target, &spec()).unwrap_err();
        assert!(matches!(error, Error::Destination(_)), "{error}");
    }
    assert_eq!(files(&from), before);
}
