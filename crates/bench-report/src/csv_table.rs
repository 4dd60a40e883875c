//! The table for programs: CSV with one row per grid point, all settings, and the median, minimum
//! and maximum of each figure.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

use crate::{EntropySummary, Error, LinkSummary, PointSummary, RanksSummary, Spread, StageSummary};

/// Writes the table. Columns are the folder, settings and data by their names in the file of
/// epochs, then the figures.
pub(crate) fn csv(points: &[PointSummary]) -> Result<Vec<u8>, Error> {
    let rows: Vec<Vec<(String, String)>> = points
        .iter()
        .map(row)
        .collect::<Result<_, _>>()
        .map_err(|source| Error::PageData { source })?;
    // A setting that is null in one point may have a value in another.
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| Error::Table { message: error.to_string() };
    writer.write_record(&names).map_err(failed)?;
    for row in &rows {
        let cell = |name: &&String| {
            row.iter().find(|(known, _)| known == *name).map_or("", |(_, value)| value.as_str())
        };
        writer.write_record(names.iter().map(cell)).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| Error::Table { message: error.to_string() })
}

fn row(summary: &PointSummary) -> Result<Vec<(String, String)>, serde_json::Error> {
    let mut cells = vec![("results".to_owned(), summary.folder.clone().unwrap_or_default())];
    for group in [serde_json::to_value(&summary.point)?, serde_json::to_value(&summary.data)?] {
        // By name: whether a JSON object keeps its order depends on the features of other crates.
        let mut columns: BTreeMap<String, Value> = object(group).into_iter().collect();
        if columns.remove("settings").is_some() {
            // Numbers without their units, for programs.
            let value = |name, value: &str| match summary.point.settings.number(name) {
                Some(number) if value.ends_with(" B") || value.ends_with(" B/s") => number.into(),
                _ => Value::from(value),
            };
            let further = summary.point.settings.iter();
            columns.extend(further.map(|(name, text)| (name.to_owned(), value(name, text))));
        }
        cells.extend(columns.into_iter().map(|(name, value)| (name, text(&value))));
    }
    cells.push(("hostname".to_owned(), summary.hostname.clone()));
    cells.push(("n_ok".to_owned(), summary.n_ok.to_string()));
    cells.push(("n_failed".to_owned(), summary.n_failed.to_string()));
    cells.push(("failure".to_owned(), summary.failure.clone().unwrap_or_default()));
    let mut push = |name: String, spread: Option<Spread>| {
        let values = spread.map(|one| [one.median, one.min, one.max]);
        for (idx, end) in ["", "_min", "_max"].iter().enumerate() {
            let value = values.map_or_else(String::new, |values| values[idx].to_string());
            cells.push((format!("{name}{end}"), value));
        }
    };
    for (name, spread) in figures(summary) {
        push(name.to_owned(), spread);
    }
    for StageSummary { stage, wall_secs, cpu_secs } in &summary.stages {
        push(format!("{stage}_wall_secs"), *wall_secs);
        push(format!("{stage}_cpu_secs"), *cpu_secs);
    }
    for (name, spread) in summary.link.iter().flat_map(LinkSummary::figures) {
        push(format!("link_{name}"), spread);
    }
    for (name, spread) in summary.ranks.iter().flat_map(RanksSummary::figures) {
        push(format!("ranks_{name}"), spread);
    }
    for EntropySummary { label, mean, expected, perfect, data } in &summary.order_entropy {
        push(format!("entropy of {label}"), *mean);
        push(format!("entropy expected of {label}"), *expected);
        push(format!("entropy perfect of {label}"), *perfect);
        push(format!("entropy data of {label}"), *data);
    }
    Ok(cells)
}

fn figures(summary: &PointSummary) -> [(&'static str, Option<Spread>); 14] {
    [
        ("samples_per_sec", summary.samples_per_sec),
        ("samples_per_sec_after_first", summary.samples_per_sec_after_first),
        ("max_mem", summary.max_mem),
        ("time_to_first_batch_secs", summary.time_to_first_batch_secs),
        ("wait_p50_secs", summary.wait_p50_secs),
        ("wait_p99_secs", summary.wait_p99_secs),
        ("stall_share", summary.stall_share),
        ("busy_share", summary.busy_share),
        ("accelerator_utilization", summary.accelerator_utilization),
        ("ready_batches_mean", summary.ready_batches_mean),
        ("ready_blocks_mean", summary.ready_blocks_mean),
        ("cpu_secs", summary.cpu_secs),
        ("amplification", summary.amplification),
        ("bytes_amplification", summary.bytes_amplification),
    ]
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, fixture, summarize};

    #[test]
    fn the_table_of_a_grid() {
        let bytes = csv(&summarize(&fixture::grid())).unwrap();
        insta::assert_snapshot!(String::from_utf8(bytes).unwrap());
    }

    #[test]
    fn cells_stay_cells() {
        let mut record = fixture::epoch("a,\"b\"\nc", (64, 16), 0.5);
        record.point.settings = Settings::default()
            .with("obs_filter", "tissue == \"lung\"")
            .with_bytes("memory_limit", Some(4096));
        let speed = record.measured.samples_per_sec.unwrap().to_string();
        let bytes = csv(&summarize(&[record])).unwrap();
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let header = reader.headers().unwrap().clone();
        let row = reader.records().next().unwrap().unwrap();
        let cell = |name: &str| &row[header.iter().position(|column| column == name).unwrap()];
        assert_eq!(cell("chunk_method"), "a,\"b\"\nc");
        assert_eq!(cell("obs_filter"), "tissue == \"lung\"");
        assert_eq!(cell("memory_limit"), "4096");
        assert_eq!(cell("samples_per_sec"), speed);
    }
}
