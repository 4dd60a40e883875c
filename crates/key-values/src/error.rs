//! Errors of a store in a Redis cluster.

use std::time::Duration;

/// The store could not be opened, filled or read.
///
/// No text contains a user's name or a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address, the namespace or a setting is not valid.
    #[error("{what}: {problem}")]
    Spec {
        /// The setting, with its value if that is not a secret.
        what: String,
        /// The reason.
        problem: String,
    },
    /// No server could be reached.
    #[error(
        "cannot connect to {node}: {problem}; is a server running there, with or without TLS as the address says?"
    )]
    Connect {
        /// The server.
        node: String,
        /// The reason.
        problem: String,
    },
    /// The server wants another user or password.
    #[error(
        "{node} refuses the user or the password of the address: {problem} (in an address `%40` \
         stands for @, `%2F` for /, `%25` for %)"
    )]
    Login {
        /// The server.
        node: String,
        /// Its answer.
        problem: String,
    },
    /// Several addresses were given, but the server is alone.
    #[error(
        "{node} is not a node of a cluster: give its address alone, or the nodes of one cluster"
    )]
    NotCluster {
        /// The server.
        node: String,
    },
    /// The server removes keys when its memory is full, so nothing would be safe in it.
    #[error(
        "{node} removes keys when its memory is full (maxmemory-policy {policy}): set maxmemory-policy to noeviction"
    )]
    Evicts {
        /// The server.
        node: String,
        /// Its policy.
        policy: String,
    },
    /// A server has reached its limit on memory.
    #[error("{0}")]
    MemoryFull(Box<MemoryFull>),
    /// The store has no value with this number.
    #[error(
        "there is no value {key}: the store `{namespace}` is not filled, or its keys were removed"
    )]
    MissingValue {
        /// The number of the value.
        key: u64,
        /// The namespace.
        namespace: String,
    },
    /// A server refuses a command.
    #[error("{node} refuses {key}: {answer}")]
    Refused {
        /// The server.
        node: String,
        /// The key, or the command.
        key: String,
        /// The server's answer.
        answer: String,
    },
    /// A key could not be read or written for a long time: its server is gone, or nobody owns it.
    #[error("{key} cannot be read or written for {} s; last, {node}: {problem}", .waited.as_secs_f64().round())]
    GaveUp {
        /// The server that was asked last, or that should have it.
        node: String,
        /// The key.
        key: String,
        /// Time since the last success.
        waited: Duration,
        /// The last problem.
        problem: String,
    },
    /// A server's answer has another form than documented.
    #[error("{node} answered {command} in an unknown form: {answer}")]
    Answer {
        /// The server.
        node: String,
        /// The command.
        command: String,
        /// The beginning of the answer.
        answer: String,
    },
    /// The caller asked to stop.
    #[error("stopped before the end")]
    Stopped,
    /// The system does not give a thread.
    #[error("cannot start a thread that writes to a server")]
    Thread {
        /// The system's error.
        source: std::io::Error,
    },
}

/// Details of [`Error::MemoryFull`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the memory of {node} is full: {used} of {limit} bytes are used, after {n_stored} of {n_expected} values; {}",
    advice(*.needed, *.limit)
)]
pub struct MemoryFull {
    /// The server.
    pub node: String,
    /// Bytes in use (`used_memory`).
    pub used: u64,
    /// Its limit in bytes (`maxmemory`).
    pub limit: u64,
    /// Values written to all servers, by this call.
    pub n_stored: u64,
    /// Values that this call was to write.
    pub n_expected: u64,
    /// A limit with which this server would hold its part, in bytes: an estimate from the bytes
    /// that a value took so far. `None` if the server took no value.
    pub needed: Option<u64>,
}

fn advice(needed: Option<u64>, limit: u64) -> String {
    match needed {
        Some(bytes) => format!(
            "set maxmemory of each server to about {} MiB ({:.1} x the limit), or add servers",
            bytes.div_ceil(1 << 20),
            bytes as f64 / limit.max(1) as f64
        ),
        None => "it was full before the first value: raise maxmemory, or remove other keys".into(),
    }
}
