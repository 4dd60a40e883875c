//! Rank and world size from the variables that each launcher sets in its processes.

use loader::World;

fn world(variables: &[(&str, &str)]) -> Result<World, String> {
    let lookup = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    World::from_lookup(lookup).map_err(|error| error.to_string())
}

#[track_caller]
fn check(variables: &[(&str, &str)], rank: u64, size: u64) {
    assert_eq!(world(variables), Ok(World { rank, size }), "{variables:?}");
}

#[track_caller]
fn check_refused(variables: &[(&str, &str)], named: &[&str]) {
    let error = world(variables).unwrap_err();
    assert!(named.iter().all(|name| error.contains(name)), "{variables:?}: {error}");
}

const SLURM: [(&str, &str); 3] =
    [("SLURM_JOB_ID", "77"), ("SLURM_PROCID", "3"), ("SLURM_NTASKS", "8")];

#[test]
fn without_a_launcher_it_is_one_process() {
    check(&[], 0, 1);
    check(&[("PATH", "/bin"), ("RANK", ""), ("WORLD_SIZE", " ")], 0, 1);
}

#[test]
fn each_launcher_is_understood() {
    check(
        &[("RANK", "5"), ("WORLD_SIZE", "6"), ("LOCAL_RANK", "1"), ("LOCAL_WORLD_SIZE", "2")],
        5,
        6,
    );
    check(&[("SLURM_PROCID", "1"), ("SLURM_NTASKS", "4"), ("SLURM_LOCALID", "0")], 1, 4);
    check(
        &[
            ("OMPI_COMM_WORLD_RANK", "2"),
            ("OMPI_COMM_WORLD_SIZE", "3"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "0"),
        ],
        2,
        3,
    );
    check(&[("MV2_COMM_WORLD_RANK", "2"), ("MV2_COMM_WORLD_SIZE", "3")], 2, 3);
    check(&[("PMI_RANK", "6"), ("PMI_SIZE", "7")], 6, 7);
    check(
        &[("PMIX_RANK", "1"), ("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")],
        1,
        2,
    );
}

#[test]
fn torchrun_comes_before_what_started_it() {
    let torchrun = [("RANK", "9"), ("WORLD_SIZE", "16")];
    check(&[&torchrun[..], &SLURM].concat(), 9, 16);
    check(
        &[&torchrun[..], &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")]].concat(),
        9,
        16,
    );
}

#[test]
fn numbers_by_machine_are_joined() {
    let by_machine = [("NODE_RANK", "2"), ("LOCAL_WORLD_SIZE", "4"), ("LOCAL_RANK", "3")];
    check(&[&by_machine[..], &[("NNODES", "3")]].concat(), 11, 12);
    check(&[&by_machine[..], &[("WORLD_SIZE", "16")]].concat(), 11, 16);
    // An explicit rank wins.
    check(&[&by_machine[..], &[("RANK", "7"), ("WORLD_SIZE", "16")]].concat(), 7, 16);
    check_refused(
        &[&by_machine[..], &[("WORLD_SIZE", "11")]].concat(),
        &["NODE_RANK", "WORLD_SIZE", "11"],
    );
    check_refused(&by_machine, &["LOCAL_RANK", "NNODES"]);
    let wrong =
        [("NODE_RANK", "0"), ("LOCAL_WORLD_SIZE", "4"), ("LOCAL_RANK", "4"), ("NNODES", "2")];
    check_refused(&wrong, &["LOCAL_RANK", "LOCAL_WORLD_SIZE"]);
}

#[test]
fn a_local_rank_is_never_the_rank() {
    check_refused(&[("LOCAL_RANK", "0")], &["LOCAL_RANK", "RANK", "WORLD_SIZE"]);
    check_refused(&[("LOCAL_RANK", "1"), ("LOCAL_WORLD_SIZE", "2")], &["LOCAL_RANK", "NODE_RANK"]);
    check_refused(&[("PMIX_RANK", "1")], &["PMIX_RANK", "WORLD_SIZE"]);
    check(
        &[&SLURM[..], &[("SLURM_STEP_ID", "0"), ("LOCAL_RANK", "1"), ("SLURM_LOCALID", "1")]]
            .concat(),
        3,
        8,
    );
    check(&[("SLURM_LOCALID", "1")], 0, 1);
}

#[test]
fn halves_are_refused() {
    check_refused(&[("RANK", "0")], &["RANK", "WORLD_SIZE is not"]);
    check_refused(&[("WORLD_SIZE", "2")], &["WORLD_SIZE", "RANK is not"]);
    // A launcher of lower precedence does not replace the missing half.
    check_refused(&[&[("WORLD_SIZE", "8")], &SLURM[..]].concat(), &["RANK is not"]);
    check_refused(&[("SLURM_PROCID", "0")], &["SLURM_PROCID", "SLURM_NTASKS is not"]);
    check_refused(&[("OMPI_COMM_WORLD_SIZE", "2")], &["OMPI_COMM_WORLD_RANK is not"]);
    check_refused(&[("PMI_RANK", "2")], &["PMI_SIZE is not"]);
}

#[test]
fn what_is_no_rank_is_refused() {
    for (value, text) in [("one", "\"one\""), ("-1", "\"-1\""), ("1.0", "\"1.0\"")] {
        check_refused(&[("RANK", value), ("WORLD_SIZE", "2")], &["RANK", text, "not a number"]);
        check_refused(&[("RANK", "0"), ("WORLD_SIZE", value)], &["WORLD_SIZE", text]);
    }
    check_refused(&[("RANK", "2"), ("WORLD_SIZE", "2")], &["RANK", "WORLD_SIZE", "rank 2 of 2"]);
    check_refused(
        &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "0")],
        &["SLURM_NTASKS", "rank 0 of 0"],
    );
    let both = [
        ("OMPI_COMM_WORLD_RANK", "0"),
        ("OMPI_COMM_WORLD_SIZE", "2"),
        ("PMI_RANK", "1"),
        ("PMI_SIZE", "2"),
    ];
    check_refused(&both, &["OMPI_COMM_WORLD_RANK", "PMI_RANK", "rank 0 of 2", "rank 1 of 2"]);
}

#[test]
fn a_slurm_allocation_without_a_step_starts_nothing() {
    // A shell of salloc, and the script of sbatch.
    check(&[("SLURM_JOB_ID", "77"), ("SLURM_NTASKS", "8")], 0, 1);
    check(&[("SLURM_JOB_ID", "77"), ("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")], 0, 1);
    // mpirun inside them.
    let mpirun = [("OMPI_COMM_WORLD_RANK", "5"), ("OMPI_COMM_WORLD_SIZE", "8")];
    check(&[&SLURM[..], &mpirun].concat(), 5, 8);
    // mpirun whose daemons, one per machine, srun started.
    let daemon = [("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_PROCID", "1")];
    check(&[&daemon[..], &mpirun].concat(), 5, 8);
}

#[test]
fn a_slurm_step_has_its_own_number_of_tasks() {
    let step = [("SLURM_STEP_ID", "4"), ("SLURM_STEP_NUM_TASKS", "4")];
    check(&[&SLURM[..], &step].concat(), 3, 4);
    check(&[&SLURM[..], &[("SLURM_STEPID", "4")]].concat(), 3, 8);
    // srun in a shell of an interactive job.
    check(&[&SLURM[..], &step, &[("SLURM_JOB_NAME", "interactive")]].concat(), 3, 4);
    // The shell itself.
    let shell = [("SLURM_JOB_NAME", "bash"), ("SLURM_PTY_PORT", "4000"), ("SLURM_PROCID", "0")];
    check_refused(&[&step[..], &shell].concat(), &["SLURM_PROCID", "srun", "WORLD_SIZE=1"]);
    let alone = [("SLURM_STEP_ID", "4"), ("SLURM_STEP_NUM_TASKS", "1")];
    check(&[&alone[..], &shell].concat(), 0, 1);
}

#[test]
fn the_environment_of_this_test_is_looked_at() {
    // Whatever the environment, both ways agree.
    let by_hand = World::from_lookup(|name| std::env::var(name).ok());
    let found = World::from_environment();
    assert_eq!(
        found.map_err(|error| error.to_string()),
        by_hand.map_err(|error| error.to_string())
    );
}
