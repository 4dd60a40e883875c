//! Google Cloud Storage.

use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};

use super::http::Http;
use crate::address::Address;
use crate::environment::Environment;
use crate::error::Error;
use crate::settings::{Limits, Settings};

/// The bounds on tries and times of requests.
pub(super) fn limits(settings: &Settings<'_>) -> Result<Limits, Error> {
    let mut limits = Limits::from_settings(settings)?;
    settings.put(&mut limits.retry_limit, "vfs.gcs.request_timeout_ms")?;
    Ok(limits)
}

/// The store of an address.
pub(super) fn store(
    address: &Address<'_>,
    settings: &Settings<'_>,
    environment: &Environment,
) -> Result<GoogleCloudStorage, Error> {
    for name in ["vfs.gcs.workload_identity_configuration", "vfs.gcs.impersonate_service_account"] {
        if settings.text(name).is_some() {
            return Err(settings.unknown(name));
        }
    }
    let endpoint = settings.text("vfs.gcs.endpoint");
    let limits = limits(settings)?;
    let is_tls = endpoint.is_none_or(|endpoint| !endpoint.starts_with("http:"));
    let http = Http::new(limits, None, settings.text("ssl.ca_file"), is_tls)
        .map_err(|error| settings.client_error(error))?;
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(address.bucket)
        .with_retry(limits.retry())
        .with_client_options(http.options())
        .with_http_connector(http);
    if let Some(key) = settings.text("vfs.gcs.service_account_key") {
        builder = builder.with_service_account_key(key);
    } else if let Some(file) = environment.get("GOOGLE_APPLICATION_CREDENTIALS") {
        builder = builder.with_application_credentials(file);
    }
    if let Some(endpoint) = endpoint {
        let url = if endpoint.contains("://") {
            endpoint.to_owned()
        } else {
            format!("https://{endpoint}")
        };
        let is_signed = settings.text("vfs.gcs.service_account_key").is_some();
        builder = builder.with_base_url(url.trim_end_matches('/')).with_skip_signature(!is_signed);
    }
    builder.build().map_err(|error| settings.client_error(error))
}
