//! The further views as pictures. A view without data is left out.

use std::collections::BTreeSet;

use super::{
    bars::{self, MAX_BARS},
    caption::subtitle,
    chart::{LineChart, LinePanel, LinePoint, LineSeries, LineStyle, draw_lines},
    headline,
    named_point::{NamedPoint, name_points},
    scale::Dimension,
};
use crate::{
    EntropySummary, Error, PointSummary, RanksSummary, Source, Spread,
    curves::{self, WAIT_PERCENTS},
    table::grouped,
};

/// Largest number of lines in a chart: the fastest points are drawn.
pub(super) const MAX_LINES: usize = 7;

/// A rendered view.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picture {
    /// Name of the view, used in file names.
    pub(crate) view: &'static str,
    pub(crate) svg: String,
}

/// Content of a picture.
struct View {
    name: &'static str,
    /// Title if the rows say nothing.
    title: &'static str,
    /// Says what the series show.
    headline: fn(&[LineSeries]) -> Option<String>,
    axes: [Dimension; 2],
    style: LineStyle,
    series: Vec<LineSeries>,
}

/// Draws all views that have data.
pub(crate) fn draw(sources: &[Source], points: &[PointSummary]) -> Result<Vec<Picture>, Error> {
    let named = name_points(sources, points);
    let subtitle = subtitle(sources, points);
    let all = by_settings(&named).into_iter().chain(by_batches(&named)).chain(growth(&named));
    let mut pictures = draw_all(all.chain(by_ranks(&named)), &subtitle)?;
    if let Some(svg) = bars::draw(&fastest(&named, MAX_BARS), &subtitle)? {
        pictures.push(Picture { view: "stages", svg });
    }
    Ok(pictures)
}

/// Draws the views over the number of ranks; none unless there are several numbers.
pub(crate) fn draw_ranks(
    sources: &[Source],
    points: &[PointSummary],
) -> Result<Vec<Picture>, Error> {
    let named = name_points(sources, points);
    draw_all(by_ranks(&named).into_iter(), &subtitle(sources, points))
}

fn draw_all(
    views: impl Iterator<Item = View>,
    subtitle: &[String; 2],
) -> Result<Vec<Picture>, Error> {
    let mut pictures = Vec::new();
    for View { name, title, headline, axes: [x, y], style, mut series } in views {
        if series.is_empty() {
            continue;
        }
        for one in &mut series {
            one.style = style;
        }
        let title = headline(&series).unwrap_or_else(|| title.to_owned());
        let panels = vec![LinePanel { title: String::new(), series }];
        let chart = LineChart { title, notes: subtitle.to_vec(), x, y, panels };
        pictures.push(Picture { view: name, svg: draw_lines(&chart)? });
    }
    Ok(pictures)
}

fn speed() -> Dimension {
    Dimension::linear("samples/s, first batch counted")
}

fn by_settings(points: &[NamedPoint<'_>]) -> [View; 3] {
    [
        View {
            name: "speed-by-chunk-size",
            title: "Samples per second by chunk size",
            headline: headline::chunk_size,
            axes: [Dimension::log("rows per chunk", 2.0), speed()],
            style: LineStyle::LinesWithMarks,
            series: by_chunks(points, |point| point.summary.point.chunk_size),
        },
        View {
            name: "speed-by-chunks-per-block",
            title: "Samples per second by chunks per block",
            headline: headline::chunks_per_block,
            axes: [Dimension::log("chunks per block", 2.0), speed()],
            style: LineStyle::LinesWithMarks,
            series: by_chunks(points, |point| point.summary.point.chunks_per_block),
        },
        View {
            name: "speed-vs-entropy",
            title: "Samples per second against randomness",
            headline: headline::entropy,
            axes: [
                Dimension::around("label entropy within batches, bits", entropy_bounds(points)),
                speed(),
            ],
            style: LineStyle::Marks,
            series: against_entropy(points),
        },
    ]
}

fn by_batches(points: &[NamedPoint<'_>]) -> [View; 3] {
    [
        View {
            name: "waits",
            title: "Waits for batches",
            headline: headline::waits,
            axes: [
                Dimension::log("wait, ms", 10.0),
                Dimension::percent("% of batches that took no longer"),
            ],
            style: LineStyle::Lines,
            series: distributions(points),
        },
        View {
            name: "slowest-waits",
            title: "Share of all waiting in the slowest 10 % of batches",
            headline: headline::slowest_waits,
            axes: [speed(), Dimension::percent("share of the waiting, %")],
            style: LineStyle::Marks,
            series: slowest(points),
        },
        View {
            name: "busy-share",
            title: "Busy share of the consumer over an epoch",
            headline: headline::busy,
            axes: [
                Dimension::percent("progress, % of the batches"),
                Dimension::percent("busy, % of the time"),
            ],
            style: LineStyle::Bands,
            series: busy(points),
        },
    ]
}

fn growth(points: &[NamedPoint<'_>]) -> [View; 2] {
    let cells = || Dimension::log_of_values("cells");
    [
        View {
            name: "growth-time",
            title: "Time for a cell by the number of cells",
            headline: |series| headline::growth(series, "time for each cell"),
            axes: [cells(), Dimension::linear("µs per cell")],
            style: LineStyle::LinesWithMarks,
            series: by_size(points, |point| point.summary.samples_per_sec.map(per_cell)),
        },
        View {
            name: "growth-memory",
            title: "Peak memory by the number of cells",
            headline: |series| headline::growth(series, "memory"),
            axes: [cells(), Dimension::linear("peak memory, GB")],
            style: LineStyle::LinesWithMarks,
            series: by_size(points, |point| point.summary.max_mem.map(|bytes| bytes.scaled(1e-9))),
        },
    ]
}

fn by_ranks(points: &[NamedPoint<'_>]) -> [View; 2] {
    let ranks = || Dimension::log_of_values("ranks");
    [
        View {
            name: "ranks-speed",
            title: "Samples per second of all ranks together",
            headline: headline::ranks_speed,
            axes: [ranks(), Dimension::linear("samples/s of all ranks")],
            style: LineStyle::LinesWithMarks,
            series: over_ranks(points, |of| of.samples_per_sec),
        },
        View {
            name: "ranks-utilization",
            title: "Least accelerator utilisation of a rank",
            headline: headline::ranks_utilization,
            axes: [ranks(), Dimension::percent("AU of the rank with the least, %")],
            style: LineStyle::LinesWithMarks,
            series: over_ranks(points, |of| of.least_utilization.map(|share| share.scaled(100.0))),
        },
    ]
}

fn series(point: &NamedPoint<'_>, name: String, points: Vec<LinePoint>) -> LineSeries {
    LineSeries { shape: point.shape, ..LineSeries::new(name, LineStyle::Lines, points) }
}

fn place(x: f64, y: Spread) -> LinePoint {
    LinePoint { x, y: y.median, low: y.min, high: y.max }
}

/// Converts cells per second to microseconds per cell: the fastest epoch is the shortest.
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

/// Groups places by name into lines along x, names in order of first appearance.
fn lines<'a>(
    places: impl Iterator<Item = (String, &'a NamedPoint<'a>, LinePoint)>,
) -> Vec<LineSeries> {
    let mut lines: Vec<LineSeries> = Vec::new();
    for (name, point, place) in places {
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(place),
            None => lines.push(series(point, name, vec![place])),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    lines
}

/// One line per block size, along which chunk size and number of chunks change together.
fn by_chunks(points: &[NamedPoint<'_>], at: fn(&NamedPoint<'_>) -> u64) -> Vec<LineSeries> {
    let blocks: BTreeSet<u64> = points.iter().map(|one| one.summary.point.block_size).collect();
    let places = points.iter().filter_map(|one| {
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

fn against_entropy(points: &[NamedPoint<'_>]) -> Vec<LineSeries> {
    lines(points.iter().filter_map(|one| {
        let bits = one.summary.order_entropy.first()?.mean?;
        Some((one.kind.clone(), one, place(bits.median, one.summary.samples_per_sec?)))
    }))
}

/// The entropy of a perfect shuffle and of all cells, each the median over all points.
fn entropy_bounds(points: &[NamedPoint<'_>]) -> Vec<(f64, &'static str)> {
    let spread = |bound: fn(&EntropySummary) -> Option<Spread>| {
        let labels = points.iter().filter_map(|one| one.summary.order_entropy.first());
        Spread::from_values(labels.filter_map(|label| Some(bound(label)?.median)))
    };
    let perfect = spread(|label| label.perfect).map(|bits| (bits.median, "perfect shuffle"));
    let all = spread(|label| label.data).map(|bits| (bits.median, "all cells"));
    perfect.into_iter().chain(all).collect()
}

fn by_size(
    points: &[NamedPoint<'_>],
    figure: impl Fn(&NamedPoint<'_>) -> Option<Spread>,
) -> Vec<LineSeries> {
    let sizes: BTreeSet<u64> = points.iter().map(|one| one.summary.data.total_rows).collect();
    if sizes.len() < 2 {
        return Vec::new();
    }
    lines(points.iter().filter_map(|one| {
        let cells = one.summary.data.total_rows as f64;
        // Data sets of different sizes differ in the name of the data, too.
        let name = format!("{} {}", one.kind_without_data, one.chunks());
        Some((name, one, place(cells, figure(one)?)))
    }))
}

/// One line per kind and chunks, along which the number of ranks changes; none if it never does.
fn over_ranks(
    points: &[NamedPoint<'_>],
    figure: impl Fn(&RanksSummary) -> Option<Spread>,
) -> Vec<LineSeries> {
    let numbers: BTreeSet<u64> =
        points.iter().filter_map(|one| one.summary.point.world_size).collect();
    if numbers.len() < 2 {
        return Vec::new();
    }
    lines(points.iter().filter_map(|one| {
        let n = one.summary.point.world_size? as f64;
        let name = format!("{} {}", one.kind_without_ranks, one.chunks());
        Some((name, one, place(n, figure(one.summary.ranks.as_ref()?)?)))
    }))
}

/// The points with the most cells per second.
fn fastest<'s, 'a>(points: &'s [NamedPoint<'a>], most: usize) -> Vec<&'s NamedPoint<'a>> {
    let mut all: Vec<(&NamedPoint<'_>, f64)> =
        points.iter().filter_map(|one| Some((one, one.summary.samples_per_sec?.median))).collect();
    all.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    all.into_iter().take(most).map(|(one, _)| one).collect()
}

fn distributions(points: &[NamedPoint<'_>]) -> Vec<LineSeries> {
    // A logarithmic axis cannot show a wait of zero.
    const MIN_MS: f64 = 1e-3;
    let line = |one: &NamedPoint<'_>| {
        let waits = curves::waits(&one.epochs)?;
        let places = waits.iter().zip(WAIT_PERCENTS).map(|(secs, percent)| LinePoint {
            x: (secs * 1e3).max(MIN_MS),
            y: percent,
            low: percent,
            high: percent,
        });
        Some(series(one, one.name(), places.collect()))
    };
    fastest(points, MAX_LINES).into_iter().filter_map(line).collect()
}

fn slowest(points: &[NamedPoint<'_>]) -> Vec<LineSeries> {
    lines(points.iter().filter_map(|one| {
        let shares = one
            .epochs
            .iter()
            .filter_map(|epoch| curves::slowest_tenth_share(&epoch.measured.batch_wait_secs));
        let share = Spread::from_values(shares)?.scaled(100.0);
        Some((one.kind.clone(), one, place(one.summary.samples_per_sec?.median, share)))
    }))
}

fn busy(points: &[NamedPoint<'_>]) -> Vec<LineSeries> {
    let line = |one: &NamedPoint<'_>| {
        let curve = curves::busy(&one.epochs)?;
        let n = curve.mean.len() as f64;
        let bounds = curve.least.iter().zip(&curve.most);
        let places = curve.mean.iter().zip(bounds).enumerate().map(|(idx, (mean, (low, high)))| {
            let x = 100.0 * (idx as f64 + 0.5) / n;
            LinePoint { x, y: 100.0 * mean, low: 100.0 * low, high: 100.0 * high }
        });
        Some(series(one, one.name(), places.collect()))
    };
    fastest(points, MAX_LINES).into_iter().filter_map(line).collect()
}
