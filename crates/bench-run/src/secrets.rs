//! Keeps credentials out of records, messages and charts.
//!
//! - An [`Address`] prints without user info and query; its full text is only for opening the data.
//! - TileDB's parameters on an allow-list keep their values; others are hidden ([`recorded`]).
//! - Messages of libtiledb, Python and the system lose the secrets of the order and the
//!   environment, and the signer of a request that a store refused ([`Secrets::hide`]).
//!
//! Other processes receive credentials on stdin, never as arguments, which any user of the machine
//! can read.

mod address;
mod settings;
mod store_errors;

use std::collections::BTreeMap;
use std::ffi::OsString;

use address::Credentials;
pub use address::{Address, without_credentials};
pub(crate) use settings::{command_words, noted};
pub use settings::{first_hidden, recorded};

/// Replaces a secret in a text.
pub const HIDDEN: &str = "***";

/// Least length in bytes of a word that is hidden everywhere. Shorter words occur in messages by
/// chance: a known secret is then hidden only if it stands by itself, a possible secret not at all.
const LEAST_LENGTH: usize = 6;

/// Words to hide in messages.
#[derive(Clone)]
pub struct Secrets {
    /// Longest first, so that no word is hidden only in part.
    words: Vec<String>,
}

impl Secrets {
    /// Collects the secrets in an address and in settings; `known` are secrets of the environment.
    /// Ids of keys and tokens count: a store's error messages repeat them.
    pub fn in_task(address: &str, settings: &BTreeMap<String, String>, known: Vec<String>) -> Self {
        Self::in_tasks([(address, settings)], known)
    }

    /// Like [`in_task`](Self::in_task), of several addresses with their settings.
    pub fn in_tasks<'a>(
        tasks: impl IntoIterator<Item = (&'a str, &'a BTreeMap<String, String>)>,
        known: Vec<String>,
    ) -> Self {
        let (addresses, settings): (Vec<_>, Vec<_>) = tasks.into_iter().unzip();
        let settings = settings.into_iter().flatten();
        let settings = settings.map(|(key, value)| (key.as_str(), value.as_str()));
        Self::with(addresses, settings, known)
    }

    /// Collects the secrets of the environment alone.
    pub fn of_environment(known: Vec<String>) -> Self {
        Self::with([], [], known)
    }

    /// Collects the secrets on a command line; `known` are secrets of the environment.
    pub fn of_arguments(arguments: &[OsString], known: Vec<String>) -> Self {
        let words: Vec<String> =
            arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let settings = settings::of_words(&words);
        Self::with(words.iter().map(String::as_str), settings, known)
    }

    /// Collects secrets from addresses and settings. `words` are known secrets.
    fn with<'a>(
        addresses: impl IntoIterator<Item = &'a str>,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
        mut words: Vec<String>,
    ) -> Self {
        let mut possible = Vec::new();
        let mut found: Vec<_> = addresses.into_iter().map(Credentials::find).collect();
        for (key, value) in settings {
            if settings::is_recorded(key) {
                found.push(Credentials::find(value));
            } else if settings::looks_secret(key) {
                words.push(value.to_owned());
            } else {
                possible.push(value.to_owned());
            }
        }
        for credentials in found {
            words.extend(credentials.users);
            possible.extend(credentials.queries);
        }
        words.extend(possible.into_iter().filter(|word| LEAST_LENGTH <= word.len()));
        // Messages may contain the words quoted by Rust or another language.
        let quoted: Vec<String> = words
            .iter()
            .filter_map(|word| {
                let quoted = format!("{word:?}");
                Some(quoted.strip_prefix('"')?.strip_suffix('"')?.to_owned())
            })
            .collect();
        words.extend(quoted);
        words.retain(|word| !["", "true", "false"].contains(&word.as_str()));
        words.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        words.dedup();
        Self { words }
    }

    /// Returns `text` without these secrets, and without the credentials in any address and any
    /// store's error message.
    pub fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for word in &self.words {
            text = if LEAST_LENGTH <= word.len() {
                text.replace(word, HIDDEN)
            } else {
                without_word(&text, word)
            };
        }
        store_errors::without_signers(&without_credentials(&text))
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// Hides `word` in `text` unless a letter or digit touches it: many words contain a short secret.
fn without_word(text: &str, word: &str) -> String {
    let (mut kept, mut start) = (String::with_capacity(text.len()), 0);
    for (idx, found) in text.match_indices(word) {
        let before = text[..idx].chars().next_back();
        let after = text[idx + found.len()..].chars().next();
        if !before.into_iter().chain(after).any(char::is_alphanumeric) {
            kept.push_str(&text[start..idx]);
            kept.push_str(HIDDEN);
            start = idx + found.len();
        }
    }
    kept.push_str(&text[start..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: [(&str, &str); 5] = [
        ("sm.encryption_key", "0123456789abcdef"),
        ("vfs.s3.custom_headers.x-tenant", "tenant-of-lab"),
        ("vfs.s3.endpoint_override", "http://ada:hunter22@minio:9000"),
        ("soma.init_buffer_bytes", "1000000"),
        ("other.flag", "true"),
    ];

    #[test]
    fn no_message_has_a_secret_of_its_order() {
        let config = CONFIG.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let address = "s3://ada:pass%20word@bucket/x?X-Amz-Signature=00ff00ff00ff";
        let secrets = Secrets::in_task(address, &config, Vec::new());
        for (message, expect) in [
            ("cannot decrypt by 0123456789abcdef", "cannot decrypt by ***"),
            ("x-tenant: tenant-of-lab is refused", "x-tenant: *** is refused"),
            ("no host at http://ada:hunter22@minio:9000/b", "no host at http://minio:9000/b"),
            ("login 'pass word' and pass%20word", "login '***' and ***"),
            ("{'X-Amz-Signature': '00ff00ff00ff'}", "{'X-Amz-Signature': '***'}"),
            ("true: 1000000 bytes for rows", "true: 1000000 bytes for rows"),
        ] {
            let hidden = secrets.hide(message);
            let plain = hidden.replace("http://***@", "http://");
            assert_eq!(plain, expect);
        }
    }

    #[test]
    fn a_short_secret_is_hidden_where_it_stands_by_itself() {
        let config = [("rest.password", "pw1"), ("rest.token", "t\u{e9}"), ("vfs.s3.later", "no")];
        let secrets = Secrets::with(["s3://eva:x'y@b/x?ttl=5"], config, vec!["AK9".to_owned()]);
        for (message, expect) in [
            ("password 'pw1' of eva, x'y", "password '***' of ***, ***"),
            ("spw1 evaluates AK99 in 5 s, no", "spw1 evaluates AK99 in 5 s, no"),
            (
                "t\u{e9}: <AWSAccessKeyId>AK9</AWSAccessKeyId>",
                "***: <AWSAccessKeyId>***</AWSAccessKeyId>",
            ),
            ("pw1pw1 pw1", "pw1pw1 ***"),
        ] {
            assert_eq!(secrets.hide(message), expect);
        }
        let quoted = format!("{:?}", "p\"w of x");
        assert_eq!(Secrets::with(["s3://p\"w@b/x"], [], Vec::new()).hide(&quoted), "\"*** of x\"");
        // An empty value is not a word.
        assert_eq!(Secrets::with([], [("rest.token", "")], Vec::new()).hide("ab"), "ab");
    }

    #[test]
    fn a_command_line_is_searched_for_secrets() {
        let words = [
            "sweep",
            "--config",
            "vfs.s3.aws_session_token=abc=def",
            "--config=rest.token=ghijkl",
            "--peer-variable",
            "KEY=mnopqr",
            "s3://user:stuvwx@b/x",
        ];
        let arguments = words.map(OsString::from);
        let text = "abc=def ghijkl mnopqr stuvwx";
        assert_eq!(Secrets::of_arguments(&arguments, Vec::new()).hide(text), "*** *** *** ***");
        assert!(!format!("{:?}", Secrets::of_arguments(&arguments, Vec::new())).contains("ghijkl"));
    }
}
