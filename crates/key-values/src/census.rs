//! Keys of the namespace on each server: counting and removing them.

use redis::{Cmd, Value};

use crate::address::NodeAddress;
use crate::batch::KeyCommand;
use crate::error::Error;
use crate::requests::for_each_key;
use crate::servers::{Servers, unknown_answer};
use crate::slot::Key;

/// Keys that a server looks at for one SCAN.
const SCANNED_AT_ONCE: usize = 1024;

/// Keys and bytes of a namespace on one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCount {
    /// The server.
    pub address: NodeAddress,
    /// Keys of values.
    pub n_keys: u64,
    /// Bytes of the values.
    pub n_bytes: u64,
}

/// Counts keys and bytes on each master. Looks at every key of the server, of all namespaces.
pub(crate) fn count(servers: &Servers, stop: &dyn Fn() -> bool) -> Result<Vec<NodeCount>, Error> {
    let mut counts = Vec::new();
    for master in &servers.topology().masters {
        let mut keys = Vec::new();
        scan(servers, &master.address, stop, &mut |found| {
            keys.extend(found.iter().filter(|key| **key != Key::Manifest));
            Ok(())
        })?;
        // A key that is scanned twice counts once.
        keys.sort_unstable_by_key(|key| if let Key::Value(number) = key { *number } else { 0 });
        keys.dedup();
        let n_keys = keys.len() as u64;
        let n_bytes = lengths(servers, &keys, stop)?;
        counts.push(NodeCount { address: master.address.clone(), n_keys, n_bytes });
    }
    Ok(counts)
}

fn lengths(servers: &Servers, keys: &[Key], stop: &dyn Fn() -> bool) -> Result<u64, Error> {
    let mut n_bytes = 0;
    let keys = keys.iter().copied();
    let at_once = servers.pipeline_keys;
    for_each_key(
        servers,
        KeyCommand::Strlen,
        keys,
        at_once,
        stop,
        &mut |_, value, node| match value {
            Value::Int(length) => {
                n_bytes += u64::try_from(length).unwrap_or(0);
                Ok(())
            }
            other => Err(unknown_answer(node, "STRLEN", &other)),
        },
    )?;
    Ok(n_bytes)
}

/// Removes all keys of the namespace. Returns their number.
pub(crate) fn clear(servers: &Servers, stop: &dyn Fn() -> bool) -> Result<u64, Error> {
    let mut n_removed = 0;
    // Keys that move to a server that was scanned already are found by the next round.
    loop {
        let n_before = n_removed;
        for master in &servers.topology().masters {
            scan(servers, &master.address, stop, &mut |found| {
                n_removed += unlink(servers, found, stop)?;
                Ok(())
            })?;
        }
        if n_removed == n_before {
            return Ok(n_removed);
        }
    }
}

fn unlink(servers: &Servers, keys: &[Key], stop: &dyn Fn() -> bool) -> Result<u64, Error> {
    let mut n_removed = 0;
    let keys = keys.iter().copied();
    let at_once = servers.pipeline_keys;
    for_each_key(
        servers,
        KeyCommand::Unlink,
        keys,
        at_once,
        stop,
        &mut |_, value, node| match value {
            Value::Int(n_keys) => {
                n_removed += u64::try_from(n_keys).unwrap_or(0);
                Ok(())
            }
            other => Err(unknown_answer(node, "UNLINK", &other)),
        },
    )?;
    Ok(n_removed)
}

/// Passes on the keys of the namespace on a server, some at a time. A key may come twice.
fn scan(
    servers: &Servers,
    address: &NodeAddress,
    stop: &dyn Fn() -> bool,
    found: &mut dyn FnMut(&[Key]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut cursor = b"0".to_vec();
    loop {
        if stop() {
            return Err(Error::Stopped);
        }
        let mut command = Cmd::new();
        command.arg("SCAN").arg(&cursor).arg("MATCH").arg(servers.namespace.pattern());
        command.arg("COUNT").arg(SCANNED_AT_ONCE);
        let answer = servers.command(address, "SCAN", &command)?;
        let parts = page(answer);
        let (next, texts) = parts.map_err(|answer| unknown_answer(address, "SCAN", &answer))?;
        let keys: Vec<Key> =
            texts.iter().filter_map(|text| servers.namespace.parse(text)).collect();
        found(&keys)?;
        if next == b"0" {
            return Ok(());
        }
        cursor = next;
    }
}

/// The cursor and the keys of SCAN's answer; the answer if it has another form.
fn page(answer: Value) -> Result<(Vec<u8>, Vec<Vec<u8>>), Value> {
    let Value::Array(parts) = &answer else { return Err(answer) };
    let [Value::BulkString(cursor), Value::Array(keys)] = &parts[..] else { return Err(answer) };
    let texts = keys.iter().map(|key| match key {
        Value::BulkString(text) => Some(text.clone()),
        _ => None,
    });
    match texts.collect::<Option<Vec<_>>>() {
        Some(texts) => Ok((cursor.clone(), texts)),
        None => Err(answer),
    }
}
