//! A run that is killed half-way.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use example_data::{Error, GenerateSpec, generate};

use crate::contents::{names, read};

/// Environment variable with the path that the child process writes to.
const TARGET: &str = "EXAMPLE_DATA_TEST_TARGET";

fn spec(n_cells: u64) -> GenerateSpec {
    GenerateSpec { n_cells, n_genes: 400, seed: 1, ..GenerateSpec::default() }
}

#[test]
fn a_killed_run_never_looks_whole_and_the_next_one_cleans_up() {
    if let Some(target) = std::env::var_os(TARGET) {
        // Far more than the child can write before it is killed.
        let whole = generate(target.to_str().unwrap(), &spec(500_000_000), &mut |_| {});
        panic!("this process was to be killed: {whole:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("data");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::a_killed_run_never_looks_whole_and_the_next_one_cleans_up"])
        .env(TARGET, &target)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Wait until it writes values.
    let fragments = folder.path().join("data.partial/experiment/ms/RNA/X/raw/__fragments");
    let started = Instant::now();
    while !has_entries(&fragments) {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        assert!(started.elapsed() < Duration::from_mins(2), "it wrote nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    let meanwhile = generate(target.to_str().unwrap(), &spec(10), &mut |_| {});
    assert!(
        matches!(meanwhile, Err(Error::Destination(soma_io::DestinationError::Busy { .. }))),
        "{meanwhile:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!target.exists());
    generate(target.to_str().unwrap(), &spec(10), &mut |_| {}).unwrap();
    assert_eq!(read(&target).x.n_rows(), 10);
    assert_eq!(names(folder.path()), ["data"]);
}

fn has_entries(folder: &PathBuf) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}
