//! Batches as tensors: the loaders' numbers, in memory that is reused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod array_tensors;
mod document_model;
mod image_augmentation;
mod stored_type;
mod tensors;
mod u_net;

#[test]
fn the_version_of_tch_is_the_locked_one() {
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    let lock = std::fs::read_to_string(lock).unwrap();
    let version = torch_feed::TCH_VERSION.unwrap();
    assert!(lock.contains(&format!("name = \"tch\"\nversion = \"{version}\"\n")), "{version}");
}
