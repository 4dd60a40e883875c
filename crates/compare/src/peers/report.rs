//! Formats the comparison as tables, for the terminal and for the README of its results folder.

use std::path::{Path, PathBuf};

use bench_report::{
    EPOCHS_FILE, EpochRecord, OWN_LOADER, Spread, Status, describe_run, write_text,
};
use bench_run::{TableStyle, grouped, text_table};

use super::copies::DataCopy;
use super::link_table;
use super::ratio::{Ratio, spread};
use super::side::{PeerFiles, RELAID};

const FIGURES: [&str; 10] = [
    "work",
    "loader",
    "chunks x rows",
    "cells/s",
    "without first batch",
    "first batch s",
    "waits after it p50 / p99 ms",
    "CPU s",
    "peak GB",
    "open s",
];

const RATIOS: [&str; 7] =
    ["work", "ours", "over", "cells/s", "without first batch", "peak memory", "CPU s"];

const COPIES: [&str; 5] = ["copy of", "format", "made in s", "on disk GB", "peak memory GB"];

/// Name of the file beside the README with the cost of copies.
const COPIES_FILE: &str = "copies.json";

const LEGEND: &str = "\
Medians of the repetitions (least to most). The loaders run in turn, each in a process of its own; a first run of each is not counted.
cells/s: whole epochs, the first batch counted, from asking for the epoch to its end. Peak: of the whole process, interpreter and
libraries included, as the kernel counts it (VmHWM); of a loader with worker processes the sampled sum of their proportional set sizes.
Chunks x rows: how many chunks are shuffled together, and how many rows of each are read together, as it ran. A loader with its own settings
(documented) is measured once for all works of a form and a number of genes. somafeed relaid: our loader on the copy that relayout made;
somafeed on a peer's files: our loader on the AnnData that the peer reads.
CPU s: of an epoch, all threads. Open s: from opening the experiment until an epoch could be asked for, not part of cells/s.
Ratios: of the medians (least to most of the pairs of one repetition).";

/// A table whose first `n_words` columns hold words, the others numbers.
pub(super) fn table<const N: usize>(
    header: &[&str; N],
    n_words: usize,
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    text_table(TableStyle::Markdown, header, &header[..n_words], rows)
}

/// A loader's runs of one work, by epoch.
struct Group<'a> {
    work: String,
    loader: &'a str,
    files: Option<&'a PeerFiles>,
    records: Vec<&'a EpochRecord>,
}

/// A record with its work and its side.
pub(crate) struct Run {
    pub(crate) work: String,
    pub(crate) loader: String,
    /// The files that our loader and a peer both read, if it reads such.
    pub(crate) files: Option<PeerFiles>,
    pub(crate) record: EpochRecord,
}

/// Input of a comparison's README.
pub(crate) struct ComparisonInput<'a> {
    pub(crate) runs: &'a [Run],
    pub(crate) copies: &'a [DataCopy],
    /// Settings of each peer.
    pub(crate) settings: &'a [String],
    pub(crate) skipped: &'a [String],
    pub(crate) missing: &'a [String],
}

/// Formats both tables, with a legend.
pub(crate) fn tables(runs: &[Run]) -> String {
    let groups = groups(runs);
    let figures = table(&FIGURES, 3, groups.iter().map(figures));
    let pairs = groups.iter().flat_map(|theirs| {
        let of_work = groups.iter().filter(move |ours| ours.work == theirs.work);
        of_work
            .filter(move |ours| match ours.loader {
                OWN_LOADER => !is_own(theirs.loader),
                // The relaid copy is also compared with the original experiment.
                RELAID => theirs.loader == OWN_LOADER || !is_own(theirs.loader),
                // With the peer on the same files.
                own if is_own(own) => ours.files == theirs.files && !is_own(theirs.loader),
                _ => false,
            })
            .map(move |ours| ratios(ours, theirs))
    });
    let ratios: Vec<[String; 7]> = pairs.collect();
    let asked = groups.iter();
    let asked = asked.map(|group| (group.work.as_str(), group.loader, group.records.as_slice()));
    let link = link_table::text(asked);
    if ratios.is_empty() {
        return format!("{figures}\n\n{LEGEND}{link}");
    }
    format!("{figures}\n\n{}\n\n{LEGEND}{link}", table(&RATIOS, 3, ratios.into_iter()))
}

/// Writes the README of a results folder, and beside it the cost of the copies, if there are any.
/// Fails if a file cannot be written.
pub(crate) fn write(folder: &Path, input: &ComparisonInput<'_>) -> anyhow::Result<PathBuf> {
    if !input.copies.is_empty() {
        let text = serde_json::to_string_pretty(input.copies)?;
        write_text(folder, COPIES_FILE, &format!("{text}\n"))?;
    }
    Ok(write_text(folder, "README.md", &readme(input))?)
}

fn readme(input: &ComparisonInput<'_>) -> String {
    let ComparisonInput { runs, copies, settings, skipped, missing } = input;
    let mut facts: Vec<(String, String)> = Vec::new();
    // Facts of our runs, and those that only a peer's runs have: its versions.
    for Run { record, .. } in *runs {
        for fact in describe_run(record) {
            if !facts.contains(&fact) && fact.0 != "data" {
                facts.push(fact);
            }
        }
    }
    if let Some(run) = runs.iter().max_by_key(|run| run.record.data.n_cols) {
        let data = describe_run(&run.record).into_iter().filter(|(name, _)| name == "data");
        facts.extend(data);
    }
    facts.extend(settings.iter().map(|line| ("settings".to_owned(), line.clone())));
    facts.extend(skipped.iter().map(|line| ("skipped".to_owned(), line.clone())));
    facts.extend(missing.iter().map(|line| ("missing".to_owned(), line.clone())));
    let facts: Vec<String> = facts
        .iter()
        .map(|(name, value)| format!("- {name}: {}", value.replace('\n', " ")))
        .collect();
    format!(
        "# somafeed beside other loaders\n\n{}\n\n{}{}\n\nEvery epoch that was counted is a row of [{EPOCHS_FILE}]({EPOCHS_FILE}). \
         Before a work is measured, what both loaders deliver is compared: each cell once, the same sums of its values and of its \
         values by gene.\n",
        facts.join("\n"),
        tables(runs),
        format_copies(copies)
    )
}

/// Formats the copies made for loaders with a format of their own.
fn format_copies(copies: &[DataCopy]) -> String {
    if copies.is_empty() {
        return String::new();
    }
    let rows = copies.iter().map(|copy| {
        [
            copy.loader.clone(),
            copy.format.clone(),
            format!("{:.1}", copy.secs),
            format!("{:.2}", copy.bytes as f64 / 1e9),
            format!("{:.2}", copy.max_mem_bytes as f64 / 1e9),
        ]
    });
    format!(
        "\n\n{}\n\nMade once, from the experiment, by one process; kept for the next comparison. Not part of cells/s.",
        table(&COPIES, 2, rows)
    )
}

fn groups(runs: &[Run]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for Run { work, loader, files, record } in runs {
        let loader = loader.as_str();
        let work = match record.measured.epoch {
            None | Some(0) => work.clone(),
            Some(epoch) => format!("{work}, epoch {}", epoch + 1),
        };
        match groups.iter_mut().find(|group| group.work == work && group.loader == loader) {
            Some(group) => group.records.push(record),
            None => {
                groups.push(Group { work, loader, files: files.as_ref(), records: vec![record] });
            }
        }
    }
    groups
}

/// Whether a loader's name is one of ours, on whatever data.
fn is_own(loader: &str) -> bool {
    loader.strip_prefix(OWN_LOADER).is_some_and(|data| data.is_empty() || data.starts_with(' '))
}

fn figures(group: &Group<'_>) -> [String; 10] {
    let figure_text = |figure: fn(&EpochRecord) -> Option<f64>, digits| {
        format_spread(spread(&group.records, figure), digits)
    };
    let failed = group.records.iter().rfind(|record| record.measured.status != Status::Ok);
    let rate = match failed {
        Some(record) if spread(&group.records, speed).is_none() => format!(
            "{}: {}",
            record.measured.status.name(),
            record.measured.message.as_deref().unwrap_or_default()
        ),
        _ => figure_text(speed, 0),
    };
    let millis = |figure: fn(&EpochRecord) -> Option<f64>| {
        spread(&group.records, figure)
            .map_or_else(|| "–".to_owned(), |spread| format!("{:.1}", spread.median * 1e3))
    };
    [
        group.work.clone(),
        group.loader.to_owned(),
        group.records.last().map_or_else(String::new, |record| {
            format!("{} x {}", record.point.chunks_per_block, record.point.chunk_size)
        }),
        rate,
        figure_text(speed_after_first, 0),
        figure_text(|record| record.measured.time_to_first_batch_secs, 2),
        format!(
            "{} / {}",
            millis(|record| record.measured.wait_p50_after_first_secs),
            millis(|record| record.measured.wait_p99_after_first_secs)
        ),
        figure_text(|record| record.measured.cpu_secs, 1),
        format_spread(spread(&group.records, memory).map(|spread| spread.scaled(1e-9)), 2),
        figure_text(|record| record.measured.open_secs, 2),
    ]
}

fn ratios(ours: &Group<'_>, theirs: &Group<'_>) -> [String; 7] {
    let ratio_text = |figure: fn(&EpochRecord) -> Option<f64>| {
        Ratio::from_epochs(&ours.records, &theirs.records, figure).map_or_else(
            || "–".to_owned(),
            |Ratio { of_medians, pairs }| {
                format!("{of_medians:.2} ({:.2} to {:.2})", pairs.min, pairs.max)
            },
        )
    };
    [
        theirs.work.clone(),
        ours.loader.to_owned(),
        theirs.loader.to_owned(),
        ratio_text(speed),
        ratio_text(speed_after_first),
        ratio_text(memory),
        ratio_text(|record| record.measured.cpu_secs),
    ]
}

fn speed(record: &EpochRecord) -> Option<f64> {
    record.measured.samples_per_sec
}

fn speed_after_first(record: &EpochRecord) -> Option<f64> {
    record.measured.samples_per_sec_after_first
}

fn memory(record: &EpochRecord) -> Option<f64> {
    record.measured.max_mem.map(|bytes| bytes as f64)
}

fn format_spread(spread: Option<Spread>, digits: usize) -> String {
    let number = |value: f64| match digits {
        0 => grouped(value.round() as u64),
        _ => format!("{value:.digits$}"),
    };
    match spread {
        None => "–".to_owned(),
        Some(spread) if spread.n == 1 => number(spread.median),
        Some(spread) => spread.format_by(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_report::Measured;

    fn run(loader: &str, repeat: u64, epoch: u64, rate: f64) -> Run {
        let mut record = EpochRecord::default();
        record.point.loader = Some(loader.to_owned());
        record.measured = Measured {
            status: Status::Ok,
            repeat: Some(repeat),
            epoch: Some(epoch),
            samples_per_sec: Some(rate),
            max_mem: Some(2_000_000_000),
            ..Measured::default()
        };
        let (work, loader) = ("dense-all-1024x64".to_owned(), loader.to_owned());
        Run { work, loader, files: None, record }
    }

    fn copy() -> DataCopy {
        DataCopy {
            loader: "other".into(),
            format: "a format".into(),
            versions: "other 1.0".into(),
            source: "x".into(),
            made: jiff::Timestamp::UNIX_EPOCH,
            secs: 31.0,
            max_mem_bytes: 4_000_000_000,
            bytes: 839_000_000,
            folder: PathBuf::new(),
            kept: true,
        }
    }

    #[test]
    fn ours_on_either_copy_is_compared_with_each_peer() {
        let runs = [
            run(OWN_LOADER, 1, 0, 60_000.0),
            run(RELAID, 1, 0, 90_000.0),
            run("other", 1, 0, 30_000.0),
            run("other documented", 1, 0, 45_000.0),
        ];
        let text = tables(&runs);
        for expect in [
            "| somafeed        | other            | 2.00",
            "| somafeed relaid | other            | 3.00",
            "| somafeed relaid | other documented | 2.00",
            "| somafeed relaid | somafeed         | 1.50",
        ] {
            assert!(text.contains(expect), "{expect}: {text}");
        }
        assert!(!text.contains("| somafeed        | somafeed relaid"), "{text}");
    }

    #[test]
    fn ours_on_the_files_of_a_peer_is_compared_with_that_peer() {
        let on = |loader: &str, rate, anndata: &str| {
            let files = Some(PeerFiles { peer: "other".into(), anndata: anndata.into() });
            Run { files, ..run(loader, 1, 0, rate) }
        };
        let runs = [
            run(OWN_LOADER, 1, 0, 60_000.0),
            on("somafeed on other's plain.zarr", 80_000.0, "plain.zarr"),
            on("other", 20_000.0, "plain.zarr"),
            on("other documented", 10_000.0, "other.zarr"),
            run("somafeed-python", 1, 0, 40_000.0),
        ];
        let text = tables(&runs);
        let (_, ratios) = text.split_once("| over ").unwrap();
        let of_files: Vec<_> = ratios.lines().filter(|line| line.contains("plain.zarr")).collect();
        assert!(of_files.len() == 1 && of_files[0].contains("| other "), "{text}");
        assert!(of_files[0].contains("4.00"), "{text}");
        assert!(ratios.contains("| somafeed-python "), "{text}");
    }

    #[test]
    fn copies_are_told_in_the_readme_and_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let input = ComparisonInput {
            runs: &[run(OWN_LOADER, 1, 0, 60_000.0)],
            copies: &[copy()],
            settings: &[],
            skipped: &["third: needs Python 3.12".to_owned()],
            missing: &[],
        };
        let readme = std::fs::read_to_string(write(folder.path(), &input).unwrap()).unwrap();
        assert!(readme.contains("- skipped: third: needs Python 3.12\n"), "{readme}");
        assert!(readme.contains("31.0") && readme.contains("0.84"), "{readme}");
        let kept = std::fs::read_to_string(folder.path().join(COPIES_FILE)).unwrap();
        assert!(kept.contains("\"bytes\": 839000000"), "{kept}");
    }

    #[test]
    fn a_work_has_a_row_for_each_loader_and_a_ratio() {
        let runs = [
            run(OWN_LOADER, 1, 0, 60_000.0),
            run("other", 1, 0, 10_000.0),
            run(OWN_LOADER, 2, 0, 80_000.0),
            run("other", 2, 0, 10_000.0),
        ];
        let text = tables(&runs);
        assert!(text.contains("70,000 (60,000 to 80,000)"), "{text}");
        assert!(text.contains("7.00 (6.00 to 8.00)"), "{text}");
        assert!(
            text.contains("2.00 (2.00 to 2.00)") && text.contains("1.00 (1.00 to 1.00)"),
            "{text}"
        );
    }

    #[test]
    fn epochs_are_compared_each_with_its_like() {
        let runs = [
            run(OWN_LOADER, 1, 0, 60_000.0),
            run(OWN_LOADER, 1, 1, 90_000.0),
            run("other", 1, 0, 10_000.0),
            run("other", 1, 1, 30_000.0),
        ];
        let text = tables(&runs);
        assert!(
            text.contains("6.00 (6.00 to 6.00)") && text.contains("3.00 (3.00 to 3.00)"),
            "{text}"
        );
        assert!(text.contains("dense-all-1024x64, epoch 2"), "{text}");
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut failed = run("other", 1, 0, 1.0);
        failed.record.measured = Measured::failed(Status::Oom, "killed | gone");
        let runs = [run(OWN_LOADER, 1, 0, 60_000.0), failed];
        let missing = ["csr-all-8x4 with other: no\nenvironment".to_owned()];
        let input = ComparisonInput {
            runs: &runs,
            copies: &[],
            settings: &[],
            skipped: &[],
            missing: &missing,
        };
        let text = readme(&input);
        assert!(
            text.contains("oom: killed \\| gone")
                && text.contains("- missing: csr-all-8x4 with other: no environment\n"),
            "{text}"
        );
    }
}
