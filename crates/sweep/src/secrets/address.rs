//! Addresses of data, and what of them is a secret: who signs in, and a query, which may sign.

use std::convert::Infallible;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Path or URI of an experiment. Prints without user info, query and fragment.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Address(String);

impl Address {
    /// The whole, to open it by.
    pub(crate) fn full(&self) -> &str {
        &self.0
    }

    /// Whether none was given.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once("://") {
            // All that follows is of this address, spaces too.
            Some((scheme, rest)) => {
                let parts = Parts::of(rest);
                write!(f, "{scheme}://{}", &rest[parts.plain])
            }
            None => f.write_str(&self.0),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl From<&str> for Address {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Address {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for Address {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::from(text))
    }
}

/// Where the parts of an address lie in what follows its `://`.
struct Parts {
    user: Option<Range<usize>>,
    /// Host and path.
    plain: Range<usize>,
    /// Query and fragment.
    query: Option<Range<usize>>,
}

impl Parts {
    fn of(rest: &str) -> Self {
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        let host_end = rest[..end].find('/').unwrap_or(end);
        // A password with a slash or a question mark in it ends the host too early, after a colon
        // that no port follows.
        let is_cut = rest[..host_end].rsplit_once(':').is_some_and(|(_, port)| {
            !port.bytes().all(|byte| byte.is_ascii_digit() || byte == b']')
        });
        let user = match rest[..host_end].rfind('@') {
            Some(at) => Some(0..at),
            None if is_cut => rest.rfind('@').map(|at| 0..at),
            None => None,
        };
        let start = user.as_ref().map_or(0, |user| user.end + 1);
        let end = rest[start..].find(['?', '#']).map_or(rest.len(), |idx| start + idx);
        let query = (end < rest.len()).then(|| end + 1..rest.len());
        Self { user, plain: start..end, query }
    }
}

/// `text` with each URI in it cut to scheme, host and path.
pub(crate) fn without_credentials(text: &str) -> String {
    let (mut kept, mut left) = (String::with_capacity(text.len()), text);
    while let Some(start) = left.find("://") {
        let (before, rest) = left.split_at(start + 3);
        let end = rest.find(ends_address).unwrap_or(rest.len());
        // What ends a clause is not the address's.
        let address = rest[..end].trim_end_matches([':', ',', ';', '.', ')', ']', '}']);
        kept.push_str(before);
        kept.push_str(&address[Parts::of(address).plain]);
        left = &rest[address.len()..];
    }
    kept.push_str(left);
    kept
}

fn ends_address(c: char) -> bool {
    c.is_whitespace() || c.is_control() || ['"', '\'', '`', '<', '>'].contains(&c)
}

/// What is secret in the address that `text` is: user info and query, whole and in parts, as they
/// are written and decoded. Nothing where it is no URI.
pub(super) fn credentials(text: &str) -> Vec<String> {
    let Some((_, rest)) = text.split_once("://") else { return Vec::new() };
    let parts = Parts::of(rest);
    let mut found: Vec<&str> = Vec::new();
    if let Some(user) = parts.user {
        let user = &rest[user];
        found.push(user);
        found.extend(user.split(':'));
    }
    if let Some(query) = parts.query {
        let query = &rest[query];
        found.push(query);
        found
            .extend(query.split(['&', '#']).map(|pair| pair.split_once('=').map_or(pair, |p| p.1)));
    }
    found.into_iter().flat_map(|word| [word.to_owned(), decoded(word)]).collect()
}

/// `text` with `%41` as `A`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut left = text.as_bytes();
    while let Some((&byte, rest)) = left.split_first() {
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) if byte == b'%' => {
                bytes.push(code);
                left = &rest[2..];
            }
            _ => {
                bytes.push(byte);
                left = rest;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn prints(address: &str, expect: &str) {
        let address = Address::from(address);
        assert_eq!(
            (address.to_string(), format!("{address:?}")),
            (expect.into(), format!("{expect:?}"))
        );
    }

    #[test]
    fn an_address_prints_without_who_signs_in_and_without_query() {
        prints("s3://bucket/a/b", "s3://bucket/a/b");
        prints("s3://ada:pw@bucket/a@b/c", "s3://bucket/a@b/c");
        prints("https://ada@host:9000/x?sig=a/b@c#d", "https://host:9000/x");
        prints("s3://ada:p/w?d@bucket/x", "s3://bucket/x");
        prints("http://[::1]:9000/a@b", "http://[::1]:9000/a@b");
        prints("file:///a b/x?sig=y z", "file:///a b/x");
        prints("a/b?c@d:e", "a/b?c@d:e");
        prints("", "");
    }

    #[test]
    fn addresses_in_a_text_lose_their_credentials_and_nothing_else() {
        let check = |text: &str, expect: &str| assert_eq!(without_credentials(text), expect);
        check("no address", "no address");
        check("cannot open s3://a:b@c/d?e=f: why?", "cannot open s3://c/d: why?");
        check("('https://a@b/c?d', \"gs://e/f?g\")", "('https://b/c', \"gs://e/f\")");
        check("-us3://a:b@c/d and x://e", "-us3://c/d and x://e");
        check("://", "://");
    }

    #[test]
    fn credentials_are_found_whole_in_parts_and_decoded() {
        let found = credentials("s3://ada:p%40w@b/x?sig=a%2Fb&ttl=1");
        for expect in ["ada:p%40w", "p%40w", "p@w", "sig=a%2Fb&ttl=1", "a%2Fb", "a/b"] {
            assert!(found.iter().any(|word| word == expect), "{expect}: {found:?}");
        }
        assert!(credentials("a?b").is_empty() && credentials("s3://b/x").is_empty());
        assert_eq!(decoded("%4"), "%4");
        assert_eq!(decoded("%é%"), "%é%");
    }
}
