//! Arrays in an object store: which store an address means, and how it is asked.
//!
//! obs, var and everything of X that the native reader does not know are read by libtiledb, whose own clients know these stores; the
//! native reader asks through the crate `object_store`. Both must go to the same place in the same way, so both are told by the same
//! TileDB config, and what the usual AWS variables say of the place is written into it when an experiment is opened ([`completed`]).
//!
//! | parameter | native reader | without it |
//! |---|---|---|
//! | `vfs.s3.region` | the same | `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's `region`, us-east-1 |
//! | `vfs.s3.endpoint_override`, `vfs.s3.scheme` | the same | `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, the profile's `endpoint_url`, Amazon's |
//! | `vfs.s3.use_virtual_addressing` | the same; a host that is an IP address is never given a bucket's name | true |
//! | `vfs.s3.no_sign_request` | the same | false |
//! | `vfs.s3.aws_access_key_id`, `aws_secret_access_key`, `aws_session_token` | the same | `AWS_ACCESS_KEY_ID` and so on, the profile's keys, a web identity, the container's or the machine's role |
//! | `vfs.s3.requester_pays`, `vfs.s3.proxy_*`, `vfs.s3.ca_file` (`ssl.ca_file`) | the same | no, none, the system's roots |
//! | `vfs.s3.connect_timeout_ms` | for a connection | 10,800 |
//! | `vfs.s3.request_timeout_ms` | without a byte arriving | 10,000 (libtiledb: 3,000) |
//! | `vfs.s3.connect_max_tries` | tries of one request | 8 (libtiledb: 3) |
//! | `vfs.s3.max_parallel_ops` | requests at once | 32 (libtiledb: the machine's threads) |
//! | `soma.retry_limit_ms` | no try begins later than this after the first | 60,000 |
//! | `soma.request_limit_ms` | one try, until its last byte; one asks for 8 MiB at most | 120,000 |
//! | `soma.cache_folder` | a folder of this machine in which what was read of X is kept for later reads and processes | nothing is kept |
//! | `soma.cache_limit_bytes` | the most that the folder may take | 34,359,738,368 (32 GiB) |
//!
//! libtiledb 2.30 tries a request that S3 answers with `SlowDown` a hundred times, 1.5 s apart, whatever the config says. It does not see
//! that an object is replaced while it reads; the native reader does.
//!
//! Tries are made after a connection that fails or ends early, after no answer in time, and after the answers 408, 429 and 5xx,
//! with pauses that grow from 0.1 s to 15 s. The `AWS_*` variables that name credentials are read when X is opened, by libtiledb when
//! it first needs them.
//!
//! For `gs://` and `gcs://`: `vfs.gcs.endpoint` (then unsigned, as libtiledb does), `vfs.gcs.service_account_key`,
//! `vfs.gcs.max_parallel_ops`, `vfs.gcs.request_timeout_ms` as the time after which no try begins; credentials else from
//! `GOOGLE_APPLICATION_CREDENTIALS` or gcloud's own file. For `azure://`: `vfs.azure.storage_account_name`, `storage_account_key`,
//! `storage_sas_token`, `blob_endpoint` (or `AZURE_STORAGE_ACCOUNT`, `AZURE_STORAGE_KEY`, `AZURE_STORAGE_SAS_TOKEN`,
//! `AZURE_BLOB_ENDPOINT`), `vfs.azure.max_retries`, `vfs.azure.max_parallel_ops`. What only libtiledb can do, as assuming a role by its
//! name, is a reason for it to read ([`NotNative::Unsupported`]).

mod aws;
mod azure;
mod cache;
mod environment;
mod gcs;
mod http;
mod s3;
mod settings;

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use tiledb::Config;
use tiledb_native::{ObjectOptions, ObjectStorage, ReadLimit};

pub use self::cache::CacheUse;
pub(crate) use self::cache::Cached;
use self::environment::Environment;
use self::settings::Settings;
use crate::Error;
use crate::native::{NotNative, held};

/// The kinds of object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    S3,
    Gcs,
    Azure,
}

/// An address in an object store.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address<'a> {
    kind: Kind,
    /// The bucket; Azure's container.
    bucket: &'a str,
    key: &'a str,
}

impl<'a> Address<'a> {
    /// What `uri` means; `None` where it is no address of an object store.
    fn parse(uri: &'a str) -> Result<Option<Self>, Error> {
        let Some((scheme, rest)) = uri.split_once("://") else { return Ok(None) };
        let kind = match scheme {
            "s3" => Kind::S3,
            "gs" | "gcs" => Kind::Gcs,
            "azure" => Kind::Azure,
            _ => return Ok(None),
        };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(Error::Address {
                uri: uri.to_owned(),
                problem: format!("it names no bucket; write {scheme}://bucket/path/of/experiment"),
            });
        }
        Ok(Some(Self { kind, bucket, key: key.trim_end_matches('/') }))
    }
}

/// Values of the environment and of the AWS profile that sign requests to object stores.
///
/// Stores repeat key ids and tokens in the bodies of their errors, which clients print. A program
/// that keeps messages can search them for these.
#[must_use]
pub fn environment_secrets() -> Vec<String> {
    let environment = Environment::of_process();
    let mut secrets = environment.secrets();
    secrets.extend(aws::profile_secrets(&environment));
    secrets
}

/// `config`, and what the environment says of where `uri` is.
pub(crate) fn completed(uri: &str, config: &Config) -> Result<Config, Error> {
    match Address::parse(uri)? {
        Some(Address { kind: Kind::S3, .. }) => {
            Ok(aws::completed(config, &Environment::of_process()))
        }
        _ => Ok(config.clone()),
    }
}

/// The files at an address of an object store; `None` where it is none. What a cache has is not held to `limit`.
pub(crate) fn storage(
    uri: &str,
    config: &Config,
    limit: Option<&Arc<ReadLimit>>,
) -> Result<Option<Cached>, NotNative> {
    let Some(address) = Address::parse(uri)? else { return Ok(None) };
    let prefix = prefix(address.key)?;
    let (settings, environment) = (Settings::new(config), Environment::of_process());
    let (store, max_requests): (Arc<dyn ObjectStore>, _) = match address.kind {
        Kind::S3 => {
            (Arc::new(s3::store(&address, &settings, &environment)?), "vfs.s3.max_parallel_ops")
        }
        Kind::Gcs => {
            (Arc::new(gcs::store(&address, &settings, &environment)?), "vfs.gcs.max_parallel_ops")
        }
        Kind::Azure => (
            Arc::new(azure::store(&address, &settings, &environment)?),
            "vfs.azure.max_parallel_ops",
        ),
    };
    let mut options = ObjectOptions::default();
    if let Some(most) = settings.number(max_requests)? {
        options.max_requests = most as usize;
    }
    let storage = ObjectStorage::new(store, prefix, uri, options)
        .map_err(|source| Error::Client { uri: uri.to_owned(), source: Box::new(source) })?;
    Ok(Some(cache::cached(uri, held(Arc::new(storage), limit), &settings)?))
}

/// The prefix of an array's objects. A store may have objects below keys like `a//b` and `a/../b`,
/// which libtiledb asks for as they are; the crate `object_store` has no such paths.
fn prefix(key: &str) -> Result<Path, NotNative> {
    // `Path::parse` would pass over a slash at the beginning, and read another key.
    let parsed = match key.strip_prefix('/') {
        Some(_) => Err("it begins with a slash".to_owned()),
        None => Path::parse(key).map_err(|error| error.to_string()),
    };
    parsed.map_err(|problem| {
        NotNative::Unsupported(format!("keys like {key:?} are libtiledb's to read: {problem}"))
    })
}

/// A client that could not be made.
fn client_error(address: &Address<'_>, source: object_store::Error) -> NotNative {
    let scheme = match address.kind {
        Kind::S3 => "s3",
        Kind::Gcs => "gs",
        Kind::Azure => "azure",
    };
    let uri = format!("{scheme}://{}/{}", address.bucket, address.key);
    NotNative::Failed(Error::Client { uri, source: Box::new(source) })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use tiledb_native::Piece;

    use super::*;

    /// Reads four bytes of a file of the array at `uri` from a server that gives them to any request, and gives what was asked.
    fn asked(uri: &str, parameters: &[(&str, &str)]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
            while !request.ends_with(b"\r\n\r\n") {
                let n = stream.read(&mut buffer).unwrap();
                assert!(0 < n, "the request ends early");
                request.extend_from_slice(&buffer[..n]);
            }
            let head = "HTTP/1.1 206 Partial Content\r\nContent-Length: 4\r\nContent-Range: bytes 8-11/20\r\n\
                Last-Modified: Sat, 01 Nov 2025 10:00:00 GMT\r\nETag: \"x\"\r\n\r\nabcd";
            stream.write_all(head.as_bytes()).unwrap();
            String::from_utf8(request).unwrap()
        });
        let config = parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.replace("URL", &url)))
            .collect();
        let (storage, _) = storage(uri, &config, None).unwrap().unwrap();
        let mut bytes = [0; 4];
        storage.read(&[Piece { file: "d0.tdb", range: 8..12 }], &mut bytes).unwrap();
        assert_eq!((&bytes, storage.requests()), (b"abcd", Some(1)));
        server.join().unwrap()
    }

    #[test]
    fn google_and_azure_are_asked_for_the_range() {
        let request = asked("gs://bucket/x/array", &[("vfs.gcs.endpoint", "URL")]);
        assert!(request.starts_with("GET /bucket/x%2Farray%2Fd0%2Etdb HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("range: bytes=8-11\r\n"), "{request}");
        assert!(!request.contains("authorization:"), "{request}");
        let azure = [
            ("vfs.azure.blob_endpoint", "URL"),
            ("vfs.azure.storage_account_name", "lab"),
            ("vfs.azure.storage_account_key", "c2VjcmV0"),
        ];
        let request = asked("azure://container/x/array", &azure);
        assert!(request.starts_with("GET /container/x/array/d0.tdb HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("authorization: SharedKey lab:"), "{request}");
    }

    #[test]
    fn keys_that_only_libtiledb_asks_for_are_left_to_it() {
        for key in ["/x", "x//y", "x/./y", "../x", "x/..", "x/\u{7}"] {
            match storage(&format!("s3://b/{key}"), &Config::new(), None) {
                Err(NotNative::Unsupported(reason)) => {
                    assert!(reason.contains(&format!("{key:?}")), "{reason}");
                }
                other => panic!("{key}: {other:?}"),
            }
        }
        for key in ["", "x", "x/y", "x/y//", ".x/..y", "x y/%2F"] {
            prefix(key.trim_end_matches('/')).unwrap();
        }
    }

    #[test]
    fn addresses_have_a_kind_a_bucket_and_a_key() {
        let parsed = |uri| Address::parse(uri).unwrap();
        let address = |kind, bucket, key| Some(Address { kind, bucket, key });
        assert_eq!(parsed("s3://b/x/y"), address(Kind::S3, "b", "x/y"));
        assert_eq!(parsed("gs://b/x//"), address(Kind::Gcs, "b", "x"));
        assert_eq!(parsed("gcs://b/x"), address(Kind::Gcs, "b", "x"));
        assert_eq!(parsed("azure://container"), address(Kind::Azure, "container", ""));
        assert_eq!(parsed("s3://b//x/"), address(Kind::S3, "b", "/x"), "another key than x");
        for local in ["/x/y", "x", "file:///x", "mem://x", "tiledb://a/b"] {
            assert_eq!(parsed(local), None, "{local}");
        }
        for nameless in ["s3://", "s3:///x"] {
            let error = Address::parse(nameless).unwrap_err().to_string();
            assert!(error.contains(nameless) && error.contains("s3://bucket/path"), "{error}");
        }
    }
}
