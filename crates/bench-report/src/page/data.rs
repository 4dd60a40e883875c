//! The data for the page's script.
//!
//! Kept small, because a page may have thousands of points: names of figures appear once, a figure
//! of a single epoch is a bare number, and settings shared by all points are stored once.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    EpochRecord, Error, Measured, ReportOptions, Source, Spread, Status,
    curves::{self, BusyCurve, WAIT_PERCENTS},
    picture::{N_SHAPES, corners, subtitle},
    published::{self, Slice},
    run_description::{describe_run, runs},
    series::{NamedBy, SeriesNames},
    summary::{PointSummary, further_settings, group},
};

/// Largest integer that JavaScript represents exactly; larger ones, for instance seeds, become
/// text.
const MAX_EXACT: u64 = 1 << 53;
/// Significant digits of figures that are not whole numbers.
const DIGITS: usize = 6;

#[derive(Debug, Serialize)]
pub(super) struct PageData {
    subtitle: [String; 2],
    marked: Option<Marked>,
    runs: Vec<Run>,
    figures: Vec<String>,
    shared: Map<String, Value>,
    /// Names of settings that not every kind of samples has.
    further_settings: Vec<String>,
    wait_percents: &'static [f64],
    points: Vec<PagePoint>,
    /// Name of the series, if points differ by more than method or folder.
    series: Option<SeriesOf>,
    /// Corners of the shapes for series, relative to the center; none for a circle.
    shapes: Vec<Vec<[Value; 2]>>,
    published: Option<Published>,
}

#[derive(Debug, Serialize)]
struct SeriesOf {
    heading: &'static str,
    /// Names in the order of their shapes.
    names: Vec<String>,
}

/// The point marked by the arrow.
#[derive(Debug, Serialize)]
struct Marked {
    id: usize,
    label: String,
}

#[derive(Debug, Serialize)]
struct Run {
    folder: Option<String>,
    facts: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct Published {
    note: &'static str,
    slices: &'static [Slice],
}

/// A grid point: its settings, its figures over successful epochs, and its epochs.
#[derive(Debug, Serialize)]
struct PagePoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    settings: Map<String, Value>,
    /// In the order of [`PageData::figures`]: null, a number, or median, minimum, maximum and
    /// count.
    figures: Vec<Value>,
    /// Epoch, repeat, status and speed of each epoch.
    epochs: Vec<[Value; 4]>,
    /// Seconds at [`PageData::wait_percents`].
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busy: Option<Busy>,
}

#[derive(Debug, Serialize)]
struct Busy {
    mean: Vec<Value>,
    least: Vec<Value>,
    most: Vec<Value>,
    n: usize,
}

impl Busy {
    fn from_curve(curve: &BusyCurve) -> Self {
        // Three digits are finer than a pixel.
        let short = |shares: &[f64]| shares.iter().map(|&share| rounded(share, 3)).collect();
        let one = curve.n == 1;
        Self {
            mean: short(&curve.mean),
            least: if one { Vec::new() } else { short(&curve.least) },
            most: if one { Vec::new() } else { short(&curve.most) },
            n: curve.n,
        }
    }
}

/// Builds the page's data for `points`, which summarize the epochs of `sources` in their order.
pub(super) fn page_data(
    sources: &[Source],
    points: &[PointSummary],
    options: &ReportOptions,
) -> Result<PageData, Error> {
    let groups: Vec<Vec<&EpochRecord>> =
        sources.iter().flat_map(|source| group(&source.records)).collect();
    let spreads: Vec<BTreeMap<String, Spread>> = groups
        .iter()
        .map(|epochs| figures(epochs))
        .collect::<Result<_, _>>()
        .map_err(|source| Error::PageData { source })?;
    let mut names: Vec<String> = spreads.iter().flat_map(BTreeMap::keys).cloned().collect();
    names.sort_unstable();
    names.dedup();
    let page_points: Result<Vec<PagePoint>, serde_json::Error> = points
        .iter()
        .zip(&groups)
        .zip(&spreads)
        .map(|((summary, epochs), spreads)| page_point(summary, epochs, spreads, &names))
        .collect();
    let mut page_points = page_points.map_err(|source| Error::PageData { source })?;
    let series = SeriesNames::from_points(points);
    // Methods and folders are settings, which the page distinguishes itself.
    let has_series = matches!(series.named_by, NamedBy::Loader | NamedBy::Data);
    if has_series {
        for (idx, point) in page_points.iter_mut().enumerate() {
            point.settings.insert("series".to_owned(), Value::from(series.name(idx)));
        }
    }
    let several = sources.len() > 1;
    let describe = |source: &Source| -> Vec<Run> {
        let folder = several.then(|| source.name.clone());
        let all = runs(&source.records).into_iter();
        all.map(|record| Run { folder: folder.clone(), facts: describe_run(record) }).collect()
    };
    let marked = options.marked.as_ref();
    Ok(PageData {
        subtitle: subtitle(sources, points),
        marked: marked.and_then(|marked| {
            marked.find(points).map(|id| Marked { id, label: marked.label.clone() })
        }),
        runs: sources.iter().flat_map(describe).collect(),
        figures: names,
        shared: take_shared(&mut page_points),
        further_settings: further_settings(points),
        wait_percents: &WAIT_PERCENTS,
        points: page_points,
        series: has_series
            .then(|| SeriesOf { heading: series.heading(), names: series.names.clone() }),
        shapes: (0..N_SHAPES).map(shape).collect(),
        published: options
            .published
            .then(|| Published { note: published::NOTE, slices: published::slices() }),
    })
}

fn shape(idx: usize) -> Vec<[Value; 2]> {
    let each = corners(idx).into_iter();
    each.map(|(x, y)| [rounded(x, 4), rounded(y, 4)]).collect()
}

fn page_point(
    summary: &PointSummary,
    epochs: &[&EpochRecord],
    spreads: &BTreeMap<String, Spread>,
    names: &[String],
) -> Result<PagePoint, serde_json::Error> {
    let cells = |epoch: &&EpochRecord| {
        let Measured { epoch, repeat, status, samples_per_sec, .. } = &epoch.measured;
        let speed = samples_per_sec.map_or(Value::Null, |speed| rounded(speed, DIGITS));
        [Value::from(*epoch), Value::from(*repeat), Value::from(status.name()), speed]
    };
    let waits = curves::waits(epochs);
    Ok(PagePoint {
        failure: summary.failure.clone(),
        settings: settings(summary)?,
        figures: names.iter().map(|name| spreads.get(name).map_or(Value::Null, short)).collect(),
        epochs: epochs.iter().map(cells).collect(),
        waits: waits.map(|waits| waits.into_iter().map(|secs| rounded(secs, 4)).collect()),
        busy: curves::busy(epochs).as_ref().map(Busy::from_curve),
    })
}

fn settings(summary: &PointSummary) -> Result<Map<String, Value>, serde_json::Error> {
    let mut settings = object(&summary.point)?;
    settings.remove("settings");
    settings.extend(summary.point.settings.iter().map(|(name, value)| {
        let number = value.parse::<u64>().ok().filter(|number| *number <= MAX_EXACT);
        (name.to_owned(), number.map_or_else(|| Value::from(value), Value::from))
    }));
    settings.extend(object(&summary.data)?);
    settings.insert("hostname".to_owned(), Value::from(summary.hostname.clone()));
    settings.insert("folder".to_owned(), Value::from(summary.folder.clone()));
    let label = summary.order_entropy.first().map(|label| label.label.clone());
    settings.insert("entropy_of".to_owned(), Value::from(label));
    settings.retain(|_, value| !value.is_null());
    for value in settings.values_mut() {
        match value.as_u64() {
            Some(number) if number > MAX_EXACT => *value = Value::from(number.to_string()),
            _ => {}
        }
    }
    Ok(settings)
}

/// Removes the settings that all points share, and returns them.
fn take_shared(points: &mut [PagePoint]) -> Map<String, Value> {
    let Some(first) = points.first() else { return Map::new() };
    let mut shared = first.settings.clone();
    shared.retain(|key, value| points.iter().all(|point| point.settings.get(key) == Some(value)));
    for point in points {
        point.settings.retain(|key, _| !shared.contains_key(key));
    }
    shared
}

/// The spread of every figure over the successful epochs.
fn figures(epochs: &[&EpochRecord]) -> Result<BTreeMap<String, Spread>, serde_json::Error> {
    let mut columns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for epoch in epochs.iter().filter(|epoch| epoch.measured.status == Status::Ok) {
        for (name, value) in figures_of(epoch)? {
            if let Some(number) = value.as_f64() {
                columns.entry(name).or_default().push(number);
            }
        }
    }
    let spreads = columns.into_iter();
    Ok(spreads.filter_map(|(name, values)| Some((name, Spread::from_values(values)?))).collect())
}

/// An epoch's columns and stages, and the figures derived from them.
pub(super) fn figures_of(epoch: &EpochRecord) -> Result<Map<String, Value>, serde_json::Error> {
    let mut columns = object(&epoch.measured)?;
    columns.extend(object(&epoch.stages)?);
    for name in ["epoch", "repeat", "rank"] {
        columns.remove(name);
    }
    let share = curves::slowest_tenth_share(&epoch.measured.batch_wait_secs);
    columns.insert("wait_slowest_tenth_share".to_owned(), Value::from(share));
    for (idx, label) in epoch.measured.order_entropy.iter().enumerate() {
        let named = label.figures(idx == 0).into_iter();
        columns.extend(named.map(|(name, bits)| (name, Value::from(bits))));
    }
    Ok(columns)
}

fn object(value: &impl Serialize) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(value)? {
        Value::Object(object) => Ok(object),
        _ => Ok(Map::new()),
    }
}

fn short(spread: &Spread) -> Value {
    let [median, min, max] =
        [spread.median, spread.min, spread.max].map(|number| rounded(number, DIGITS));
    if spread.n == 1 { median } else { Value::from(vec![median, min, max, Value::from(spread.n)]) }
}

/// Rounds `number` to `digits` significant digits; whole numbers keep all of theirs.
fn rounded(number: f64, digits: usize) -> Value {
    if number.fract() == 0.0 && number.abs() < MAX_EXACT as f64 {
        return Value::from(number as i64);
    }
    let text = format!("{number:.*e}", digits.saturating_sub(1));
    text.parse::<f64>().map_or(Value::Null, Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_count() {
        let check = |number: f64, expect: &str| assert_eq!(rounded(number, 4).to_string(), expect);
        check(1_234_567_890.0, "1234567890");
        check(0.000_123_456, "0.0001235");
        check(98_765.4, "98770.0");
        check(f64::NAN, "null");
    }
}
