//! Errors of starting and changing a cluster.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A cluster could not be started or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server's program is not installed.
    #[error(
        "there is no {} that runs: install Redis 7 or Valkey (Debian, Ubuntu: apt install redis-server)",
        .tried.join(" or ")
    )]
    Missing {
        /// The names that were tried.
        tried: Vec<String>,
    },
    /// The specification asks for a cluster that cannot exist.
    #[error("cannot start such a cluster: {problem}")]
    Spec {
        /// The reason.
        problem: String,
    },
    /// A file, a port or a process is not available.
    #[error("cannot {what}")]
    System {
        /// What was tried, with the place.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A server ended instead of starting.
    #[error("the server in {} did not start: {last_lines}", .folder.display())]
    Start {
        /// The folder of the node, with its configuration and its log.
        folder: PathBuf,
        /// The last lines of its log.
        last_lines: String,
    },
    /// A node refused a command, or did not answer.
    #[error("node {node} (port {port}): {command} failed")]
    Command {
        /// Position of the node.
        node: usize,
        /// Its port.
        port: u16,
        /// The command.
        command: String,
        /// Its answer, or the error of the connection.
        source: redis::RedisError,
    },
    /// A node gave an answer of another form than documented.
    #[error("node {node} (port {port}): {command} answered {answer}")]
    Answer {
        /// Position of the node.
        node: usize,
        /// Its port.
        port: u16,
        /// The command.
        command: String,
        /// The beginning of the answer.
        answer: String,
    },
    /// The cluster did not reach a state in time.
    #[error("after {} s still not {wanted}: {state}", .waited.as_secs())]
    Deadline {
        /// Time spent waiting.
        waited: Duration,
        /// The state that was waited for.
        wanted: String,
        /// The state so far.
        state: String,
    },
    /// There is no node at this position, or it is not in the state that the call needs.
    #[error("node {node}: {problem}")]
    Node {
        /// Position of the node.
        node: usize,
        /// The reason.
        problem: String,
    },
}
