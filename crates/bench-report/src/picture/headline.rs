//! Titles that say in words what a picture shows, made from its rows.

use super::{
    Placed, TITLE,
    chart::{LinePoint, LineSeries},
    comparison::Group,
    mark::Encoding,
};
use crate::{
    series::loader,
    table::{decimal, grouped},
};

/// Says what is fastest in each group, and how much faster than the best other loader.
pub(super) fn speed_against_memory(
    groups: &[Group<'_>],
    encoding: &Encoding,
    by_loader: bool,
) -> String {
    let sentence = |group: &Group<'_>| {
        let fastest = fastest(&group.placed)?;
        let name = &encoding.names[fastest.series];
        let others = group.placed.iter().copied();
        let others = others.filter(|one| loader(one.summary) != loader(fastest.summary));
        let other = self::fastest(&others.collect::<Vec<_>>()).filter(|_| by_loader);
        let speed = decimal(fastest.speed.median, 0);
        Some(match other {
            Some(other) => format!(
                "{name} is fastest, {} x {}, in {} x its memory",
                decimal(fastest.speed.median / other.speed.median, 1),
                encoding.names[other.series],
                decimal(fastest.gigabytes.median / other.gigabytes.median, 2),
            ),
            None => format!(
                "{name} {} is fastest, {speed} samples/s in {} GB",
                chunks(fastest),
                decimal(fastest.gigabytes.median, 2)
            ),
        })
    };
    let sentences = groups.iter().filter_map(|group| match groups.len() {
        1 => sentence(group),
        _ => Some(format!("{}: {}", group.title, sentence(group)?)),
    });
    let sentences: Vec<String> = sentences.collect();
    if sentences.is_empty() { TITLE.to_owned() } else { sentences.join("; ") }
}

fn fastest<'a>(placed: &[&'a Placed<'a>]) -> Option<&'a Placed<'a>> {
    placed.iter().copied().max_by(|a, b| a.speed.median.total_cmp(&b.speed.median))
}

fn chunks(placed: &Placed<'_>) -> String {
    let point = &placed.summary.point;
    format!("{}×{}", grouped(point.chunks_per_block), grouped(point.chunk_size))
}

/// The series and the point that are best by `better`, which is larger for better ones.
fn best(
    series: &[LineSeries],
    better: impl Fn(&LinePoint) -> f64,
) -> Option<(&LineSeries, LinePoint)> {
    let all = series.iter().flat_map(|one| one.points.iter().map(move |point| (one, *point)));
    all.max_by(|(_, a), (_, b)| better(a).total_cmp(&better(b)))
}

fn rate(samples_per_sec: f64) -> String {
    format!("{} samples/s", decimal(samples_per_sec, 0))
}

pub(super) fn chunk_size(series: &[LineSeries]) -> Option<String> {
    let (one, point) = best(series, |point| point.y)?;
    Some(format!(
        "Chunks of {} rows are fastest: {}, {}",
        decimal(point.x, 0),
        one.name,
        rate(point.y)
    ))
}

pub(super) fn chunks_per_block(series: &[LineSeries]) -> Option<String> {
    let (one, point) = best(series, |point| point.y)?;
    let chunks = if point.x == 1.0 {
        "1 chunk".to_owned()
    } else {
        format!("{} chunks", decimal(point.x, 0))
    };
    Some(format!("Blocks of {chunks} are fastest: {}, {}", one.name, rate(point.y)))
}

pub(super) fn entropy(series: &[LineSeries]) -> Option<String> {
    let (_, fastest) = best(series, |point| point.y)?;
    let (_, mixed) = best(series, |point| point.x)?;
    let point = |one: LinePoint| format!("{} at {} bits", rate(one.y), decimal(one.x, 2));
    Some(if fastest == mixed {
        format!("The fastest order is the most random: {}", point(fastest))
    } else {
        format!("The most random order: {}; the fastest: {}", point(mixed), point(fastest))
    })
}

/// Names the series that first has delivered 99 % of its batches.
pub(super) fn waits(series: &[LineSeries]) -> Option<String> {
    let slow =
        |one: &LineSeries| one.points.iter().find(|point| point.y >= 99.0).map(|point| point.x);
    let all = series.iter().filter_map(|one| Some((one, slow(one)?)));
    let (one, millis) = all.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some(format!(
        "{} waits least: 99 % of its batches came within {} ms",
        one.name,
        decimal(millis, 1)
    ))
}

pub(super) fn slowest_waits(series: &[LineSeries]) -> Option<String> {
    let (one, point) = best(series, |point| -point.y)?;
    Some(format!(
        "{} waits most evenly: {} % of its waiting was for the slowest 10 % of its batches",
        one.name,
        decimal(point.y, 0)
    ))
}

pub(super) fn busy(series: &[LineSeries]) -> Option<String> {
    let mean = |one: &LineSeries| {
        let n = one.points.len();
        (n > 0).then(|| one.points.iter().map(|point| point.y).sum::<f64>() / n as f64)
    };
    let all = series.iter().filter_map(|one| Some((one, mean(one)?)));
    let (one, percent) = all.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some(format!("{} keeps the consumer busiest, {} % of the time", one.name, decimal(percent, 0)))
}

/// Says how `figure` grows with the number of cells, along the lines.
pub(super) fn growth(series: &[LineSeries], figure: &str) -> Option<String> {
    let ends = |one: &LineSeries| Some((*one.points.first()?, *one.points.last()?));
    let ends: Vec<(LinePoint, LinePoint)> =
        series.iter().filter_map(ends).filter(|(first, last)| first.x < last.x).collect();
    let ratio = |of: fn(&LinePoint) -> f64| {
        let ratios = ends.iter().map(move |(first, last)| of(last) / of(first));
        crate::Spread::from_values(ratios)
    };
    let (cells, figures) = (ratio(|point| point.x)?, ratio(|point| point.y)?);
    let [least, most] = [figures.min, figures.max].map(|ratio| decimal(ratio, 2));
    let range = if least == most { least } else { format!("{least} to {most}") };
    let digits = usize::from(0.05 < (cells.median - cells.median.round()).abs());
    Some(format!(
        "{} times the cells take {range} times the {figure}",
        decimal(cells.median, digits)
    ))
}

/// The line that is highest where there are most ranks, and its lowest number of ranks.
fn most_ranks(series: &[LineSeries]) -> Option<(&LineSeries, LinePoint, LinePoint)> {
    let ends =
        series.iter().filter_map(|one| Some((one, *one.points.first()?, *one.points.last()?)));
    ends.max_by(|(.., a), (.., b)| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)))
}

pub(super) fn ranks_speed(series: &[LineSeries]) -> Option<String> {
    let (one, first, last) = most_ranks(series)?;
    Some(format!(
        "{} ranks together are {} x as fast as {}: {}",
        decimal(last.x, 0),
        decimal(last.y / first.y, 1),
        decimal(first.x, 0),
        one.name
    ))
}

pub(super) fn ranks_utilization(series: &[LineSeries]) -> Option<String> {
    let (one, _, last) = most_ranks(series)?;
    Some(format!(
        "Of {} ranks, the least utilised computed {} % of the time: {}",
        decimal(last.x, 0),
        decimal(last.y, 0),
        one.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::LineStyle;

    fn series(name: &str, points: &[(f64, f64)]) -> LineSeries {
        let points = points.iter().map(|&(x, y)| LinePoint::new(x, y)).collect();
        LineSeries::new(name, LineStyle::Lines, points)
    }

    #[test]
    fn the_best_is_named_with_its_figure() {
        let all = [series("a", &[(16.0, 1000.0), (64.0, 3000.0)]), series("b", &[(16.0, 2000.0)])];
        assert_eq!(chunk_size(&all).unwrap(), "Chunks of 64 rows are fastest: a, 3,000 samples/s");
        assert!(chunks_per_block(&all).unwrap().starts_with("Blocks of 64 chunks are fastest: a"));
        assert!(entropy(&all).unwrap().starts_with("The fastest order is the most random: 3,000"));
        let swapped = [series("a", &[(1.5, 3000.0), (2.5, 1000.0)])];
        let text = entropy(&swapped).unwrap();
        assert!(
            text.contains("random order: 1,000 samples/s at 2.50 bits; the fastest: 3,000"),
            "{text}"
        );
        let waits_of = [series("a", &[(1.0, 50.0), (9.0, 99.0)]), series("b", &[(3.0, 100.0)])];
        assert!(
            waits(&waits_of)
                .unwrap()
                .starts_with("b waits least: 99 % of its batches came within 3.0")
        );
        assert!(slowest_waits(&all).unwrap().starts_with("a waits most evenly: 1,000 %"));
        assert!(busy(&waits_of).unwrap().starts_with("b keeps the consumer busiest, 100 %"));
        assert_eq!(chunk_size(&[]), None);
    }

    #[test]
    fn growth_and_ranks_are_ratios_of_the_ends() {
        let all = [series("a", &[(1e5, 2.0), (1e6, 4.0)]), series("b", &[(1e5, 1.0), (1e6, 1.5)])];
        assert_eq!(
            growth(&all, "memory").unwrap(),
            "10 times the cells take 1.50 to 2.00 times the memory"
        );
        assert_eq!(growth(&[series("a", &[(1.0, 1.0)])], "memory"), None);
        let ranks =
            [series("a", &[(1.0, 10.0), (4.0, 30.0)]), series("b", &[(1.0, 10.0), (4.0, 36.0)])];
        assert_eq!(ranks_speed(&ranks).unwrap(), "4 ranks together are 3.6 x as fast as 1: b");
        assert!(
            ranks_utilization(&ranks)
                .unwrap()
                .starts_with("Of 4 ranks, the least utilised computed 36 %")
        );
    }
}
