//! Running the process that measures a point, and telling how it ended: whatever happens to it, the sweep goes on.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use bench_report::Status;
use serde::Serialize;

use crate::job::{Data, Event, Job};
use crate::memory_limit::{Held, MemoryLimit};
use crate::process_tree::{self, TreePeak};
use crate::secrets::Secrets;

/// How often the process's memory and the user's wish to stop are looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// How many of the last lines on stderr are kept.
const LAST_LINES: usize = 40;

const SIGKILL: i32 = 9;

/// How a process ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It said that it was done.
    Done {
        /// The most memory that it and processes of its own had together, where there were any.
        tree: Option<TreePeak>,
    },
    /// It did not finish.
    Failed(Failure),
    /// The user wanted to stop.
    Interrupted,
}

/// Why a process did not finish.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    /// In one line.
    pub(crate) message: String,
    /// The highest peak memory that was seen, in bytes: the process cannot tell it any more.
    pub(crate) peak_bytes: Option<u64>,
}

/// The command that starts a process for a job: the program itself.
pub(crate) fn point_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("point");
    command
}

/// Gives `job` to `command` and hands its events to `on_event` until it ends. An error of `on_event`, and `interrupted`, end the
/// process.
pub(crate) fn run(
    command: Command,
    job: &Job,
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event) -> anyhow::Result<()>,
) -> anyhow::Result<Ended> {
    run_limited(command, job, None, interrupted, on_event)
}

/// The same, with the process held to a limit on memory.
pub(crate) fn run_limited(
    mut command: Command,
    job: &Job,
    limit: Option<&MemoryLimit>,
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event) -> anyhow::Result<()>,
) -> anyhow::Result<Ended> {
    command.stdin(Stdio::piped());
    let mut child = Running::start(command)?;
    child.secrets = Secrets::of(&job.data);
    // It waits for its job, so it has done nothing yet.
    child.held = limit.map(|limit| limit.hold(child.child.id())).transpose()?;
    child.give(job)?;
    child.follow_to_the_end(interrupted, on_event)
}

/// The same for a script that has its job on the command line, but for the data's address and
/// settings, which come on its stdin: other users see a command line.
pub(crate) fn run_script(
    mut command: Command,
    data: Option<&Data>,
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event) -> anyhow::Result<()>,
) -> anyhow::Result<Ended> {
    command.stdin(Stdio::piped());
    let mut child = Running::start(command)?;
    match data {
        Some(data) => {
            child.secrets = Secrets::of(data);
            child.give(&ScriptData { uri: data.uri.full(), config: &data.config })?;
        }
        None => drop(child.child.stdin.take()),
    }
    child.follow_to_the_end(interrupted, on_event)
}

/// What a script reads from its stdin.
#[derive(Serialize)]
struct ScriptData<'a> {
    uri: &'a str,
    config: &'a BTreeMap<String, String>,
}

enum Followed {
    Ended { done: bool, failed: Option<String> },
    Interrupted,
}

/// What goes on beside a process. All end once it has.
struct Threads {
    events: JoinHandle<()>,
    stderr: JoinHandle<String>,
    /// Writes to the process's stdin, which may be longer than a pipe holds.
    job: Option<JoinHandle<()>>,
}

/// A process and the threads that talk to it. Dropping it ends the process.
struct Running {
    child: Child,
    lines: Receiver<String>,
    threads: Option<Threads>,
    peak_bytes: Option<u64>,
    tree: Option<TreePeak>,
    /// Let go after the process has ended.
    held: Option<Held>,
    /// Of its job: nothing that it says may have them.
    secrets: Secrets,
}

impl Running {
    fn start(mut command: Command) -> anyhow::Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = command.get_program().display().to_string();
        let spawned = command.spawn();
        let mut child =
            spawned.with_context(|| format!("cannot start a process for the point: {program}"))?;
        let stdout = child.stdout.take().context("the point's process has no stdout")?;
        let stderr = child.stderr.take().context("the point's process has no stderr")?;
        let (sender, lines) = channel();
        let events = named("point-events").spawn(move || forward_lines(stdout, &sender))?;
        let stderr = named("point-stderr").spawn(move || last_lines(stderr))?;
        Ok(Self {
            child,
            lines,
            threads: Some(Threads { events, stderr, job: None }),
            peak_bytes: None,
            tree: None,
            held: None,
            secrets: Secrets::of_environment(),
        })
    }

    /// Writes the job in a thread of its own: a process that does not read it must not keep
    /// Ctrl-C from ending it.
    fn give(&mut self, job: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string(job).context("cannot write down the job")?;
        if let (Some(mut stdin), Some(threads)) = (self.child.stdin.take(), &mut self.threads) {
            let write = move || {
                // The status of a process that has already ended says so.
                let _written = stdin.write_all(text.as_bytes());
            };
            threads.job = Some(named("point-job").spawn(write)?);
        }
        Ok(())
    }

    fn follow_to_the_end(
        mut self,
        interrupted: &AtomicBool,
        on_event: &mut dyn FnMut(Event) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ended> {
        let (done, failed) = match self.follow(interrupted, on_event)? {
            Followed::Ended { done, failed } => (done, failed),
            Followed::Interrupted => return Ok(Ended::Interrupted),
        };
        let (peak_bytes, tree) = (self.peak_bytes, self.tree);
        let (status, stderr) = self.wait()?;
        let verdict = self.held.as_ref().and_then(Held::verdict);
        // Ctrl-C reaches the process too, and may end it before we look.
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Ended::Interrupted);
        }
        if done && status.success() {
            return Ok(Ended::Done { tree });
        }
        let (status, message) = match failed.or(verdict) {
            Some(message) => {
                (if speaks_of_memory(&message) { Status::Oom } else { Status::Error }, message)
            }
            None => death(status, &stderr),
        };
        let message = self.secrets.hide(&message);
        Ok(Ended::Failed(Failure { status, message, peak_bytes }))
    }

    fn follow(
        &mut self,
        interrupted: &AtomicBool,
        on_event: &mut dyn FnMut(Event) -> anyhow::Result<()>,
    ) -> anyhow::Result<Followed> {
        let (mut done, mut failed) = (false, None);
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(Followed::Interrupted);
            }
            self.peak_bytes = self.peak_bytes.max(peak_of(self.child.id()));
            self.tree = self.tree.max(process_tree::memory(self.child.id()));
            match self.lines.recv_timeout(GLANCE) {
                // What is no event was printed by a library.
                Ok(line) => match serde_json::from_str(&line) {
                    Ok(Event::Done) => done = true,
                    Ok(Event::Failed { message }) => failed = Some(message),
                    Ok(event) => on_event(event.without(&self.secrets))?,
                    Err(_) => {}
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Followed::Ended { done, failed }),
            }
        }
    }

    /// Its exit status and its last lines on stderr.
    fn wait(&mut self) -> anyhow::Result<(ExitStatus, String)> {
        let status = self.child.wait().context("cannot wait for the point's process")?;
        Ok((status, self.join()))
    }

    fn join(&mut self) -> String {
        let Some(Threads { events, stderr, job }) = self.threads.take() else {
            return String::new();
        };
        for thread in [Some(events), job].into_iter().flatten() {
            let _panicked = thread.join();
        }
        stderr.join().unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.threads.is_some() {
            // Both fail only where it has ended by itself.
            let _killed = self.child.kill();
            let _status = self.child.wait();
            self.join();
        }
    }
}

fn named(thread: &str) -> Builder {
    Builder::new().name(thread.to_owned())
}

fn forward_lines(stdout: impl Read, to: &Sender<String>) {
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { break };
        if to.send(line).is_err() {
            break;
        }
    }
}

fn last_lines(stderr: impl Read) -> String {
    let mut kept = std::collections::VecDeque::new();
    for line in BufReader::new(stderr).split(b'\n') {
        let Ok(line) = line else { break };
        if kept.len() == LAST_LINES {
            kept.pop_front();
        }
        kept.push_back(String::from_utf8_lossy(&line).into_owned());
    }
    Vec::from(kept).join("\n")
}

/// Peak resident memory of another process; none once it has ended.
fn peak_of(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// What the end of a process that gave no reason means.
fn death(status: ExitStatus, stderr: &str) -> (Status, String) {
    let words = last_words(stderr);
    let said = if words.is_empty() { String::new() } else { format!(": {words}") };
    match (status.signal(), status.code()) {
        (Some(SIGKILL), _) => (
            Status::Oom,
            "killed (signal 9), as the kernel does when memory runs out: take smaller blocks"
                .to_owned(),
        ),
        (Some(_), _) if speaks_of_memory(stderr) => (Status::Oom, format!("out of memory{said}")),
        (Some(signal), _) => {
            (Status::Crashed, format!("crashed with signal {signal}{}{said}", signal_name(signal)))
        }
        (None, Some(0)) => (Status::Crashed, "the process ended without a result".to_owned()),
        (None, Some(code)) => {
            (Status::Crashed, format!("the process ended with exit code {code}{said}"))
        }
        (None, None) => (Status::Crashed, format!("the process ended unexpectedly{said}")),
    }
}

/// How Rust, C++, Python, libtorch and the system say that memory could not be had.
fn speaks_of_memory(text: &str) -> bool {
    [
        "memory allocation of",
        "memory allocation failed",
        "bad_alloc",
        "not enough memory",
        "an't allocate memory",
        "annot allocate memory",
        "out of memory",
        "MemoryError",
    ]
    .iter()
    .any(|words| text.contains(words))
        // Ours.
        || (text.contains("cannot get ") && text.contains(" bytes for "))
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        7 => " (bus error)",
        8 => " (arithmetic error)",
        11 => " (segmentation fault)",
        15 => " (asked to end)",
        _ => "",
    }
}

/// The line that says most: of a panic its message, else the last.
fn last_words(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let panic = lines
        .iter()
        .position(|line| line.contains("panicked at"))
        .and_then(|idx| lines.get(idx + 1));
    panic.or_else(|| lines.last()).map_or_else(String::new, |line| (*line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Data, Opened, Task};
    use std::time::Instant;

    fn job() -> Job {
        Job { data: Data::default(), cache: "warm".into(), task: Task::Check(Vec::new()) }
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn run_script(script: &str) -> (Ended, Vec<Event>) {
        let mut events = Vec::new();
        let ended = run(shell(script), &job(), &AtomicBool::new(false), &mut |event| {
            events.push(event);
            Ok(())
        });
        (ended.unwrap(), events)
    }

    #[track_caller]
    fn fails(script: &str, status: Status, expect: &str) {
        match run_script(script).0 {
            Ended::Failed(failure) => {
                assert_eq!(failure.status, status, "{failure:?}");
                assert!(
                    failure.message.contains(expect) && failure.message.lines().count() == 1,
                    "{failure:?}"
                );
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn events_come_in_order_and_noise_is_passed_over() {
        let script = r#"cat >/dev/null; echo noise; echo '{"Opened":{"n_cells":3,"n_genes":4,"total_nnz":5}}'
            echo '{"Progress":{"n_rows":1,"of_rows":3}}'; echo '"Done"'"#;
        let (ended, events) = run_script(script);
        assert!(matches!(ended, Ended::Done { .. }), "{ended:?}");
        assert_eq!(
            events,
            [
                Event::Opened(Opened { n_cells: 3, n_genes: 4, total_nnz: 5, ..Opened::default() }),
                Event::Progress { n_rows: 1, of_rows: 3 }
            ]
        );
    }

    #[test]
    fn the_job_comes_on_stdin() {
        let script = r#"grep -q '"cache":"warm"' && echo '"Done"'"#;
        let (ended, _) = run_script(script);
        assert!(matches!(ended, Ended::Done { .. }), "{ended:?}");
    }

    #[test]
    fn every_end_has_its_row() {
        fails(
            r#"echo '{"Failed":{"message":"no such layer"}}'; exit 1"#,
            Status::Error,
            "no such layer",
        );
        fails(
            r#"echo '{"Failed":{"message":"torch: not enough memory"}}'; exit 1"#,
            Status::Oom,
            "not enough memory",
        );
        fails(
            r#"echo '{"Failed":{"message":"cannot get 655360000 bytes for a dense block of 8192 rows"}}'; exit 1"#,
            Status::Oom,
            "655360000",
        );
        fails("kill -9 $$", Status::Oom, "killed (signal 9)");
        fails("kill -11 $$", Status::Crashed, "signal 11 (segmentation fault)");
        fails(
            "echo 'memory allocation of 8 bytes failed' >&2; kill -6 $$",
            Status::Oom,
            "memory allocation of 8 bytes",
        );
        fails("exit 0", Status::Crashed, "without a result");
        fails("echo first >&2; echo last >&2; exit 3", Status::Crashed, "exit code 3: last");
        let panic = "echo \"thread 'main' panicked at x.rs:1:1:\" >&2; echo 'index out of bounds' >&2; echo 'note: run with' >&2; exit 101";
        fails(panic, Status::Crashed, "exit code 101: index out of bounds");
        fails("echo '\"Done\"'; kill -11 $$", Status::Crashed, "signal 11");
    }

    #[test]
    fn peak_memory_of_a_killed_process_is_known() {
        let Ended::Failed(failure) = run_script("sleep 0.3; kill -9 $$").0 else {
            panic!("it ended well")
        };
        assert!(failure.peak_bytes.is_some_and(|bytes| 100_000 < bytes), "{failure:?}");
    }

    #[test]
    fn an_interrupt_ends_the_process_soon() {
        let (interrupted, start) = (AtomicBool::new(false), Instant::now());
        let ended = run(
            shell(
                "echo '{\"Opened\":{\"n_cells\":0,\"n_genes\":0,\"total_nnz\":0}}'; exec sleep 60",
            ),
            &job(),
            &interrupted,
            &mut |_| {
                interrupted.store(true, Ordering::Relaxed);
                Ok(())
            },
        );
        assert_eq!(ended.unwrap(), Ended::Interrupted);
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn an_interrupt_ends_a_process_that_does_not_read_its_job() {
        let start = Instant::now();
        // More than a pipe holds.
        let config = [("soma.long".to_owned(), "x".repeat(1 << 20))].into();
        let job = Job { data: Data { config, ..Data::default() }, ..job() };
        let ended = run(shell("exec sleep 60"), &job, &AtomicBool::new(true), &mut |_| Ok(()));
        assert_eq!(ended.unwrap(), Ended::Interrupted);
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn an_error_in_between_ends_the_process_and_is_handed_on() {
        let start = Instant::now();
        let ended = run(
            shell(
                "echo '{\"Opened\":{\"n_cells\":0,\"n_genes\":0,\"total_nnz\":0}}'; exec sleep 60",
            ),
            &job(),
            &AtomicBool::new(false),
            &mut |_| anyhow::bail!("the disk is full"),
        );
        assert_eq!(ended.unwrap_err().to_string(), "the disk is full");
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_program_that_cannot_start_is_an_error() {
        let ended =
            run(Command::new("/nonexistent/program"), &job(), &AtomicBool::new(false), &mut |_| {
                Ok(())
            });
        assert!(format!("{:#}", ended.unwrap_err()).contains("cannot start a process"));
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let text = (0..1000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let kept = last_lines(text.as_bytes());
        assert_eq!(kept.lines().count(), LAST_LINES);
        assert!(kept.ends_with("line 999"));
    }
}
