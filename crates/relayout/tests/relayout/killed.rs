//! Runs that are killed at random moments.

use std::process::{Command, Stdio};
use std::time::Duration;

use relayout::RelayoutSpec;

use crate::small::{check, lay_out, names, open, rows, write};

/// Names the working folder for this test, restarted as a separate process.
const FOLDER: &str = "RELAYOUT_TEST_FOLDER";
const TEST: &str = "killed::a_killed_run_never_looks_whole_and_the_next_one_cleans_up";

fn spec() -> RelayoutSpec {
    // Little memory, so that rows are in temporary files for most of the time.
    RelayoutSpec { shuffle_seed: Some(9), memory_bytes: 4 << 20, ..RelayoutSpec::default() }
}

#[test]
fn a_killed_run_never_looks_whole_and_the_next_one_cleans_up() {
    if let Some(folder) = std::env::var_os(FOLDER).map(std::path::PathBuf::from) {
        lay_out(&folder.join("from"), &folder.join("to"), &spec()).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let rows = rows(4_000, 900, 150);
    write(&from, &rows, 900);
    let joinids: Vec<u64> = shuffle::storage_order(4_000, 9).into_iter().map(u64::from).collect();
    let mut n_killed = 0;
    for millis in [5, 60, 150, 300, 500, 800, 1_300, 2_100] {
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
        // Any experiment that opens is complete, also under its temporary name.
        for path in [&to, &folder.path().join("to.partial/experiment")] {
            if open(path).is_ok() {
                check(path, &rows, &joinids, Some("source_joinid"));
            }
        }
        if to.exists() {
            assert!(open(&to).is_ok());
            std::fs::remove_dir_all(&to).unwrap();
        } else {
            assert!(!ended, "a run that was not killed ended with nothing");
        }
    }
    assert!(n_killed > 0, "every run was over before it could be killed");
    lay_out(&from, &to, &spec()).unwrap();
    check(&to, &rows, &joinids, Some("source_joinid"));
    assert_eq!(names(folder.path()), ["from", "to"]);
}
