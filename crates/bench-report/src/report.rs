//! The files for people in a results folder, all drawn from its Parquet file and replaceable at any time.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::{
    EPOCHS_FILE, EpochRecord, Error, PointSummary, STAGE_LEGEND, Source,
    folder::WriteLock,
    markdown, page,
    picture::{self, Convention},
    series::loader,
    source::summarize_all,
    stage_markdown,
    table::{escape, grouped},
};

const PICTURE_FILE: &str = "speed-vs-memory.svg";
const PICTURE_AFTER_FIRST_FILE: &str = "speed-vs-memory-without-first-batch.svg";
const PAGE_FILE: &str = "report.html";
const README_FILE: &str = "README.md";

/// How a report is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportOptions {
    /// Heading; without one, the picture's subject.
    pub title: Option<String>,
    /// The point that an arrow names, where it was measured.
    pub marked: Option<MarkedPoint>,
    /// Whether the page can show what arrayloader-benchmarks published behind the points.
    pub published: bool,
}

/// A grid point to be pointed at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarkedPoint {
    /// What the arrow says.
    pub label: String,
    /// Rows a chunk.
    pub chunk_size: u64,
    /// Chunks a block.
    pub chunks_per_block: u64,
    /// Which method; any, where there is none: then the fastest.
    pub chunk_method: Option<String>,
}

impl MarkedPoint {
    /// The position in `points` of the one meant: the fastest of those that fit. Nothing where there are several loaders, folders or data
    /// sets: it would be one of several that are meant alike.
    pub(crate) fn find(&self, points: &[PointSummary]) -> Option<usize> {
        let of = |point: &PointSummary| {
            (loader(point).to_owned(), point.folder.clone(), point.data.uri.clone())
        };
        if points.windows(2).any(|pair| of(&pair[0]) != of(&pair[1])) {
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

/// The files that [`write_report`] wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportFiles {
    /// The picture of speed against memory, SVG.
    pub picture: PathBuf,
    /// The same by the original benchmark's convention, without the first batch.
    pub picture_after_first: PathBuf,
    /// The page, one HTML file that needs nothing else.
    pub page: PathBuf,
    /// The command, the machine and the table, Markdown.
    pub readme: PathBuf,
}

/// Writes picture, page and README of the epochs in `folder`, each wholly or not at all.
pub fn write_report(folder: &Path, options: &ReportOptions) -> Result<ReportFiles, Error> {
    let sources = Source::read_all(&[folder.to_owned()])?;
    let points = summarize_all(&sources);
    let draw = |convention| picture::draw(&sources, &points, options, convention);
    let picture = draw(Convention::FirstBatchCounted)?;
    let picture_after_first = draw(Convention::FirstBatchLeftOut)?;
    let page = page::render(&sources, &points, options)?;
    let readme = readme(&sources[0].records, &points, options);
    let lock = WriteLock::acquire(folder)?;
    Ok(ReportFiles {
        picture: lock.replace(PICTURE_FILE, picture.as_bytes())?,
        picture_after_first: lock
            .replace(PICTURE_AFTER_FIRST_FILE, picture_after_first.as_bytes())?,
        page: lock.replace(PAGE_FILE, page.as_bytes())?,
        readme: lock.replace(README_FILE, readme.as_bytes())?,
    })
}

fn readme(records: &[EpochRecord], points: &[PointSummary], options: &ReportOptions) -> String {
    let title = options.title.as_deref().unwrap_or(picture::TITLE);
    let list = |record| -> String {
        let lines = describe_run(record).into_iter();
        lines
            .map(|(name, value)| format!("- {}: {}", escape(&name), escape(&value)))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let runs = runs(records).into_iter().map(list).collect::<Vec<_>>().join("\n\n");
    let (title, table) = (escape(title), markdown(points));
    let stages = match stage_markdown(points) {
        table if table.is_empty() => table,
        table => format!("\nWhere the time went: {STAGE_LEGEND}.\n\n{table}"),
    };
    format!(
        "# {title}\n\n{runs}\n\n\
         Medians over epochs, with the range where there are several. Samples/s counts the first batch, in which the \
         reading of the first block hides; peak GB is the true peak of the process, in 10^9 bytes; entropy is a label's \
         within full batches, in bits, as measured and as the settings lead to expect.\n\n{table}{stages}\n\
         ![samples per second against peak memory]({PICTURE_FILE})\n\n\
         Every epoch is a row of [{EPOCHS_FILE}]({EPOCHS_FILE}). [{PAGE_FILE}]({PAGE_FILE}) shows all figures of a \
         point under the mouse and needs no network. By the original benchmark's convention, without the first batch: \
         [{PICTURE_AFTER_FIRST_FILE}]({PICTURE_AFTER_FIRST_FILE}).\n"
    )
}

/// The first record of each run.
pub(crate) fn runs(records: &[EpochRecord]) -> Vec<&EpochRecord> {
    let mut seen = BTreeSet::new();
    records.iter().filter(|record| seen.insert(&record.run.run_id)).collect()
}

/// The run of a record as a list of names and values: what ran, where, on what.
pub fn describe_run(record: &EpochRecord) -> Vec<(String, String)> {
    let EpochRecord { run, host, versions, data, .. } = record;
    let began = run.run_start_dt.strftime("%Y-%m-%d %H:%M:%S UTC");
    let system: Vec<&str> =
        [&host.os, &host.kernel].into_iter().flatten().map(String::as_str).collect();
    let dirty = if run.git_dirty == Some(true) { ", with changes" } else { "" };
    let versions = [
        ("somafeed ", &versions.somafeed),
        ("libtiledb ", &versions.libtiledb),
        ("libtorch ", &versions.libtorch),
        ("tch ", &versions.tch),
        ("", &versions.rustc),
        ("", &versions.peer),
    ];
    let versions: Vec<String> = versions
        .iter()
        .filter_map(|(name, version)| version.as_ref().map(|version| format!("{name}{version}")))
        .collect();
    let lines = [
        ("run", format!("{}, {began}", run.run_id)),
        ("command", run.command.clone()),
        ("machine", host.host.clone()),
        ("system", system.join(", kernel ")),
        ("GPU", host.gpu.clone().unwrap_or_default()),
        (
            "data",
            format!(
                "{}, {} cells × {} genes",
                data.uri,
                grouped(data.total_rows),
                grouped(data.n_cols)
            ),
        ),
        ("revision", run.sha.as_ref().map_or_else(String::new, |sha| format!("{sha}{dirty}"))),
        ("versions", versions.join(", ")),
    ];
    let noted = run.metadata.iter().map(|(key, value)| (key.as_str(), value.clone()));
    lines
        .into_iter()
        .chain(noted)
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests;
