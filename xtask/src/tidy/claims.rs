//! Figures: those of the project's README are claims of `results/README.md`, and those of a claim
//! stand in the rows that it links to.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

const CLAIMS: &str = "results/README.md";
const HEADING: &str = "## Current figures, by claim";
const README_HEADING: &str = "## What it gains";

/// A row of a table of figures.
#[derive(Debug, PartialEq)]
struct Claim {
    /// Speed and memory, as they are written.
    figures: Vec<String>,
    /// The folder of `results` that has the rows.
    folder: String,
}

/// A breach for each figure that nothing stands behind.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let read = |file: &str| {
        fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))
    };
    let claims = claims_below(&read(CLAIMS)?, HEADING);
    let mut breaches = Vec::new();
    for claim in &claims {
        let page = format!("results/{}/README.md", claim.folder);
        breaches.extend(unfounded(claim, &read(&page)?).map(|figure| {
            format!(
                "{CLAIMS}: {figure} stands nowhere in {page}: write it there, or mend the claim"
            )
        }));
    }
    for shown in claims_below(&read("README.md")?, README_HEADING) {
        let is_claim = |claim: &Claim| {
            claim.folder == shown.folder
                && shown.figures.iter().all(|figure| claim.figures.contains(figure))
        };
        if !claims.iter().any(is_claim) {
            let Claim { figures, folder } = shown;
            let figures = figures.join(", ");
            breaches.push(format!("README.md: {figures} of {folder} is no claim of {CLAIMS}"));
        }
    }
    Ok(breaches)
}

/// The rows of the table below a heading, whose third column is speed and whose fourth is memory.
fn claims_below(text: &str, heading: &str) -> Vec<Claim> {
    let section = text.split(heading).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let folder = line.split("](").nth(1)?.split(')').next()?;
        let folder = folder.trim_start_matches("results/").trim_end_matches("/README.md");
        let figures = cells.get(2..4)?.iter().flat_map(|cell| {
            // Without the address of a link.
            numbers(cell.split("](").next().unwrap_or_default())
        });
        Some(Claim { figures: figures.collect(), folder: folder.to_owned() })
    });
    rows.collect()
}

/// The numbers in a text, as they are written.
fn numbers(text: &str) -> Vec<String> {
    let parts = text.split(|letter: char| !letter.is_ascii_digit() && !".,".contains(letter));
    let numbers = parts.map(|part| part.trim_matches(['.', ',']));
    numbers.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn value(number: &str) -> Option<f64> {
    number.replace(',', "").parse().ok()
}

/// The figures of a claim that no number of a page rounds to.
fn unfounded<'a>(claim: &'a Claim, page: &str) -> impl Iterator<Item = &'a String> {
    let found: Vec<f64> = numbers(page).iter().filter_map(|number| value(number)).collect();
    claim.figures.iter().filter(move |figure| {
        let decimals = figure.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        // 264,000 is 264,304 in thousands.
        let zeros = if figure.contains(',') {
            figure.replace(',', "").len() - figure.replace(',', "").trim_end_matches('0').len()
        } else {
            0
        };
        let unit = 10_f64.powi(zeros as i32 - decimals as i32);
        let is_founded =
            |wanted: f64| found.iter().any(|number| (number - wanted).abs() <= unit * (0.5 + 1e-9));
        !value(figure).is_some_and(is_founded)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_rows() {
        let page = "# Results\n\n## Figures\n\n| claim | other | speed | memory | rows |\n|---|---|---|---|---|\n\
                    | cells | a | 3.7 (1.8 at its settings) | 0.68 | [r](2026-11-22-loaders/README.md) |\n\n\
                    ## All\n\n| x | y | 9 | 9 | [r](other/README.md) |\n";
        let found = claims_below(page, "## Figures");
        let figures = ["3.7", "1.8", "0.68"].map(str::to_owned).to_vec();
        assert_eq!(found, [Claim { figures, folder: "2026-11-22-loaders".to_owned() }]);
        let missing = |rows: &str| unfounded(&found[0], rows).cloned().collect::<Vec<_>>();
        assert_eq!(missing("| 3.69 (3.5 to 4) | 1.80 | 0.677 |"), [""; 0]);
        assert_eq!(missing("| 3.6 | 1.8 | 0.67 |"), ["3.7", "0.68"]);
        let rounded = Claim { figures: vec!["264,000".to_owned()], folder: String::new() };
        assert_eq!(unfounded(&rounded, "264,304").count(), 0);
        assert_eq!(unfounded(&rounded, "265,304").count(), 1);
    }
}
