//! The HTTP client under an object store: rustls with ring, which compiles with no more than a C
//! compiler, and time limits.
//!
//! `object_store` would make a client with rustls's default provider of the process, which is the
//! program's to choose, not a library's. Proxies of the environment are not used: libtiledb does
//! not use them either.

use std::fmt;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use object_store::client::{ClientConfigKey, HttpClient, HttpConnector};
use object_store::{ClientOptions, Error};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::settings::Limits;

/// How long to wait for a connection to the machine's metadata service, which is near or absent.
const METADATA_CONNECT: Duration = Duration::from_secs(1);

/// Sends a store's requests.
#[derive(Clone)]
pub(super) struct Http {
    limits: Limits,
    /// Includes its password.
    proxy: Option<String>,
    tls: ClientConfig,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Http {
    /// Sends requests within `limits`, trusting the certificates of `ca_file`, else the system's.
    /// Fails if `is_tls`, and there are none.
    pub(super) fn new(
        limits: Limits,
        proxy: Option<String>,
        ca_file: Option<&str>,
        is_tls: bool,
    ) -> Result<Self, Error> {
        let roots = roots(ca_file)?;
        if is_tls && roots.is_empty() {
            return Err(generic(io::Error::other(
                "no certificates to trust were found: install the system's, or name a file in vfs.s3.ca_file",
            )));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(generic)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { limits, proxy, tls })
    }

    /// The options to make the store with.
    pub(super) fn options(&self) -> ClientOptions {
        ClientOptions::new().with_allow_http(true).with_connect_timeout(self.limits.connect)
    }
}

impl HttpConnector for Http {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // Options other than ours are those for the metadata service.
        let connect =
            |options: &ClientOptions| options.get_config_value(&ClientConfigKey::ConnectTimeout);
        let is_ours = connect(options) == connect(&self.options());
        let connect_timeout = if is_ours { self.limits.connect } else { METADATA_CONNECT };
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("somafeed/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(self.tls.clone())
            .http1_only()
            .connect_timeout(connect_timeout)
            .read_timeout(self.limits.stall)
            .timeout(self.limits.request)
            .no_proxy();
        if let Some(proxy) = self.proxy.as_ref().filter(|_| is_ours) {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(generic)?);
        }
        Ok(HttpClient::new(builder.build().map_err(generic)?))
    }
}

/// The certificates to trust: those of `ca_file`, else the system's.
fn roots(ca_file: Option<&str>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let Some(file) = ca_file else {
        // Some of a system's many certificates may not be readable. If one of those is needed, the
        // connection fails and says so.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    let unreadable =
        |error: String| generic(io::Error::other(format!("the certificates of {file}: {error}")));
    let pem = fs::read(file).map_err(|error| unreadable(error.to_string()))?;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("there are none in it".to_owned()));
    }
    Ok(roots)
}

fn generic(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "HTTP", source: Box::new(source) }
}
