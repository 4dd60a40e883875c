//! Parsers of values of flags that several commands share.

use std::collections::BTreeMap;

use anyhow::bail;

/// Parses `KEY=VALUE`.
///
/// # Errors
/// `text` has no `=`, or no key before it.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected key=value".to_owned()),
    }
}

/// Collects settings by name. Fails if one is given twice.
pub fn pairs(flag: &str, typed: &[(String, String)]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut pairs = BTreeMap::new();
    for (key, value) in typed {
        if pairs.insert(key.clone(), value.clone()).is_some() {
            // The message omits the values, which may be secrets.
            bail!("{flag} {key} is given twice");
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_a_key_and_is_given_once() {
        assert_eq!(key_value("a=b=c"), Ok(("a".into(), "b=c".into())));
        for bad in ["a", "=b", ""] {
            key_value(bad).unwrap_err();
        }
        let pair = |value: &str| ("a".to_owned(), value.to_owned());
        let error = pairs("--config", &[pair("1"), pair("2")]).unwrap_err();
        assert_eq!(error.to_string(), "--config a is given twice");
    }
}
