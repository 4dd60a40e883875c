//! The page: every view of the results, to be asked questions, in one HTML file that needs nothing else.
//!
//! Style and script are files of their own here and put into the page as text; the data goes in as JSON, escaped so
//! that no text in it can end its script tag. The page forbids itself every request (its content security policy), so
//! it works from a disk without a network and stays what it was when measured. Charts are drawn by Observable Plot,
//! which lies in `page/vendor` with D3 as they are published, so that axes, scales and marks are not ours to get wrong.

mod data;

use crate::{Error, ReportOptions, Source, summary::PointSummary};

/// What the page is called without a title of the user's.
const TITLE: &str = "What loading cells costs";
const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// Others' libraries, unchanged; `page/vendor/README.md` says where they come from.
const VENDORED: [&str; 2] = [
    include_str!("page/vendor/d3-7.9.2.min.js"),
    include_str!("page/vendor/plot-0.6.17.umd.min.js"),
];
const SCRIPT: [&str; 10] = [
    include_str!("page/figures.js"),
    include_str!("page/settings.js"),
    include_str!("page/state.js"),
    include_str!("page/encoding.js"),
    include_str!("page/scatter.js"),
    include_str!("page/curves.js"),
    include_str!("page/chart.js"),
    include_str!("page/panels.js"),
    include_str!("page/table.js"),
    include_str!("page/main.js"),
];

/// The page of `points`, which sum up the epochs of `sources`.
pub(crate) fn render(
    sources: &[Source],
    points: &[PointSummary],
    options: &ReportOptions,
) -> Result<String, Error> {
    let data = data::of(sources, points, options)?;
    let json = serde_json::to_string(&data).map_err(|source| Error::PageData { source })?;
    let title = options.title.as_deref().unwrap_or(TITLE);
    Ok(fill(
        TEMPLATE,
        &[
            ("title", &escape_html(title)),
            ("style", STYLE),
            ("data", &escape_script(&json)),
            ("vendored", &VENDORED.join("\n")),
            ("script", &SCRIPT.join("\n")),
        ],
    ))
}

/// Puts each `value` in the place of `{{name}}`. What a value holds is not looked at again.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(
        template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>(),
    );
    let mut rest = template;
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        filled.push_str(before);
        filled.push_str(
            values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value),
        );
        rest = after;
    }
    filled + rest
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// JSON that is safe between script tags: in JSON these characters stand in strings only, where each may be written
/// by its number. `<` begins both `</script` and `<!--`.
fn escape_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests;
