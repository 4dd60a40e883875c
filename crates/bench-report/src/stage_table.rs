//! A table of each grid point's stages, for a terminal and as Markdown.

use crate::{
    PointSummary, STAGES, Spread,
    table::{decimal, grouped, markdown_table, median},
};

/// Columns of the table; a stage's cell has wall-clock / CPU seconds.
pub const STAGE_HEADER: [&str; 12] = [
    "method",
    "chunks × rows",
    STAGES[0],
    STAGES[1],
    STAGES[2],
    STAGES[3],
    STAGES[4],
    STAGES[5],
    "other CPU",
    "busy %",
    "batches, blocks ready",
    "decoded / needed bytes",
];

/// Columns with words, from the first on.
const N_WORDS: usize = 2;

/// A one-line legend of the columns.
pub const STAGE_LEGEND: &str = "stages in seconds of an epoch, wall / CPU, each summed over its threads (they overlap); other CPU belongs to no stage, \
    for instance libraries' own threads; busy is the consumer's share; ready is the mean number of batches and blocks waiting for it";

/// One row per grid point under [`STAGE_HEADER`], medians over its epochs; none for a point without
/// successful epochs.
pub fn stage_rows(points: &[PointSummary]) -> Vec<[String; STAGE_HEADER.len()]> {
    points.iter().filter(|summary| summary.n_ok > 0).map(row).collect()
}

fn row(summary: &PointSummary) -> [String; STAGE_HEADER.len()] {
    let point = &summary.point;
    let cell = |idx: usize| {
        let stage = summary.stages.get(idx);
        let [wall, cpu] = [stage.and_then(|one| one.wall_secs), stage.and_then(|one| one.cpu_secs)];
        if wall.is_none() && cpu.is_none() {
            return "–".to_owned();
        }
        format!("{} / {}", seconds(wall), seconds(cpu))
    };
    let [batches, blocks] = [summary.ready_batches_mean, summary.ready_blocks_mean];
    [
        point.chunk_method.clone(),
        format!("{} × {}", grouped(point.chunks_per_block), grouped(point.chunk_size)),
        cell(0),
        cell(1),
        cell(2),
        cell(3),
        cell(4),
        cell(5),
        seconds(summary.other_cpu_secs),
        median(summary.busy_share, 100.0, 0),
        format!("{}, {}", median(batches, 1.0, 1), median(blocks, 1.0, 1)),
        median(summary.bytes_amplification, 1.0, 2),
    ]
}

fn seconds(spread: Option<Spread>) -> String {
    // Short stages need three decimals to differ from 0.
    let digits = |secs: f64| if secs < 10.0 { 3 } else { 1 };
    spread.map_or_else(
        || "–".to_owned(),
        |spread| decimal(spread.median, digits(spread.median.abs())),
    )
}

/// The table as Markdown; empty if no point has timed stages, like in older results.
pub fn stage_markdown(points: &[PointSummary]) -> String {
    let timed: Vec<PointSummary> =
        points.iter().filter(|summary| summary.has_stages()).cloned().collect();
    if timed.is_empty() {
        return String::new();
    }
    let timed: Vec<PointSummary> = timed.into_iter().filter(|one| one.n_ok > 0).collect();
    let rows = stage_rows(&timed).into_iter().map(Vec::from);
    markdown_table(&timed, &STAGE_HEADER, N_WORDS, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixture, summarize};

    #[test]
    fn stages_are_shown_as_medians_and_what_is_unknown_as_such() {
        let mut records = vec![fixture::epoch("native", (64, 16), 0.25); 3];
        for (record, wall) in records.iter_mut().zip([1.0, 20.0, 3.0]) {
            record.stages.read_wall_secs = Some(wall);
            (record.stages.decode_wall_secs, record.stages.decode_cpu_secs) =
                (Some(2.0), Some(1.5));
            record.measured.cpu_secs = Some(4.0);
            record.measured.busy_share = Some(0.25);
            (record.measured.bytes_decoded, record.measured.bytes_needed) = (Some(30), Some(20));
            record.measured.fill_rates();
        }
        records.push(fixture::killed("np.array", (64, 16)));
        let points = summarize(&records);
        let rows = stage_rows(&points);
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        let expected = [
            "native",
            "16 × 64",
            "3.000 / –",
            "2.000 / 1.500",
            "–",
            "–",
            "–",
            "–",
            "2.500",
            "25",
            "–, –",
            "1.50",
        ];
        assert_eq!(row, &expected);
        let text = stage_markdown(&points);
        assert_eq!(text.lines().count(), 3, "{text}");
    }

    #[test]
    fn results_without_stages_have_no_such_table() {
        assert_eq!(stage_markdown(&summarize(&fixture::grid())), "");
    }
}
