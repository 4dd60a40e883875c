//! The measured process's side of the protocol: reads its order, performs it, and reports.

use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use bench_report::resident_bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::kernel;
use crate::order::{Event, Order};
use crate::page_cache::{Cold, PageCache, cool};
use crate::secrets::Secrets;

/// Least time between two reports of progress.
const PROGRESS: Duration = Duration::from_millis(200);

/// Reads an order from stdin, performs it, and reports on stdout. Reports an error of `perform` as
/// an event without the order's secrets, and returns it for the exit code.
pub fn serve<Task: DeserializeOwned, Answer: Serialize>(
    secrets: impl FnOnce(&Task) -> Secrets,
    perform: impl FnOnce(&Order<Task>, &mut Reporter<Answer>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    // Exits with the parent; nobody would read the result. On systems other than Linux, it exits at
    // its next report.
    kernel::end_with_parent();
    // Begins before anything is opened: all later memory counts for the order's limit.
    let mut reporter = Reporter::begin(resident_bytes()?);
    let mut text = String::new();
    // One line: after it, stdin carries the signal to begin, if the task waits for one.
    io::stdin().read_line(&mut text).context("cannot read the order from stdin")?;
    let order: Order<Task> = serde_json::from_str(&text)
        .context("stdin holds no order; another command of this program starts this one")?;
    match perform(&order, &mut reporter) {
        Ok(()) => reporter.print(&Event::Done),
        Err(error) => {
            let message = secrets(&order.task).hide(&one_line(&format!("{error:#}")));
            reporter.print(&Event::Failed { message: message.clone() })?;
            Err(anyhow!(message))
        }
    }
}

/// Reports to the command that started this process. A report fails if that command has ended,
/// which ends this process too.
#[derive(Debug)]
pub struct Reporter<Answer> {
    start_bytes: u64,
    last_progress: Instant,
    answers: PhantomData<fn(Answer)>,
}

impl<Answer: Serialize> Reporter<Answer> {
    fn begin(start_bytes: u64) -> Self {
        Self { start_bytes, last_progress: Instant::now(), answers: PhantomData }
    }

    /// Reports a result.
    pub fn answer(&mut self, answer: Answer) -> anyhow::Result<()> {
        self.print(&Event::Answer(answer))
    }

    /// Reports the rows done so far, unless the last report was a moment ago.
    pub fn progress(&mut self, n_rows: u64, of_rows: u64) -> anyhow::Result<()> {
        if self.last_progress.elapsed() < PROGRESS {
            return Ok(());
        }
        self.last_progress = Instant::now();
        self.print(&Event::Progress { n_rows, of_rows })
    }

    /// Reports the first line of a warning.
    pub fn warn(&mut self, message: &str) -> anyhow::Result<()> {
        self.print(&Event::Warning { message: one_line(message) })
    }

    /// Removes all files of `folders` from the page cache; returns the state's name, and warns if
    /// the cache is not cold.
    pub fn cool(&mut self, folders: Option<&[PathBuf]>, how: Cold) -> anyhow::Result<String> {
        let state = cool(folders, how);
        if let PageCache::Unknown(why) = &state {
            self.warn(&format!("the page cache is not cold: {why}"))?;
        }
        Ok(state.name().to_owned())
    }

    /// Reports that the task is prepared, and waits for the signal to begin
    /// ([`StartSignal`](crate::StartSignal)). Fails if the command ends before.
    pub fn wait_for_start(&mut self) -> anyhow::Result<()> {
        self.print(&Event::Ready)?;
        let mut line = String::new();
        io::stdin().read_line(&mut line).context("cannot read the signal to begin from stdin")?;
        ensure!(!line.is_empty(), "the command ended before the task began");
        Ok(())
    }

    /// Returns the growth of resident memory since the start, in bytes.
    pub fn grown_bytes(&self) -> anyhow::Result<u64> {
        Ok(resident_bytes()?.saturating_sub(self.start_bytes))
    }

    #[expect(clippy::unused_self, reason = "only the holder of a `Reporter` may print")]
    fn print(&self, event: &Event<Answer>) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(event).context("cannot serialize an event")?;
        line.push('\n');
        let mut out = io::stdout().lock();
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).context("the command has ended")
    }
}

/// Returns the first line. libtorch's messages have a stack trace below it.
fn one_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_of_a_message_is_reported() {
        assert_eq!(one_line("torch: no memory\nException raised from x.cpp\n"), "torch: no memory");
        assert_eq!(one_line(""), "");
    }
}
