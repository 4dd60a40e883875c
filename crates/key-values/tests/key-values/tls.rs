//! A cluster with TLS.

use std::time::Duration;

use key_values::local_cluster::{ClusterSpec, TlsFiles};
use key_values::{Error, KeyValues, ServerSpec};

use crate::{check, fill, start};

#[test]
fn a_cluster_is_used_through_tls() {
    let folder = tempfile::tempdir().unwrap();
    let signed = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let files = TlsFiles {
        certificate: folder.path().join("certificate.pem"),
        key: folder.path().join("key.pem"),
        authority: folder.path().join("certificate.pem"),
    };
    std::fs::write(&files.certificate, signed.cert.pem()).unwrap();
    std::fs::write(&files.key, signed.signing_key.serialize_pem()).unwrap();
    let spec = ClusterSpec {
        n_masters: 2,
        password: Some("s3cret".into()),
        tls: Some(files),
        ..ClusterSpec::default()
    };
    let Some(cluster) = start(spec) else { return };
    let with_login =
        |urls: Vec<String>| urls.into_iter().map(|url| url.replace("://", "://:s3cret@"));
    let mut spec = ServerSpec::new(with_login(cluster.tls_urls()), "tls");
    spec.root_certificates = Some(signed.cert.pem().into_bytes());
    let store = KeyValues::connect(&spec).unwrap();
    fill(&store, 500);
    check(&store, &(0..500).rev().collect::<Vec<_>>()).unwrap();
    // Nodes use TLS among themselves, too.
    cluster.move_slots(0..40, 0, 1).unwrap();
    check(&store, &(0..500).collect::<Vec<_>>()).unwrap();
    // All of it went through the ports for TLS.
    let ports: Vec<u16> = store.stats().unwrap().iter().map(|node| node.address.port).collect();
    let urls = cluster.tls_urls();
    assert!(
        ports.len() == 2
            && ports
                .iter()
                .all(|port| { urls.iter().any(|url| url.ends_with(&format!(":{port}"))) })
    );

    // Nobody else vouches for the certificate.
    spec.root_certificates = None;
    let error = KeyValues::connect(&spec).unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    // The ports for TLS understand nothing else, and the others no TLS.
    spec.urls = with_login(cluster.urls()).map(|url| url.replace("redis", "rediss")).collect();
    spec.urls.truncate(1);
    spec.connect_timeout = Duration::from_millis(500);
    assert!(matches!(KeyValues::connect(&spec), Err(Error::Connect { .. })));
    spec.urls = urls.iter().map(|url| url.replace("rediss", "redis")).collect();
    let error = KeyValues::connect(&spec).unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
}
