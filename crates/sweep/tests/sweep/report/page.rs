//! The page of a report in Chromium: no requests, no errors; hover, filter, sort, keys and links
//! work.

use std::path::Path;

use bench_report::{BatchSample, EpochRecord, GridPoint, Measured, append};
use serde_json::Value;

use super::browser::{self, Browser};
use super::{report, swept, text};

const VIEWS: [&str; 8] =
    ["memory", "chunk-size", "chunks", "entropy", "waits", "stages", "busy", "growth"];

/// JavaScript: the position of a point's mark, and the point's number.
const A_MARK: &str = "(() => {
    const { plot, anchors } = drawnNow[0];
    plot.scrollIntoView({ block: 'center' });
    const box = plot.getBoundingClientRect();
    const anchor = anchors.filter(({ point }) => point).at(-1);
    return [box.x + anchor.at[0], box.y + anchor.at[1], anchor.point.id, document.querySelectorAll('#table tbody tr').length];
})()";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[track_caller]
fn check_quiet(browser: &mut Browser, page: &Path) {
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let own = format!("file://{}", page.display());
    for url in browser.requests() {
        assert!(url.starts_with(&own) || url.starts_with("data:") || url == "about:blank", "{url}");
    }
}

/// Hovers over a mark and checks that tooltip, table row and details agree.
#[track_caller]
fn check_hover(browser: &mut Browser) {
    let mark = browser.eval(A_MARK);
    browser.point_at(number(&mark[0]), number(&mark[1]));
    let tip = browser.eval("tip.hidden ? '' : tip.innerText");
    let id = browser.eval("state.chosen.id").as_u64().unwrap();
    let printed = browser.eval(&format!("nameOf(points[{id}])"));
    assert!(tip.as_str().unwrap().starts_with(printed.as_str().unwrap()), "{tip} {printed}");
    let speed = browser.eval("number(median(state.chosen, 'samples_per_sec'), 'samples_per_sec')");
    assert!(tip.as_str().unwrap().contains(speed.as_str().unwrap()), "{tip} {speed}");
    let row = browser.eval(&format!(
        "document.querySelector('#table tr.chosen[data-point=\"{id}\"]').innerText"
    ));
    assert!(row.as_str().unwrap().contains(speed.as_str().unwrap()), "{row} {speed}");
    // The details show each figure that the point has, and its settings.
    let missing = browser.eval(
        "report.figures.filter((name) => spread(state.chosen, name) && !document.getElementById('detail').innerText.includes(label(name)))",
    );
    assert_eq!(missing, Value::from(Vec::<Value>::new()));
    browser.point_at(2.0, 2.0);
    assert_eq!(browser.eval("tip.hidden"), Value::from(true));
}

/// Checks that the points of one setting's value can be hidden and shown again.
#[track_caller]
fn check_filter(browser: &mut Browser, key: &str, value: &str) {
    let rows = "document.querySelectorAll('#table tbody tr').length";
    let marks = "drawnNow[0].anchors.filter(({ point }) => point).length";
    let own = format!("points.filter((point) => settingOf(point, '{key}') == '{value}').length");
    let [all, of_value, drawn] =
        [rows, own.as_str(), marks].map(|what| number(&browser.eval(what)));
    assert!(of_value > 0.0 && of_value < all, "{of_value} of {all}");
    let chip = format!(".chip[data-key=\"{key}\"][data-value=\"{value}\"]");
    browser.click(&chip);
    assert_eq!(number(&browser.eval(rows)), all - of_value);
    assert!(number(&browser.eval(marks)) < drawn);
    let pressed = format!("document.querySelector('{chip}').getAttribute('aria-pressed')");
    assert_eq!(browser.eval(&pressed), "false");
    let address = browser.eval("decodeURIComponent(location.hash.replaceAll('+', ' '))");
    assert!(address.as_str().unwrap().contains(&format!("without={key}:{value}")), "{address}");
    browser.click(&chip);
    assert_eq!(number(&browser.eval(rows)), all);
    assert_eq!(number(&browser.eval(marks)), drawn);
    // A double click shows only this value; a click on the only value shown shows all again.
    browser.double_click(&chip);
    assert_eq!(number(&browser.eval(rows)), of_value);
    browser.click(&chip);
    assert_eq!(number(&browser.eval(rows)), all);
}

/// Checks sorting by peak memory in both directions.
#[track_caller]
fn check_sort(browser: &mut Browser) {
    let column = "#table button[data-column=max_mem]";
    let figures = "[...document.querySelectorAll('#table tbody tr')].map((row) => median(points[row.dataset.point], 'max_mem')).filter((found) => found !== null)";
    for sign in [-1.0, 1.0] {
        browser.click(column);
        let found: Vec<f64> =
            browser.eval(figures).as_array().unwrap().iter().map(number).collect();
        assert!(found.len() > 1);
        assert!(found.windows(2).all(|two| sign * two[0] <= sign * two[1]), "{sign} {found:?}");
    }
    let sorted = browser.eval("document.querySelector('th[aria-sort=ascending]').innerText");
    assert!(sorted.as_str().unwrap().starts_with("peak GB"), "{sorted}");
}

#[track_caller]
fn check_views(browser: &mut Browser, name: &str) {
    for view in VIEWS {
        browser.click(&format!("#views a[href*=\"view={view}\"]"));
        assert_eq!(browser.eval("state.view"), view);
        let address = browser.eval("location.hash");
        assert!(address.as_str().unwrap().contains(&format!("view={view}")), "{address}");
        let drawn = browser.eval("drawnNow.map(({ anchors }) => anchors.length)");
        let drawn = drawn.as_array().unwrap();
        assert!(!drawn.is_empty() && drawn.iter().all(|n| number(n) > 0.0), "{view}: {drawn:?}");
        let is_wide = browser
            .eval("document.documentElement.scrollWidth > document.documentElement.clientWidth");
        assert_eq!(is_wide, Value::from(false), "{view} is wider than the window");
        browser.eval("scrollTo(0, 0)");
        browser.screenshot(&format!("{name}-{view}"));
    }
    browser.click("#views a[href*=\"view=memory\"]");
}

#[test]
fn the_page_of_a_real_sweep_answers_at_desktop_and_phone_width() {
    let Some(program) = browser::find() else { return };
    let folder = swept();
    let output = report(folder.path(), &["first", "second", "-o", "both", "--baseline"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = folder.path().join("both/report.html");
    let mut browser = Browser::start(&program);
    for (name, width, height) in [("desktop", 1280, 900), ("phone", 390, 844)] {
        browser.size(width, height, name == "phone");
        browser.open(&page, "");
        check_hover(&mut browser);
        check_filter(&mut browser, "folder", "second");
        check_filter(&mut browser, "chunks_per_block", "2");
        check_sort(&mut browser);
        check_views(&mut browser, name);
        check_quiet(&mut browser, &page);
    }
}

#[test]
fn a_link_shows_the_same_again_and_keys_and_copies_work() {
    let Some(program) = browser::find() else { return };
    let folder = swept();
    assert!(report(folder.path(), &["first", "--format", "html"]).status.success());
    let page = folder.path().join("first/report.html");
    let mut browser = Browser::start(&program);
    browser.size(1280, 900, false);
    browser
        .open(&page, "#view=chunks&y=wait_p99_secs&without=chunk_method:csr&sort=max_mem&point=3");
    let seen = "[state.view, state.y, state.sort, state.chosen.id, points.filter(isShown).every(({ settings }) => settings.chunk_method !== 'csr'), document.getElementById('choose-y').value]";
    let expected =
        serde_json::json!(["chunks", "wait_p99_secs", "max_mem", 3, true, "wait_p99_secs"]);
    assert_eq!(browser.eval(seen), expected);
    // The address keeps the selection and restores it.
    browser.eval("(() => { const select = document.getElementById('choose-y'); select.value = 'samples_per_sec_after_first'; select.dispatchEvent(new Event('change')); })()");
    let address = browser.eval("location.hash");
    browser.open(&page, address.as_str().unwrap());
    assert_eq!(browser.eval("state.y"), "samples_per_sec_after_first");

    browser.eval("document.querySelector('#chart svg').focus()");
    browser.press("ArrowRight");
    let said = browser.eval("document.getElementById('said').textContent");
    assert!(said.as_str().unwrap().contains("np.array"), "{said}");
    assert_eq!(browser.eval("tip.hidden"), Value::from(false));

    let rows = browser.eval("document.querySelectorAll('#table tbody tr').length");
    for kind in ["tsv", "markdown", "csv"] {
        browser.eval("document.getElementById('copied').textContent = ''");
        browser.click(&format!("[data-copy={kind}]"));
        let printed = browser.eval(
            "new Promise((done) => {
                const look = () => copied.textContent ? done(copied.textContent) : setTimeout(look, 20);
                look();
            })",
        );
        assert_eq!(printed, format!("{rows} rows copied"));
        let lines = browser.eval(&format!("tableText('{kind}').split('\\n').length"));
        let expected = number(&rows) + if kind == "markdown" { 2.0 } else { 1.0 };
        assert_eq!(number(&lines), expected, "{kind}");
    }
    check_looks(&mut browser);
    check_quiet(&mut browser, &page);
}

/// Checks dark mode, and that print has no interactive elements.
#[track_caller]
fn check_looks(browser: &mut Browser) {
    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = browser.eval(paper);
    browser.media("screen", "dark");
    let dark = browser.eval(paper);
    assert_eq!(
        (light.as_str(), dark.as_str()),
        (Some("rgb(255, 255, 255)"), Some("rgb(20, 23, 27)"))
    );
    browser.media("print", "dark");
    assert_eq!(browser.eval(paper), light);
    assert_eq!(
        browser.eval("getComputedStyle(document.getElementById('controls')).display"),
        "none"
    );
    browser.media("screen", "light");
}

/// Opens a page with more grid points than any sweep so far.
#[test]
fn a_page_of_two_thousand_points_still_answers() {
    let Some(program) = browser::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    append(&folder.path().join("many"), &(0..2000).map(made_up).collect::<Vec<_>>()).unwrap();
    let output = report(folder.path(), &["many", "--format", "html", "--baseline"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = folder.path().join("many/report.html");
    let mut browser = Browser::start(&program);
    browser.size(1280, 900, false);
    browser.open(&page, "");
    assert_eq!(number(&browser.eval("points.length")), 2000.0);
    // Not all rows are shown at first, since layout is the slowest part.
    let rows = "document.querySelectorAll('#table tbody tr').length";
    assert_eq!(number(&browser.eval(rows)), 300.0);
    browser.click("#more");
    assert_eq!(number(&browser.eval(rows)), 2000.0);
    check_hover(&mut browser);
    check_filter(&mut browser, "chunk_method", "csr");
    check_sort(&mut browser);
    let drawing = "(() => { const start = performance.now(); drawAll(); return performance.now() - start; })()";
    eprintln!("drawing 2,000 points and their table: {:.0} ms", number(&browser.eval(drawing)));
    for view in ["chunk-size", "chunks", "waits", "stages", "busy"] {
        browser.click(&format!("#views a[href*=\"view={view}\"]"));
        assert!(number(&browser.eval("drawnNow[0].anchors.length")) > 0.0, "{view}");
        browser.screenshot(&format!("many-{view}"));
    }
    check_quiet(&mut browser, &page);
}

/// Ten loaders, ours on two copies of the data, differ in name, shape and color.
#[test]
fn loaders_are_told_apart() {
    let Some(program) = browser::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    append(&folder.path().join("peers"), &several_loaders()).unwrap();
    let output = report(folder.path(), &["peers", "--format", "html"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = folder.path().join("peers/report.html");
    let mut browser = Browser::start(&program);
    browser.size(1280, 900, false);
    browser.open(&page, "");
    let names = ["somafeed", "somafeed, relaid", "annbatch", "annbatch documented"];
    assert_eq!(browser.eval("valuesOf('series').slice(0, 4)"), Value::from(names.to_vec()));
    // There are ten series, and no two share shape and color.
    let looks = "new Set(valuesOf('series').map((one) => [symbolPath(markOf('series', one), 5), fillOf('series', one)].join())).size";
    assert_eq!(number(&browser.eval(looks)), 10.0);
    let first = "document.querySelector('#table thead th').innerText";
    assert_eq!(browser.eval(first), "loader");
    let shown = "[...document.querySelectorAll('.chip[data-key=\"series\"]')].map((chip) => chip.innerText.trim())";
    assert_eq!(browser.eval(&format!("{shown}.slice(0, 4)")), Value::from(names.to_vec()));
    assert_eq!(
        browser.eval("document.querySelector('.chip[data-key=\"chunk_method\"]')"),
        Value::Null
    );
    check_hover(&mut browser);
    check_filter(&mut browser, "series", "somafeed, relaid");
    assert!(number(&browser.eval("document.querySelectorAll('.mark-name').length")) > 3.0);
    let apart = "(() => { const boxes = [...document.querySelectorAll('.mark-name')].map((one) => one.getBoundingClientRect());
        const frame = drawnNow[0].plot.getBoundingClientRect();
        return boxes.every((a, i) => a.left >= frame.left && a.right <= frame.right && boxes.every((b, j) => i <= j
            || a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top)); })()";
    assert_eq!(browser.eval(apart), Value::from(true));
    browser.screenshot("loaders");
    for view in VIEWS {
        browser.open(&page, &format!("#view={view}"));
        browser.screenshot(&format!("loaders-{view}"));
    }
    check_quiet(&mut browser, &page);
}

/// Returns two epochs of each of ten loaders: ours on the data and on a copy, and eight others.
fn several_loaders() -> Vec<EpochRecord> {
    let others = ["annbatch", "annbatch documented", "c", "d", "e", "f", "g", "h"];
    let mut records = Vec::new();
    for (idx, label) in ["csr", "csr"].into_iter().chain(others).enumerate() {
        for form in ["dense", "csr", "csr"] {
            let mut record = made_up(2 + 36 * idx as u64);
            let loader = if idx < 2 { "somafeed" } else { label.split(' ').next().unwrap() };
            record.point.loader = Some(loader.to_owned());
            label.clone_into(&mut record.point.chunk_method);
            form.clone_into(&mut record.point.form);
            loader.clone_into(&mut record.point.reader);
            if idx == 1 {
                record.data.uri = String::from("cache/experiment");
                record.data.layout = Some(String::from("relaid"));
            }
            let speed = 4000.0 * (10 - idx) as f64 * if form == "csr" { 2.0 } else { 1.0 };
            record.measured.samples_per_sec = Some(speed);
            records.push(record);
        }
    }
    records
}

/// Returns an invented epoch of a grid point.
fn made_up(idx: u64) -> EpochRecord {
    let method = ["np.array", "scipy.csr", "csr"][(idx % 3) as usize];
    let (chunk_size, chunks_per_block) = (1 << (idx / 3 % 12), 1 + idx / 36);
    let wait_secs = 1e-3 * (1.0 + (idx as f64 * 0.7).sin().abs()) * (1.0 + (idx % 3) as f64);
    let batches: Vec<BatchSample> = (0..50)
        .map(|batch| BatchSample {
            wait_secs: wait_secs * if batch % 10 == 0 { 10.0 } else { 1.0 },
            consume_secs: 1e-3,
            n_rows: 1024,
            nnz: 1_000_000,
        })
        .collect();
    let mut measured = Measured::from_batches(&batches, 0.0);
    measured.max_mem = Some(300_000_000 + chunk_size * chunks_per_block * 4000);
    let mut record = EpochRecord {
        point: GridPoint {
            chunk_method: method.to_owned(),
            batch_size: 1024,
            chunk_size,
            chunks_per_block,
            block_size: chunk_size * chunks_per_block,
            form: "dense".to_owned(),
            order: "shuffled".to_owned(),
            reader: "native".to_owned(),
            cache: "warm".to_owned(),
            ..GridPoint::default()
        },
        measured,
        ..EpochRecord::default()
    };
    record.stages.read_wall_secs = Some(wait_secs * 20.0);
    record.stages.decode_wall_secs = Some(wait_secs * 30.0);
    record.data.uri = String::from("made-up");
    record
}
