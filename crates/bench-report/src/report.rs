//! The reports in a results folder, all drawn from its Parquet file and replaceable at any time.

use std::path::{Path, PathBuf};

use crate::{
    Advice, EPOCHS_FILE, EpochRecord, Error, LINK_LEGEND, PointSummary, RANKS_LEGEND,
    ReportOptions, STAGE_LEGEND, Source,
    folder::WriteLock,
    link_markdown, markdown, page,
    picture::{self, Convention, Picture},
    ranks_markdown,
    run_description::{describe_run, runs},
    source::summarize_all,
    stage_markdown,
    table::escape,
};

const PICTURE_FILE: &str = "speed-vs-memory.svg";
const PICTURE_AFTER_FIRST_FILE: &str = "speed-vs-memory-without-first-batch.svg";
const PAGE_FILE: &str = "report.html";
const README_FILE: &str = "README.md";

/// The files that [`write_report`] wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportFiles {
    /// The picture of speed against memory, SVG.
    pub picture: PathBuf,
    /// The same without the first batch, by the original benchmark's convention.
    pub picture_after_first: PathBuf,
    /// The page, a self-contained HTML file.
    pub page: PathBuf,
    /// Command, machine and table, Markdown.
    pub readme: PathBuf,
    /// Pictures over the number of ranks, SVG; none unless there are several numbers.
    pub ranks: Vec<PathBuf>,
}

/// Writes picture, page and README of the epochs in `folder`, each atomically.
pub fn write_report(folder: &Path, options: &ReportOptions) -> Result<ReportFiles, Error> {
    let sources = Source::read_all(&[folder.to_owned()])?;
    let points = summarize_all(&sources);
    let draw = |convention| picture::draw(&sources, &points, options, convention);
    let picture = draw(Convention::FirstBatchCounted)?;
    let picture_after_first = draw(Convention::FirstBatchLeftOut)?;
    let page = page::render(&sources, &points, options)?;
    let over_ranks = picture::draw_ranks(&sources, &points)?;
    let advice = Advice::new(&sources, &points);
    let readme = readme(&sources[0].records, &points, &advice, (&over_ranks, options));
    let lock = WriteLock::acquire(folder)?;
    let mut ranks = Vec::new();
    for Picture { view, svg } in &over_ranks {
        ranks.push(lock.replace(&format!("{view}.svg"), svg.as_bytes())?);
    }
    Ok(ReportFiles {
        picture: lock.replace(PICTURE_FILE, picture.as_bytes())?,
        picture_after_first: lock
            .replace(PICTURE_AFTER_FIRST_FILE, picture_after_first.as_bytes())?,
        page: lock.replace(PAGE_FILE, page.as_bytes())?,
        readme: lock.replace(README_FILE, readme.as_bytes())?,
        ranks,
    })
}

fn readme(
    records: &[EpochRecord],
    points: &[PointSummary],
    advice: &Advice,
    (over_ranks, options): (&[Picture], &ReportOptions),
) -> String {
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
    let link = match link_markdown(points) {
        table if table.is_empty() => table,
        table => format!("\nOver the link: {LINK_LEGEND}.\n\n{table}"),
    };
    let ranks = match ranks_markdown(points) {
        tables if tables.is_empty() => tables,
        tables => format!("\nRanks that loaded together: {RANKS_LEGEND}.\n\n{tables}"),
    };
    let pictures = over_ranks.iter().map(|of| format!("\n![{}]({}.svg)\n", of.view, of.view));
    let ranks = pictures.fold(ranks, |text, picture| text + &picture);
    let cautions = advice.cautions.iter();
    let cautions = cautions.map(|text| format!("**Caution**: {}.\n\n", escape(text)));
    let advised = advice.recommendations.iter();
    let advised = advised.map(|text| format!("- {}.\n", escape(&capitalized(text))));
    let end = if advice.recommendations.is_empty() { "" } else { "\n" };
    let advice: String = cautions.chain(advised).chain([end.to_owned()]).collect();
    format!(
        "# {title}\n\n{advice}{runs}\n\n\
         Medians over epochs, with the range if there are several. Samples/s includes the first batch, which absorbs \
         the read of the first block; peak GB is the true peak of the process, in 10^9 bytes; AU is the accelerator \
         utilisation of MLPerf Storage, the share of the time without the first batch in which the consumer computed; entropy is a \
         label's entropy within full batches, in bits, measured and expected.\n\n{table}{stages}{link}{ranks}\n\
         ![samples per second against peak memory]({PICTURE_FILE})\n\n\
         Every epoch is a row of [{EPOCHS_FILE}]({EPOCHS_FILE}). [{PAGE_FILE}]({PAGE_FILE}) shows all figures of \
         the point under the mouse and needs no network. By the original benchmark's convention, without the first batch: \
         [{PICTURE_AFTER_FIRST_FILE}]({PICTURE_AFTER_FIRST_FILE}).\n"
    )
}

/// The sentence with a capital letter, if it begins with a word of ours.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
