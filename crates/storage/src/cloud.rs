//! The clients of object stores: which store an address means, and how it is asked.
//!
//! TileDB's own clients and these may read the same data side by side. Both must go to the same
//! place in the same way, so both take the same settings, and what the usual AWS variables say of
//! the place is written into the config first ([`complete_s3`]).

#[cfg(feature = "s3")]
mod aws;
#[cfg(feature = "azure")]
mod azure;
#[cfg(feature = "gcs")]
mod gcs;
mod http;
#[cfg(feature = "s3")]
mod s3;
#[cfg(feature = "web")]
mod web;

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;

#[cfg(feature = "s3")]
pub(crate) use self::aws::complete_s3;
use crate::address::{Address, Kind};
use crate::cache::{CacheSpec, CachedStorage, NeverChanges};
use crate::environment::Environment;
use crate::error::Error;
use crate::object::{FORBIDDEN_IS_MISSING, ObjectOptions, ObjectStorage};
use crate::options::{Config, OpenedStorage};
use crate::settings::{Limits, Settings, refused};
use crate::storage::Storage;

/// The cache's folder; without it nothing is cached.
const CACHE_FOLDER: &str = "soma.cache_folder";
/// The most bytes in that folder.
const CACHE_LIMIT: &str = "soma.cache_limit_bytes";
const DEFAULT_CACHE_LIMIT_BYTES: u64 = 32 << 30;

/// The most requests sent in a second.
const MAX_REQUESTS_PER_SEC: &str = "soma.max_requests_per_sec";

/// Opens the objects at an address, without a cache and a limit.
pub(crate) fn open(
    address: &str,
    parsed: &Address<'_>,
    config: &Config,
) -> Result<ObjectStorage, Error> {
    let settings = Settings::new(address, config);
    let prefix = prefix(parsed.key).map_err(|reason| settings.unsupported(reason))?;
    let store = store(parsed, &settings, &Environment::of_process())?;
    let limits = limits(parsed.kind, &settings)?;
    let mut asking = ObjectOptions {
        list_tries: usize::try_from(limits.tries).unwrap_or(usize::MAX),
        retry_limit: limits.retry_limit,
        forbidden_is_missing: settings.truth(FORBIDDEN_IS_MISSING)?.unwrap_or(false),
        ..ObjectOptions::default()
    };
    if let Some(most) = settings.number(max_requests(parsed.kind))? {
        asking.max_requests = most as usize;
    }
    if let Some(most) = settings.number(MAX_REQUESTS_PER_SEC)? {
        asking.max_requests_per_sec = u32::try_from(most).unwrap_or(u32::MAX);
    }
    ObjectStorage::new(store, prefix, address, asking)
        .map_err(|source| settings.client_error(source))
}

fn store(
    address: &Address<'_>,
    settings: &Settings<'_>,
    environment: &Environment,
) -> Result<Arc<dyn ObjectStore>, Error> {
    match address.kind {
        #[cfg(feature = "s3")]
        Kind::S3 => Ok(Arc::new(s3::store(address, settings, environment)?)),
        #[cfg(feature = "gcs")]
        Kind::Gcs => Ok(Arc::new(gcs::store(address, settings, environment)?)),
        #[cfg(feature = "azure")]
        Kind::Azure => Ok(Arc::new(azure::store(address, settings, environment)?)),
        #[cfg(feature = "web")]
        Kind::Web => Ok(Arc::new(web::store(address, settings)?)),
        #[cfg(not(all(feature = "s3", feature = "gcs", feature = "azure", feature = "web")))]
        kind => {
            kind.check_built(settings.address())?;
            let _ = environment;
            Err(settings.unsupported("it has no client".to_owned()))
        }
    }
}

/// The bounds on tries and times of requests to a store.
fn limits(kind: Kind, settings: &Settings<'_>) -> Result<Limits, Error> {
    match kind {
        #[cfg(feature = "s3")]
        Kind::S3 => s3::limits(settings),
        #[cfg(feature = "gcs")]
        Kind::Gcs => gcs::limits(settings),
        #[cfg(feature = "azure")]
        Kind::Azure => azure::limits(settings),
        Kind::Web => Limits::from_settings(settings),
        // Such a store has no client.
        #[cfg(not(all(feature = "s3", feature = "gcs", feature = "azure")))]
        _ => Limits::from_settings(settings),
    }
}

/// The parameter for the number of requests that may be under way.
fn max_requests(kind: Kind) -> &'static str {
    match kind {
        Kind::S3 => "vfs.s3.max_parallel_ops",
        Kind::Gcs => "vfs.gcs.max_parallel_ops",
        Kind::Azure => "vfs.azure.max_parallel_ops",
        Kind::Web => "soma.http.max_parallel_ops",
    }
}

/// The prefix of the objects, or why it is not one. A store may have objects below keys like
/// `a//b` and `a/../b`; the crate `object_store` has no such paths.
fn prefix(key: &str) -> Result<Path, String> {
    // `Path::parse` would pass over a slash at the beginning, and read another key.
    let parsed = match key.strip_prefix('/') {
        Some(_) => Err("it begins with a slash".to_owned()),
        None => Path::parse(key).map_err(|error| error.to_string()),
    };
    parsed.map_err(|problem| format!("the key {key:?} is not supported: {problem}"))
}

/// `storage`, which is at `address`, behind a cache if the config names a folder for one.
pub(crate) fn cached(
    storage: Arc<dyn Storage>,
    address: &str,
    config: &Config,
    never_changes: Option<NeverChanges>,
) -> Result<OpenedStorage, Error> {
    let settings = Settings::new(address, config);
    let Some(folder) = settings.text(CACHE_FOLDER) else {
        if settings.text(CACHE_LIMIT).is_some() {
            return Err(refused(CACHE_LIMIT, "there is no soma.cache_folder that it could limit"));
        }
        return Ok(OpenedStorage { storage, cache: None });
    };
    let Some(never_changes) = never_changes else {
        return Err(refused(CACHE_FOLDER, "any file of this data may change, so none can be kept"));
    };
    let limit = settings.number(CACHE_LIMIT)?.unwrap_or(DEFAULT_CACHE_LIMIT_BYTES);
    let spec = CacheSpec::new(folder, limit);
    let cached = CachedStorage::new(storage, &spec, never_changes).map_err(|source| {
        let address = settings.address().to_owned();
        Error::Cache { folder: folder.to_owned(), address, source }
    })?;
    let cached = Arc::new(cached);
    Ok(OpenedStorage { storage: Arc::<CachedStorage>::clone(&cached), cache: Some(cached) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::OpenOptions;

    fn opened(address: &str, options: &OpenOptions<'_>) -> Result<OpenedStorage, Error> {
        crate::open(address, options)
    }

    #[cfg(all(feature = "gcs", feature = "azure"))]
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

    /// Reads four bytes of a file below `address` from a server that answers any request with
    /// them, and returns the request.
    #[cfg(all(feature = "gcs", feature = "azure"))]
    fn asked(address: &str, parameters: &[(&str, &str)]) -> String {
        use std::io::{Read as _, Write as _};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
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
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), value.replace("URL", &url));
        let config: Config = parameters.iter().map(owned).collect();
        let storage = opened(address, &OpenOptions::new(&config)).unwrap().storage;
        let mut bytes = [0; 4];
        let piece = crate::storage::Piece { file: "d0.tdb", range: 8..12 };
        storage.read(&[piece], &mut bytes).unwrap();
        let sent = storage.request_counts().map(|counts| counts.sent);
        assert_eq!((&bytes, sent), (b"abcd", Some(1)));
        server.join().unwrap()
    }

    #[cfg(feature = "s3")]
    #[test]
    fn keys_that_are_no_paths_are_not_supported() {
        let config = Config::new();
        for key in ["/x", "x//y", "x/./y", "../x", "x/..", "x/\u{7}"] {
            match opened(&format!("s3://b/{key}"), &OpenOptions::new(&config)) {
                Err(Error::Unsupported { reason, .. }) => {
                    assert!(reason.contains(&format!("{key:?}")), "{reason}");
                }
                other => panic!("{key}: {other:?}"),
            }
        }
    }

    #[test]
    fn keys_may_have_any_characters() {
        for key in ["", "x", "x/y", "x/y//", ".x/..y", "x y/%2F"] {
            prefix(key.trim_end_matches('/')).unwrap();
        }
    }

    #[cfg(feature = "s3")]
    #[test]
    fn a_cache_needs_files_that_never_change() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::from([
            (CACHE_FOLDER.to_owned(), folder.path().display().to_string()),
            ("vfs.s3.no_sign_request".to_owned(), "true".to_owned()),
        ]);
        let error = opened("s3://b/x", &OpenOptions::new(&config)).unwrap_err().to_string();
        assert!(error.contains(CACHE_FOLDER) && error.contains("may change"), "{error}");
        let options = OpenOptions { never_changes: Some(|_| true), ..OpenOptions::new(&config) };
        assert!(opened("s3://b/x", &options).unwrap().cache.is_some());
    }
}
