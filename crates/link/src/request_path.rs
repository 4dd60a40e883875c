//! The path and the query of a request, without their percent signs.

/// The bytes that a text with percent signs means; `None` if they are not UTF-8.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        if *first == b'%' {
            bytes.push((digit(0)? * 16 + digit(1)?) as u8);
            rest = after.get(2..)?;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// The bucket and the key of a path in path style; the key is empty for the bucket itself. `None`
/// if the path is not UTF-8.
pub(crate) fn bucket_and_key(path: &str) -> Option<(String, String)> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    Some((decoded(bucket)?, decoded(key)?))
}

/// Whether a key names a file below the folder by names alone: no part of it is empty, `.` or
/// `..`, and it is not absolute.
pub(crate) fn is_below(key: &str) -> bool {
    !key.contains('\0') && key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// The value of a parameter of a query, without percent signs.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let (_, value) = pairs.into_iter().find(|(of, _)| *of == name)?;
    // Forms write a space as a plus sign.
    decoded(&value.replace('+', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded() {
        let parsed = |path| bucket_and_key(path);
        let pair = |bucket: &str, key: &str| Some((bucket.to_owned(), key.to_owned()));
        assert_eq!(parsed("/link/a/b%20c"), pair("link", "a/b c"));
        assert_eq!(parsed("/link"), pair("link", ""));
        assert_eq!(parsed("/link/"), pair("link", ""));
        assert_eq!(parsed("/link/%2e%2E/x"), pair("link", "../x"));
        assert_eq!(parsed("/link/%ff"), None);
        assert_eq!(parsed("/link/%2"), None);
    }

    #[test]
    fn keys_stay_below_the_folder() {
        for key in ["a", "a/b", "a b/.zarray", "..."] {
            assert!(is_below(key), "{key}");
        }
        for key in ["", "/a", "a/", "a//b", "..", "../a", "a/../../b", "a/.", "a\0"] {
            assert!(!is_below(key), "{key}");
        }
    }

    #[test]
    fn parameters_are_found_by_name() {
        let query = "list-type=2&prefix=a%2Fb+c&delimiter=%2F&empty";
        assert_eq!(parameter(query, "prefix").as_deref(), Some("a/b c"));
        assert_eq!(parameter(query, "empty").as_deref(), Some(""));
        assert_eq!(parameter(query, "absent"), None);
    }
}
