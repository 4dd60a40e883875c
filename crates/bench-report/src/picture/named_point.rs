//! Grid points with the names that they have in the charts.

use std::collections::BTreeSet;

use super::mark::shapes;
use crate::{
    EpochRecord, PointSummary, Source,
    series::SeriesNames,
    summary::{further_settings, group},
    table::grouped,
};

/// A point with its epochs and its name in the charts.
pub(crate) struct NamedPoint<'a> {
    pub(crate) summary: &'a PointSummary,
    pub(crate) epochs: Vec<&'a EpochRecord>,
    /// Name of the point's settings other than chunks: the series, and the settings that differ
    /// within it.
    pub(crate) kind: String,
    /// The same without the data.
    pub(crate) kind_without_data: String,
    /// The same as `kind` without the number of ranks.
    pub(crate) kind_without_ranks: String,
    /// The shape of its series.
    pub(crate) shape: usize,
}

impl NamedPoint<'_> {
    /// The kind and the chunks.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.kind, self.chunks())
    }

    /// Chunks per block and rows per chunk.
    pub(crate) fn chunks(&self) -> String {
        let point = &self.summary.point;
        format!("{}×{}", grouped(point.chunks_per_block), grouped(point.chunk_size))
    }
}

/// Names all points by the settings that differ within their series.
pub(crate) fn name_points<'a>(
    sources: &'a [Source],
    points: &'a [PointSummary],
) -> Vec<NamedPoint<'a>> {
    let groups = sources.iter().flat_map(|source| group(&source.records));
    let series = SeriesNames::from_points(points);
    let shapes = shapes(&series);
    let further = further_settings(points);
    let settings: Vec<Vec<(String, String)>> =
        points.iter().map(|point| settings(point, &further)).collect();
    // A setting that is the same in all points of a series adds nothing to its name.
    let varies = |of: usize, setting: usize| {
        let same = settings.iter().enumerate().filter(|(idx, _)| series.position(*idx) == of);
        let different: BTreeSet<&String> = same.map(|(_, all)| &all[setting].1).collect();
        different.len() > 1
    };
    let named = |(idx, (summary, epochs)): (usize, (&'a PointSummary, Vec<&'a EpochRecord>))| {
        let series_idx = series.position(idx);
        let differing =
            settings[idx].iter().enumerate().filter(|(one, _)| varies(series_idx, *one));
        let shown = differing.filter(|(_, (_, value))| !value.is_empty());
        let shown: Vec<&(String, String)> = shown.map(|(_, setting)| setting).collect();
        let name = |first: &str, leaves_out: &str| {
            let shown =
                shown.iter().filter(|(name, _)| leaves_out.is_empty() || *name != leaves_out);
            let words =
                shown.map(|(name, value)| format!(", {}{value}", name.trim_start_matches(DATA)));
            words.fold(first.to_owned(), |all, word| all + &word)
        };
        NamedPoint {
            summary,
            epochs,
            kind: name(series.name(idx), ""),
            kind_without_data: name(series.without_data(idx), DATA),
            kind_without_ranks: name(series.name(idx), RANKS),
            shape: shapes[series_idx],
        }
    };
    points.iter().zip(groups).enumerate().map(named).collect()
}

/// Marks the name of the data among the settings; it needs no word in front of it.
const DATA: &str = "data";

/// The word in front of the number of ranks.
const RANKS: &str = "ranks ";

/// Settings other than chunks, the `further` ones by name among them, with a word in front of
/// values that are unclear by themselves.
fn settings(summary: &PointSummary, further: &[String]) -> Vec<(String, String)> {
    let (point, data) = (&summary.point, &summary.data);
    let number = |value: Option<u64>| value.map_or_else(String::new, grouped);
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let fixed = [
        ("", point.chunk_method.clone()),
        ("", text(&summary.folder)),
        ("", summary.hostname.clone()),
        ("", point.reader.clone()),
        ("", point.form.clone()),
        ("", point.order.clone()),
        ("", point.cache.clone()),
        ("consumer ", text(&point.consumer)),
        ("batch ", grouped(point.batch_size)),
        (RANKS, number(point.world_size)),
    ];
    let words = |name: &String| format!("{} ", name.replace('_', " "));
    let value = |name: &String| point.settings.get(name).unwrap_or_default().to_owned();
    let further = further.iter().map(|name| (words(name), value(name)));
    let of_data = [
        (DATA, data.uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()),
        ("genes ", grouped(data.n_cols)),
    ];
    let named = |(name, value): (&str, String)| (name.to_owned(), value);
    fixed.map(named).into_iter().chain(further).chain(of_data.map(named)).collect()
}
