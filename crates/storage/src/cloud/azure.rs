//! Azure Blob Storage.

use object_store::azure::{AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder};

use super::http::Http;
use crate::address::Address;
use crate::environment::Environment;
use crate::error::Error;
use crate::settings::{Limits, Settings};

/// Variables that lead to credentials, and the client's name for each.
const SOURCES: [(&str, AzureConfigKey); 4] = [
    ("AZURE_CLIENT_ID", AzureConfigKey::ClientId),
    ("AZURE_CLIENT_SECRET", AzureConfigKey::ClientSecret),
    ("AZURE_TENANT_ID", AzureConfigKey::AuthorityId),
    ("AZURE_FEDERATED_TOKEN_FILE", AzureConfigKey::FederatedTokenFile),
];

/// The bounds on tries and times of requests.
pub(super) fn limits(settings: &Settings<'_>) -> Result<Limits, Error> {
    let mut limits = Limits::from_settings(settings)?;
    if let Some(retries) = settings.number("vfs.azure.max_retries")? {
        limits.tries = retries.saturating_add(1);
    }
    Ok(limits)
}

/// The store of an address.
pub(super) fn store(
    address: &Address<'_>,
    settings: &Settings<'_>,
    environment: &Environment,
) -> Result<MicrosoftAzure, Error> {
    let either = |parameter: &str, variable: &str| {
        let given = settings.text(&format!("vfs.azure.{parameter}"));
        given.or_else(|| environment.get(variable)).map(str::to_owned)
    };
    let endpoint = either("blob_endpoint", "AZURE_BLOB_ENDPOINT");
    let account = either("storage_account_name", "AZURE_STORAGE_ACCOUNT")
        .or_else(|| endpoint.as_deref().and_then(account_in).map(str::to_owned))
        .ok_or_else(|| Error::Address {
            address: settings.address().to_owned(),
            problem: "no storage account is named; set vfs.azure.storage_account_name".to_owned(),
        })?;
    let is_tls = endpoint.as_ref().is_none_or(|endpoint| !endpoint.starts_with("http:"));
    let limits = limits(settings)?;
    let http = Http::new(limits, None, settings.text("ssl.ca_file"), is_tls)
        .map_err(|error| settings.client_error(error))?;
    let mut builder = MicrosoftAzureBuilder::new()
        .with_account(account)
        .with_container_name(address.bucket)
        .with_retry(limits.retry())
        .with_client_options(http.options())
        .with_http_connector(http);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    let key = either("storage_account_key", "AZURE_STORAGE_KEY");
    let signature = either("storage_sas_token", "AZURE_STORAGE_SAS_TOKEN");
    builder = match (key, signature) {
        (Some(key), _) => builder.with_access_key(key),
        (None, Some(signature)) => {
            builder.with_config(AzureConfigKey::SasKey, signature.trim_start_matches('?'))
        }
        // Like libtiledb, asks for credentials only over connections that keep them secret.
        (None, None) if !is_tls => builder.with_skip_signature(true),
        (None, None) => {
            SOURCES.into_iter().fold(builder, |builder, (name, key)| match environment.get(name) {
                Some(value) => builder.with_config(key, value),
                None => builder,
            })
        }
    };
    builder.build().map_err(|error| settings.client_error(error))
}

/// The account at the beginning of an endpoint of Azure's.
fn account_in(endpoint: &str) -> Option<&str> {
    let (_, host) = endpoint.split_once("://")?;
    host.split_once(".blob.").map(|(account, _)| account)
}
