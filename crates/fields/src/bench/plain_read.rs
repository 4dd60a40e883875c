//! The floor: reads the files of random samples into a buffer that is used again.

use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;

use storage::{Piece, Storage};

/// The files below the arrays of a store, without metadata, with their sizes.
#[derive(Debug)]
pub(crate) struct ChunkList {
    files: Vec<(String, u64)>,
}

impl ChunkList {
    /// Lists the files of `arrays`.
    pub(crate) fn new(storage: &dyn Storage, arrays: &[String]) -> io::Result<Self> {
        let mut files = Vec::new();
        for array in arrays {
            list(storage, array, &mut files)?;
        }
        files.sort();
        let names: Vec<&str> = files.iter().map(String::as_str).collect();
        let sizes: io::Result<Vec<u64>> = storage.sizes(&names).into_iter().collect();
        let files = files.into_iter().zip(sizes?).collect();
        Ok(Self { files })
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.files.iter().map(|(_, size)| size).sum()
    }

    /// Bytes of the `n` largest files.
    pub(crate) fn most_bytes(&self, n: u64) -> u64 {
        let mut sizes: Vec<u64> = self.files.iter().map(|(_, size)| *size).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        sizes.iter().take(n as usize).sum()
    }

    /// Reads the files at `positions` one after another into `into`, on `n_threads` threads. `into`
    /// has room for them.
    pub(crate) fn read(
        &self,
        storage: &dyn Storage,
        positions: &[usize],
        into: &mut [u8],
        n_threads: usize,
    ) -> io::Result<u64> {
        let chosen: Vec<&(String, u64)> =
            positions.iter().filter_map(|at| self.files.get(*at)).collect();
        let n_bytes: u64 = chosen.iter().map(|(_, size)| size).sum();
        let mut rest = into;
        let mut places = Vec::with_capacity(chosen.len());
        for (file, size) in chosen {
            let (place, after) =
                rest.split_at_mut_checked(*size as usize).ok_or(io::ErrorKind::InvalidInput)?;
            places.push((Piece { file, range: 0..*size }, place));
            rest = after;
        }
        let places = Mutex::new(places);
        let take = || places.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let read_all = || -> io::Result<()> {
            while let Some((piece, place)) = take() {
                storage.read(&[piece], place)?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (1..n_threads).map(|_| scope.spawn(read_all)).collect();
            let mine = read_all();
            let panicked = |_| Err(io::Error::other("a reading thread panicked"));
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(panicked))
                .fold(mine, Result::and)
        })?;
        Ok(n_bytes)
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}

/// Adds the chunk files below `folder`.
fn list(storage: &dyn Storage, folder: &str, into: &mut Vec<String>) -> io::Result<()> {
    for entry in storage.list(folder)? {
        let path = format!("{folder}/{}", entry.name);
        if entry.is_folder {
            list(storage, &path, into)?;
        } else if !entry.name.starts_with('.') && entry.name != "zarr.json" {
            into.push(path);
        }
    }
    Ok(())
}
