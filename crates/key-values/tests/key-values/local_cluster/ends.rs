//! Nothing is left of a cluster, however it ends.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use key_values::local_cluster::{ClusterSpec, Error, LocalCluster};

use crate::{ask, single, start};

/// Set for a process that starts a cluster and waits to be killed.
const CHILD: &str = "LOCAL_CLUSTER_TEST_CHILD";

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn pids(cluster: &LocalCluster) -> Vec<u32> {
    cluster.nodes().unwrap().iter().filter_map(|node| node.pid).collect()
}

#[test]
fn a_dropped_cluster_leaves_nothing() {
    let Some(cluster) = start(single()) else { return };
    let (pids, folder) = (pids(&cluster), cluster.folder().to_owned());
    assert!(folder.exists() && pids.len() == 1 && pids.iter().all(|pid| exists(*pid)));
    ask::<()>(&cluster.urls()[0], "SET key value");
    drop(cluster);
    assert!(!folder.exists() && !pids.iter().any(|pid| exists(*pid)));
}

#[test]
fn a_panic_leaves_nothing() {
    let Some(cluster) = start(single()) else { return };
    let (pids, folder) = (pids(&cluster), cluster.folder().to_owned());
    let panicked = std::thread::spawn(move || {
        assert!(cluster.urls().is_empty(), "this panic is part of the test");
    });
    panicked.join().unwrap_err();
    assert!(!folder.exists() && !pids.iter().any(|pid| exists(*pid)));
}

#[test]
fn a_killed_program_leaves_nothing() {
    if std::env::var_os(CHILD).is_some() {
        return be_the_child();
    }
    let Some(_server) = start(single()) else { return };
    let mut child = start_child();
    let stdout = child.stdout.take().unwrap();
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    // The test harness writes lines of its own.
    let line = lines.find_map(|line| line.split_once("cluster: ").map(|(_, rest)| rest.to_owned()));
    let line = line.expect("the child names its server and its folder");
    let (pid, folder) = line.split_once(' ').unwrap();
    let (pid, folder) = (pid.parse().unwrap(), Path::new(folder));
    assert!(exists(pid) && folder.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let start = Instant::now();
    while exists(pid) || folder.exists() {
        assert!(start.elapsed() < Duration::from_mins(1), "server {pid} or {folder:?} is left");
        sleep(Duration::from_millis(10));
    }
}

fn start_child() -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "local_cluster::ends::a_killed_program_leaves_nothing", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[expect(clippy::print_stdout, reason = "how the parent learns of it")]
fn be_the_child() {
    let cluster = start(single()).unwrap();
    println!("cluster: {} {}", pids(&cluster)[0], cluster.folder().display());
    sleep(Duration::from_mins(2));
}

#[test]
fn a_server_that_cannot_start_says_why() {
    // It runs and ends at once, as a server with a wrong configuration does.
    let spec = ClusterSpec { program: Some("true".into()), ..single() };
    let error = LocalCluster::start(spec).unwrap_err();
    assert!(matches!(error, Error::Start { .. }), "{error:?}");
}
