//! Tests of `page`.

use arrow_schema::{DataType, Field};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::*;
use crate::{
    DataInfo, EpochRecord, GridPoint, MarkedPoint, Measured, StageTimes, column::ColumnGroup as _,
    fixture, source::summarize_all,
};

fn render_all(records: &[EpochRecord], options: &ReportOptions) -> String {
    let sources = [Source { name: "results".to_owned(), records: records.to_vec() }];
    render(&sources, &summarize_all(&sources), options).unwrap()
}

/// Reads the page's data like a browser does: up to the first end of the script tag.
fn data(page: &str) -> Value {
    let (_, after) = page.split_once("id=\"report-data\">").unwrap();
    let (json, _) = after.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

#[test]
fn the_page_asks_for_nothing() {
    let mut page = render_all(&fixture::grid(), &ReportOptions::default());
    // The libraries contain code for requests. A browser test checks that they make none, and the
    // page's policy forbids them.
    for vendored in VENDORED {
        assert!(page.contains(vendored));
        page = page.replace(vendored, "");
    }
    page = page.replace("http://www.w3.org/2000/svg", "");
    let requests = [
        "http:",
        "https:",
        "src=",
        "url(",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "import(",
        "<iframe",
    ];
    for request in requests {
        assert!(!page.contains(request), "{request}");
    }
    // The only link is an empty inline icon; the policy refuses all others.
    assert_eq!(page.matches("href=").count(), page.matches("href=\"data:,\"").count());
    assert!(page.contains(
        "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';"
    ));
    assert!(!page.contains("{{"));
}

#[test]
fn the_page_begins_with_what_the_rows_say() {
    let page = render_all(&fixture::grid(), &ReportOptions::default());
    let advice = page.find("<li>The fastest is np.array, 256 chunks of 64 rows (").unwrap();
    assert!(page.find("</header>").unwrap() < advice && advice < page.find("<nav").unwrap());
    assert!(
        page.contains("<p class=\"caution\">Epochs of 3 of 7 settings lasted less than a second")
    );
    let mut few = render_all(&fixture::grid()[..1], &ReportOptions::default());
    few = few.replace(STYLE, "");
    assert!(!few.contains("fastest is") && !few.contains("class=\"caution\""));
}

#[test]
fn no_text_breaks_out_of_its_place() {
    let hostile = "</script><script>alert(1)</script><!-- <script> {{script}} \u{2028} & \" ' \\";
    let mut record = fixture::killed(hostile, (64, 16));
    record.data.uri = hostile.to_owned();
    record.run.metadata.insert(hostile.to_owned(), hostile.to_owned());
    record.measured.message = Some(hostile.to_owned());
    let options = ReportOptions { title: Some(hostile.to_owned()), ..ReportOptions::default() };
    let page = render_all(&[record], &options);
    let clean = render_all(&fixture::grid(), &ReportOptions::default());
    for tag in ["<script", "</script", "<!--"] {
        assert_eq!(page.matches(tag).count(), clean.matches(tag).count(), "{tag}");
    }
    let data = data(&page);
    // Settings that all points share appear once.
    assert_eq!(data["shared"]["chunk_method"], hostile);
    assert_eq!(data["shared"]["uri"], hostile);
    assert_eq!(data["points"][0]["failure"], format!("oom: {hostile}"));
}

#[test]
fn a_point_carries_its_whole_row() {
    let marked = MarkedPoint {
        label: "default".to_owned(),
        chunk_size: 64,
        chunks_per_block: 256,
        chunk_method: None,
    };
    let records = fixture::grid();
    let data = data(&render_all(
        &records,
        &ReportOptions { marked: Some(marked), ..ReportOptions::default() },
    ));
    let points = data["points"].as_array().unwrap();
    assert_eq!(points.len(), 7);
    // The fastest of the points of 64 x 256 is the native one.
    let marked = &points[data["marked"]["id"].as_u64().unwrap() as usize];
    assert_eq!(marked["settings"]["chunk_method"], "native");

    let names = data["figures"].as_array().unwrap();
    let figure = |point: &Value, name: &str| {
        point["figures"][names.iter().position(|known| known == name).unwrap()].clone()
    };
    let two_epochs = &points[1];
    // Median, minimum, maximum and count.
    let speeds = figure(two_epochs, "samples_per_sec");
    assert_eq!(speeds[3], 2);
    for (idx, speed) in [(2, &records[1]), (1, &records[2])] {
        let exact = speed.measured.samples_per_sec.unwrap();
        assert!((speeds[idx].as_f64().unwrap() / exact - 1.0).abs() < 1e-5, "{speeds}");
    }
    assert!(figure(&points[0], "samples_per_sec").is_number(), "of one epoch a number will do");
    assert_eq!(two_epochs["epochs"].as_array().unwrap().len(), 2);
    assert_eq!(two_epochs["busy"]["n"], 2);
    assert_eq!(
        two_epochs["waits"].as_array().unwrap().len(),
        data["wait_percents"].as_array().unwrap().len()
    );
    // Too large for a JavaScript number, so it is text.
    assert_eq!(data["shared"]["seed"], u64::MAX.to_string());
    assert_eq!(two_epochs["settings"]["entropy_of"], "cell_type");
    for name in [
        "amplification",
        "wait_p99_secs",
        "max_mem",
        "stall_share",
        "nnz",
        "entropy",
        "entropy_expected",
        "entropy sd of tissue, bits",
        "wait_slowest_tenth_share",
    ] {
        assert!(!figure(two_epochs, name).is_null(), "{name}");
    }
    let failed = &points[3];
    assert_eq!(failed["failure"], "oom: killed by signal 9 | no memory");
    assert!(failed["figures"].as_array().unwrap().iter().all(Value::is_null));
}

#[test]
fn what_was_published_comes_only_when_it_is_asked_for() {
    let asked = ReportOptions { published: true, ..ReportOptions::default() };
    let with = data(&render_all(&fixture::grid(), &asked));
    assert_eq!(with["published"]["slices"].as_array().unwrap().len(), 16);
    assert!(with["published"]["note"].as_str().unwrap().contains("another machine"));
    let without = data(&render_all(&fixture::grid(), &ReportOptions::default()));
    assert!(without["published"].is_null());
}

/// Vendored libraries match the digests in their folder's README.
#[test]
fn vendored_libraries_are_unchanged() {
    let readme = include_str!("vendor/README.md");
    for library in VENDORED {
        let digest = Sha256::digest(library.as_bytes())
            .iter()
            .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        assert!(readme.contains(&digest), "{digest} of {}", library.lines().next().unwrap());
    }
}

/// A page with thousands of points stays small enough to open at once.
#[test]
fn a_page_of_many_points_is_small() {
    let records: Vec<EpochRecord> = (0..2000)
        .map(|idx| fixture::epoch("native", (64 + idx % 100, 1 + idx / 100), 0.5))
        .collect();
    let page = render_all(&records, &ReportOptions::default());
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}

/// Without a label the page would show the raw column name.
#[test]
fn the_script_has_words_for_every_figure() {
    let labels = SCRIPT[0];
    let is_number =
        |field: &Field| matches!(field.data_type(), DataType::UInt64 | DataType::Float64);
    let columns = [Measured::fields(), StageTimes::fields()].concat();
    // Numbers of an epoch and a process are in the list of epochs; a rank is one of several that
    // make a point together.
    let columns = columns.iter().filter(|field| is_number(field));
    let columns = columns
        .map(Field::name)
        .filter(|name| !["epoch", "repeat", "rank"].contains(&name.as_str()));
    let derived: Vec<String> = fixture::grid()
        .iter()
        .flat_map(|record| data::figures_of(record).unwrap())
        // Figures of further labels already have readable names.
        .filter(|(name, value)| value.is_number() && !name.contains(' '))
        .map(|(name, _)| name)
        .collect();
    for name in columns.chain(&derived) {
        assert!(labels.contains(&format!("\n  {name}: {{ label:")), "{name}");
    }
}

#[test]
fn the_script_has_words_for_every_setting() {
    let labels = SCRIPT[1];
    for field in [GridPoint::fields(), DataInfo::fields()].concat() {
        let name = field.name();
        // Those are shown by their own names.
        if name == "settings" {
            continue;
        }
        let is_named =
            labels.contains(&format!("\n  {name}: \"")) || labels.contains(&format!(" {name}: \""));
        assert!(is_named, "{name}");
    }
}

#[test]
fn filling_looks_at_nothing_twice() {
    assert_eq!(
        fill("a {{x}} b {{y}} {{z}}c {{", &[("x", "{{y}}"), ("y", "1")]),
        "a {{y}} b 1 c {{"
    );
}
