//! Encrypted connections: only to a server with a trusted certificate.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::places::{READERS, Stored, every_cell, in_time, reader_of, text};
use crate::server::PRIVATE;

/// The server's configuration, and the issuer's certificate in PEM.
fn certified() -> (ServerConfig, String) {
    let mut issuer = CertificateParams::new(Vec::new()).unwrap();
    issuer.distinguished_name.push(DnType::CommonName, "an authority");
    issuer.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(issuer, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    server.distinguished_name.push(DnType::CommonName, "a server");
    let certificate = server.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (config, issuer.pem())
}

#[test]
fn only_a_trusted_server_is_read_from() {
    let plain = Stored::new(PRIVATE);
    let (tls, authority) = certified();
    let stored = Stored {
        server: plain.server.encrypted(tls),
        small: Arc::clone(&plain.small),
        bucket: PRIVATE,
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, authority).unwrap();
    let mut config = stored.server.config();
    config.insert("vfs.s3.scheme".to_owned(), "https".to_owned());
    let mut trusting = config.clone();
    trusting.insert("vfs.s3.ca_file".to_owned(), file.to_str().unwrap().to_owned());
    let experiment = stored.open(trusting.clone()).unwrap();
    for choice in READERS {
        let reader = reader_of(&experiment, choice).unwrap();
        assert_eq!(every_cell(&*reader).unwrap(), stored.cells());
    }
    let error = text(&in_time(|| stored.open(config)).unwrap_err());
    assert!(error.contains("certificate"), "{error}");
    // The native reader itself refuses a server with an untrusted certificate.
    let x = experiment.measurement("RNA").unwrap().x("raw").unwrap();
    std::fs::write(&file, certified().1).unwrap();
    let error = text(&in_time(|| x.reader(soma_io::ReaderChoice::Native)).unwrap_err());
    assert!(error.contains("certificate"), "{error}");
    std::fs::write(&file, "no certificate").unwrap();
    let error = x.reader(soma_io::ReaderChoice::Native).unwrap_err();
    assert!(text(&error).contains("authority.pem"), "{}", text(&error));
}
