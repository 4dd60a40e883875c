//! Messages between the commands of several ranks: lines of JSON.

use std::io::{BufRead, Read as _, Write};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bench_report::{HostInfo, Status};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::order::Event;
use crate::process::Failure;

/// Interval at which each side shows that it is alive.
pub(super) const ALIVE: Duration = Duration::from_secs(5);

/// Longest silence of the other side; after it, its machine counts as lost.
pub(super) const LONGEST_SILENCE: Duration = Duration::from_mins(1);

/// Longest time that a new connection may take to introduce itself.
pub(super) const INTRODUCTION: Duration = Duration::from_secs(10);

/// Longest introduction, in bytes.
const MOST_INTRODUCTION: u64 = 1 << 16;

/// An event of a rank's process, up to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RankEvent<Answer> {
    /// The rank has come, from this machine.
    Came(Box<HostInfo>),
    /// It has prepared its task, and waits for the start.
    Ready,
    /// Progress of its task.
    Progress {
        /// Rows done so far.
        n_rows: u64,
        /// Rows of the whole task.
        of_rows: u64,
    },
    /// A problem that does not end its task.
    Warning {
        /// Message in one line.
        message: String,
    },
    /// A result.
    Answer(Answer),
    /// Its task is done.
    Done,
    /// Its task failed, or its process died.
    Failed {
        /// The kind of failure.
        status: Status,
        /// Reason in one line.
        message: String,
        /// Highest sampled peak memory of its process, in bytes.
        peak_bytes: Option<u64>,
    },
    /// Nothing happened, but it is alive.
    Alive,
}

impl<Answer> RankEvent<Answer> {
    /// The event of a rank's process; `None` for those that its end repeats.
    pub(super) fn from_event(event: Event<Answer>) -> Option<Self> {
        match event {
            Event::Ready => Some(Self::Ready),
            Event::Progress { n_rows, of_rows } => Some(Self::Progress { n_rows, of_rows }),
            Event::Warning { message } => Some(Self::Warning { message }),
            Event::Answer(answer) => Some(Self::Answer(answer)),
            Event::Failed { .. } | Event::Done => None,
        }
    }

    /// The end of a process that did not finish.
    pub(super) fn failed(failure: Failure) -> Self {
        let Failure { status, message, peak_bytes } = failure;
        Self::Failed { status, message, peak_bytes }
    }

    /// The end of a rank for another reason than its process's.
    pub(super) fn lost(message: impl Into<String>) -> Self {
        Self::Failed { status: Status::Crashed, message: message.into(), peak_bytes: None }
    }

    /// Whether nothing follows it.
    pub(super) fn is_end(&self) -> bool {
        matches!(self, Self::Done | Self::Failed { .. })
    }
}

/// The first line of a rank on its connection to rank 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Introduction {
    /// The key of the meeting.
    pub(super) key: String,
    pub(super) rank: u64,
    pub(super) world_size: u64,
    /// Digest of the settings, which all ranks share.
    pub(super) settings: String,
    /// The machine.
    pub(super) host: HostInfo,
}

/// A message from rank 0 to another rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum FromZero {
    /// The rank belongs to this run.
    Welcome,
    /// All ranks are ready: begin.
    Start,
    /// Nothing happened, but rank 0 is alive.
    Alive,
    /// All ranks are done, and the results are kept.
    Finished,
    /// The run has failed.
    Stop {
        /// Reason in one line.
        reason: String,
    },
}

/// Writes a message as a line.
pub(super) fn write_message(to: &mut impl Write, message: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(message).context("cannot serialize a message")?;
    line.push(b'\n');
    to.write_all(&line).context("cannot send a message")
}

/// Reads the next message; `None` at the end of the connection.
pub(super) fn read_message<T: DeserializeOwned>(
    from: &mut impl BufRead,
) -> anyhow::Result<Option<T>> {
    let mut line = String::new();
    from.read_line(&mut line).context("cannot receive a message")?;
    if !line.ends_with('\n') {
        return Ok(None);
    }
    serde_json::from_str(&line).context("a message is not of this program").map(Some)
}

/// Reads an introduction, which is short: whoever connects may write anything.
pub(super) fn read_introduction(from: &mut impl BufRead) -> anyhow::Result<Introduction> {
    let mut line = String::new();
    from.take(MOST_INTRODUCTION).read_line(&mut line).context("no introduction came")?;
    ensure!(line.ends_with('\n'), "the introduction is cut off");
    serde_json::from_str(&line).context("the introduction is not of this program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_pass_through_lines() {
        let events = [
            RankEvent::Came(Box::default()),
            RankEvent::Answer(0.1 + 0.2),
            RankEvent::lost("a\nb"),
            RankEvent::Done,
        ];
        let mut bytes = Vec::new();
        for event in &events {
            write_message(&mut bytes, event).unwrap();
        }
        let mut from = bytes.as_slice();
        for event in &events {
            assert_eq!(read_message(&mut from).unwrap().as_ref(), Some(event));
        }
        assert_eq!(read_message::<RankEvent<f64>>(&mut from).unwrap(), None);
        // A message that is cut off counts as the end.
        assert_eq!(read_message::<RankEvent<f64>>(&mut &bytes[..9]).unwrap(), None);
        assert!(read_message::<RankEvent<f64>>(&mut &b"noise\n"[..]).is_err());
    }

    #[test]
    fn an_introduction_is_short() {
        let long = vec![b'x'; 1 << 20];
        assert!(read_introduction(&mut long.as_slice()).is_err());
        assert!(read_introduction(&mut &b"GET / HTTP/1.1\n"[..]).is_err());
    }
}
