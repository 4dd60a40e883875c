//! Table of each loader's requests, bytes and connections over the link.

use bench_report::{EpochRecord, LINK_HEADER, LINK_LEGEND, LinkSummary, Status};

use super::report::table;

/// Columns of the table: those of a sweep, after the work and the loader.
const HEADER: [&str; 9] = [
    "work",
    "loader",
    LINK_HEADER[3],
    LINK_HEADER[4],
    LINK_HEADER[5],
    LINK_HEADER[6],
    LINK_HEADER[7],
    LINK_HEADER[8],
    LINK_HEADER[9],
];

/// The epochs of a loader, with its work and its name.
type Asked<'a> = (&'a str, &'a str, &'a [&'a EpochRecord]);

/// Formats the table with a legend; empty if nothing was read over a link.
pub(super) fn text<'a>(asked: impl Iterator<Item = Asked<'a>> + Clone) -> String {
    let row = |(work, loader, records): Asked<'_>| row(work, loader, records);
    let rows: Vec<[String; 9]> = asked.clone().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let legend = legend(asked.flat_map(|(_, _, records)| records.iter().copied()));
    format!("\n\n{}\n\n{legend}", table(&HEADER, 2, rows.into_iter()))
}

/// Describes the links of records, then the columns.
fn legend<'a>(records: impl Iterator<Item = &'a EpochRecord>) -> String {
    let mut links: Vec<String> = records.filter_map(|record| record.point.format_link()).collect();
    links.sort();
    links.dedup();
    format!("Over a link of {}: {LINK_LEGEND}.", links.join("; "))
}

/// The row of a loader's epochs of a work; `None` if they were not read over a link.
fn row(work: &str, loader: &str, records: &[&EpochRecord]) -> Option<[String; 9]> {
    let well = records.iter().copied().filter(|record| record.measured.status == Status::Ok);
    let cells = LinkSummary::from_epochs(&well.collect::<Vec<_>>())?.cells();
    let mut row = [work, loader].map(str::to_owned).into_iter().chain(cells);
    Some(std::array::from_fn(|_| row.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use bench_report::{LINK, Settings};

    use super::*;

    #[test]
    fn a_loader_over_a_link_has_a_row() {
        let mut record = EpochRecord::default();
        record.measured.status = Status::Ok;
        assert_eq!(row("csr", "other", &[&record]), None);
        record.point.settings = Settings::default().with(LINK, "30ms");
        record.measured.link_requests = Some(7);
        record.measured.link_bytes = Some(5_000_000);
        let row = row("csr", "other", &[&record]).unwrap();
        assert_eq!(
            (row[0].as_str(), row[2].as_str(), row[5].as_str()),
            ("csr", "7 (–)", "5.0 (–)")
        );
        let text = text([("csr", "other", [&record].as_slice())].into_iter());
        assert!(text.contains("Over a link of 30ms: ") && text.contains("5.0"), "{text}");
        assert_eq!(super::text(std::iter::empty()), "");
    }
}
