//! Keeps credentials out of what is recorded, printed and drawn.
//!
//! - An [`Address`] prints without user info and query; the whole of it is for opening alone.
//! - Of TileDB's parameters those of an allow-list keep their values ([`recorded`]).
//! - Messages of others (libtiledb, Python, the system) are searched for what a job and the
//!   environment keep secret, and for who signed a request that a store refused
//!   ([`Secrets::hide`]).
//!
//! Other processes get all of it on stdin, never as arguments, which any user of the machine sees.

mod address;
mod settings;
mod store_errors;

use std::collections::BTreeMap;
use std::ffi::OsString;

use soma_io::environment_secrets;

use address::Credentials;
pub(crate) use address::{Address, without_credentials};
pub(crate) use settings::{command_words, first_hidden, noted, recorded};

use crate::job::Data;

/// In place of what is left out.
pub(crate) const HIDDEN: &str = "***";

/// Shorter values turn up in messages by chance. Values that are only possibly secret are not
/// hidden if they are shorter; those that surely are one, if they stand by themselves.
const LEAST_LENGTH: usize = 6;

/// What must not turn up in a message.
#[derive(Clone)]
pub(crate) struct Secrets {
    /// The longest first, so that none is hidden in part.
    words: Vec<String>,
}

impl Secrets {
    /// What the environment keeps secret: who signs requests to an object store. The store's
    /// error messages repeat keys' ids and tokens.
    pub(crate) fn of_environment() -> Self {
        Self::new([], [])
    }

    /// What the data's address and settings, and the environment, keep secret.
    pub(crate) fn of(data: &Data) -> Self {
        let settings = data.config.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        Self::new([data.uri.full()], settings)
    }

    /// What a command line and the environment keep secret.
    pub(crate) fn of_arguments(arguments: &[OsString]) -> Self {
        let words: Vec<String> =
            arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let settings = settings::of_words(&words);
        Self::new(words.iter().map(String::as_str), settings)
    }

    fn new<'a>(
        addresses: impl IntoIterator<Item = &'a str>,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        Self::with(addresses, settings, environment_secrets())
    }

    /// `words` are surely secret.
    fn with<'a>(
        addresses: impl IntoIterator<Item = &'a str>,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
        mut words: Vec<String>,
    ) -> Self {
        let mut possible = Vec::new();
        let mut found: Vec<_> = addresses.into_iter().map(Credentials::of).collect();
        for (key, value) in settings {
            if settings::is_recorded(key) {
                found.push(Credentials::of(value));
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
        // As Rust and others quote them.
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

    /// `text` without them, and without the credentials of any address and of any store's error in
    /// it.
    pub(crate) fn hide(&self, text: &str) -> String {
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

/// `text` without `word` where no letter or digit touches it: a short one is part of many words.
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

/// The data as records and digests may know it. Another key to the same data is no other data.
pub(crate) fn of_record(data: &Data) -> Data {
    let recorded = |(key, value): (&String, &String)| (key.clone(), recorded(key, value));
    let config: BTreeMap<String, String> = data.config.iter().map(recorded).collect();
    Data { uri: Address::from(data.uri.to_string()), config, ..data.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Data {
        let config = [
            ("sm.encryption_key", "0123456789abcdef"),
            ("vfs.s3.custom_headers.x-tenant", "tenant-of-lab"),
            ("vfs.s3.endpoint_override", "http://ada:hunter22@minio:9000"),
            ("soma.init_buffer_bytes", "1000000"),
            ("other.flag", "true"),
        ];
        Data {
            uri: "s3://ada:pass%20word@bucket/x?X-Amz-Signature=00ff00ff00ff".into(),
            config: config.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            ..Data::default()
        }
    }

    #[test]
    fn no_message_has_a_secret_of_its_job() {
        let secrets = Secrets::of(&data());
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
        // An empty value is no word.
        assert_eq!(Secrets::with([], [("rest.token", "")], Vec::new()).hide("ab"), "ab");
    }

    #[test]
    fn a_record_of_the_data_has_no_secret() {
        let recorded = of_record(&data());
        let text = serde_json::to_string(&recorded).unwrap();
        for secret in ["0123456789", "tenant-of", "hunter22", "pass", "00ff", "ada"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert_eq!(recorded.uri.full(), "s3://bucket/x");
        assert_eq!(recorded.config["vfs.s3.endpoint_override"], "http://minio:9000");
        assert_eq!(recorded.config["soma.init_buffer_bytes"], "1000000");
        assert_eq!(recorded.config["sm.encryption_key"], HIDDEN);
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
        assert_eq!(Secrets::of_arguments(&arguments).hide(text), "*** *** *** ***");
        assert!(!format!("{:?}", Secrets::of_arguments(&arguments)).contains("ghijkl"));
    }
}
