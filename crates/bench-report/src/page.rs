//! The page: the same scatter as the picture, to be asked questions, in one HTML file that needs nothing else.
//!
//! Style and script are files of their own here and put into the page as text; the data goes in as JSON, escaped so
//! that no text in it can end its script tag. The page forbids itself every request (its content security policy), so
//! it works from a disk without a network and stays what it was when measured.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    EpochRecord, Error, Measured, ReportOptions, Spread, Status,
    picture::{Encoding, TITLE, subtitle},
    report::{describe_run, runs},
    summary::{PointSummary, group},
};

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: [&str; 4] = [
    include_str!("page/figures.js"),
    include_str!("page/chart.js"),
    include_str!("page/panels.js"),
    include_str!("page/main.js"),
];
/// What JavaScript's numbers hold exactly; a larger one, such as a seed, is handed over as text.
const MOST_EXACT: u64 = 1 << 53;

/// What the script reads.
#[derive(Debug, Serialize)]
struct PageData {
    subtitle: [String; 2],
    marked_id: Option<usize>,
    marked_label: String,
    runs: Vec<Vec<(String, String)>>,
    points: Vec<PagePoint>,
}

/// A grid point: its settings, each of its figures over the epochs that ended well, and those epochs.
#[derive(Debug, Serialize)]
struct PagePoint {
    id: usize,
    radius: f64,
    color: String,
    failure: Option<String>,
    settings: Map<String, Value>,
    figures: BTreeMap<String, Spread>,
    epochs: Vec<Map<String, Value>>,
}

/// The page of `points`, which sum up `records`.
pub(crate) fn render(
    records: &[EpochRecord],
    points: &[PointSummary],
    options: &ReportOptions,
) -> Result<String, Error> {
    let encoding = Encoding::of(points.iter().map(|summary| &summary.point));
    let groups = group(records);
    let page_points: Result<Vec<PagePoint>, serde_json::Error> = points
        .iter()
        .zip(&groups)
        .enumerate()
        .map(|(id, (summary, epochs))| page_point(id, summary, epochs, &encoding))
        .collect();
    let marked = options.marked.as_ref();
    let data = PageData {
        subtitle: subtitle(records, points),
        marked_id: marked.and_then(|marked| marked.find(points)),
        marked_label: marked.map(|marked| marked.label.clone()).unwrap_or_default(),
        runs: runs(records).into_iter().map(describe_run).collect(),
        points: page_points.map_err(|source| Error::PageData { source })?,
    };
    let json = serde_json::to_string(&data).map_err(|source| Error::PageData { source })?;
    // Without the convention: the reader chooses it on the page.
    let title = options.title.as_deref().unwrap_or(TITLE);
    Ok(fill(
        TEMPLATE,
        &[
            ("title", &escape_html(title)),
            ("style", STYLE),
            ("data", &escape_script(&json)),
            ("script", &SCRIPT.join("\n")),
        ],
    ))
}

fn page_point(
    id: usize,
    summary: &PointSummary,
    epochs: &[&EpochRecord],
    encoding: &Encoding,
) -> Result<PagePoint, serde_json::Error> {
    let mut settings = object(&summary.point)?;
    settings.extend(object(&summary.data)?);
    settings.insert("hostname".to_owned(), Value::from(summary.hostname.clone()));
    if let Some(label) = summary.order_entropy.first() {
        settings.insert("entropy_of".to_owned(), Value::from(label.label.clone()));
    }
    settings.retain(|_, value| !value.is_null());
    for value in settings.values_mut() {
        match value.as_u64() {
            Some(number) if number > MOST_EXACT => *value = Value::from(number.to_string()),
            _ => {}
        }
    }
    let measured: Vec<&Measured> = epochs.iter().map(|epoch| &epoch.measured).collect();
    let all = epochs.iter().map(|epoch| figures_of(epoch)).collect::<Result<Vec<_>, _>>()?;
    let well = all.iter().zip(&measured).filter(|(_, measured)| measured.status == Status::Ok);
    let epoch_columns = ["epoch", "repeat", "status", "samples_per_sec"];
    Ok(PagePoint {
        id,
        radius: encoding.radius(summary.point.block_size),
        color: encoding.color(summary.point.chunks_per_block).hex(),
        failure: summary.failure.clone(),
        settings,
        figures: figures(well.map(|(figures, _)| figures)),
        epochs: all
            .iter()
            .map(|row| epoch_columns.iter().filter_map(|&name| row.get_key_value(name)))
            .map(|entries| entries.map(|(name, value)| (name.clone(), value.clone())).collect())
            .collect(),
    })
}

/// An epoch's columns and its stages, with those of a label's entropy as columns of their own.
fn figures_of(epoch: &EpochRecord) -> Result<Map<String, Value>, serde_json::Error> {
    let mut columns = object(&epoch.measured)?;
    columns.extend(object(&epoch.stages)?);
    for (idx, label) in epoch.measured.order_entropy.iter().enumerate() {
        let named = label.figures(idx == 0).into_iter();
        columns.extend(named.map(|(name, bits)| (name, Value::from(bits))));
    }
    Ok(columns)
}

/// The spread of every column that holds numbers.
fn figures<'a>(epochs: impl Iterator<Item = &'a Map<String, Value>>) -> BTreeMap<String, Spread> {
    let mut columns: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for (name, value) in epochs.flatten() {
        if let (Some(number), false) =
            (value.as_f64(), ["epoch", "repeat"].contains(&name.as_str()))
        {
            columns.entry(name).or_default().push(number);
        }
    }
    columns
        .into_iter()
        .filter_map(|(name, values)| Some((name.clone(), Spread::of(values)?)))
        .collect()
}

fn object(value: &impl Serialize) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(value)? {
        Value::Object(object) => Ok(object),
        _ => Ok(Map::new()),
    }
}

/// Puts each `value` in the place of `{{name}}`. What a value holds is not looked at again.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(
        template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>(),
    );
    let mut rest = template;
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        filled.push_str(before);
        filled.push_str(
            values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value),
        );
        rest = after;
    }
    filled + rest
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// JSON that is safe between script tags: in JSON these characters stand in strings only, where each may be written
/// by its number. `<` begins both `</script` and `<!--`.
fn escape_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests;
