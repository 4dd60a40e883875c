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

/// Numbers that are looked for before the next ones.
const AT_ONCE: u64 = 1 << 20;

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
    let mut ranges = Vec::new();
    let mut start = numbers.start;
    // Some at a time: of a large empty store every number is missing.
    while start < numbers.end {
        let end = numbers.end.min(start.saturating_add(AT_ONCE));
        join(&mut ranges, &missing_in(servers, start..end, stop)?);
        start = end;
    }
    Ok(ranges)
}

/// The numbers without a value, ascending.
fn missing_in(
    servers: &Servers,
    numbers: Range<u64>,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<u64>, Error> {
    let mut missing = Vec::new();
    let (keys, at_once) = (numbers.map(Key::Value), servers.pipeline_keys);
    for_each_key(servers, KeyCommand::Exists, keys, at_once, stop, &mut |command, value, node| {
        match (value, command.key) {
            (Value::Int(0), Key::Value(number)) => {
                missing.push(number);
                Ok(())
            }
            (Value::Int(1), _) => Ok(()),
            (other, _) => Err(unknown_answer(node, "EXISTS", &other)),
        }
    })?;
    missing.sort_unstable();
    Ok(missing)
}

/// Appends ascending numbers to ranges that end before them.
fn join(ranges: &mut Vec<Range<u64>>, numbers: &[u64]) {
    for number in numbers {
        match ranges.last_mut() {
            Some(last) if last.end == *number => last.end += 1,
            _ => ranges.push(*number..*number + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_joined_to_ranges() {
        let mut ranges = Vec::new();
        join(&mut ranges, &[]);
        assert_eq!(ranges, []);
        join(&mut ranges, &[0, 1, 2, 5, 7]);
        join(&mut ranges, &[8, 10]);
        assert_eq!(ranges, [0..3, 5..6, 7..9, 10..11]);
    }
}
