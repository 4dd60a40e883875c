//! Tables of ranks that loaded together: a row for each number of ranks, and one for each rank.

use crate::{
    LEAST_UTILIZATION, PointSummary, RankSummary, RanksSummary, most_ranks,
    ranks::series,
    table::{grouped, markdown_rows, markdown_table, median},
};

/// Columns of the table with a row for each number of ranks.
pub const RANKS_HEADER: [&str; 9] = [
    "method",
    "chunks × rows",
    "ranks",
    "samples/s of all",
    "least AU %",
    "mean AU %",
    "slowest rank",
    "its s",
    "fastest s",
];

/// Columns of the table with a row for each rank.
pub const RANK_HEADER: [&str; 10] = [
    "machine",
    "ranks",
    "rank",
    "samples",
    "samples/s",
    "AU %",
    "first batch s",
    "wait p99 ms",
    "stalled %",
    "peak GB",
];

/// Columns with words, from the first on.
const N_WORDS: usize = 2;
const N_WORDS_OF_RANK: usize = 1;

/// A legend of the columns in a few lines.
pub const RANKS_LEGEND: &str = "all ranks began at once and together delivered each sample once, which was checked; samples/s of all are over the time of \
    the slowest rank; AU is the accelerator utilisation of MLPerf Storage: the share of the time without the first batch in which the \
    consumer computed";

/// One row per point with ranks under [`RANKS_HEADER`], medians over its epochs.
pub fn ranks_rows(points: &[PointSummary]) -> Vec<[String; RANKS_HEADER.len()]> {
    points.iter().filter_map(|summary| Some(row(summary, summary.ranks.as_ref()?))).collect()
}

fn row(summary: &PointSummary, ranks: &RanksSummary) -> [String; RANKS_HEADER.len()] {
    let point = &summary.point;
    [
        point.chunk_method.clone(),
        format!("{} × {}", grouped(point.chunks_per_block), grouped(point.chunk_size)),
        grouped(point.world_size.unwrap_or(1)),
        median(ranks.samples_per_sec, 1.0, 0),
        median(ranks.least_utilization, 100.0, 1),
        median(ranks.mean_utilization, 100.0, 1),
        ranks.slowest_rank.to_string(),
        median(ranks.slowest_secs, 1.0, 2),
        median(ranks.fastest_secs, 1.0, 2),
    ]
}

/// One row per rank of each point with ranks under [`RANK_HEADER`], medians over its epochs.
pub fn rank_rows(points: &[PointSummary]) -> Vec<[String; RANK_HEADER.len()]> {
    let rank_rows = |summary: &PointSummary| -> Vec<[String; RANK_HEADER.len()]> {
        let world_size = summary.point.world_size.unwrap_or(1);
        let ranks = summary.ranks.iter().flat_map(|ranks| &ranks.ranks);
        ranks.map(|rank| rank_row(world_size, rank)).collect()
    };
    points.iter().flat_map(rank_rows).collect()
}

fn rank_row(world_size: u64, rank: &RankSummary) -> [String; RANK_HEADER.len()] {
    [
        rank.hostname.clone(),
        grouped(world_size),
        rank.rank.to_string(),
        median(rank.n_rows, 1.0, 0),
        median(rank.samples_per_sec, 1.0, 0),
        median(rank.accelerator_utilization, 100.0, 1),
        median(rank.time_to_first_batch_secs, 1.0, 2),
        median(rank.wait_p99_secs, 1e3, 1),
        median(rank.stall_share, 100.0, 0),
        median(rank.max_mem, 1e-9, 2),
    ]
}

/// A sentence for each settings that ran with ranks: the largest number of ranks of which each has
/// at least the utilisation `least`, among the numbers that were measured.
pub fn most_ranks_lines(points: &[PointSummary], least: f64) -> Vec<String> {
    let line = |of: &crate::ranks::RanksSeries<'_>| {
        let least_of = |ranks: &RanksSummary| Some(ranks.least_utilization?.median);
        let utilizations: Vec<(u64, f64)> =
            of.points.iter().filter_map(|(n, _, ranks)| Some((*n, least_of(ranks)?))).collect();
        let (_, summary, _) = of.points.first()?;
        let point = &summary.point;
        let name = format!(
            "{} {} × {}, batches of {}",
            point.chunk_method,
            grouped(point.chunks_per_block),
            grouped(point.chunk_size),
            grouped(point.batch_size)
        );
        let measured: Vec<String> = utilizations.iter().map(|(n, _)| n.to_string()).collect();
        if measured.is_empty() {
            return None;
        }
        // Without the digits that the product of a binary fraction adds.
        let percent = (least * 1e8).round() / 1e6;
        let most = most_ranks(&utilizations, least);
        let most = most.map_or_else(
            || format!("no number of ranks has an AU of {percent} % in each"),
            |n| format!("the most ranks of which each has an AU of {percent} % or more are {n}"),
        );
        Some(format!("{name}: {most} (measured: {})", measured.join(", ")))
    };
    series(points).iter().filter_map(line).collect()
}

/// Both tables as Markdown, with the largest number of ranks that has MLPerf's utilisation; empty
/// if no point has ranks.
pub fn ranks_markdown(points: &[PointSummary]) -> String {
    let with_ranks: Vec<PointSummary> =
        points.iter().filter(|summary| summary.ranks.is_some()).cloned().collect();
    if with_ranks.is_empty() {
        return String::new();
    }
    let rows = ranks_rows(&with_ranks).into_iter().map(Vec::from);
    let together = markdown_table(&with_ranks, &RANKS_HEADER, N_WORDS, rows);
    let lines = most_ranks_lines(points, LEAST_UTILIZATION).into_iter();
    let lines = lines.fold(String::new(), |text, line| text + "\n- " + &line + "\n");
    let each = rank_rows(&with_ranks).into_iter().map(Vec::from);
    let each = markdown_rows(&RANK_HEADER, N_WORDS_OF_RANK, each);
    format!("{together}{lines}\n{each}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EpochRecord, fixture, summarize};

    fn rows(world_size: u64, utilization: f64) -> Vec<EpochRecord> {
        let row = |rank| {
            let mut row = fixture::epoch("native", (64, 16), 0.25);
            row.point.world_size = Some(world_size);
            let measured = &mut row.measured;
            (measured.rank, measured.n_rows) = (Some(rank), Some(1000));
            (measured.elapsed, measured.samples_per_sec) = (Some(2.0), Some(500.0));
            measured.accelerator_utilization = Some(utilization);
            measured.max_mem = Some(1_000_000_000);
            row
        };
        (0..world_size).map(row).collect()
    }

    #[test]
    fn ranks_have_tables_and_other_points_none() {
        let points = summarize(&[rows(1, 0.99), rows(2, 0.95), rows(3, 0.8)].concat());
        let together = ranks_rows(&points);
        let last = ["native", "16 × 64", "3", "1,500", "80.0", "80.0", "2", "2.00", "2.00"];
        assert_eq!((together.len(), &together[2]), (3, &last.map(str::to_owned)));
        let each = rank_rows(&points);
        let last = ["bench-1", "3", "2", "1,000", "500", "80.0", "1.25", "1,220.0", "89", "1.00"];
        assert_eq!((each.len(), &each[5]), (6, &last.map(str::to_owned)));
        let lines = most_ranks_lines(&points, 0.9);
        let line = "native 16 × 64, batches of 1,024: the most ranks of which each has an AU of \
                    90 % or more are 2 (measured: 1, 2, 3)";
        assert_eq!(lines, [line]);
        let none = most_ranks_lines(&points, 0.995);
        assert!(none[0].contains("no number of ranks has an AU of 99.5 % in each"), "{none:?}");
        let text = ranks_markdown(&points);
        assert!(text.contains(line) && text.lines().count() == 5 + 2 + 9, "{text}");
        assert_eq!(ranks_markdown(&summarize(&fixture::grid())), "");
    }
}
