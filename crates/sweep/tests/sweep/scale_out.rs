//! A grid in parts, and the launchers' files in docs/scale-out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use bench_report::read;

use crate::bed::{Bed, SMALL_BUFFERS, stderr};

/// Eight points.
const GRID: [&str; 10] = [
    "--uri",
    "experiment",
    "--config",
    SMALL_BUFFERS,
    "-b",
    "64 / [1,4]",
    "-b",
    "100",
    "-m",
    "native,scipy.csr",
];

/// The folders of the parts, by their names after the machine's.
fn parts(results: &Path) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name[name.rfind("shard-").unwrap()..].to_owned()
    };
    entries.map(|path| (name(&path), path)).collect()
}

#[test]
fn the_parts_of_a_grid_are_the_grid() {
    let bed = Bed::new();
    let launchers: [&[(&str, &str)]; 3] = [
        &[("SLURM_ARRAY_TASK_ID", "0"), ("SLURM_ARRAY_TASK_COUNT", "3")],
        &[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "3")],
        &[("HQ_TASK_ID", "2")],
    ];
    for (variables, shard) in launchers.into_iter().zip([None, None, Some("auto/3")]) {
        let mut command = bed.command(&[&["sweep", "--results", "parts"], &GRID[..]].concat());
        command.envs(variables.iter().copied());
        command.args(shard.iter().flat_map(|shard| ["--shard", shard]));
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{}", stderr(&ran));
        assert!(stderr(&ran).contains("/3 of the grid: "), "{}", stderr(&ran));
    }
    let parts = parts(&bed.path("parts"));
    let names: Vec<&str> = parts.keys().map(String::as_str).collect();
    assert_eq!(names, ["shard-0-of-3", "shard-1-of-3", "shard-2-of-3"]);
    let rows: Vec<Vec<_>> = parts.values().map(|folder| read(folder).unwrap()).collect();
    assert!(
        rows.iter().all(|rows| 2 <= rows.len()),
        "{:?}",
        rows.iter().map(Vec::len).collect::<Vec<_>>()
    );
    let points: Vec<String> = rows.concat().iter().map(|row| row.point.id()).collect();
    assert_eq!((points.len(), points.iter().collect::<BTreeSet<_>>().len()), (8, 8));
    // One report has all of them.
    let reported = bed.command(&["report", "parts", "--format", "csv"]).output().unwrap();
    assert!(reported.status.success(), "{}", stderr(&reported));
    assert_eq!(fs::read_to_string(bed.path("parts/table.csv")).unwrap().lines().count(), 1 + 8);
}

#[test]
fn a_task_that_does_not_know_of_how_many_is_refused() {
    let bed = Bed::new();
    let run = |arguments: &[&str]| {
        let all = [&["sweep", "--results", "one"], &GRID[..], arguments].concat();
        bed.command(&all).env("JOB_COMPLETION_INDEX", "0").output().unwrap()
    };
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("--shard auto/N"), "{}", stderr(&refused));
    assert!(!bed.path("one").exists());
    // More parts than points: some have nothing to do, which is no failure.
    let idle = run(&["--shard", "99/100"]);
    assert!(idle.status.success() && stderr(&idle).contains("0 of 8 points"), "{}", stderr(&idle));
    assert!(!bed.path("one").exists());
}

/// A file of docs/scale-out.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scale-out").join(name)
}

/// Runs one of the scripts with `program` on the PATH replaced by one that prints its arguments.
fn arguments_of(script: &str, program: &str, arguments: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let stand_in = folder.path().join(program);
    fs::write(&stand_in, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let ran =
        Command::new("bash").arg(file(script)).args(arguments).env("PATH", path).output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Runs the command that a launcher would, as a part of a small experiment.
#[track_caller]
fn check_sweep(bed: &Bed, words: &[String], variables: &[(&str, &str)]) {
    let [xtask, rest @ ..] = words else { panic!("no command") };
    assert_eq!(xtask, "xtask", "{words:?}");
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    let mut command =
        bed.command(&[&words, &["-b", "64", "-b", "100", "-m", "native"][..]].concat());
    let ran = command.envs(variables.iter().copied()).output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
}

#[test]
fn the_files_of_the_launchers_run() {
    let bed = Bed::new();
    let words = arguments_of("sweep.sbatch", "cargo", &["2", "experiment", "slurm"]);
    for task in ["0", "1"] {
        check_sweep(
            &bed,
            &words,
            &[("SLURM_ARRAY_TASK_ID", task), ("SLURM_ARRAY_TASK_COUNT", "2")],
        );
    }
    assert_eq!(parts(&bed.path("slurm")).len(), 2);

    let words = arguments_of("hyperqueue.sh", "hq", &["2", "experiment", "hq"]);
    let array = words.iter().position(|word| word == "--array").unwrap();
    assert_eq!((words[0].as_str(), words[array + 1].as_str()), ("submit", "0-1"));
    let behind = words.iter().position(|word| word == "--").unwrap() + 1;
    assert_eq!(words[behind], "cargo");
    for task in ["0", "1"] {
        check_sweep(&bed, &words[behind + 1..], &[("HQ_TASK_ID", task)]);
    }
    assert_eq!(parts(&bed.path("hq")).len(), 2);
}

#[test]
fn the_job_of_kubernetes_is_indexed_and_its_command_parses() {
    let text = fs::read_to_string(file("kubernetes.yaml")).unwrap();
    let job: serde_json::Value = serde_norway::from_str(&text).unwrap();
    assert_eq!((&job["kind"], &job["spec"]["completionMode"]), (&"Job".into(), &"Indexed".into()));
    let n_parts = job["spec"]["completions"].as_u64().unwrap();
    assert_eq!(job["spec"]["parallelism"].as_u64(), Some(n_parts));
    let pod = &job["spec"]["template"]["spec"];
    let words = pod["containers"][0]["command"].as_array().unwrap();
    let words: Vec<String> = words.iter().map(|word| word.as_str().unwrap().to_owned()).collect();
    assert_eq!(words.last(), Some(&format!("auto/{n_parts}")));
    let rule =
        &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(
        rule[0]["labelSelector"]["matchLabels"],
        job["spec"]["template"]["metadata"]["labels"]
    );
    let bed = Bed::new();
    let here: Vec<String> = words[1..].iter().map(|word| word.replace("/shared/", "")).collect();
    check_sweep(&bed, &here, &[("JOB_COMPLETION_INDEX", "1")]);
    assert!(parts(&bed.path("results"))["shard-1-of-4"].is_dir());
}
