//! Servers that are not there, or want to know who asks.

use std::net::TcpListener;
use std::time::Duration;

use key_values::local_cluster::ClusterSpec;
use key_values::{Error, KeyValues, ServerSpec};

use crate::{check, connect, fill, single, start};

fn refused(url: &str) -> Error {
    let mut spec = ServerSpec::new([url], "n");
    spec.connect_timeout = Duration::from_secs(2);
    let error = KeyValues::connect(&spec).unwrap_err();
    let shown = format!("{error} {error:?} {spec:?}");
    assert!(!shown.contains("s3cret") && !shown.contains("wrong-one"), "{shown}");
    error
}

#[test]
fn a_password_is_needed_and_never_shown() {
    let spec = ClusterSpec { password: Some("s3cret".into()), ..single() };
    let Some(cluster) = start(spec) else { return };
    let place = cluster.urls()[0].replace("redis://", "");
    for url in [format!("redis://{place}"), format!("redis://:wrong-one@{place}")] {
        let error = refused(&url);
        assert!(matches!(&error, Error::Login { node, .. } if *node == place), "{error:?}");
    }
    let url = format!("redis://:s3cret@{place}");
    let store = KeyValues::connect(&ServerSpec::new([url], "n")).unwrap();
    assert!(!store.is_cluster() && !format!("{store:?}").contains("s3cret"));
    fill(&store, 100);
    check(&store, &(0..100).collect::<Vec<_>>()).unwrap();
    assert_eq!(store.stats().unwrap()[0].id.len(), 40);
}

#[test]
fn a_server_without_a_password_refuses_one() {
    let Some(cluster) = start(single()) else { return };
    let place = cluster.urls()[0].replace("redis://", "");
    assert!(matches!(refused(&format!("redis://:s3cret@{place}")), Error::Login { .. }));
    // Two addresses promise a cluster.
    let url = &cluster.urls()[0];
    let error = KeyValues::connect(&ServerSpec::new([url, url], "n")).unwrap_err();
    assert!(matches!(&error, Error::NotCluster { node } if *node == place), "{error:?}");
    let store = connect(&cluster, "n");
    fill(&store, 10);
    // Another database of the same server is another store.
    let other = KeyValues::connect(&ServerSpec::new([format!("{url}/1")], "n")).unwrap();
    assert_eq!(other.which_are_missing(0..10, &|| false).unwrap(), [0..10]);
}

#[test]
fn an_address_without_a_server_is_named() {
    // Nobody listens on a port that was just free.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = refused(&format!("redis://:s3cret@{place}"));
    assert!(matches!(&error, Error::Connect { node, .. } if *node == place), "{error:?}");
    assert!(matches!(refused("redis://host.invalid:7001"), Error::Connect { .. }));
}
