//! Addresses of data. User info is secret, and so is a query, which may contain a signature.

use std::convert::Infallible;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Path or URI of an experiment. Prints without user info, query and fragment.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(String);

impl Address {
    /// Returns the whole address with its secrets, to open the data.
    pub fn full(&self) -> &str {
        &self.0
    }

    /// Whether the address is empty, because no data was named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the path on this machine; `None` for data in a store.
    pub fn local_path(&self) -> Option<PathBuf> {
        match self.0.split_once("://") {
            None => Some(PathBuf::from(&self.0)),
            Some(("file", path)) => Some(PathBuf::from(path)),
            Some(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_without_credentials(&self.0))
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

/// Byte ranges of an address's parts, in the text after `://`.
struct Parts {
    user: Option<Range<usize>>,
    /// Host and path.
    plain: Range<usize>,
    /// Query and fragment.
    query: Option<Range<usize>>,
}

/// Schemes of addresses whose first part is a bucket.
const BUCKET_SCHEMES: [&str; 4] = ["s3", "gs", "gcs", "azure"];

impl Parts {
    /// The parts of the address that `scheme` and `://` begin; more may stand before the scheme.
    fn split(scheme: &str, rest: &str) -> Self {
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        let host_end = rest[..end].find('/').unwrap_or(end);
        let (host, path) = (&rest[..host_end], &rest[host_end..end]);
        let found = host.rfind('@');
        // A slash, question mark or number sign in a password ends the host too early. No path
        // follows then, or no port follows the colon.
        let has_no_path = host_end == end && end < rest.len();
        let has_no_port = host.rsplit_once(':').is_some_and(|(_, port)| {
            !port.bytes().all(|byte| byte.is_ascii_digit() || byte == b']')
        });
        // A bucket has neither colon nor port. A server may have one, but an @ in the path behind
        // it may also end a password: better too little is shown of a path than of a password too
        // much.
        let is_bucket = BUCKET_SCHEMES.iter().any(|of_bucket| scheme.ends_with(of_bucket));
        let may_have_user = found.is_some() || (host.contains(':') && !host.starts_with('['));
        let may_go_on = is_bucket || path.contains('@');
        let is_cut =
            has_no_path || (found.is_none() && has_no_port) || (may_have_user && may_go_on);
        let guessed = rest.rfind('@').filter(|_| is_cut && rest.rfind('@') != found);
        let user = guessed.or(found).map(|at| 0..at);
        let start = user.as_ref().map_or(0, |user| user.end + 1);
        // The mark may also stand in a query, and more of the query after it.
        let ends: &[char] = if guessed.is_some() { &['?', '#', '&', '='] } else { &['?', '#'] };
        let end = rest[start..].find(ends).map_or(rest.len(), |idx| start + idx);
        let query = (end < rest.len()).then(|| end + 1..rest.len());
        Self { user, plain: start..end, query }
    }
}

/// Cuts `text` to scheme, host and path, if it is a URI. Everything after the scheme belongs to the
/// address, including quotes and spaces, which a password or a query may contain.
pub(super) fn one_without_credentials(text: &str) -> String {
    let (mut kept, mut left) = (String::with_capacity(text.len()), text);
    // A path or a note may contain another address.
    while let Some(start) = left.find("://") {
        let (before, rest) = left.split_at(start + 3);
        kept.push_str(before);
        left = &rest[Parts::split(&before[..start], rest).plain];
    }
    kept.push_str(left);
    kept
}

/// Cuts each URI in a message to scheme, host and path. Quotes and blanks end a URI, so credentials
/// that contain them are not removed in full; [`super::Secrets`] hides those of a job.
pub fn without_credentials(text: &str) -> String {
    let (mut kept, mut left) = (String::with_capacity(text.len()), text);
    while let Some(start) = left.find("://") {
        let (before, rest) = left.split_at(start + 3);
        let end = rest.find(ends_address).unwrap_or(rest.len());
        // Punctuation at the end belongs to the message, not to the address.
        let address = rest[..end].trim_end_matches([':', ',', ';', '.', ')', ']', '}']);
        kept.push_str(before);
        kept.push_str(&address[Parts::split(&before[..start], address).plain]);
        left = &rest[address.len()..];
    }
    kept.push_str(left);
    kept
}

fn ends_address(c: char) -> bool {
    c.is_whitespace() || c.is_control() || ['"', '\'', '`', '<', '>'].contains(&c)
}

/// Secrets in an address: whole and in parts, as written and percent-decoded.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Credentials {
    pub(super) users: Vec<String>,
    /// Queries and their values, some of which are not secret.
    pub(super) queries: Vec<String>,
}

impl Credentials {
    /// Finds the credentials in the address `text`; none if it is not a URI.
    pub(super) fn find(text: &str) -> Self {
        let (mut users, mut queries) = (Vec::new(), Vec::new());
        let mut left = text;
        while let Some((scheme, rest)) = left.split_once("://") {
            let parts = Parts::split(scheme, rest);
            if let Some(user) = parts.user {
                let user = &rest[user];
                users.push(user);
                users.extend(user.splitn(2, ':'));
                users.extend(user.split(':'));
            }
            if let Some(query) = parts.query {
                let query = &rest[query];
                queries.push(query);
                let value = |pair: &'_ str| pair.find('=').map_or(0, |idx| idx + 1);
                queries.extend(query.split(['&', '#']).map(|pair| &pair[value(pair)..]));
            }
            left = &rest[parts.plain];
        }
        let both = |words: Vec<&str>| {
            words.into_iter().flat_map(|word| [word.to_owned(), decoded(word)]).collect()
        };
        Self { users: both(users), queries: both(queries) }
    }
}

/// Decodes percent escapes: `%41` becomes `A`.
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
        prints("s3://bucket/a@b/c", "s3://bucket/a@b/c");
        prints("s3://ada:pw@bucket/a=b/c", "s3://bucket/a=b/c");
        prints("https://ada@host:9000/x?sig=a/b@c#d", "https://host:9000/x");
        prints("s3://ada:p/w?d@bucket/x", "s3://bucket/x");
        prints("http://[::1]:9000/a@b", "http://[::1]:9000/a@b");
        prints("file:///a b/x?sig=y z", "file:///a b/x");
        prints("s3://ada:hunter'22@bucket/x", "s3://bucket/x");
        prints("s3://ada:p`w\"<1> 2@bucket/x?sig='a b", "s3://bucket/x");
        prints("see http://x/y and s3://a:b'c@d/e", "see http://x/y and s3://d/e");
        prints("a/b?c@d:e", "a/b?c@d:e");
        for secret in ["1 2", "1@2", "1#2", "1?2", "1%2", "1:2", "é 2", "1 2#3@4:5%"] {
            prints(&format!("s3://ada:{secret}@bucket/x"), "s3://bucket/x");
            prints(&format!("http://ada:{secret}@host:80/x?y"), "http://host:80/x");
        }
        prints("", "");
    }

    #[test]
    fn a_password_of_any_punctuation_is_hidden() {
        let all = (b'!'..=b'~').map(char::from);
        for mark in all.filter(char::is_ascii_punctuation) {
            for password in ["{}", "1{}2", "a{}{}1{}b", "{}1", "1{}"] {
                let password = password.replace("{}", &mark.to_string());
                for scheme in BUCKET_SCHEMES {
                    for user in ["ada", "ada.b", "1", ""] {
                        let login = format!("{scheme}://{user}:{password}");
                        prints(&format!("{login}@bucket/x/y"), &format!("{scheme}://bucket/x/y"));
                        prints(&format!("{login}@bucket"), &format!("{scheme}://bucket"));
                    }
                }
                let login = format!("https://ada:{password}");
                prints(&format!("{login}@host:80/x/y?z"), "https://host:80/x/y");
                prints(&format!("{login}@host.org/x"), "https://host.org/x");
            }
        }
        // Any two marks before a bucket.
        for (first, second) in [('@', '/'), ('/', '@'), ('/', '?'), ('?', '/'), ('#', '@')] {
            prints(&format!("s3://ada:1{first}abc{second}2@bucket/x"), "s3://bucket/x");
        }
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
        let Credentials { users, queries } =
            Credentials::find("s3://ada:p%40w@b/x?sig=a%2Fb&ttl=1");
        for expect in ["ada:p%40w", "ada", "p%40w", "p@w"] {
            assert!(users.iter().any(|word| word == expect), "{expect}: {users:?}");
        }
        for expect in ["sig=a%2Fb&ttl=1", "a%2Fb", "a/b"] {
            assert!(queries.iter().any(|word| word == expect), "{expect}: {queries:?}");
        }
        let two = Credentials::find("http://x/y and s3://ada:p'w@b/c?sig='d e");
        assert!(two.users.iter().any(|word| word == "p'w"), "{two:?}");
        assert!(two.queries.iter().any(|word| word == "'d e"), "{two:?}");
        for nothing in ["a?b", "s3://b/x"] {
            assert_eq!(Credentials::find(nothing), Credentials::default());
        }
        assert_eq!(decoded("%4"), "%4");
        assert_eq!(decoded("%é%"), "%é%");
    }
}
