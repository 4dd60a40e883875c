//! Stores for tests.

use std::path::Path;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use sequences::{SequenceFiles, SequenceFilesWriter};
use storage::LocalStorage;
use tempfile::TempDir;

/// Writes sequences named `s0`, `s1` ... to a store.
pub(crate) fn write(folder: &Path, sequences: &[impl AsRef<[u8]>]) {
    let mut writer = SequenceFilesWriter::create(folder, &[]).unwrap();
    for (number, letters) in sequences.iter().enumerate() {
        writer.push(letters.as_ref(), format!("s{number}").as_bytes()).unwrap();
    }
    writer.finish().unwrap();
}

/// A store of these sequences, and its folder.
pub(crate) fn store(sequences: &[impl AsRef<[u8]>]) -> (TempDir, Arc<SequenceFiles>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    write(&path, sequences);
    (folder, open(&path))
}

pub(crate) fn open(path: &Path) -> Arc<SequenceFiles> {
    Arc::new(SequenceFiles::open(Arc::new(LocalStorage::new(path))).unwrap())
}

/// Random letters.
pub(crate) fn random(letters: &[u8], n: usize, seed: u64) -> Vec<u8> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| letters[random.next_u32() as usize % letters.len()]).collect()
}
