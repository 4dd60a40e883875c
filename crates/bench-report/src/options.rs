//! Options of reports, and the grid point that an arrow marks.

use crate::{PointSummary, series::loader};

/// Options of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportOptions {
    /// Heading; the picture's subject if there is none.
    pub title: Option<String>,
    /// The point that an arrow names, if it was measured.
    pub marked: Option<MarkedPoint>,
    /// Whether the page can show the figures of arrayloader-benchmarks behind the points.
    pub published: bool,
}

/// A grid point to mark with an arrow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarkedPoint {
    /// The arrow's label.
    pub label: String,
    /// Rows per chunk.
    pub chunk_size: u64,
    /// Chunks per block.
    pub chunks_per_block: u64,
    /// Method; if `None`, the fastest.
    pub chunk_method: Option<String>,
}

impl MarkedPoint {
    /// The position of the marked point in `points`: the fastest that matches.
    ///
    /// `None` if there are several loaders, folders or data sets, since the match would be
    /// ambiguous.
    pub(crate) fn find(&self, points: &[PointSummary]) -> Option<usize> {
        let data_of = |point: &PointSummary| {
            (loader(point).to_owned(), point.folder.clone(), point.data.uri.clone())
        };
        if points.windows(2).any(|pair| data_of(&pair[0]) != data_of(&pair[1])) {
            return None;
        }
        let fits = |summary: &PointSummary| {
            summary.point.chunk_size == self.chunk_size
                && summary.point.chunks_per_block == self.chunks_per_block
                && self
                    .chunk_method
                    .as_ref()
                    .is_none_or(|method| *method == summary.point.chunk_method)
        };
        let speed = |idx: &usize| points[*idx].samples_per_sec.map(|spread| spread.median);
        (0..points.len())
            .filter(|&idx| {
                fits(&points[idx]) && speed(&idx).is_some() && points[idx].max_mem.is_some()
            })
            .max_by(|a, b| speed(a).unwrap_or(0.0).total_cmp(&speed(b).unwrap_or(0.0)))
    }
}
