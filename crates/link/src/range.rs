//! The bytes that a request asks for.

use std::ops::Range;

/// The answer to a header `Range`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All bytes: there is no range, or one that servers ignore.
    All,
    /// A part, which is not empty.
    Part(Range<u64>),
    /// A range outside of the file.
    Outside,
}

/// The bytes of a file of `size` bytes that `header` asks for. Several ranges, and texts that are
/// not ranges, count as none.
pub(crate) fn asked(header: Option<&str>, size: u64) -> Asked {
    let range = header.and_then(|header| header.trim().strip_prefix("bytes=")).map(str::trim);
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return Asked::All;
    };
    let number = |text: &str| text.parse::<u64>().ok();
    let part = match (first, last) {
        ("", last) => match number(last) {
            Some(n) => size.saturating_sub(n)..size,
            None => return Asked::All,
        },
        (first, "") => match number(first) {
            Some(first) => first..size,
            None => return Asked::All,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(size),
            _ => return Asked::All,
        },
    };
    if part.start < part.end { Asked::Part(part) } else { Asked::Outside }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_closed_open_or_counted_from_the_end() {
        for (header, expected) in [
            ("bytes=0-0", Asked::Part(0..1)),
            ("bytes=2-5", Asked::Part(2..6)),
            ("bytes=2-500", Asked::Part(2..10)),
            ("bytes=7-", Asked::Part(7..10)),
            ("bytes=-3", Asked::Part(7..10)),
            ("bytes=-30", Asked::Part(0..10)),
            ("bytes=10-", Asked::Outside),
            ("bytes=10-11", Asked::Outside),
            ("bytes=-0", Asked::Outside),
            ("bytes=5-2", Asked::All),
            ("bytes=0-1,4-5", Asked::All),
            ("bytes=a-b", Asked::All),
            ("lines=1-2", Asked::All),
            ("bytes=0-18446744073709551615", Asked::Part(0..10)),
        ] {
            assert_eq!(asked(Some(header), 10), expected, "{header}");
        }
        assert_eq!(asked(None, 10), Asked::All);
        assert_eq!(asked(Some("bytes=0-4"), 0), Asked::Outside);
    }
}
