//! Links of the pages to other files and headings of the repository.

use std::fs;
use std::path::Path;

use crate::git::git;

/// A breach for each link whose file or heading is missing.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut breaches = Vec::new();
    for page in git(&["ls-files", "*.md"])?.lines() {
        // A page that was removed is in git's list until the next commit.
        let Ok(text) = fs::read_to_string(root.join(page)) else { continue };
        breaches.extend(broken(root, page, &text));
    }
    Ok(breaches)
}

fn broken(root: &Path, page: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    for (line, number) in outside_of_code(text) {
        for target in targets(line) {
            if let Some(problem) = problem(root, page, target) {
                breaches.push(format!("{page}:{number}: {target}: {problem}"));
            }
        }
    }
    breaches
}

/// The lines that are not in blocks of code, with their numbers.
fn outside_of_code(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut in_code = false;
    text.lines().zip(1..).filter(move |(line, _)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !is_fence && !in_code
    })
}

/// The targets of a line's links that lie in the repository.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?;
        (!target.contains("://") && !target.starts_with("mailto:")).then_some(target)
    })
}

fn problem(root: &Path, page: &str, target: &str) -> Option<&'static str> {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => root.join(page),
        _ => root.join(page).parent()?.join(file),
    };
    if !path.exists() {
        return Some("there is no such file");
    }
    let is_page = path.extension().is_some_and(|extension| extension == "md");
    if heading.is_empty() || !is_page {
        return None;
    }
    let text = fs::read_to_string(&path).unwrap_or_default();
    let headings = outside_of_code(&text).filter_map(|(line, _)| line.strip_prefix('#'));
    let mut anchors = headings.map(|heading| anchor(heading.trim_start_matches('#')));
    (!anchors.any(|anchor| anchor == heading)).then_some("the page has no such heading")
}

/// The anchor that a heading gets on the usual sites: letters in lower case, hyphens for blanks.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_a_file_and_a_heading() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        let other = "# A page\n\n## What `it` is, now\n\n```sh\n# no heading\n```\n";
        fs::write(root.path().join("docs/other.md"), other).unwrap();
        let found = |text: &str| broken(root.path(), "docs/page.md", text).len();
        assert_eq!(found("see [it](other.md), [that](other.md#what-it-is-now)"), 0);
        assert_eq!(found("[out](https://example.org/x.md) and [up](../docs)"), 0);
        assert_eq!(found("[gone](gone.md) and [here](other.md#no-heading)"), 2);
        assert_eq!(found("```\n[gone](gone.md)\n```\n"), 0);
    }
}
