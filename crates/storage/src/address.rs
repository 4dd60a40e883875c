//! Addresses: local paths, and places in object stores.

use std::path::Path;

use crate::error::Error;

/// The local path that `address` is or names by `file://`; `None` if it has another scheme.
pub fn local_path(address: &str) -> Option<&Path> {
    let path = address.strip_prefix("file://").unwrap_or(address);
    (!path.contains("://")).then(|| Path::new(path))
}

/// The address of the folder with the file at an address, and the file's name.
pub fn split_file(address: &str) -> (&str, &str) {
    let address = address.trim_end_matches('/');
    let local = local_path(address).and_then(Path::to_str);
    match local.unwrap_or(address).rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(split) => split,
        None => (".", local.unwrap_or(address)),
    }
}

/// The kinds of object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    S3,
    Gcs,
    Azure,
    /// A server of files.
    Web,
}

/// An address in an object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    pub(crate) kind: Kind,
    /// The bucket; Azure's container; a server's name with scheme and port.
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
}

impl<'a> Address<'a> {
    /// Parses an address of an object store; `None` for any other.
    pub(crate) fn parse(address: &'a str) -> Result<Option<Self>, Error> {
        let Some((scheme, rest)) = address.split_once("://") else { return Ok(None) };
        let kind = match scheme {
            "s3" => Kind::S3,
            "gs" | "gcs" => Kind::Gcs,
            "azure" => Kind::Azure,
            "http" | "https" => Kind::Web,
            _ => return Ok(None),
        };
        let (mut bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            let what = if kind == Kind::Web { "server" } else { "bucket" };
            return Err(Error::Address {
                address: address.to_owned(),
                problem: format!("it names no {what}; write {scheme}://{what}/path/of/data"),
            });
        }
        if kind != Kind::Web && bucket.contains([':', '@']) {
            return Err(Error::Address {
                // What stands there may be a password.
                address: format!("{scheme}://***"),
                problem: "the name of a bucket has no `:` and no `@`: give keys in the \
                          environment or by the settings of the store, not in the address"
                    .to_owned(),
            });
        }
        if kind == Kind::Web {
            bucket = &address[..scheme.len() + "://".len() + bucket.len()];
        }
        Ok(Some(Self { kind, bucket, key: key.trim_end_matches('/') }))
    }
}

impl Kind {
    /// The Cargo feature of the store's client, and whether it was compiled.
    pub(crate) fn feature(self) -> (&'static str, bool) {
        match self {
            Self::S3 => ("s3", cfg!(feature = "s3")),
            Self::Gcs => ("gcs", cfg!(feature = "gcs")),
            Self::Azure => ("azure", cfg!(feature = "azure")),
            Self::Web => ("web", cfg!(feature = "web")),
        }
    }

    /// Fails if the store's client was not compiled.
    pub(crate) fn check_built(self, address: &str) -> Result<(), Error> {
        match self.feature() {
            (_, true) => Ok(()),
            (feature, false) => Err(Error::NotBuilt { address: address.to_owned(), feature }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_kind_a_bucket_and_a_key() {
        let parsed = |address| Address::parse(address).unwrap();
        let address = |kind, bucket, key| Some(Address { kind, bucket, key });
        assert_eq!(parsed("s3://b/x/y"), address(Kind::S3, "b", "x/y"));
        assert_eq!(parsed("gs://b/x//"), address(Kind::Gcs, "b", "x"));
        assert_eq!(parsed("gcs://b/x"), address(Kind::Gcs, "b", "x"));
        assert_eq!(parsed("azure://container"), address(Kind::Azure, "container", ""));
        let server = "https://host:81";
        assert_eq!(parsed("https://host:81/x/y"), address(Kind::Web, server, "x/y"));
        assert_eq!(parsed("s3://b//x/"), address(Kind::S3, "b", "/x"), "another key than x");
        for local in ["/x/y", "x", "file:///x", "mem://x", "tiledb://a/b"] {
            assert_eq!(parsed(local), None, "{local}");
        }
        let error = Address::parse("http:///x").unwrap_err().to_string();
        assert!(error.contains("http://server/path"), "{error}");
        for nameless in ["s3://", "s3:///x"] {
            let error = Address::parse(nameless).unwrap_err().to_string();
            assert!(error.contains(nameless) && error.contains("s3://bucket/path"), "{error}");
        }
    }

    #[test]
    fn a_password_is_no_bucket() {
        let marks = (b'!'..=b'~').map(char::from).filter(char::is_ascii_punctuation);
        for (mark, scheme) in marks.flat_map(|mark| ["s3", "gs", "azure"].map(|of| (mark, of))) {
            for login in [format!("ada:1{mark}2"), format!("ada:{mark}2"), format!("1:2{mark}")] {
                let error = Address::parse(&format!("{scheme}://{login}@bucket/x")).unwrap_err();
                let error = error.to_string();
                assert!(!error.contains("ada") && !error.contains('2'), "{error}");
                assert!(error.contains("in the environment"), "{error}");
            }
        }
    }

    #[test]
    fn paths_are_local_with_and_without_a_scheme() {
        for (address, path) in [
            ("/x/y", Some("/x/y")),
            ("x", Some("x")),
            ("file:///x y/", Some("/x y/")),
            ("file://x", Some("x")),
            ("", Some("")),
            ("s3://b/x", None),
            ("mem://x", None),
            ("file://s3://b", None),
        ] {
            assert_eq!(local_path(address), path.map(Path::new), "{address}");
        }
    }

    #[test]
    fn a_client_that_was_not_compiled_is_named_by_its_feature() {
        for (address, kind, name) in [
            ("s3://b/x", Kind::S3, "s3"),
            ("gs://b/x", Kind::Gcs, "gcs"),
            ("azure://b/x", Kind::Azure, "azure"),
            ("http://b/x", Kind::Web, "web"),
        ] {
            let (feature, is_built) = kind.feature();
            assert_eq!(feature, name);
            match kind.check_built(address) {
                Ok(()) => assert!(is_built),
                Err(error) => {
                    assert!(!is_built);
                    let error = error.to_string();
                    assert!(error.contains(address), "{error}");
                    assert!(error.contains(&format!("feature `{name}`")), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_file_lies_in_a_folder() {
        for (address, folder, name) in [
            ("x.zip", ".", "x.zip"),
            ("/x.zip", "/", "x.zip"),
            ("a/x.zip/", "a", "x.zip"),
            ("file:///x.zip", "/", "x.zip"),
            ("file://x.zip", ".", "x.zip"),
            ("s3://b/x.zip", "s3://b", "x.zip"),
            ("https://host:81/a/x.zip", "https://host:81/a", "x.zip"),
        ] {
            assert_eq!(split_file(address), (folder, name), "{address}");
        }
    }
}
