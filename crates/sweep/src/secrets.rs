//! Keeps credentials out of what is recorded, printed and drawn.
//!
//! - An [`Address`] prints without user info and query; the whole of it is for opening alone.
//! - Of TileDB's parameters those of an allow-list keep their values ([`recorded`]).
//! - Messages of others (libtiledb, Python, the system) are searched for what a job keeps secret
//!   ([`Secrets::hide`]).
//!
//! Other processes get all of it on stdin, never as arguments, which any user of the machine sees.

mod address;
mod settings;

use std::collections::BTreeMap;
use std::ffi::OsString;

pub(crate) use address::{Address, without_credentials};
pub(crate) use settings::{command_words, noted, recorded};

use crate::job::Data;

/// In place of what is left out.
pub(crate) const HIDDEN: &str = "***";

/// Shorter words turn up in messages by chance; no credential is as short.
const LEAST_LENGTH: usize = 6;

/// What must not turn up in a message.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    /// The longest first, so that none is hidden in part.
    words: Vec<String>,
}

impl Secrets {
    /// What the data's address and settings keep secret.
    pub(crate) fn of(data: &Data) -> Self {
        let settings = data.config.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        Self::new([data.uri.full()], settings)
    }

    /// What a command line keeps secret.
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
        let mut words: Vec<String> = addresses.into_iter().flat_map(address::credentials).collect();
        for (key, value) in settings {
            if settings::is_recorded(key) {
                words.extend(address::credentials(value));
            } else if !["true", "false"].contains(&value) {
                words.push(value.to_owned());
            }
        }
        words.retain(|word| LEAST_LENGTH <= word.len());
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        words.dedup();
        Self { words }
    }

    /// `text` without them, and without the credentials of any address in it.
    pub(crate) fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for word in &self.words {
            if text.contains(word) {
                text = text.replace(word, HIDDEN);
            }
        }
        without_credentials(&text)
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
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
