//! The server with a real client of S3, and with plain HTTP.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod faults;
mod plain;
mod rates;
mod s3;

use std::path::Path;

use link::{LinkServer, LinkSpec};
use tempfile::TempDir;

/// Bytes without a pattern that a wrong offset would hide.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// A folder with the given files, each of so many bytes.
fn folder(files: &[(&str, usize)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (idx, (name, len)) in files.iter().enumerate() {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes(*len, idx as u64)).unwrap();
    }
    folder
}

fn serve(folder: &Path, link: &str) -> LinkServer {
    LinkServer::start(folder, link.parse::<LinkSpec>().unwrap()).unwrap()
}
