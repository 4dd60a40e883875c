//! Table of each reader's requests over a link.

use bench_run::{LinkCounts, grouped};

use super::reads::ReadKind;

/// Columns of the table.
pub(super) const HEADER: [&str; 7] =
    ["read", "reader", "requests", "MB", "connections", "most under way", "server's cores used"];

/// A legend of the columns.
pub(super) const LEGEND: &str = "Over the link: all repetitions together; the server's CPU time in cores, which it shares with \
     the readers unless it has its own.";

/// Counts of one reader's reads.
#[derive(Debug)]
pub(super) struct ReaderCounts {
    reader: &'static str,
    used: LinkCounts,
    secs: f64,
}

impl ReaderCounts {
    pub(super) fn new(reader: &'static str) -> Self {
        Self { reader, used: LinkCounts::default(), secs: 0.0 }
    }

    /// Adds a read that took `secs`.
    pub(super) fn add(&mut self, used: &LinkCounts, secs: f64) {
        self.used.requests += used.requests;
        self.used.bytes_sent += used.bytes_sent;
        self.used.connections += used.connections;
        self.used.most_under_way = self.used.most_under_way.max(used.most_under_way);
        self.used.cpu_secs += used.cpu_secs;
        self.secs += secs;
    }
}

/// The rows of one kind of reads.
pub(super) fn rows(kind: ReadKind, sides: &[ReaderCounts]) -> Vec<Vec<String>> {
    let row = |ReaderCounts { reader, used, secs }: &ReaderCounts| {
        vec![
            kind.to_string(),
            (*reader).to_owned(),
            grouped(used.requests),
            format!("{:.1}", used.bytes_sent as f64 / 1e6),
            grouped(used.connections),
            grouped(used.most_under_way),
            format!("{:.2}", if 0.0 < *secs { used.cpu_secs / secs } else { 0.0 }),
        ]
    };
    sides.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_a_reader_are_added_up() {
        let mut side = ReaderCounts::new("native");
        let used = |requests, most_under_way| LinkCounts {
            requests,
            most_under_way,
            bytes_sent: 1_500_000,
            cpu_secs: 0.5,
            ..LinkCounts::default()
        };
        side.add(&used(2, 9), 1.0);
        side.add(&used(3, 4), 3.0);
        let rows = rows("16x64".parse().unwrap(), &[side]);
        assert_eq!(rows, [["16x64", "native", "5", "3.0", "0", "9", "0.25"]]);
    }
}
