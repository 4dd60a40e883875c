//! One plot of speed against memory: axes, marks with their bars, names beside them.

use super::{
    Placed,
    axes::draw_axes,
    canvas::{Canvas, Ink},
    labels::{self, Frame, Label, Named},
    mark::{Encoding, Mark},
    scale::Scale,
    shape::reach,
};
use crate::Error;

/// With more marks than this, none has a name beside it; the legend has all.
pub(super) const MAX_NAMED: usize = 20;

pub(super) struct Panel {
    /// Left, top, right and bottom.
    pub(super) plot: [f64; 4],
    pub(super) x: Scale,
    pub(super) y: Scale,
    /// Whether the x axis has numbers.
    pub(super) labels_x: bool,
}

impl Panel {
    pub(super) fn draw_axes(&self, canvas: &Canvas<'_>) -> Result<(), Error> {
        draw_axes(canvas, self.plot, &self.x, &self.y, self.labels_x)
    }

    /// Draws the marks and returns them, the largest first.
    pub(super) fn draw_marks<'a>(
        &self,
        canvas: &Canvas<'_>,
        encoding: &Encoding,
        placed: &[&'a Placed<'a>],
        marks_sparse: bool,
    ) -> Result<Vec<Mark<'a>>, Error> {
        let mut marks: Vec<Mark<'a>> =
            placed.iter().map(|point| encoding.mark(point, &self.x, &self.y)).collect();
        // Small marks last, so that none is hidden.
        marks.sort_by(|a, b| b.radius.total_cmp(&a.radius));
        for mark in &marks {
            for ends in self.bars(mark).into_iter().flatten() {
                canvas.line(&ends, Ink::BAR, 1.5)?;
            }
        }
        for mark in &marks {
            encoding.draw(canvas, mark, marks_sparse)?;
        }
        Ok(marks)
    }

    /// Thin bars from the minimum to the maximum, if there are several epochs.
    fn bars(&self, mark: &Mark<'_>) -> [Option<[(f64, f64); 2]>; 2] {
        let (point, (at_x, at_y)) = (mark.point, mark.at);
        let up = [point.speed.min, point.speed.max].map(|end| (at_x, self.y.position(end)));
        let across =
            [point.gigabytes.min, point.gigabytes.max].map(|end| (self.x.position(end), at_y));
        [(point.speed.n > 1).then_some(up), (point.gigabytes.n > 1).then_some(across)]
    }

    /// The names of the series beside `marks`, as far as there is room.
    pub(super) fn labels(&self, encoding: &Encoding, marks: &[Mark<'_>]) -> Vec<Label> {
        let [left, upper, right, lower] = self.plot;
        let inside =
            Frame { left: left + 3.0, upper: upper + 1.0, right: right - 1.0, lower: lower - 2.0 };
        let bar = |ends: [(f64, f64); 2]| Frame {
            left: ends[0].0.min(ends[1].0) - 1.5,
            upper: ends[0].1.min(ends[1].1) - 1.5,
            right: ends[0].0.max(ends[1].0) + 1.5,
            lower: ends[0].1.max(ends[1].1) + 1.5,
        };
        let bars: Vec<Frame> =
            marks.iter().flat_map(|mark| self.bars(mark)).flatten().map(bar).collect();
        let named: Vec<Named<'_>> = marks
            .iter()
            .map(|mark| Named {
                text: &encoding.names[mark.point.series],
                at: mark.at,
                reach: reach(encoding.shape(mark.point.series), mark.radius),
            })
            .collect();
        labels::place(&named, &bars, inside)
    }
}
