//! Blanks comments and literals in Rust text, so that a word found in it is code.

/// The same text, line for line, with a blank for every character of a comment, a string or a
/// character literal.
pub(super) fn code_only(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < characters.len() {
        let end = end_of_blanked(&characters, at).unwrap_or(at);
        if end == at {
            out.push(characters[at]);
            at += 1;
        } else {
            out.extend(characters[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// The end of the comment or literal that starts at `at`; `None` if none does.
fn end_of_blanked(text: &[char], at: usize) -> Option<usize> {
    let next = text.get(at + 1).copied();
    match text[at] {
        '/' if next == Some('/') => Some(find(text, at, |rest| rest[0] == '\n')),
        '/' if next == Some('*') => Some(end_of_block_comment(text, at)),
        '"' => Some(end_of_quoted(text, at, '"')),
        'r' if !continues_word(text, at) => end_of_raw(text, at),
        // A lifetime has no closing quote: 'a' and '\n' are literals, 'a is not.
        '\'' if next == Some('\\') || text.get(at + 2) == Some(&'\'') => {
            Some(end_of_quoted(text, at, '\''))
        }
        _ => None,
    }
}

fn find(text: &[char], from: usize, stop: impl Fn(&[char]) -> bool) -> usize {
    (from..text.len()).find(|at| stop(&text[*at..])).unwrap_or(text.len())
}

fn continues_word(text: &[char], at: usize) -> bool {
    // `br"` is a raw string too.
    let before = |back: usize| at.checked_sub(back).map(|i| text[i]);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match before(1) {
        Some('b') => before(2).is_some_and(is_word),
        Some(c) => is_word(c),
        None => false,
    }
}

fn end_of_block_comment(text: &[char], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = at;
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

fn end_of_quoted(text: &[char], at: usize, quote: char) -> usize {
    let mut at = at + 1;
    while at < text.len() && text[at] != quote {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

/// Handles `r"..."` and `r#"..."#`; `None` for `r#keyword` and plain words.
fn end_of_raw(text: &[char], at: usize) -> Option<usize> {
    let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
    let open = at + 1 + hashes;
    if text.get(open) != Some(&'"') {
        return None;
    }
    let closes = |rest: &[char]| {
        rest[0] == '"' && rest[1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes
    };
    Some((find(text, open + 1, closes) + 1 + hashes).min(text.len()))
}

/// Whether `word` occurs in the line by itself, not as a part of a longer name.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: bool) {
        let code = code_only(text);
        assert_eq!(code.lines().any(|line| has_word(line, "unsafe")), expect, "{code:?}");
        assert_eq!(code.chars().count(), text.chars().count());
        assert_eq!(code.lines().count(), text.lines().count());
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        check("let x = unsafe { f() };", true);
        check("// unsafe", false);
        check("/* a /* unsafe */ unsafe */ g()", false);
        check("/* a */ unsafe {}", true);
        check(r#"let s = "unsafe \" unsafe"; g()"#, false);
        check(r##"let s = r#"a " unsafe"#; g()"##, false);
        check(r##"let s = br#"a"#; unsafe {}"##, true);
        check("let r#type = 1; unsafe {}", true);
        check("let c = '\"'; unsafe {}", true);
        check("let c = '\\''; unsafe {}", true);
        check("fn f<'a>(x: &'a str) { unsafe {} }", true);
        check("#![allow(unsafe_code)]", false);
        check("let bar\"unsafe\" = 1", false);
        check("\"never closed unsafe", false);
        check("/* never closed unsafe", false);
    }
}
