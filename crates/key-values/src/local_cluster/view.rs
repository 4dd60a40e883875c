//! A node's view of the cluster: its answer to CLUSTER NODES.

/// A node, as the cluster sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its name in the cluster, 40 hexadecimal digits; empty for a server that is not a cluster.
    pub id: String,
    /// Its address, `127.0.0.1`.
    pub host: String,
    /// Its port for clients, without TLS.
    pub port: u16,
    /// Number of its process; `None` if it was killed.
    pub pid: Option<u32>,
    /// Its role.
    pub role: Role,
    /// Number of slots that it serves.
    pub n_slots: u16,
}

/// The role of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It serves slots, or could.
    Master,
    /// It copies the master at this position.
    Replica {
        /// Position of its master.
        of: usize,
    },
    /// Its process was killed.
    Stopped,
}

/// A line of CLUSTER NODES.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) id: String,
    pub(super) is_master: bool,
    /// Whether nobody says that the node has failed, and it is known by more than its address.
    pub(super) is_well: bool,
    /// The id of a replica's master.
    pub(super) master: Option<String>,
    pub(super) n_slots: u16,
}

/// Parses the answer to CLUSTER NODES; `None` if it has another form than documented.
pub(super) fn parse(answer: &str) -> Option<Vec<Line>> {
    answer.lines().map(parse_line).collect()
}

/// The words of a line: id, address, flags, master, ping, pong, epoch, link, slots.
fn parse_line(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split(' ').collect();
    let (id, flags, master) = (words.first()?, words.get(2)?, words.get(3)?);
    let has = |flag: &str| flags.split(',').any(|one| one == flag);
    let link = *words.get(7)?;
    // A slot that is moving is listed in brackets, in addition to the slots that are served.
    let ranges = words[8..].iter().filter(|word| !word.starts_with('['));
    let n_slots = ranges.map(|range| count(range)).sum::<Option<u16>>()?;
    Some(Line {
        id: (*id).to_owned(),
        is_master: has("master"),
        is_well: !["fail", "fail?", "handshake", "noaddr"].into_iter().any(has)
            && (has("myself") || link == "connected"),
        master: (*master != "-").then(|| (*master).to_owned()),
        n_slots,
    })
}

/// The number of slots in `7` or `7-12`.
fn count(range: &str) -> Option<u16> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    last.checked_sub(first)?.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed() {
        let answer = "\
aa 127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-99 200 [300->-bb]
bb 127.0.0.1:7002@17002 slave aa 0 1426238316232 2 connected
cc 127.0.0.1:7003@17003 master,fail - 0 0 3 disconnected 100-199
";
        let lines = parse(answer).unwrap();
        let (first, second, third) = (&lines[0], &lines[1], &lines[2]);
        assert!(first.is_master && first.is_well && first.n_slots == 101, "{first:?}");
        assert!(!second.is_master && second.master.as_deref() == Some("aa"), "{second:?}");
        assert!(third.is_master && !third.is_well && third.n_slots == 100, "{third:?}");
        for wrong in ["", "aa", "aa b c d e f g connected 9-1", "aa b c d e f g connected x"] {
            assert_eq!(parse_line(wrong), None, "{wrong}");
        }
    }
}
