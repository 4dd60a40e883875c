//! Table of each grid point's requests, bytes and connections over a link, beside the floors, for a
//! terminal and as Markdown.

use serde::Serialize;

use crate::{
    EpochRecord, GridPoint, LINK, LINK_CORES, LINK_FAULTS, PointSummary, Spread,
    table::{grouped, markdown_table, median},
};

/// Columns of the table.
pub const LINK_HEADER: [&str; 11] = [
    "method",
    "chunks × rows",
    "link",
    "requests (opening)",
    "most under way",
    "connections",
    "MB (needed)",
    "epoch s",
    "floor s: bytes, latency",
    "server's cores used",
    "planned requests, MB",
];

/// Columns with words, from the first on.
const N_WORDS: usize = 3;
/// Columns of what the server counted, after those.
const N_SERVED: usize = 7;

/// A legend of the columns in a few lines.
pub const LINK_LEGEND: &str = "what the link's server was asked for in an epoch, and before it by opening the data; needed are the stored bytes of X \
    that the delivered values take, each once (–: not known, because a loader's copy does not store X apart); the floors are the seconds of the needed bytes at the link's rate and of the requests' \
    latency with always the most under way; the server's own CPU time is in cores, which the measured process shares unless the link says otherwise; planned are the requests and \
    bytes that the loader itself counted, with the bytes between wanted ranges and without what was sent again after a fault";

impl GridPoint {
    /// Describes the link, with its faults and its server's cores; `None` if there was none.
    pub fn format_link(&self) -> Option<String> {
        let link = self.settings.get(LINK)?;
        let faults =
            self.settings.get(LINK_FAULTS).map_or_else(String::new, |faults| format!(", {faults}"));
        let cores = match self.settings.number(LINK_CORES) {
            None => String::new(),
            Some(1) => ", a core of its own".to_owned(),
            Some(n) => format!(", {n} cores of its own"),
        };
        Some(format!("{link}{faults}{cores}"))
    }
}

/// Requests, bytes and connections of epochs over a link, beside their floors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Requests during an epoch.
    pub requests: Option<Spread>,
    /// Requests before the first epoch.
    pub open_requests: Option<Spread>,
    /// Bytes of bodies.
    pub bytes: Option<Spread>,
    /// New connections.
    pub connections: Option<Spread>,
    /// The most requests under way at once.
    pub most_under_way: Option<Spread>,
    /// Requests and connections with a fault.
    pub faults_met: Option<Spread>,
    /// Stored bytes that an epoch needed.
    pub needed_bytes: Option<Spread>,
    /// Seconds of those at the link's rate.
    pub bytes_floor_secs: Option<Spread>,
    /// Seconds of the requests' latency.
    pub latency_floor_secs: Option<Spread>,
    /// Requests that the loader counted.
    pub planned_requests: Option<Spread>,
    /// Bytes that the loader counted.
    pub planned_bytes: Option<Spread>,
    /// Seconds of an epoch.
    pub elapsed: Option<Spread>,
    /// CPU time of the server per time of the epoch.
    pub server_cpu_share: Option<Spread>,
}

impl LinkSummary {
    /// Summarizes epochs; `None` if none was read over a link.
    pub fn from_epochs(epochs: &[&EpochRecord]) -> Option<Self> {
        epochs.iter().find(|epoch| epoch.measured.link_requests.is_some())?;
        let spread = |figure: fn(&EpochRecord) -> Option<f64>| {
            Spread::from_values(epochs.iter().filter_map(|epoch| figure(epoch)))
        };
        let count = |figure: fn(&EpochRecord) -> Option<u64>| {
            Spread::from_values(
                epochs.iter().filter_map(|epoch| figure(epoch)).map(|count| count as f64),
            )
        };
        Some(Self {
            requests: count(|epoch| epoch.measured.link_requests),
            open_requests: count(|epoch| epoch.measured.link_open_requests),
            bytes: count(|epoch| epoch.measured.link_bytes),
            connections: count(|epoch| epoch.measured.link_connections),
            most_under_way: count(|epoch| epoch.measured.link_most_under_way),
            faults_met: count(|epoch| epoch.measured.link_faults_met),
            needed_bytes: count(|epoch| epoch.measured.link_needed_bytes),
            bytes_floor_secs: spread(|epoch| epoch.measured.link_bytes_floor_secs),
            latency_floor_secs: spread(|epoch| epoch.measured.link_latency_floor_secs),
            planned_requests: count(|epoch| epoch.measured.requests),
            planned_bytes: count(|epoch| epoch.measured.bytes_read),
            elapsed: spread(|epoch| epoch.measured.elapsed),
            server_cpu_share: spread(|epoch| epoch.measured.link_server_cpu_share),
        })
    }

    /// All figures by name.
    pub(crate) fn figures(&self) -> [(&'static str, Option<Spread>); 12] {
        [
            ("requests", self.requests),
            ("open_requests", self.open_requests),
            ("bytes", self.bytes),
            ("connections", self.connections),
            ("most_under_way", self.most_under_way),
            ("faults_met", self.faults_met),
            ("needed_bytes", self.needed_bytes),
            ("bytes_floor_secs", self.bytes_floor_secs),
            ("latency_floor_secs", self.latency_floor_secs),
            ("planned_requests", self.planned_requests),
            ("planned_bytes", self.planned_bytes),
            ("server_cpu_share", self.server_cpu_share),
        ]
    }

    /// The cells of [`LINK_HEADER`] after the link that the server counted: medians.
    pub fn cells(&self) -> [String; N_SERVED] {
        [
            format!("{} ({})", median(self.requests, 1.0, 0), median(self.open_requests, 1.0, 0)),
            median(self.most_under_way, 1.0, 0),
            median(self.connections, 1.0, 0),
            format!("{} ({})", median(self.bytes, 1e-6, 1), median(self.needed_bytes, 1e-6, 1)),
            median(self.elapsed, 1.0, 2),
            format!(
                "{}, {}",
                median(self.bytes_floor_secs, 1.0, 2),
                median(self.latency_floor_secs, 1.0, 2)
            ),
            median(self.server_cpu_share, 1.0, 2),
        ]
    }
}

/// One row per grid point under [`LINK_HEADER`], medians over its epochs; none for a point that was
/// not read over a link.
pub fn link_rows(points: &[PointSummary]) -> Vec<[String; LINK_HEADER.len()]> {
    points.iter().filter_map(|summary| Some(row(summary, summary.link.as_ref()?))).collect()
}

fn row(summary: &PointSummary, link: &LinkSummary) -> [String; LINK_HEADER.len()] {
    let point = &summary.point;
    let [requests, under_way, connections, bytes, elapsed, floors, cpu] = link.cells();
    [
        point.chunk_method.clone(),
        format!("{} × {}", grouped(point.chunks_per_block), grouped(point.chunk_size)),
        point.format_link().unwrap_or_default(),
        requests,
        under_way,
        connections,
        bytes,
        elapsed,
        floors,
        cpu,
        format!(
            "{}, {}",
            median(link.planned_requests, 1.0, 0),
            median(link.planned_bytes, 1e-6, 1)
        ),
    ]
}

/// The table as Markdown; empty if no point was read over a link.
pub fn link_markdown(points: &[PointSummary]) -> String {
    let linked: Vec<PointSummary> =
        points.iter().filter(|summary| summary.link.is_some()).cloned().collect();
    if linked.is_empty() {
        return String::new();
    }
    markdown_table(&linked, &LINK_HEADER, N_WORDS, link_rows(&linked).into_iter().map(Vec::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, fixture, summarize};

    #[test]
    fn points_over_a_link_have_a_row() {
        let mut records = vec![fixture::epoch("native", (64, 16), 0.25); 2];
        let settings = Settings::default().with(LINK, "30ms,90MB/s,1GB/s").with(LINK_CORES, 2);
        records[0].point.settings = settings;
        let measured = &mut records[0].measured;
        measured.link_requests = Some(1200);
        measured.link_open_requests = Some(30);
        measured.link_most_under_way = Some(32);
        measured.link_bytes = Some(8_900_000_000);
        measured.link_needed_bytes = Some(530_000_000);
        measured.link_bytes_floor_secs = Some(0.53);
        measured.elapsed = Some(12.5);
        measured.requests = Some(1150);
        measured.bytes_read = Some(8_850_500_000);
        let points = summarize(&records);
        let rows = link_rows(&points);
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        let expected = [
            "native",
            "16 × 64",
            "30ms,90MB/s,1GB/s, 2 cores of its own",
            "1,200 (30)",
            "32",
            "–",
            "8,900.0 (530.0)",
            "12.50",
            "0.53, –",
            "–",
            "1,150, 8,850.5",
        ];
        assert_eq!(row, &expected);
        let text = link_markdown(&points);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert_eq!(link_markdown(&summarize(&fixture::grid())), "");
    }
}
