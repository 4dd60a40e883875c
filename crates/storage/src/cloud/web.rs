//! Servers of files: plain HTTP and HTTPS, read by ranges of bytes.
//!
//! Such a server lists nothing unless it knows WebDAV, so what is read there must know its files by
//! name.

use object_store::http::{HttpBuilder, HttpStore};

use super::http::Http;
use crate::address::Address;
use crate::error::Error;
use crate::settings::{Limits, Settings};

/// The server of an address.
pub(super) fn store(address: &Address<'_>, settings: &Settings<'_>) -> Result<HttpStore, Error> {
    let limits = Limits::from_settings(settings)?;
    let is_tls = address.bucket.starts_with("https:");
    let http = Http::new(limits, None, settings.text("ssl.ca_file"), is_tls)
        .map_err(|error| settings.client_error(error))?;
    HttpBuilder::new()
        .with_url(address.bucket)
        .with_retry(limits.retry())
        .with_client_options(http.options())
        .with_http_connector(http)
        .build()
        .map_err(|error| settings.client_error(error))
}
