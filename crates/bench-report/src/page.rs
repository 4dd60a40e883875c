//! The page: every view of the results, interactive, in one self-contained HTML file.
//!
//! Style and script are separate files in this crate, inlined as text. The data is inlined as JSON,
//! escaped so that no text in it can end its script tag. The page's content security policy forbids
//! all requests, so it works from disk without a network. Observable Plot draws the charts, axes,
//! scales and marks; it lies unmodified in `page/vendor`, together with D3.

mod data;

use crate::{Advice, Error, ReportOptions, Source, report::capitalized, summary::PointSummary};

/// Title of the page, unless the user gives one.
const TITLE: &str = "What loading cells costs";
const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// Third-party libraries, unmodified; see `page/vendor/README.md` for their origin.
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

/// Renders the page for `points`, which summarize the epochs of `sources`.
pub(crate) fn render(
    sources: &[Source],
    points: &[PointSummary],
    options: &ReportOptions,
) -> Result<String, Error> {
    let data = data::page_data(sources, points, options)?;
    let json = serde_json::to_string(&data).map_err(|source| Error::PageData { source })?;
    let title = options.title.as_deref().unwrap_or(TITLE);
    Ok(fill(
        TEMPLATE,
        &[
            ("title", &escape_html(title)),
            ("advice", &advice(&Advice::new(sources, points))),
            ("style", STYLE),
            ("data", &escape_script(&json)),
            ("vendored", &VENDORED.join("\n")),
            ("script", &SCRIPT.join("\n")),
        ],
    ))
}

/// Cautions and recommendations in words, with which the page begins.
fn advice(advice: &Advice) -> String {
    let line = |tag: &str, text: &String| {
        let name = tag.split(' ').next().unwrap_or(tag);
        format!("<{tag}>{}.</{name}>\n", escape_html(&capitalized(text)))
    };
    let cautions = advice.cautions.iter().map(|text| line("p class=\"caution\"", text));
    let advised: String = advice.recommendations.iter().map(|text| line("li", text)).collect();
    let list = if advised.is_empty() { advised } else { format!("<ul>\n{advised}</ul>\n") };
    cautions.chain([list]).collect()
}

/// Replaces each `{{name}}` by its value. Values are not expanded themselves.
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

/// Makes JSON safe between script tags. The characters replaced occur only within JSON strings,
/// where an escape means the same; `<` begins both `</script` and `<!--`.
fn escape_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests;
