//! Runs a measured process and reports how it ended. The command goes on however it ended.

mod end;
mod start_signal;
mod tree;

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use bench_report::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::limits::{LimitedProcess, MemoryLimit};
use crate::order::Event;
use crate::over_link::LinkAccess;
use crate::secrets::Secrets;
use end::{death, looks_like_oom};

pub use end::{Ended, Failure};
pub use start_signal::StartSignal;
pub use tree::TreePeak;

/// Interval at which the process's memory and the user's wish to stop are checked.
const GLANCE: Duration = Duration::from_millis(50);

/// Number of last lines on stderr that are kept.
const LAST_LINES: usize = 40;

/// A process to start.
#[derive(Debug)]
pub struct ProcessSpec<'a> {
    /// The command; its stdin, stdout and stderr are replaced.
    pub command: Command,
    /// Input on stdin, a line of JSON. It is not an argument: other users can read a command line.
    pub input: Option<String>,
    /// Limit on the process's memory.
    pub limit: Option<&'a MemoryLimit>,
    /// Secrets to hide in the process's messages.
    pub secrets: Secrets,
    /// The link over which the process reads; its faults start again with the process.
    pub link: Option<LinkAccess>,
    /// Lets a task begin that waits for it; `None` closes stdin after the input.
    pub start: Option<StartSignal>,
}

impl ProcessSpec<'_> {
    /// Makes a process with `input` on stdin and without a memory limit. Fails if `input` cannot be
    /// serialized.
    pub fn new(command: Command, input: &impl Serialize, secrets: Secrets) -> anyhow::Result<Self> {
        let mut input = serde_json::to_string(input).context("cannot serialize an order")?;
        input.push('\n');
        Ok(Self { command, input: Some(input), limit: None, secrets, link: None, start: None })
    }

    /// Makes a process without input and without a memory limit.
    pub fn without_input(command: Command, secrets: Secrets) -> Self {
        Self { command, input: None, limit: None, secrets, link: None, start: None }
    }

    /// Returns the process with the link over which it reads.
    #[must_use]
    pub fn over(self, link: Option<LinkAccess>) -> Self {
        Self { link, ..self }
    }

    /// Starts the process and passes its progress, warnings and answers to `on_event` until it
    /// ends. Kills the process if `on_event` fails or `interrupted` is set. Fails if the process
    /// cannot be started or limited, if the server of its link has ended, and with an error of
    /// `on_event`.
    pub fn run<Answer: DeserializeOwned>(
        mut self,
        interrupted: &AtomicBool,
        on_event: &mut dyn FnMut(Event<Answer>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ended> {
        self.link.as_ref().map_or(Ok(()), LinkAccess::restart_faults)?;
        self.command.stdin(Stdio::piped());
        let mut child = Running::start(self.command, self.secrets)?;
        // The process waits for its order, so it has done nothing yet.
        child.limited = self.limit.map(|limit| limit.apply(child.child.id())).transpose()?;
        match self.input {
            Some(input) => child.give(input, self.start)?,
            None => drop(child.child.stdin.take()),
        }
        child.follow_to_the_end(interrupted, on_event)
    }
}

enum Followed {
    Ended { done: bool, failed: Option<String> },
    Interrupted,
}

/// Threads that serve a process. They end after it.
struct Threads {
    events: JoinHandle<()>,
    stderr: JoinHandle<String>,
    /// Writes the input, which may be longer than a pipe's buffer.
    input: Option<JoinHandle<()>>,
}

/// A process and the threads that serve it. Dropping it kills the process.
struct Running {
    child: Child,
    lines: Receiver<String>,
    threads: Option<Threads>,
    peak_bytes: Option<u64>,
    tree: Option<TreePeak>,
    /// Must be dropped after the process has ended.
    limited: Option<LimitedProcess>,
    secrets: Secrets,
}

impl Running {
    fn start(mut command: Command, secrets: Secrets) -> anyhow::Result<Self> {
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
            threads: Some(Threads { events, stderr, input: None }),
            peak_bytes: None,
            tree: None,
            limited: None,
            secrets,
        })
    }

    /// Writes the input in a thread of its own, so that Ctrl-C also ends a process that does not
    /// read it.
    fn give(&mut self, text: String, start: Option<StartSignal>) -> anyhow::Result<()> {
        if let (Some(mut stdin), Some(threads)) = (self.child.stdin.take(), &mut self.threads) {
            let write = move || {
                // A failed write means that the process has ended, which its exit status shows.
                let _written = stdin.write_all(text.as_bytes());
                if let Some(start) = start {
                    start.wait_with(stdin);
                }
            };
            threads.input = Some(named("point-input").spawn(write)?);
        }
        Ok(())
    }

    fn follow_to_the_end<Answer: DeserializeOwned>(
        mut self,
        interrupted: &AtomicBool,
        on_event: &mut dyn FnMut(Event<Answer>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ended> {
        let (done, failed) = match self.follow(interrupted, on_event)? {
            Followed::Ended { done, failed } => (done, failed),
            Followed::Interrupted => return Ok(Ended::Interrupted),
        };
        let (peak_bytes, tree) = (self.peak_bytes, self.tree);
        let (status, stderr) = self.wait()?;
        let verdict = self.limited.as_ref().and_then(LimitedProcess::verdict);
        // Ctrl-C reaches the process too, and may end it before this checks.
        if interrupted.load(Ordering::Relaxed) {
            return Ok(Ended::Interrupted);
        }
        if done && status.success() {
            return Ok(Ended::Done { tree });
        }
        let (status, message) = match failed.or(verdict) {
            Some(message) => {
                (if looks_like_oom(&message) { Status::Oom } else { Status::Error }, message)
            }
            None => death(status, &stderr),
        };
        let message = self.secrets.hide(&message);
        Ok(Ended::Failed(Failure { status, message, peak_bytes }))
    }

    fn follow<Answer: DeserializeOwned>(
        &mut self,
        interrupted: &AtomicBool,
        on_event: &mut dyn FnMut(Event<Answer>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Followed> {
        let (mut done, mut failed) = (false, None);
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(Followed::Interrupted);
            }
            self.peak_bytes = self.peak_bytes.max(tree::peak_of(self.child.id()));
            self.tree = self.tree.max(tree::memory(self.child.id()));
            match self.lines.recv_timeout(GLANCE) {
                // Other lines come from libraries that print.
                Ok(line) => match event(&line, &self.secrets) {
                    Some(Event::Done) => done = true,
                    Some(Event::Failed { message }) => failed = Some(message),
                    Some(event) => on_event(event)?,
                    None => {}
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Followed::Ended { done, failed }),
            }
        }
    }

    /// Waits for the end; returns the exit status and the last lines on stderr.
    fn wait(&mut self) -> anyhow::Result<(ExitStatus, String)> {
        let status = self.child.wait().context("cannot wait for the point's process")?;
        Ok((status, self.join()))
    }

    fn join(&mut self) -> String {
        let Some(Threads { events, stderr, input }) = self.threads.take() else {
            return String::new();
        };
        for thread in [Some(events), input].into_iter().flatten() {
            let _panicked = thread.join();
        }
        stderr.join().unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.threads.is_some() {
            // Both fail only if the process has already ended.
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

/// Parses an event and hides secrets in its texts, which other libraries may have written. Returns
/// `None` for any other line.
fn event<Answer: DeserializeOwned>(line: &str, secrets: &Secrets) -> Option<Event<Answer>> {
    let mut value: Value = serde_json::from_str(line).ok()?;
    hide(&mut value, secrets);
    serde_json::from_value(value).ok()
}

fn hide(value: &mut Value, secrets: &Secrets) {
    match value {
        Value::String(text) => *text = secrets.hide(text),
        Value::Array(values) => values.iter_mut().for_each(|value| hide(value, secrets)),
        Value::Object(values) => values.values_mut().for_each(|value| hide(value, secrets)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
