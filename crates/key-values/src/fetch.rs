//! Reads values, and finds missing ones.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use redis::Value;

use crate::batch::{Command, KeyCommand};
use crate::error::Error;
use crate::requests::for_each_key;
use crate::servers::{Servers, unknown_answer};
use crate::slot::Key;

/// Bytes of a value before any was read.
const FIRST_GUESS: u64 = 1024;

/// Bytes of a typical value, so that a server is asked for about `pipeline_bytes` at once.
#[derive(Debug)]
pub(crate) struct TypicalValue(AtomicU64);

impl Default for TypicalValue {
    fn default() -> Self {
        Self(AtomicU64::new(FIRST_GUESS))
    }
}

impl TypicalValue {
    /// Number of values that a server is asked for at once.
    fn at_once(&self, servers: &Servers) -> usize {
        let bytes = self.0.load(Ordering::Relaxed).max(1);
        let n_values = servers.pipeline_bytes as u64 / bytes;
        usize::try_from(n_values).unwrap_or(usize::MAX).clamp(1, servers.pipeline_keys)
    }
}

/// Reads the values of `keys`, in any order: `each` gets the position of a key and its value.
pub(crate) fn get_many(
    servers: &Servers,
    typical: &TypicalValue,
    keys: &[u64],
    stop: &dyn Fn() -> bool,
    mut each: impl FnMut(usize, &[u8]),
) -> Result<(), Error> {
    let (mut n_values, mut n_bytes) = (0_u64, 0_u64);
    let numbers = keys.iter().map(|number| Key::Value(*number));
    let at_once = typical.at_once(servers);
    for_each_key(servers, KeyCommand::Get, numbers, at_once, stop, &mut |command, value, node| {
        match value {
            Value::BulkString(bytes) => {
                n_values += 1;
                n_bytes += bytes.len() as u64;
                each(command.tag, &bytes);
                Ok(())
            }
            Value::Nil => Err(missing(servers, command)),
            other => Err(unknown_answer(node, "GET", &other)),
        }
    })?;
    if let Some(mean) = n_bytes.checked_div(n_values) {
        typical.0.store(mean, Ordering::Relaxed);
    }
    Ok(())
}

fn missing(servers: &Servers, command: &Command) -> Error {
    match command.key {
        Key::Value(key) => {
            Error::MissingValue { key, namespace: servers.namespace.name().to_owned() }
        }
        Key::Manifest => Error::Refused {
            node: "the store".to_owned(),
            key: servers.namespace.show(command.key),
            answer: "it does not exist".to_owned(),
        },
    }
}

/// The numbers within `numbers` that have no value, as ascending ranges.
pub(crate) fn which_are_missing(
    servers: &Servers,
    numbers: Range<u64>,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Range<u64>>, Error> {
    let mut missing = Vec::new();
    let keys = numbers.map(Key::Value);
    for_each_key(
        servers,
        KeyCommand::Exists,
        keys,
        servers.pipeline_keys,
        stop,
        &mut |command, value, node| match (value, command.key) {
            (Value::Int(0), Key::Value(number)) => {
                missing.push(number);
                Ok(())
            }
            (Value::Int(1), _) => Ok(()),
            (other, _) => Err(unknown_answer(node, "EXISTS", &other)),
        },
    )?;
    missing.sort_unstable();
    Ok(ranges(&missing))
}

/// Joins ascending numbers to ranges.
fn ranges(numbers: &[u64]) -> Vec<Range<u64>> {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    runs.filter_map(|run| Some(*run.first()?..run.last()? + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_joined_to_ranges() {
        assert_eq!(ranges(&[]), []);
        assert_eq!(ranges(&[3]), [3..4]);
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), [0..3, 5..6, 7..9]);
    }
}
