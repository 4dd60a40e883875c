//! The report of one or several results folders: the page, a picture of each view, the tables.

use std::path::{Path, PathBuf};

use crate::{
    Error, PointSummary, RANKS_LEGEND, ReportOptions, Source, folder,
    folder::WriteLock,
    page,
    picture::{self, Convention, Picture},
    pixels, ranks_markdown,
    source::summarize_all,
    table,
};

const PAGE_FILE: &str = "report.html";
const TABLE: &str = "table";

/// A kind of file of a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReportFormat {
    /// The page with all views.
    Html,
    /// A picture of each view.
    Svg,
    /// A picture of each view, as pixels.
    Png,
    /// The table for people.
    Markdown,
    /// The table with all settings and figures, for programs.
    Csv,
}

impl ReportFormat {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Html, Self::Svg, Self::Png, Self::Markdown, Self::Csv];

    /// The file name extension.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Markdown => "md",
            Self::Csv => "csv",
        }
    }
}

/// A file that [`write_side_by_side`] wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Format of the file.
    pub format: ReportFormat,
    /// The view, if the file is a picture.
    pub view: Option<String>,
}

/// Writes a report of `sources` into the folder `out`, which is created if missing.
///
/// Each file is replaced atomically; other files in the folder stay. Views without data have no
/// picture.
pub fn write_side_by_side(
    sources: &[Source],
    out: &Path,
    formats: &[ReportFormat],
    options: &ReportOptions,
) -> Result<Vec<WrittenFile>, Error> {
    let points = summarize_all(sources);
    if points.is_empty() {
        return Err(Error::NoEpochs { folder: out.to_owned() });
    }
    folder::create(out)?;
    let lock = WriteLock::acquire(out)?;
    let mut files = Vec::new();
    let mut write = |format: ReportFormat, view: Option<&str>, name: &str, bytes: &[u8]| {
        let path = lock.replace(name, bytes)?;
        files.push(WrittenFile { path, format, view: view.map(str::to_owned) });
        Ok::<(), Error>(())
    };
    let wants = |format| formats.contains(&format);
    if wants(ReportFormat::Html) {
        let page = page::render(sources, &points, options)?;
        write(ReportFormat::Html, None, PAGE_FILE, page.as_bytes())?;
    }
    if wants(ReportFormat::Svg) || wants(ReportFormat::Png) {
        for Picture { view, svg } in pictures(sources, &points, options)? {
            if wants(ReportFormat::Svg) {
                write(ReportFormat::Svg, Some(view), &format!("{view}.svg"), svg.as_bytes())?;
            }
            if wants(ReportFormat::Png) {
                let name = format!("{view}.png");
                write(ReportFormat::Png, Some(view), &name, &pixels::to_png(&svg)?)?;
            }
        }
    }
    if wants(ReportFormat::Markdown) {
        let text = match ranks_markdown(&points) {
            ranks if ranks.is_empty() => table::markdown(&points),
            ranks => format!("{}\n{RANKS_LEGEND}:\n\n{ranks}", table::markdown(&points)),
        };
        write(ReportFormat::Markdown, None, &format!("{TABLE}.md"), text.as_bytes())?;
    }
    if wants(ReportFormat::Csv) {
        let bytes = crate::csv_table::csv(&points)?;
        write(ReportFormat::Csv, None, &format!("{TABLE}.csv"), &bytes)?;
    }
    Ok(files)
}

fn pictures(
    sources: &[Source],
    points: &[PointSummary],
    options: &ReportOptions,
) -> Result<Vec<Picture>, Error> {
    let memory = |view, convention| {
        let svg = picture::draw(sources, points, options, convention)?;
        Ok::<Picture, Error>(Picture { view, svg })
    };
    let mut pictures = vec![
        memory("speed-vs-memory", Convention::FirstBatchCounted)?,
        memory("speed-vs-memory-without-first-batch", Convention::FirstBatchLeftOut)?,
    ];
    pictures.extend(picture::draw_views(sources, points)?);
    Ok(pictures)
}

#[cfg(test)]
mod tests;
