//! The files of a read, which must not change while they are read.

use std::collections::HashMap;
use std::sync::Arc;

use storage::{FileVersion, Storage};

use crate::chunk_files::check_version;
use crate::chunks::Chunks;
use crate::read::Failure;

/// The files that a read needs.
#[derive(Debug, Default)]
pub(crate) struct ReadFiles<'a> {
    pub(crate) names: Vec<String>,
    first: Vec<FirstUse<'a>>,
    known: HashMap<String, usize>,
}

/// The first chunk that is read of a file, and the version of the file that its place is of.
#[derive(Debug)]
struct FirstUse<'a> {
    chunks: &'a Chunks,
    indices: Vec<u64>,
    version: Arc<FileVersion>,
}

impl<'a> ReadFiles<'a> {
    /// Adds the file of a chunk, and returns its number.
    pub(crate) fn add(
        &mut self,
        name: String,
        version: Arc<FileVersion>,
        (chunks, indices): (&'a Chunks, &[u64]),
    ) -> usize {
        if let Some(idx) = self.known.get(&name) {
            return *idx;
        }
        let idx = self.names.len();
        self.known.insert(name.clone(), idx);
        self.names.push(name);
        self.first.push(FirstUse { chunks, indices: indices.to_vec(), version });
        idx
    }

    /// Fails if a file is no longer in its version.
    pub(crate) fn check(&self, storage: &dyn Storage) -> Result<(), Failure> {
        if storage.keeps_versions() {
            return Ok(());
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let now = storage.versions(&names);
        for ((file, first), now) in names.iter().zip(&self.first).zip(now) {
            if !now.is_ok_and(|now| now == *first.version) {
                // Says what is wrong.
                check_version(storage, file, &first.version)
                    .map_err(|source| first.chunks.failure(&first.indices, &source))?;
            }
        }
        Ok(())
    }
}
