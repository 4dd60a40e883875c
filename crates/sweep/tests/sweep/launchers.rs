//! Sweeps over several tasks under real launchers: `mpirun`, a Slurm of one controller and two node
//! daemons, and a HyperQueue of one server and two workers, which the tests start on loopback and
//! end. They need packages that `cargo xtask test-launchers` installs, and run only there:
//!
//! ```sh
//! cargo xtask test-launchers
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bench_report::read;

use crate::bed::{Bed, N_CELLS, SMALL_BUFFERS, stderr, wait_for};
use crate::scale_out::file;

/// Six points.
const GRID: [&str; 8] =
    ["-b", "64 / [1,4]", "-b", "100 / [1,4]", "-m", "native", "--config", SMALL_BUFFERS];

/// Checks that the folders below `results` have each point of the grid once, in `n` parts.
#[track_caller]
fn check_parts(bed: &Bed, results: &str, n: usize) {
    let folders = fs::read_dir(bed.path(results)).unwrap().map(|entry| entry.unwrap().path());
    let parts: Vec<_> = folders.map(|folder| read(&folder).unwrap()).collect();
    assert_eq!(parts.len(), n);
    let points: Vec<String> = parts.concat().iter().map(|row| row.point.id()).collect();
    assert_eq!((points.len(), points.iter().collect::<BTreeSet<_>>().len()), (6, 6), "{points:?}");
    let reported = bed.run(&["report", results]);
    assert!(reported.status.success(), "{}", stderr(&reported));
    assert!(bed.path(results).join("report.html").is_file());
}

/// A process that is killed with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _already_gone = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Starts a server with its output in a file of `folder`.
fn start(command: &mut Command, folder: &Path, name: &str) -> Killed {
    let log = fs::File::create(folder.join(format!("{name}.out"))).unwrap();
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    Killed(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
}

/// A folder with a stand-in for `cargo`: it starts the program of this test where `cargo xtask`
/// would start the built one.
fn with_cargo(bed: &Bed) -> String {
    let folder = bed.path("bin");
    fs::create_dir_all(&folder).unwrap();
    let program = env!("CARGO_BIN_EXE_sweep");
    write_program(&folder.join("cargo"), &format!("shift\nexec {program:?} \"$@\"\n"));
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

/// Writes a shell script that can be run as a program.
fn write_program(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn free_ports<const N: usize>() -> [u16; N] {
    let bound: [TcpListener; N] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    bound.map(|listener| listener.local_addr().unwrap().port())
}

#[test]
#[ignore = "needs mpirun: cargo xtask test-launchers"]
fn two_processes_of_mpirun_share_a_grid() {
    let bed = Bed::new();
    let sweep = bed.command(&[]);
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", "2"]);
    command.arg(sweep.get_program()).args(["sweep", "--uri", "experiment", "--results", "mpi"]);
    let ran = command.args(GRID).current_dir(bed.path("")).output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    check_parts(&bed, "mpi", 2);
}

#[test]
#[ignore = "needs HyperQueue: cargo xtask test-launchers"]
fn a_task_array_of_hyperqueue_shares_a_grid() {
    let (bed, server) = (Bed::new(), tempfile::tempdir().unwrap());
    let python = std::env::var("SOMAFEED_PYTHON_HYPERQUEUE")
        .expect("SOMAFEED_PYTHON_HYPERQUEUE: cargo xtask test-launchers sets it");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sweep/launchers/hq.py");
    let path = with_cargo(&bed);
    write_program(&bed.path("bin/hq"), &format!("exec {python:?} -B {script:?} \"$@\"\n"));
    let mut command = Command::new("bash");
    command.arg(file("hyperqueue.sh")).args(["3", "experiment", "hyperqueue"]).args(GRID);
    command.env("PATH", path).env("HQ_SERVER_DIR", server.path()).current_dir(bed.path(""));
    let ran = command.output().unwrap();
    let tasks: Vec<String> = (0..3)
        .map(|task| fs::read_to_string(bed.path(&format!("task-{task}.out"))).unwrap_or_default())
        .collect();
    assert!(ran.status.success(), "{}\n{tasks:?}", stderr(&ran));
    check_parts(&bed, "hyperqueue", 3);
}

/// Checks that `results` has the rows of `n` ranks, which share all cells, and one report.
#[track_caller]
fn check_ranks(bed: &Bed, results: &str, n: u64) {
    let rows = read(&bed.path(results)).unwrap();
    let ranks: Vec<Option<u64>> = rows.iter().map(|row| row.measured.rank).collect();
    assert_eq!(ranks, (0..n).map(Some).collect::<Vec<_>>());
    let n_rows: u64 = rows.iter().map(|row| row.measured.n_rows.unwrap()).sum();
    assert_eq!(n_rows, N_CELLS);
    assert!(rows.iter().all(|row| row.measured.accelerator_utilization.is_some()));
    let readme = fs::read_to_string(bed.path(results).join("README.md")).unwrap();
    assert!(readme.contains("samples/s of all"), "{readme}");
}

/// Settings of ranks.
const RANKS: [&str; 8] = ["-b", "4x8", "-B", "16", "--consumer", "2ms", "--config", SMALL_BUFFERS];

#[test]
#[ignore = "needs mpirun: cargo xtask test-launchers"]
fn the_ranks_of_mpirun_load_together() {
    let bed = Bed::new();
    let program = bed.command(&[]);
    let mpirun = |uri: &str, results: &str| {
        let mut command = Command::new("mpirun");
        command.args(["--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n", "3"]);
        command.arg(program.get_program()).args(["ranks", "--uri", uri, "--results", results]);
        command.args(RANKS).current_dir(bed.path("")).output().unwrap()
    };
    let ran = mpirun("experiment", "mpi");
    assert!(ran.status.success(), "{}", stderr(&ran));
    check_ranks(&bed, "mpi", 3);
    let failed = mpirun("missing", "failed");
    assert!(!failed.status.success());
    assert!(stderr(&failed).contains("of 3: "), "{}", stderr(&failed));
}

/// A Slurm of two nodes on this machine.
struct Slurm {
    conf: PathBuf,
    /// Ended in this order, the daemons before what they ask.
    _processes: Vec<Killed>,
}

impl Slurm {
    fn start(folder: &Path) -> Self {
        let [controller, node1, node2] = free_ports();
        let user =
            String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
        let (user, at) = (user.trim(), folder.display());
        let conf = folder.join("slurm.conf");
        let text = format!(
            "ClusterName=two\n\
             SlurmctldHost=localhost(127.0.0.1)\n\
             SlurmctldPort={controller}\n\
             SlurmUser={user}\n\
             SlurmdUser={user}\n\
             CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n\
             AuthType=auth/munge\n\
             AuthInfo=socket={at}/munge.socket\n\
             CryptoType=crypto/munge\n\
             StateSaveLocation={at}/state\n\
             SlurmdSpoolDir={at}/%n\n\
             SlurmctldPidFile={at}/controller.pid\n\
             SlurmdPidFile={at}/%n.pid\n\
             ProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\n\
             SelectType=select/linear\n\
             ReturnToService=2\n\
             MpiDefault=none\n\
             NodeName=node1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={node1} CPUs=1\n\
             NodeName=node2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={node2} CPUs=1\n\
             PartitionName=all Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP\n"
        );
        fs::write(&conf, text).unwrap();
        for name in ["state", "node1", "node2"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        let key: Vec<u8> = (0..128).map(|_| std::process::id().to_ne_bytes()[0]).collect();
        fs::write(folder.join("munge.key"), key).unwrap();
        fs::set_permissions(folder.join("munge.key"), fs::Permissions::from_mode(0o400)).unwrap();
        let mut munged = Command::new("munged");
        for (flag, name) in [
            ("key-file", "key"),
            ("socket", "socket"),
            ("pid-file", "pid"),
            ("log-file", "log"),
            ("seed-file", "seed"),
        ] {
            munged.arg(format!("--{flag}={at}/munge.{name}"));
        }
        let munged = start(munged.args(["--foreground", "--force"]), folder, "munged");
        wait_for("munged", || folder.join("munge.socket").exists().then_some(()));
        let slurm = |program: &str, arguments: &[&str], name: &str| {
            start(Command::new(program).args(arguments).env("SLURM_CONF", &conf), folder, name)
        };
        let controller = slurm("slurmctld", &["-D"], "controller");
        let nodes = ["node1", "node2"].map(|node| slurm("slurmd", &["-D", "-N", node], node));
        let processes = nodes.into_iter().chain([controller, munged]).collect();
        let slurm = Self { conf, _processes: processes };
        wait_for("two idle nodes", || {
            let shown = slurm.command("sinfo").args(["-h", "-o", "%D %t"]).output().unwrap();
            (String::from_utf8_lossy(&shown.stdout).trim() == "2 idle").then_some(())
        });
        slurm
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", &self.conf);
        command
    }
}

#[test]
#[ignore = "needs Slurm: cargo xtask test-launchers"]
fn a_job_array_of_slurm_shares_a_grid() {
    let (bed, folder) = (Bed::new(), tempfile::tempdir().unwrap());
    let slurm = Slurm::start(folder.path());
    let mut command = slurm.command("sbatch");
    command.args(["--wait", "--array=0-2", "--output=task-%a.out"]).arg(file("sweep.sbatch"));
    command.args(["3", "experiment", "slurm"]).args(GRID);
    let ran = command.current_dir(bed.path("")).env("PATH", with_cargo(&bed)).output().unwrap();
    let tasks: Vec<String> = (0..3)
        .map(|task| fs::read_to_string(bed.path(&format!("task-{task}.out"))).unwrap_or_default())
        .collect();
    assert!(ran.status.success(), "{}\n{tasks:?}", stderr(&ran));
    check_parts(&bed, "slurm", 3);
}

#[test]
#[ignore = "needs Slurm: cargo xtask test-launchers"]
fn the_ranks_of_srun_load_together() {
    let (bed, folder) = (Bed::new(), tempfile::tempdir().unwrap());
    let slurm = Slurm::start(folder.path());
    let program = bed.command(&[]);
    let mut command = slurm.command("srun");
    command.args(["-N", "2", "-n", "2"]).arg(program.get_program());
    command.args(["ranks", "--uri", "experiment", "--results", "slurm"]).args(RANKS);
    let ran = command.current_dir(bed.path("")).output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    check_ranks(&bed, "slurm", 2);
}
