//! The memory of servers: its limit, and how much would do when it is full.

use std::collections::HashMap;

use crate::address::NodeAddress;
use crate::error::{Error, MemoryFull};
use crate::servers::Servers;
use crate::topology::Topology;

/// Room for what changes while servers work, like buffers of clients and tables that grow.
const MARGIN: f64 = 1.1;

/// A server before a fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Before {
    address: NodeAddress,
    used: u64,
    n_keys: u64,
}

/// Memory of a server as INFO says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Bytes in use.
    pub(crate) used: u64,
    /// Bytes in use when the server had started.
    pub(crate) at_start: u64,
    /// The limit; 0 for none.
    pub(crate) limit: u64,
    /// What happens at the limit.
    pub(crate) policy: String,
}

/// Looks at the servers before they are filled. Fails if one of them removes keys when its memory
/// is full.
pub(crate) fn before(servers: &Servers, topology: &Topology) -> Result<Vec<Before>, Error> {
    topology
        .masters
        .iter()
        .map(|master| {
            let address = &master.address;
            let memory = memory(servers, address)?;
            // The other policies remove only keys that expire, and ours do not.
            if memory.limit != 0 && memory.policy.starts_with("allkeys") {
                let (node, policy) = (address.to_string(), memory.policy);
                return Err(Error::Evicts { node, policy });
            }
            let n_keys = n_keys(servers, address)?;
            Ok(Before { address: address.clone(), used: memory.used, n_keys })
        })
        .collect()
}

/// The error for a full server, with an estimate of the memory that would do.
pub(crate) fn explain(
    servers: &Servers,
    node: &str,
    before: &[Before],
    n_stored: u64,
    n_expected: u64,
) -> Error {
    let full =
        MemoryFull { node: node.to_owned(), used: 0, limit: 0, n_stored, n_expected, needed: None };
    let topology = servers.topology();
    let found = topology.masters.iter().find(|master| master.address.to_string() == node);
    let Some(address) = found.map(|master| &master.address) else {
        return Error::MemoryFull(Box::new(full));
    };
    let (memory, n_keys) = match (memory(servers, address), n_keys(servers, address)) {
        (Ok(memory), Ok(n_keys)) => (memory, n_keys),
        (Err(error), _) | (_, Err(error)) => return error,
    };
    let before = before.iter().find(|one| one.address == *address);
    let needed = before.and_then(|before| {
        let n_new = n_keys.saturating_sub(before.n_keys);
        needed(&memory, memory.used.saturating_sub(before.used), n_new, n_stored, n_expected)
    });
    let (used, limit) = (memory.used, memory.limit);
    Error::MemoryFull(Box::new(MemoryFull { used, limit, needed, ..full }))
}

/// The limit with which a server would hold its part of all values, if those to come are like the
/// `n_new` that took `new_bytes` so far, and it gets the same part of them.
fn needed(
    memory: &Memory,
    new_bytes: u64,
    n_new: u64,
    n_stored: u64,
    n_expected: u64,
) -> Option<u64> {
    if n_new == 0 || n_stored == 0 {
        return None;
    }
    let part = (n_new as f64 / n_stored as f64).min(1.0);
    let n_to_come = n_expected.saturating_sub(n_stored) as f64 * part;
    let per_key = new_bytes as f64 / n_new as f64;
    Some(((memory.used as f64 + per_key * n_to_come) * MARGIN) as u64)
}

/// The memory of a server.
pub(crate) fn memory(servers: &Servers, address: &NodeAddress) -> Result<Memory, Error> {
    let mut command = redis::cmd("INFO");
    command.arg("memory");
    let text = servers.text(address, "INFO memory", &command)?;
    parse(&text).ok_or_else(|| Error::Answer {
        node: address.to_string(),
        command: "INFO memory".to_owned(),
        answer: text.chars().take(200).collect(),
    })
}

/// Number of keys of a server, of all namespaces.
pub(crate) fn n_keys(servers: &Servers, address: &NodeAddress) -> Result<u64, Error> {
    match servers.command(address, "DBSIZE", &redis::cmd("DBSIZE"))? {
        redis::Value::Int(n_keys) => Ok(u64::try_from(n_keys).unwrap_or(0)),
        other => Err(crate::servers::unknown_answer(address, "DBSIZE", &other)),
    }
}

/// Lines like `used_memory:1024`; `None` if one that is needed is missing.
pub(crate) fn fields(text: &str) -> HashMap<&str, &str> {
    text.lines().filter_map(|line| line.trim_end().split_once(':')).collect()
}

fn parse(text: &str) -> Option<Memory> {
    let fields = fields(text);
    let number = |name| fields.get(name)?.parse().ok();
    Some(Memory {
        used: number("used_memory")?,
        at_start: number("used_memory_startup")?,
        limit: number("maxmemory")?,
        policy: (*fields.get("maxmemory_policy")?).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Memory\r\nused_memory:3000000\r\nused_memory_startup:1000000\r\n\
                        maxmemory:3000000\r\nmaxmemory_policy:noeviction\r\n";

    #[test]
    fn memory_is_parsed() {
        let memory = parse(INFO).unwrap();
        assert_eq!((memory.used, memory.at_start, memory.limit), (3_000_000, 1_000_000, 3_000_000));
        assert_eq!(parse(&INFO.replace("startup", "other")), None);
    }

    #[test]
    fn what_would_do_follows_from_what_was_stored() {
        let memory = parse(INFO).unwrap();
        // 1,000 values took 2 MB here, of 3,000 in all; 9,000 are to come to all, 3,000 of them
        // here: 6 MB more.
        let found = needed(&memory, 2_000_000, 1_000, 3_000, 12_000).unwrap();
        assert_eq!(found, (9_000_000.0 * MARGIN) as u64);
        assert_eq!(needed(&memory, 0, 0, 3_000, 12_000), None);
    }
}
