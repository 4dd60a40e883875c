//! Tests ranks under a launcher. OpenMPI's mpirun starts 1 to 8 processes that load one experiment
//! from disk, with ranks from the environment; the test combines their batches.
//!
//! The same program is the test and, if mpirun starts it with arguments, a rank. Without mpirun it
//! reports that nothing was tested, or fails if `SOMAFEED_REQUIRE_MPIRUN` is set, which
//! `cargo xtask test` does.
#![expect(clippy::unwrap_used, reason = "a failing test panics where it fails")]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test without a harness prints its results"
)]

mod rank;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use rank::{Job, RankBatch};
use soma_io::{ColumnKind, ColumnSpec, Config, ExperimentSpec, ExperimentWriter, Extent, XLayout};

/// Number of cells; global batches of 24 leave a remainder of 11.
const N_OBS: u64 = 515;
const N_VAR: u64 = 7;
const GLOBAL_ROWS: u64 = 24;
const N_FULL: usize = 21;

type Test = fn(&Launcher);

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [first, job] = &arguments[..]
        && first == rank::ARGUMENT
    {
        rank::run(&serde_json::from_str(job).unwrap());
        return;
    }
    let tests: [(&str, Test); 3] = [
        ("ranks_share_every_cell", ranks_share_every_cell),
        ("resuming_with_other_ranks_goes_on", resuming_with_other_ranks_goes_on),
        ("a_sample_is_shared_by_all_ranks", a_sample_is_shared_by_all_ranks),
    ];
    if arguments.iter().any(|argument| argument == "--list") {
        for (name, _) in tests {
            println!("{name}: test");
        }
        return;
    }
    // Like in the test harness, arguments that are not flags filter tests by name.
    let parts: Vec<&String> = arguments.iter().filter(|part| !part.starts_with('-')).collect();
    let is_selected =
        |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(*part));
    let Some(launcher) = Launcher::find() else { return };
    for (name, test) in tests.iter().filter(|(name, _)| is_selected(name)) {
        test(&launcher);
        println!("test {name} ... ok");
    }
}

/// Path of mpirun, and the experiment that all ranks read.
struct Launcher {
    mpirun: PathBuf,
    folder: tempfile::TempDir,
}

impl Launcher {
    fn find() -> Option<Self> {
        let path = env::var_os("PATH").unwrap_or_default();
        let Some(mpirun) =
            env::split_paths(&path).map(|folder| folder.join("mpirun")).find(|file| file.is_file())
        else {
            let absent = "there is no mpirun on the PATH (Debian, Ubuntu: apt install openmpi-bin)";
            assert!(env::var_os("SOMAFEED_REQUIRE_MPIRUN").is_none(), "{absent}");
            eprintln!("not tested under a launcher: {absent}; `cargo xtask test` installs it");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        write_experiment(&folder.path().join("experiment"));
        Some(Self { mpirun, folder })
    }

    /// Runs a job with this many ranks. Returns the batches of all ranks for each step.
    fn run(&self, n_ranks: u64, job: &Job) -> Vec<Vec<RankBatch>> {
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap();
        let job = Job {
            experiment: self.folder.path().join("experiment"),
            folder: folder.path().to_owned(),
            ..job.clone()
        };
        let mut command = Command::new(&self.mpirun);
        command.args(["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]);
        command.args(["-n", &n_ranks.to_string()]).arg(env::current_exe().unwrap());
        command.args([rank::ARGUMENT, &serde_json::to_string(&job).unwrap()]);
        // Ranks must not see the variables of a launcher that started this test.
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["RANK", "WORLD_SIZE"].contains(&name.as_str())
                || ["SLURM_", "OMPI_COMM_", "PMI_", "PMIX_"]
                    .iter()
                    .any(|start| name.starts_with(start))
            {
                command.env_remove(name);
            }
        }
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{command:?} ended with {}:\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let of_ranks: Vec<Vec<RankBatch>> = (0..n_ranks)
            .map(|rank| {
                let text =
                    fs::read_to_string(rank::batches_file(folder.path(), rank, n_ranks)).unwrap();
                text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
            })
            .collect();
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count() as u64,
            n_ranks,
            "a rank that is none"
        );
        assert!(
            of_ranks.iter().all(|batches| batches.len() == of_ranks[0].len()),
            "unequal numbers of batches"
        );
        // By step, and within a step by rank.
        (0..of_ranks[0].len())
            .map(|step| of_ranks.iter().map(|batches| batches[step].clone()).collect())
            .collect()
    }
}

/// Joins the ranks' batches of each step.
fn joined(steps: &[Vec<RankBatch>]) -> Vec<RankBatch> {
    steps.iter().map(|ranks| ranks.iter().fold(RankBatch::default(), RankBatch::join)).collect()
}

/// The state after a step, which must be the same on all ranks.
fn state_after(step: &[RankBatch]) -> String {
    assert!(step.iter().all(|rank| rank.state == step[0].state));
    assert!(step[0].state.len() < 1000);
    step[0].state.clone()
}

fn ranks_share_every_cell(launcher: &Launcher) {
    for remainder in ["drop", "pad"] {
        let mut eight_lanes = Vec::new();
        for n_ranks in [1, 2, 3, 4, 6, 8] {
            let job =
                Job { global_rows: GLOBAL_ROWS, remainder: remainder.into(), ..Job::default() };
            let steps = joined(&launcher.run(n_ranks, &job));
            assert_eq!(steps.len(), if remainder == "pad" { N_FULL + 1 } else { N_FULL });
            assert!(steps.iter().all(|step| step.joinids.len() as u64 == GLOBAL_ROWS));
            let n_padding: usize = steps.iter().map(|step| step.n_padding).sum();
            let mut joinids: Vec<i64> =
                steps.iter().flat_map(|step| &step.joinids).copied().collect();
            joinids.truncate(joinids.len() - n_padding);
            joinids.sort_unstable();
            if remainder == "pad" {
                assert_eq!(joinids, (0..N_OBS as i64).collect::<Vec<_>>());
            } else {
                let n_all = joinids.len();
                joinids.dedup();
                assert_eq!((joinids.len(), n_all), (N_FULL * GLOBAL_ROWS as usize, joinids.len()));
                assert!(joinids.iter().all(|joinid| (0..N_OBS as i64).contains(joinid)));
            }
            // With equally many lanes, any number of ranks delivers the same global batches.
            let lanes = Job { lanes: Some(8), ..job };
            let steps = joined(&launcher.run(n_ranks, &lanes));
            if eight_lanes.is_empty() {
                eight_lanes.clone_from(&steps);
            }
            assert_eq!(steps, eight_lanes, "{n_ranks} ranks");
        }
    }
}

fn resuming_with_other_ranks_goes_on(launcher: &Launcher) {
    let whole =
        Job { epoch: 1, global_rows: GLOBAL_ROWS, remainder: "pad".into(), ..Job::default() };
    let expect = joined(&launcher.run(8, &whole));
    let first = launcher.run(8, &Job { n_batches: Some(5), ..whole.clone() });
    let state = Some(state_after(&first[4]));
    let second = launcher.run(4, &Job { n_batches: Some(9), state, ..whole.clone() });
    let state = Some(state_after(&second[8]));
    let third = launcher.run(6, &Job { state, ..whole });
    let found = joined(&[first, second, third].concat());
    assert_eq!(found, expect);
}

fn a_sample_is_shared_by_all_ranks(launcher: &Launcher) {
    let job = Job {
        global_rows: GLOBAL_ROWS,
        remainder: "pad".into(),
        lanes: Some(2),
        n_samples: Some(200),
        ..Job::default()
    };
    let alone = joined(&launcher.run(1, &job));
    assert_eq!(alone.len(), 9);
    assert_eq!(joined(&launcher.run(4, &job)), alone);
}

/// Writes 515 cells whose values identify their cell and gene.
fn write_experiment(folder: &Path) {
    let names = |what: &str, n: u64| {
        let names = StringArray::from_iter_values((0..n).map(|idx| format!("{what} {idx}")));
        RecordBatch::try_from_iter([("label", Arc::new(names) as ArrayRef)]).unwrap()
    };
    let label = ColumnSpec::new("label", ColumnKind::Text);
    let spec = ExperimentSpec {
        n_obs: N_OBS,
        n_var: N_VAR,
        obs: vec![label.clone()],
        var: vec![label],
        measurement: "RNA".into(),
        layers: vec!["raw".into()],
        extent: Extent::CurrentDomain,
        x_layout: XLayout::census(1),
        fragment_rows: None,
        consolidate: false,
        config: Config::new(),
    };
    let mut writer = ExperimentWriter::create(folder.to_str().unwrap(), spec).unwrap();
    writer.write_var(&names("gene", N_VAR)).unwrap();
    writer.write_obs(&names("cell", N_OBS)).unwrap();
    let (mut row_offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for cell in 0..N_OBS {
        for gene in (0..N_VAR).filter(|gene| !(cell + gene).is_multiple_of(3)) {
            columns.push(gene as u32);
            values.push((cell * 10 + gene + 1) as f32);
        }
        row_offsets.push(columns.len());
    }
    writer.write_x("raw", &row_offsets, &columns, &values).unwrap();
    writer.finish().unwrap();
}
