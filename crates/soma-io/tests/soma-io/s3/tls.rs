//! Encrypted connections: to a server whose certificate is trusted, and to no other.

use std::sync::Arc;

use crate::s3::places::{READERS, Stored, every_cell, in_time, reader_of, text};
use test_storage::{Certificate, PRIVATE, certificate};

#[test]
fn only_a_trusted_server_is_read_from() {
    let plain = Stored::new(PRIVATE);
    let Certificate { server, authority_pem } = certificate();
    let stored = Stored {
        server: plain.server.encrypted(server),
        small: Arc::clone(&plain.small),
        bucket: PRIVATE,
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, authority_pem).unwrap();
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
    // With another authority in the file, it is rejected, though libtiledb trusted it before.
    std::fs::write(&file, certificate().authority_pem).unwrap();
    let error = text(&in_time(|| stored.open(trusting.clone())).unwrap_err());
    assert!(error.contains("certificate"), "{error}");
    std::fs::write(&file, "no certificate").unwrap();
    let error = stored.open(trusting).unwrap_err();
    assert!(text(&error).contains("authority.pem"), "{}", text(&error));
}
