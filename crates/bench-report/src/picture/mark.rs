//! What a mark looks like: shape, area, color.

use std::f64::consts::TAU;

use super::{
    Placed,
    canvas::{Canvas, Ink},
    scale::Axis,
};
use crate::{Error, PointSummary};

/// Radius of the largest block's circle, and the least that is still seen.
const RADII: (f64, f64) = (15.0, 4.5);

/// Methods in the order of the legend.
const METHODS: [&str; 3] = ["np.array", "scipy.csr", "native"];

/// Viridis in nine steps: even to the eye, ordered by lightness, fit for the color-blind. Its last tenth is left out,
/// a yellow that white paper swallows.
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

/// How settings become marks: one rule for marks and legends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Encoding {
    /// Methods that occur; where several folders are drawn, those: they have the shapes then.
    pub(super) methods: Vec<String>,
    pub(super) of_folders: bool,
    /// Rows of a block that occur, ascending.
    pub(super) block_rows: Vec<u64>,
    /// Chunks of a block that occur, ascending.
    pub(super) chunks: Vec<u64>,
    /// Whether both dense and sparse batches occur.
    pub(super) both_forms: bool,
}

/// A mark in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark<'a> {
    pub(super) point: &'a Placed<'a>,
    pub(super) at: (f64, f64),
    pub(super) radius: f64,
}

impl Encoding {
    pub(crate) fn of<'a>(summaries: impl Iterator<Item = &'a PointSummary> + Clone) -> Self {
        let points = summaries.clone().map(|summary| &summary.point);
        let of_folders = summaries.clone().any(|summary| summary.folder.is_some());
        let mut methods: Vec<String> = summaries.map(named_by_shape).collect();
        let mut block_rows: Vec<u64> = points.clone().map(|point| point.block_size).collect();
        let mut chunks: Vec<u64> = points.clone().map(|point| point.chunks_per_block).collect();
        let mut forms: Vec<&String> = points.map(|point| &point.form).collect();
        // The published ones first.
        methods.sort_by_key(|method| {
            (
                METHODS.iter().position(|known| known == method).unwrap_or(METHODS.len()),
                method.clone(),
            )
        });
        methods.dedup();
        for numbers in [&mut block_rows, &mut chunks] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        forms.sort();
        forms.dedup();
        Self { both_forms: forms.len() > 1, methods, of_folders, block_rows, chunks }
    }

    pub(super) fn mark<'a>(&self, point: &'a Placed<'a>, x: &Axis, y: &Axis) -> Mark<'a> {
        let at = (x.position(point.gigabytes.median), y.position(point.speed.median));
        Mark { point, at, radius: self.radius(point.summary.point.block_size) }
    }

    pub(super) fn draw(&self, canvas: &Canvas<'_>, mark: &Mark<'_>) -> Result<(), Error> {
        let point = &mark.point.summary.point;
        let fill = self.color(point.chunks_per_block).with_opacity(0.88);
        let name = named_by_shape(mark.point.summary);
        draw_shape(canvas, self.shape(&name), mark.at, mark.radius, fill)?;
        if self.both_forms && point.form == "csr" {
            draw_hole(canvas, mark.at, mark.radius)?;
        }
        Ok(())
    }

    /// The method whose shape stands for `name`.
    pub(super) fn shape<'n>(&self, name: &'n str) -> &'n str {
        if !self.of_folders {
            return name;
        }
        let idx = self.methods.iter().position(|known| known == name).unwrap_or(METHODS.len());
        METHODS.get(idx).copied().unwrap_or_default()
    }

    /// Radius of the circle that stands for `block_rows`; other shapes have its area. The area goes with the rows.
    pub(crate) fn radius(&self, block_rows: u64) -> f64 {
        let largest = self.block_rows.last().copied().unwrap_or(1).max(1);
        (RADII.0 * (block_rows as f64 / largest as f64).sqrt()).max(RADII.1)
    }

    /// The color of `chunks` in a block, by its logarithm between the least and the most.
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

fn named_by_shape(summary: &PointSummary) -> String {
    summary.folder.as_ref().unwrap_or(&summary.point.chunk_method).clone()
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

/// The shape of a method: a circle for np.array, a square for scipy.csr, a triangle for native, a diamond for others.
/// All have the area of a circle of `radius`.
pub(super) fn draw_shape(
    canvas: &Canvas<'_>,
    method: &str,
    (x, y): (f64, f64),
    radius: f64,
    fill: Ink,
) -> Result<(), Error> {
    let outline = Ink::TEXT.with_opacity(0.75);
    // Corners, their distance from the middle, and the turn of the first one from straight up.
    let (corners, distance, turn) = match method {
        "np.array" => return canvas.circle((x, y), radius, fill, outline),
        "scipy.csr" => (4, 1.2533, 0.125),
        "native" => (3, 1.5551, 0.0),
        _ => (4, 1.2533, 0.0),
    };
    let corner = |idx: i32| {
        let angle = TAU * (f64::from(idx) / f64::from(corners) + turn);
        (x + radius * distance * angle.sin(), y - radius * distance * angle.cos())
    };
    canvas.polygon(&(0..corners).map(corner).collect::<Vec<_>>(), fill, outline, 1.0)
}

/// The white middle that says that batches are sparse.
pub(super) fn draw_hole(canvas: &Canvas<'_>, at: (f64, f64), radius: f64) -> Result<(), Error> {
    canvas.circle(at, radius * 0.4, Ink::PAPER, Ink::TEXT.with_opacity(0.75))
}
