//! Opening a storage by its address, with settings that have TileDB's names.

use crate::address::Address;
use crate::client::Client;
use crate::environment::Environment;
use crate::error::Error;
use crate::options::{Config, OpenOptions, OpenedStorage};
use crate::profile;

/// Opens the files at `address`: a local path, `file://`, or an address in an object store. Sends
/// no request yet. If the address ends with `.zip`, these are the entries of the Zip archive there.
///
/// Settings of an object store come from [`OpenOptions::config`], by the names that TileDB gives
/// them, so that libtiledb and this crate can be given the same ones.
///
/// | parameter | meaning | default |
/// |---|---|---|
/// | `vfs.s3.region` | region | `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's `region`, us-east-1 |
/// | `vfs.s3.endpoint_override`, `vfs.s3.scheme` | server | `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, the profile's `endpoint_url`, Amazon's |
/// | `vfs.s3.use_virtual_addressing` | bucket's name in the host's; never for an IP address | true |
/// | `vfs.s3.no_sign_request` | send requests unsigned | false |
/// | `vfs.s3.aws_access_key_id`, `aws_secret_access_key`, `aws_session_token` | credentials | `AWS_ACCESS_KEY_ID` and so on, the profile's keys, a web identity, the container's or the machine's role |
/// | `vfs.s3.requester_pays`, `vfs.s3.proxy_*`, `vfs.s3.ca_file` (`ssl.ca_file`) | as in TileDB | no, none, the system's roots |
/// | `vfs.s3.connect_timeout_ms` | time for a connection | 10,800 |
/// | `vfs.s3.request_timeout_ms` | time without a byte arriving | 10,000 (libtiledb: 3,000) |
/// | `vfs.s3.connect_max_tries` | tries of one request | 8 (libtiledb: 3) |
/// | `vfs.s3.max_parallel_ops` | most requests at once; how many there are follows from the latency and rates that were measured | 256 (libtiledb: the machine's threads) |
/// | `soma.max_requests_per_sec` | most requests sent in a second | 5,500 |
/// | `soma.retry_limit_ms` | no try begins later than this after the first | 60,000 |
/// | `soma.request_limit_ms` | time of one try, until its last byte; one asks for 8 MiB at most | 120,000 |
/// | `soma.forbidden_is_missing` | the answer 403 for an object means that there is none, as buckets that may not be listed answer; without it 403 is an error | false |
/// | `soma.cache_folder` | folder of this machine that keeps what was read, for later reads and processes | nothing is kept |
/// | `soma.cache_limit_bytes` | most bytes in that folder | 34,359,738,368 (32 GiB) |
///
/// A request is tried again after a connection that fails or ends early, after no answer in time,
/// and after the answers 408, 429 and 5xx, with pauses that grow from 0.1 s to 15 s. libtiledb
/// 2.30 differs: it tries a request that S3 answers with `SlowDown` a hundred times, 1.5 s apart,
/// whatever the config has, and does not notice that an object is replaced while it reads.
///
/// `gs://` and `gcs://`: `vfs.gcs.endpoint` (then unsigned, as in libtiledb),
/// `vfs.gcs.service_account_key`, `vfs.gcs.max_parallel_ops`, and `vfs.gcs.request_timeout_ms` as
/// the time after which no try begins. Without a key, credentials come from
/// `GOOGLE_APPLICATION_CREDENTIALS` or gcloud's own file.
///
/// `azure://`: `vfs.azure.storage_account_name`, `storage_account_key`, `storage_sas_token` and
/// `blob_endpoint` (or `AZURE_STORAGE_ACCOUNT`, `AZURE_STORAGE_KEY`, `AZURE_STORAGE_SAS_TOKEN`,
/// `AZURE_BLOB_ENDPOINT`), `vfs.azure.max_retries`, `vfs.azure.max_parallel_ops`.
///
/// # Errors
/// [`Error::NotBuilt`] if the store's Cargo feature is off; [`Error::Unsupported`] for other
/// schemes and for settings that only libtiledb's clients understand, such as assuming a role by
/// its name; [`Error::Address`], [`Error::Parameter`], [`Error::Cache`] and [`Error::Client`] for
/// what cannot be used.
pub fn open(address: &str, options: &OpenOptions<'_>) -> Result<OpenedStorage, Error> {
    let client = Client::open(address, options.config)?;
    client.storage("", options.read_limit.as_ref(), options.never_changes)
}

/// `config` with the region and endpoint that the environment gives for `address`, if it is an
/// address of S3. Another client of the same data, given this config, goes to the same place.
///
/// # Errors
/// [`Error::NotBuilt`] if the store's Cargo feature is off; [`Error::Address`] if the address
/// names no bucket.
pub fn complete_config(address: &str, config: &Config) -> Result<Config, Error> {
    let Some(parsed) = Address::parse(address)? else { return Ok(config.clone()) };
    parsed.kind.check_built(address)?;
    #[cfg(feature = "s3")]
    if parsed.kind == crate::address::Kind::S3 {
        return Ok(crate::cloud::complete_s3(config, &Environment::of_process()));
    }
    Ok(config.clone())
}

/// Values of the environment and of the AWS profile that sign requests to object stores.
///
/// Stores repeat key ids and tokens in the bodies of their errors, which clients print. A program
/// that keeps messages can search them for these.
#[must_use]
pub fn environment_secrets() -> Vec<String> {
    let environment = Environment::of_process();
    let mut secrets = environment.secrets();
    secrets.extend(profile::secrets(&environment));
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_schemes_have_no_client() {
        let config = Config::new();
        for address in ["mem://x", "tiledb://a/b"] {
            let error = open(address, &OpenOptions::new(&config)).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
            assert!(error.to_string().contains(address), "{error}");
        }
    }

    #[test]
    fn stores_without_their_feature_are_an_error() {
        let config = Config::new();
        for (address, is_built) in [
            ("s3://b/x", cfg!(feature = "s3")),
            ("gs://b/x", cfg!(feature = "gcs")),
            ("azure://b/x", cfg!(feature = "azure")),
        ] {
            for error in [
                open(address, &OpenOptions::new(&config)).err(),
                complete_config(address, &config).err(),
            ] {
                assert_eq!(matches!(error, Some(Error::NotBuilt { .. })), !is_built, "{address}");
            }
        }
    }
}
