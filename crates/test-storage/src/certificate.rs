//! Certificates for servers with TLS.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;

/// A server's certificate for 127.0.0.1, signed by its own authority.
#[derive(Debug)]
pub struct Certificate {
    /// The server's configuration, for [`Server::encrypted`](crate::Server::encrypted).
    pub server: ServerConfig,
    /// The authority's certificate, for the client to trust.
    pub authority_pem: String,
}

/// Makes an authority and a certificate, new ones with each call.
pub fn certificate() -> Certificate {
    let mut issuer = CertificateParams::new(Vec::new()).unwrap();
    issuer.distinguished_name.push(DnType::CommonName, "an authority");
    issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(issuer, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    server.distinguished_name.push(DnType::CommonName, "a server");
    let certificate = server.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    Certificate { server, authority_pem: issuer.pem() }
}
