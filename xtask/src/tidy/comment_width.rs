//! Comments and documentation wrap at the width of the code.

use super::source_files::Source;

/// Largest width of a comment line in columns. rustfmt wraps code at this width, but not comments.
const WIDTH: usize = 100;

/// Checks the width of all comment lines.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    sources.iter().filter(|source| source.is_rust()).flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<String> {
    let breach = |(idx, line): (usize, &str)| {
        let n_columns = line.chars().count();
        (n_columns > WIDTH && is_wrappable_comment(line)).then(|| {
            format!(
                "{}:{}: a comment of {n_columns} columns; wrap it at {WIDTH}",
                source.path,
                idx + 1
            )
        })
    };
    source.text.lines().enumerate().filter_map(breach).collect()
}

/// Whether the line is a comment that can be wrapped: a URL and a row of a table cannot.
fn is_wrappable_comment(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    let text = comment.trim_start_matches(['/', '!']).trim_start();
    !text.starts_with('|') && !text.contains("://")
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
