//! The runs of some records, described for people.

use std::collections::BTreeSet;

use crate::{EpochRecord, table::grouped};

/// The first record of each run.
pub(crate) fn runs(records: &[EpochRecord]) -> Vec<&EpochRecord> {
    let mut seen = BTreeSet::new();
    records.iter().filter(|record| seen.insert(&record.run.run_id)).collect()
}

/// Describes the run of a record as names and values: command, machine, data, versions.
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
