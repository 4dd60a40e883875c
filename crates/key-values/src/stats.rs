//! Statistics of servers.

use crate::address::NodeAddress;
use crate::error::Error;
use crate::memory;
use crate::servers::Servers;

/// Statistics of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStats {
    /// Its id: of the node in its cluster, or of the run of a server that is not in one.
    pub id: String,
    /// Its address.
    pub address: NodeAddress,
    /// Slots that it owns, of 16,384.
    pub n_slots: usize,
    /// Its replicas.
    pub replicas: Vec<NodeAddress>,
    /// Its keys, of all namespaces.
    pub n_keys: u64,
    /// Bytes of memory that it uses, for data, tables, buffers and itself.
    pub used_memory: u64,
    /// Bytes that it used when it had started, empty.
    pub memory_at_start: u64,
    /// Limit on its memory in bytes; `None` for no limit.
    pub max_memory: Option<u64>,
    /// Its version, like `7.0.15`.
    pub version: String,
}

impl NodeStats {
    /// Bytes of memory per byte of value, if the server has nothing but `n_bytes` of values;
    /// without what an empty server uses. `None` without values.
    pub fn bytes_per_byte(&self, n_bytes: u64) -> Option<f64> {
        let used = self.used_memory.saturating_sub(self.memory_at_start);
        (n_bytes != 0).then(|| used as f64 / n_bytes as f64)
    }
}

/// How evenly keys are spread: those of the fullest server over the mean; 1 is even. `None` without
/// keys.
pub fn balance(n_keys: &[u64]) -> Option<f64> {
    let total: u64 = n_keys.iter().sum();
    let most = n_keys.iter().max().filter(|_| total != 0)?;
    Some(*most as f64 * n_keys.len() as f64 / total as f64)
}

/// Statistics of all masters, in the order of addresses.
pub(crate) fn stats(servers: &Servers) -> Result<Vec<NodeStats>, Error> {
    let topology = servers.topology();
    let mut all: Vec<NodeStats> = topology
        .masters
        .iter()
        .map(|master| {
            let address = &master.address;
            let memory = memory::memory(servers, address)?;
            let mut command = redis::cmd("INFO");
            command.arg("server");
            let text = servers.text(address, "INFO server", &command)?;
            let fields = memory::fields(&text);
            let field = |name: &str| fields.get(name).map_or_else(String::new, ToString::to_string);
            // Valkey says for which version of Redis its clients were written, too.
            let own = field("valkey_version");
            Ok(NodeStats {
                id: if master.id.is_empty() { field("run_id") } else { master.id.clone() },
                address: address.clone(),
                n_slots: master.n_slots,
                replicas: master.replicas.clone(),
                n_keys: memory::n_keys(servers, address)?,
                used_memory: memory.used,
                memory_at_start: memory.at_start,
                max_memory: (memory.limit != 0).then_some(memory.limit),
                version: if own.is_empty() { field("redis_version") } else { own },
            })
        })
        .collect::<Result<_, Error>>()?;
    all.sort_by(|one, other| one.address.cmp(&other.address));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balance_is_one_if_even() {
        assert_eq!(balance(&[5, 5, 5]), Some(1.0));
        assert_eq!(balance(&[9, 0, 0]), Some(3.0));
        assert_eq!(balance(&[0, 0]), None);
        assert_eq!(balance(&[]), None);
    }
}
