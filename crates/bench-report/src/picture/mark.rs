//! The look of marks: shape, area, color.

use std::collections::BTreeSet;

use super::{
    Placed,
    canvas::{Canvas, Ink},
    scale::Scale,
    shape::draw_shape,
};
use crate::{
    Error,
    series::{N_METHODS, NamedBy, SeriesNames, method_idx},
};

/// Radius of the largest block's circle, and the smallest visible radius.
const RADII: (f64, f64) = (13.0, 4.5);

/// Viridis in nine steps: perceptually uniform, ordered by lightness, readable for the color-blind.
/// Its last tenth is left out, because yellow disappears on white.
const VIRIDIS: [[u8; 3]; 9] = [
    [0x44, 0x01, 0x54],
    [0x48, 0x23, 0x74],
    [0x40, 0x45, 0x88],
    [0x34, 0x60, 0x8d],
    [0x29, 0x79, 0x8e],
    [0x20, 0x90, 0x8c],
    [0x22, 0xa7, 0x84],
    [0x51, 0xc5, 0x6a],
    [0xb8, 0xde, 0x29],
];

/// Okabe and Ito's colors, which the color-blind can distinguish, without yellow, which disappears
/// on white.
const CATEGORIES: [[u8; 3]; 7] = [
    [0x00, 0x72, 0xb2],
    [0xe6, 0x9f, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0x56, 0xb4, 0xe9],
    [0xd5, 0x5e, 0x00],
    [0x7f, 0x7f, 0x7f],
];
/// Number of colors, after which they repeat; another property must then distinguish the series.
pub(super) const N_COLORS: usize = CATEGORIES.len();

/// The color of series `idx`.
pub(super) fn category(idx: usize) -> Ink {
    Ink::rgb(CATEGORIES[idx % N_COLORS])
}

/// The mapping from settings to marks, shared by marks and legends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Encoding {
    /// Kind of the series, for instance loaders or methods.
    pub(super) heading: &'static str,
    /// Names of all series, and the shape of each.
    pub(super) names: Vec<String>,
    shapes: Vec<usize>,
    /// Whether the color encodes the series rather than the number of chunks.
    pub(super) colored_by_series: bool,
    /// Block sizes that occur, in rows, ascending.
    pub(super) block_rows: Vec<u64>,
    /// Chunks per block that occur, ascending.
    pub(super) chunks: Vec<u64>,
    /// Whether both dense and sparse batches occur.
    pub(super) both_forms: bool,
}

/// A mark at its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark<'a> {
    pub(super) point: &'a Placed<'a>,
    pub(super) at: (f64, f64),
    pub(super) radius: f64,
}

impl Encoding {
    pub(crate) fn from_placed(series: &SeriesNames, placed: &[Placed<'_>]) -> Self {
        let points = placed.iter().map(|placed| &placed.summary.point);
        let mut block_rows: Vec<u64> = points.clone().map(|point| point.block_size).collect();
        let mut chunks: Vec<u64> = points.clone().map(|point| point.chunks_per_block).collect();
        let forms: BTreeSet<&String> = points.map(|point| &point.form).collect();
        for numbers in [&mut block_rows, &mut chunks] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        Self {
            heading: series.heading(),
            names: series.names.clone(),
            shapes: shapes(series),
            colored_by_series: series.named_by == NamedBy::Loader,
            block_rows,
            chunks,
            both_forms: forms.len() > 1,
        }
    }

    pub(super) fn mark<'a>(&self, point: &'a Placed<'a>, x: &Scale, y: &Scale) -> Mark<'a> {
        let at = (x.position(point.gigabytes.median), y.position(point.speed.median));
        Mark { point, at, radius: self.radius(point.summary.point.block_size) }
    }

    /// Draws the mark; if `marks_sparse`, marks of sparse batches have a hole.
    pub(super) fn draw(
        &self,
        canvas: &Canvas<'_>,
        mark: &Mark<'_>,
        marks_sparse: bool,
    ) -> Result<(), Error> {
        let point = &mark.point.summary.point;
        let fill = self.fill(mark.point.series, point.chunks_per_block).with_opacity(0.88);
        draw_shape(canvas, self.shape(mark.point.series), mark.at, mark.radius, fill)?;
        if marks_sparse && point.form == "csr" {
            draw_hole(canvas, mark.at, mark.radius)?;
        }
        Ok(())
    }

    /// The shape of series `idx`.
    pub(super) fn shape(&self, idx: usize) -> usize {
        self.shapes[idx]
    }

    fn fill(&self, series: usize, chunks: u64) -> Ink {
        if self.colored_by_series { category(series) } else { self.color(chunks) }
    }

    /// Radius of the circle for `block_rows`; its area is proportional to the rows. Other shapes
    /// have the same area.
    pub(crate) fn radius(&self, block_rows: u64) -> f64 {
        let largest = self.block_rows.last().copied().unwrap_or(1).max(1);
        (RADII.0 * (block_rows as f64 / largest as f64).sqrt()).max(RADII.1)
    }

    /// The color for `chunks` per block, by its logarithm between minimum and maximum.
    pub(crate) fn color(&self, chunks: u64) -> Ink {
        let log = |chunks: u64| (chunks.max(1) as f64).log2();
        let (Some(&least), Some(&most)) = (self.chunks.first(), self.chunks.last()) else {
            return viridis(0.5);
        };
        if least == most {
            return viridis(0.5);
        }
        viridis((log(chunks) - log(least)) / (log(most) - log(least)))
    }
}

/// The shape of each series: fixed for the original's methods, the next free one for others.
pub(crate) fn shapes(series: &SeriesNames) -> Vec<usize> {
    if series.named_by != NamedBy::Method {
        return (0..series.names.len()).collect();
    }
    let mut next = N_METHODS..;
    let each = series.names.iter();
    each.map(|name| method_idx(name).or_else(|| next.next()).unwrap_or_default()).collect()
}

/// The color at `share` (0 to 1) of the scale.
pub(super) fn viridis(share: f64) -> Ink {
    let last = VIRIDIS.len() - 1;
    let position = share.clamp(0.0, 1.0) * last as f64;
    let below = (position.floor() as usize).min(last - 1);
    let part = position - below as f64;
    let (low, high) = (VIRIDIS[below], VIRIDIS[below + 1]);
    Ink::rgb([0, 1, 2].map(|channel| {
        let (low, high) = (f64::from(low[channel]), f64::from(high[channel]));
        (low + (high - low) * part).round() as u8
    }))
}

/// Draws the white center that marks sparse batches.
pub(super) fn draw_hole(canvas: &Canvas<'_>, at: (f64, f64), radius: f64) -> Result<(), Error> {
    canvas.circle(at, radius * 0.4, Ink::PAPER, Ink::TEXT.with_opacity(0.75), 1.0)
}
