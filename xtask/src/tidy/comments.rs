//! Comments and documentation wrap at the width of the code, and their sentences begin with what
//! they are about.

use super::source_files::Source;

/// Largest width of a comment line in columns. rustfmt wraps code at this width, but not comments.
const WIDTH: usize = 100;

/// Words that begin no sentence: its subject stands behind them.
const OPENINGS: [&str; 2] = ["Of ", "Nor "];

/// Checks all comment lines.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    sources.iter().filter(|source| source.is_rust()).flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut ended = true;
    for (line, number) in source.text.lines().zip(1..) {
        let place = format!("{}:{number}", source.path);
        let n_columns = line.chars().count();
        if n_columns > WIDTH && is_wrappable_comment(line) {
            breaches.push(format!("{place}: a comment of {n_columns} columns; wrap it at {WIDTH}"));
        }
        let text = comment(line);
        let begins = |opening: &&&str| {
            let inside = format!(". {opening}");
            text.is_some_and(|text| {
                (ended && text.starts_with(**opening)) || text.contains(&inside)
            })
        };
        if let Some(opening) = OPENINGS.iter().find(begins) {
            let word = opening.trim_end();
            breaches.push(format!(
                "{place}: a sentence that begins with \"{word}\"; name its subject first"
            ));
        }
        // The next line begins a sentence, too, unless it goes on with this one's.
        ended = text.is_none_or(|text| text.is_empty() || text.ends_with(['.', ':']));
    }
    breaches
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']).trim())
}

/// Whether the line is a comment that can be wrapped: a URL and a row of a table cannot.
fn is_wrappable_comment(line: &str) -> bool {
    comment(line).is_some_and(|text| !text.starts_with('|') && !text.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_line(path: &str, line: &str, expect: usize) {
        let breaches = check(&[Source::new(path, format!("//! Plans.\n{line}\n"))]);
        assert_eq!(breaches.len(), expect, "{breaches:?}");
        assert!(breaches.iter().all(|breach| breach.starts_with(&format!("{path}:2: "))));
    }

    #[test]
    fn sentences_begin_with_their_subject() {
        let path = "crates/shuffle/src/plan.rs";
        check_line(path, "/// Of a plan, the blocks.", 1);
        check_line(path, "// Plans begin. Nor do they end.", 1);
        check_line(path, "// The blocks of a plan. Offsets come first.", 0);
        check_line(path, "let text = \"Of a plan\";", 0);
        let going_on = Source::new(path, "//! The part\n//! Of Mice and Men has none.\n");
        assert!(check(&[going_on]).is_empty());
    }

    #[test]
    fn wide_comments_are_breaches() {
        let path = "crates/shuffle/src/plan.rs";
        let words = "word ".repeat(30);
        for marker in ["//", "///", "//!", "    // "] {
            check_line(path, &format!("{marker} {words}"), 1);
        }
        check_line(path, &format!("// {}", "×".repeat(97)), 0);
        check_line(path, &format!("// {}", "×".repeat(98)), 1);
        check_line(path, &format!("/// | {words} |"), 0);
        check_line(path, &format!("/// {words} https://example.org"), 0);
        check_line(path, &format!("let text = \"{words}\"; // a string"), 0);
        check_line("crates/shuffle/Cargo.toml", &format!("// {words}"), 0);
    }
}
