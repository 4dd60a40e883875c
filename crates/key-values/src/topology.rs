//! Which server owns which slots.

use redis::Value;

use crate::address::NodeAddress;
use crate::slot::N_SLOTS;

/// Marks a slot that nobody owns.
const NOBODY: u16 = u16::MAX;

/// A server that owns slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Master {
    pub(crate) address: NodeAddress,
    pub(crate) id: String,
    pub(crate) n_slots: usize,
    pub(crate) replicas: Vec<NodeAddress>,
}

/// The owners of all slots.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Topology {
    pub(crate) masters: Vec<Master>,
    /// For each slot the position of its owner.
    owners: Vec<u16>,
}

impl Topology {
    /// A server that owns everything because it is not in a cluster.
    pub(crate) fn single(address: NodeAddress) -> Self {
        let master = Master { address, id: String::new(), n_slots: N_SLOTS, replicas: Vec::new() };
        Self { masters: vec![master], owners: vec![0; N_SLOTS] }
    }

    /// The position of the owner of a slot.
    pub(crate) fn owner(&self, slot: u16) -> Option<usize> {
        let owner = self.owners.get(usize::from(slot)).copied();
        owner.filter(|owner| *owner != NOBODY).map(usize::from)
    }

    /// Whether each slot has the same owner in both.
    pub(crate) fn has_same_owners(&self, other: &Self) -> bool {
        let owner = |topology: &Self, slot| {
            topology.owner(slot).map(|at| topology.masters[at].address.clone())
        };
        (0..N_SLOTS as u16).all(|slot| owner(self, slot) == owner(other, slot))
    }

    /// All servers, masters first.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &NodeAddress> {
        let masters = self.masters.iter().map(|master| &master.address);
        masters.chain(self.masters.iter().flat_map(|master| &master.replicas))
    }

    /// Parses the answer of `answered` to CLUSTER SLOTS: a list of first slot, last slot, master,
    /// replicas. `None` if it has another form, or no slots.
    pub(crate) fn parse(answer: &Value, answered: &NodeAddress) -> Option<Self> {
        let mut topology = Self { masters: Vec::new(), owners: vec![NOBODY; N_SLOTS] };
        for range in list(answer)? {
            let [first, last, master, replicas @ ..] = list(range)? else { return None };
            let (first, last) = (slot(first)?, slot(last)?);
            let (address, id) = node(master, answered)?;
            let known = topology.masters.iter().position(|one| one.address == address);
            let at = known.unwrap_or(topology.masters.len());
            if known.is_none() {
                let addresses =
                    replicas.iter().map(|one| node(one, answered).map(|(place, _)| place));
                let replicas = addresses.collect::<Option<Vec<_>>>()?;
                topology.masters.push(Master { address, id, n_slots: 0, replicas });
            }
            topology.masters[at].n_slots += (last + 1).checked_sub(first)?;
            topology.owners[first..=last].fill(u16::try_from(at).ok()?);
        }
        (!topology.masters.is_empty()).then_some(topology)
    }
}

fn list(value: &Value) -> Option<&[Value]> {
    if let Value::Array(values) = value { Some(values) } else { None }
}

fn slot(value: &Value) -> Option<usize> {
    let Value::Int(slot) = value else { return None };
    usize::try_from(*slot).ok().filter(|slot| *slot < N_SLOTS)
}

/// A node is a list of host, port and id. The host is missing if it is the one that was asked.
fn node(value: &Value, answered: &NodeAddress) -> Option<(NodeAddress, String)> {
    let [host, port, rest @ ..] = list(value)? else { return None };
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::Nil => "",
        _ => return None,
    };
    let Value::Int(port) = port else { return None };
    let id = match rest.first() {
        Some(Value::BulkString(id)) => String::from_utf8_lossy(id).into_owned(),
        _ => String::new(),
    };
    let host = if matches!(host, "" | "?") { answered.host.clone() } else { host.to_owned() };
    Some((NodeAddress { host, port: u16::try_from(*port).ok()? }, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn server(host: Value, port: i64, id: &str) -> Value {
        Value::Array(vec![host, Value::Int(port), text(id), Value::Array(Vec::new())])
    }

    fn range(first: i64, last: i64, nodes: Vec<Value>) -> Value {
        Value::Array([vec![Value::Int(first), Value::Int(last)], nodes].concat())
    }

    fn asked() -> NodeAddress {
        NodeAddress { host: "asked".into(), port: 1 }
    }

    #[test]
    fn owners_are_parsed() {
        let first = || server(text("10.0.0.1"), 7001, "aa");
        let answer = Value::Array(vec![
            range(0, 99, vec![first(), server(text("10.0.0.3"), 7003, "cc")]),
            range(200, 299, vec![server(Value::Nil, 7002, "bb")]),
            range(300, 16_383, vec![first()]),
        ]);
        let topology = Topology::parse(&answer, &asked()).unwrap();
        assert_eq!([0, 99, 200, 16_383].map(|slot| topology.owner(slot)), [0, 0, 1, 0].map(Some));
        assert_eq!([100, 199, 16_384].map(|slot| topology.owner(slot)), [None; 3]);
        assert!(topology.has_same_owners(&topology));
        assert!(!topology.has_same_owners(&Topology::single(asked())));
        let addresses: Vec<String> = topology.addresses().map(ToString::to_string).collect();
        assert_eq!(addresses, ["10.0.0.1:7001", "asked:7002", "10.0.0.3:7003"]);
        assert_eq!((topology.masters[0].n_slots, &*topology.masters[0].id), (16_184, "aa"));
    }

    #[test]
    fn other_forms_are_refused() {
        let node = || vec![server(text("h"), 1, "a")];
        for answer in [
            Value::Nil,
            Value::Array(Vec::new()),
            Value::Array(vec![range(0, 16_384, node())]),
            Value::Array(vec![range(-1, 5, node())]),
            Value::Array(vec![range(7, 5, node())]),
            Value::Array(vec![range(0, 5, Vec::new())]),
            Value::Array(vec![range(0, 5, vec![text("h")])]),
            Value::Array(vec![range(0, 5, vec![server(text("h"), 70_000, "a")])]),
        ] {
            assert_eq!(Topology::parse(&answer, &asked()), None, "{answer:?}");
        }
    }
}
