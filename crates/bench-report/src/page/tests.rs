//! Tests of `page`.

use super::*;
use crate::{MarkedPoint, fixture, summarize};

fn render_all(records: &[EpochRecord], options: &ReportOptions) -> String {
    render(records, &summarize(records), options).unwrap()
}

/// The page's data, found as a browser finds it: up to the first end of the script tag.
fn data(page: &str) -> Value {
    let (_, after) = page.split_once("id=\"report-data\">").unwrap();
    let (json, _) = after.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

#[test]
fn the_page_asks_for_nothing() {
    let page = render_all(&fixture::grid(), &ReportOptions::default());
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
    // The only thing linked is an empty icon inside the page, and the browser is told to refuse all else.
    assert_eq!(page.matches("href=").count(), page.matches("href=\"data:,\"").count());
    assert!(page.contains(
        "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline';"
    ));
    assert!(!page.contains("{{"));
}

#[test]
fn no_text_breaks_out_of_its_place() {
    let hostile = "</script><script>alert(1)</script><!-- <script> {{script}} \u{2028} & \" ' \\";
    let mut record = fixture::killed(hostile, (64, 16));
    record.data.uri = hostile.to_owned();
    record.run.metadata.insert(hostile.to_owned(), hostile.to_owned());
    record.measured.message = Some(hostile.to_owned());
    let options = ReportOptions { title: Some(hostile.to_owned()), marked: None };
    let page = render_all(&[record], &options);
    let clean = render_all(&fixture::grid(), &ReportOptions::default());
    for tag in ["<script", "</script", "<!--"] {
        assert_eq!(page.matches(tag).count(), clean.matches(tag).count(), "{tag}");
    }
    let point = &data(&page)["points"][0];
    assert_eq!(point["settings"]["chunk_method"], hostile);
    assert_eq!(point["settings"]["uri"], hostile);
    assert_eq!(point["failure"], format!("oom: {hostile}"));
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
    let data = data(&render_all(&records, &ReportOptions { title: None, marked: Some(marked) }));
    let points = data["points"].as_array().unwrap();
    assert_eq!(points.len(), 7);
    // Of the points of 64 x 256, the fastest is the native one.
    assert_eq!(
        points[data["marked_id"].as_u64().unwrap() as usize]["settings"]["chunk_method"],
        "native"
    );

    let two_epochs = &points[1];
    let speeds = &two_epochs["figures"]["samples_per_sec"];
    assert_eq!(speeds["n"], 2);
    assert_eq!(speeds["max"].as_f64(), records[1].measured.samples_per_sec);
    assert_eq!(speeds["min"].as_f64(), records[2].measured.samples_per_sec);
    assert_eq!(two_epochs["epochs"].as_array().unwrap().len(), 2);
    // Too large for a number of JavaScript's, so text.
    assert_eq!(two_epochs["settings"]["seed"], u64::MAX.to_string());
    assert_eq!(two_epochs["settings"]["entropy_of"], "cell_type");
    for figure in [
        "amplification",
        "wait_p99_secs",
        "max_mem",
        "stall_share",
        "nnz",
        "entropy",
        "entropy_expected",
        "entropy sd of tissue, bits",
    ] {
        assert!(two_epochs["figures"][figure]["median"].is_f64(), "{figure}");
    }
    let failed = &points[3];
    assert_eq!(failed["failure"], "oom: killed by signal 9 | no memory");
    assert!(failed["figures"].as_object().unwrap().is_empty());
}

/// A figure without words would be shown by its column's name.
#[test]
fn the_script_has_words_for_every_figure() {
    let words = SCRIPT[0];
    for record in fixture::grid() {
        for (name, value) in figures_of(&record).unwrap() {
            // Labels behind the first are named in words as they are.
            let is_named = ["epoch", "repeat"].contains(&name.as_str()) || name.contains(' ');
            if value.is_number() && !is_named {
                assert!(words.contains(&format!("  {name}: {{ label:")), "{name}");
            }
        }
    }
}

#[test]
fn filling_looks_at_nothing_twice() {
    assert_eq!(
        fill("a {{x}} b {{y}} {{z}}c {{", &[("x", "{{y}}"), ("y", "1")]),
        "a {{y}} b 1 c {{"
    );
}
