//! The further views as pictures: what each shows of which points. A view that the results have no figures for is left out.

use std::collections::BTreeSet;

use super::{
    bars,
    caption::subtitle,
    chart::{self, Chart, Place, Series, Style},
    mark::shapes,
    scale::Dimension,
};
use crate::{
    EntropySummary, EpochRecord, Error, PointSummary, Source, Spread,
    curves::{self, WAIT_PERCENTS},
    series::SeriesNames,
    summary::group,
    table::grouped,
};

/// More lines of points than this are no picture: the fastest are drawn.
pub(super) const MOST_LINES: usize = 7;

/// A view, drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picture {
    /// Its name, which its files have.
    pub(crate) view: &'static str,
    pub(crate) svg: String,
}

/// A point with its epochs and what it is called here.
pub(super) struct Seen<'a> {
    pub(super) summary: &'a PointSummary,
    pub(super) epochs: Vec<&'a EpochRecord>,
    /// What tells it from points with other settings than chunks: its series and what differs within that.
    kind: String,
    /// The same whatever its data.
    kind_of_any_data: String,
    /// The shape of its series.
    shape: usize,
}

impl Seen<'_> {
    /// The kind and the chunks.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.kind, self.chunks())
    }

    fn chunks(&self) -> String {
        let point = &self.summary.point;
        format!("{}×{}", grouped(point.chunks_per_block), grouped(point.chunk_size))
    }

    fn series(&self, name: String, points: Vec<Place>) -> Series {
        Series { name, shape: self.shape, points }
    }
}

/// What a picture shows.
struct View {
    name: &'static str,
    title: &'static str,
    axes: [Dimension; 2],
    style: Style,
    series: Vec<Series>,
}

/// All of them that there are figures for.
pub(crate) fn draw(sources: &[Source], points: &[PointSummary]) -> Result<Vec<Picture>, Error> {
    let seen = look(sources, points);
    let subtitle = subtitle(sources, points);
    let mut pictures = Vec::new();
    let all = by_settings(&seen).into_iter().chain(by_batches(&seen)).chain(growth(&seen));
    for View { name, title, axes: [x, y], style, series } in all {
        if !series.is_empty() {
            let title = title.to_owned();
            let chart = Chart { title, subtitle: &subtitle, x, y, style, series };
            pictures.push(Picture { view: name, svg: chart::draw(&chart)? });
        }
    }
    if let Some(svg) = bars::draw(&fastest(&seen, bars::MOST), &subtitle)? {
        pictures.push(Picture { view: "stages", svg });
    }
    Ok(pictures)
}

fn speed() -> Dimension {
    Dimension::linear("samples/s, first batch counted")
}

fn by_settings(seen: &[Seen<'_>]) -> [View; 3] {
    [
        View {
            name: "speed-by-chunk-size",
            title: "Samples per second by chunk size",
            axes: [Dimension::log("rows per chunk", 2.0), speed()],
            style: Style::LinesWithMarks,
            series: by_chunks(seen, |seen| seen.summary.point.chunk_size),
        },
        View {
            name: "speed-by-chunks-per-block",
            title: "Samples per second by chunks per block",
            axes: [Dimension::log("chunks per block", 2.0), speed()],
            style: Style::LinesWithMarks,
            series: by_chunks(seen, |seen| seen.summary.point.chunks_per_block),
        },
        View {
            name: "speed-vs-entropy",
            title: "Samples per second against randomness",
            axes: [
                Dimension::around("label entropy within batches, bits", entropy_bounds(seen)),
                speed(),
            ],
            style: Style::Marks,
            series: against_entropy(seen),
        },
    ]
}

fn by_batches(seen: &[Seen<'_>]) -> [View; 3] {
    [
        View {
            name: "waits",
            title: "How long batches were waited for",
            axes: [
                Dimension::log("wait, ms", 10.0),
                Dimension::percent("% of batches that took no longer"),
            ],
            style: Style::Lines,
            series: distributions(seen),
        },
        View {
            name: "slowest-waits",
            title: "What the slowest 10 % of batches have of all waiting",
            axes: [speed(), Dimension::percent("share of the waiting, %")],
            style: Style::Marks,
            series: slowest(seen),
        },
        View {
            name: "busy-share",
            title: "Busy share of the consumer over an epoch",
            axes: [
                Dimension::percent("progress, % of the batches"),
                Dimension::percent("busy, % of the time"),
            ],
            style: Style::Bands,
            series: busy(seen),
        },
    ]
}

fn growth(seen: &[Seen<'_>]) -> [View; 2] {
    let cells = || Dimension::log_of_values("cells");
    [
        View {
            name: "growth-time",
            title: "Time for a cell by the number of cells",
            axes: [cells(), Dimension::linear("µs per cell")],
            style: Style::LinesWithMarks,
            series: by_size(seen, |seen| seen.summary.samples_per_sec.map(per_cell)),
        },
        View {
            name: "growth-memory",
            title: "Peak memory by the number of cells",
            axes: [cells(), Dimension::linear("peak memory, GB")],
            style: Style::LinesWithMarks,
            series: by_size(seen, |seen| seen.summary.max_mem.map(|bytes| bytes.scaled(1e-9))),
        },
    ]
}

fn look<'a>(sources: &'a [Source], points: &'a [PointSummary]) -> Vec<Seen<'a>> {
    let groups = sources.iter().flat_map(|source| group(&source.records));
    let series = SeriesNames::of(points);
    let shapes = shapes(&series);
    let settings: Vec<Vec<(&str, String)>> = points.iter().map(settings).collect();
    // What a series has the same of in all of its points tells nothing that its name does not.
    let varies = |of: usize, setting: usize| {
        let same = settings.iter().enumerate().filter(|(idx, _)| series.position(*idx) == of);
        let different: BTreeSet<&String> = same.map(|(_, all)| &all[setting].1).collect();
        different.len() > 1
    };
    let seen = |(idx, (summary, epochs)): (usize, (&'a PointSummary, Vec<&'a EpochRecord>))| {
        let of = series.position(idx);
        let differing = settings[idx].iter().enumerate().filter(|(one, _)| varies(of, *one));
        let told = differing.filter(|(_, (_, value))| !value.is_empty());
        let told: Vec<&(&str, String)> = told.map(|(_, setting)| setting).collect();
        let name = |first: &str, leaves_out: &str| {
            let told = told.iter().filter(|(name, _)| leaves_out.is_empty() || *name != leaves_out);
            let words =
                told.map(|(name, value)| format!(", {}{value}", name.trim_start_matches(DATA)));
            words.fold(first.to_owned(), |all, word| all + &word)
        };
        Seen {
            summary,
            epochs,
            kind: name(series.name(idx), ""),
            kind_of_any_data: name(series.without_data(idx), DATA),
            shape: shapes[of],
        }
    };
    points.iter().zip(groups).enumerate().map(seen).collect()
}

/// What stands for the word before the name of the data, which speaks for itself.
const DATA: &str = "data";

/// Settings beside chunks, with a word before a value that does not speak for itself.
fn settings(summary: &PointSummary) -> Vec<(&'static str, String)> {
    let (point, data) = (&summary.point, &summary.data);
    let number = |value: Option<u64>| value.map_or_else(String::new, grouped);
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    vec![
        ("", point.chunk_method.clone()),
        ("", text(&summary.folder)),
        ("", summary.hostname.clone()),
        ("", point.reader.clone()),
        ("", point.form.clone()),
        ("", point.order.clone()),
        ("", point.cache.clone()),
        ("", text(&point.transform)),
        ("consumer ", text(&point.consumer)),
        ("batch ", grouped(point.batch_size)),
        ("ahead ", grouped(point.prefetch_blocks)),
        ("memory ", number(point.memory_limit)),
        ("limit ", number(point.io_limit)),
        (DATA, data.uri.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()),
        ("genes ", grouped(data.n_cols)),
    ]
}

fn place(x: f64, y: Spread) -> Place {
    Place { x, y: y.median, low: y.min, high: y.max }
}

/// Microseconds of a cell, from cells a second: the slowest epoch is the longest.
fn per_cell(speed: Spread) -> Spread {
    let micros = |speed: f64| 1e6 / speed;
    Spread {
        median: micros(speed.median),
        min: micros(speed.max),
        max: micros(speed.min),
        median_absolute_deviation: 0.0,
        n: speed.n,
    }
}

/// Puts the places of each name into a line along x, names in the order in which they first come.
fn lines<'a>(places: impl Iterator<Item = (String, &'a Seen<'a>, Place)>) -> Vec<Series> {
    let mut lines: Vec<Series> = Vec::new();
    for (name, seen, place) in places {
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(place),
            None => lines.push(seen.series(name, vec![place])),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    lines
}

/// A line for each size of a block, along which chunk size and number of chunks change together.
fn by_chunks(seen: &[Seen<'_>], at: fn(&Seen<'_>) -> u64) -> Vec<Series> {
    let blocks: BTreeSet<u64> = seen.iter().map(|one| one.summary.point.block_size).collect();
    let places = seen.iter().filter_map(|one| {
        let speed = one.summary.samples_per_sec?;
        let block = grouped(one.summary.point.block_size);
        let name = if blocks.len() > 1 {
            format!("{}, block {block}", one.kind)
        } else {
            one.kind.clone()
        };
        Some((name, one, place(at(one) as f64, speed)))
    });
    lines(places.filter(|(_, _, place)| place.x > 0.0))
}

fn against_entropy(seen: &[Seen<'_>]) -> Vec<Series> {
    lines(seen.iter().filter_map(|one| {
        let bits = one.summary.order_entropy.first()?.mean?;
        Some((one.kind.clone(), one, place(bits.median, one.summary.samples_per_sec?)))
    }))
}

/// The entropy of a perfect shuffle, and of all cells: the middle of those of all points.
fn entropy_bounds(seen: &[Seen<'_>]) -> Vec<(f64, &'static str)> {
    let of = |bound: fn(&EntropySummary) -> Option<Spread>| {
        let labels = seen.iter().filter_map(|one| one.summary.order_entropy.first());
        Spread::of(labels.filter_map(|label| Some(bound(label)?.median)))
    };
    let perfect = of(|label| label.perfect).map(|bits| (bits.median, "perfect shuffle"));
    let all = of(|label| label.data).map(|bits| (bits.median, "all cells"));
    perfect.into_iter().chain(all).collect()
}

fn by_size(seen: &[Seen<'_>], figure: impl Fn(&Seen<'_>) -> Option<Spread>) -> Vec<Series> {
    let sizes: BTreeSet<u64> = seen.iter().map(|one| one.summary.data.total_rows).collect();
    if sizes.len() < 2 {
        return Vec::new();
    }
    lines(seen.iter().filter_map(|one| {
        let cells = one.summary.data.total_rows as f64;
        // Sizes of one generator differ in the name of the data, too.
        let name = format!("{} {}", one.kind_of_any_data, one.chunks());
        Some((name, one, place(cells, figure(one)?)))
    }))
}

/// The points that deliver the most cells a second.
fn fastest<'s, 'a>(seen: &'s [Seen<'a>], most: usize) -> Vec<&'s Seen<'a>> {
    let mut all: Vec<(&Seen<'_>, f64)> =
        seen.iter().filter_map(|one| Some((one, one.summary.samples_per_sec?.median))).collect();
    all.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    all.into_iter().take(most).map(|(one, _)| one).collect()
}

fn distributions(seen: &[Seen<'_>]) -> Vec<Series> {
    // A wait of nothing has no place on a logarithmic axis.
    const LEAST_MS: f64 = 1e-3;
    let line = |one: &Seen<'_>| {
        let waits = curves::waits(&one.epochs)?;
        let places = waits.iter().zip(WAIT_PERCENTS).map(|(secs, percent)| Place {
            x: (secs * 1e3).max(LEAST_MS),
            y: percent,
            low: percent,
            high: percent,
        });
        Some(one.series(one.name(), places.collect()))
    };
    fastest(seen, MOST_LINES).into_iter().filter_map(line).collect()
}

fn slowest(seen: &[Seen<'_>]) -> Vec<Series> {
    lines(seen.iter().filter_map(|one| {
        let shares = one
            .epochs
            .iter()
            .filter_map(|epoch| curves::slowest_tenth_share(&epoch.measured.batch_wait_secs));
        let share = Spread::of(shares)?.scaled(100.0);
        Some((one.kind.clone(), one, place(one.summary.samples_per_sec?.median, share)))
    }))
}

fn busy(seen: &[Seen<'_>]) -> Vec<Series> {
    let line = |one: &Seen<'_>| {
        let curve = curves::busy(&one.epochs)?;
        let n = curve.mean.len() as f64;
        let bounds = curve.least.iter().zip(&curve.most);
        let places = curve.mean.iter().zip(bounds).enumerate().map(|(idx, (mean, (low, high)))| {
            let x = 100.0 * (idx as f64 + 0.5) / n;
            Place { x, y: 100.0 * mean, low: 100.0 * low, high: 100.0 * high }
        });
        Some(one.series(one.name(), places.collect()))
    };
    fastest(seen, MOST_LINES).into_iter().filter_map(line).collect()
}
