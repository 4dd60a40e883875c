//! The blocks in a cache's folder, and which of them are removed when room is needed: those that
//! were not read for the longest time.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::block::{BlockId, ObjectId};

/// Size on disk is counted in blocks of this many bytes.
const DISK_BLOCK: u64 = 4096;

/// Bytes on disk of a file of `len` bytes.
pub(super) fn cost(len: u64) -> u64 {
    len.div_ceil(DISK_BLOCK).saturating_mul(DISK_BLOCK)
}

/// The blocks of a folder.
#[derive(Debug, Default)]
pub(super) struct Scan {
    blocks: Vec<ScannedBlock>,
    pub(super) cost: u64,
}

#[derive(Debug)]
struct ScannedBlock {
    id: BlockId,
    read: SystemTime,
    cost: u64,
}

impl Scan {
    /// Lists the blocks below `folder`. Files that are not named like blocks are neither counted
    /// nor ever removed.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let mut scan = Self::default();
        for below in fs::read_dir(folder)? {
            let below = below?;
            if !below.file_type()?.is_dir() {
                continue;
            }
            for entry in fs::read_dir(below.path())? {
                let entry = entry?;
                let Some(id) = entry.file_name().to_str().and_then(BlockId::parse) else {
                    continue;
                };
                match entry.metadata() {
                    Ok(metadata) if metadata.is_file() => {
                        let cost = cost(metadata.len());
                        let read = metadata.modified()?;
                        scan.cost += cost;
                        scan.blocks.push(ScannedBlock { id, read, cost });
                    }
                    Ok(_) => {}
                    // Another process has just removed it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(scan)
    }

    /// The number of blocks that it found.
    pub(super) fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Removes the blocks longest unread, except those of `spared` objects, until at most `most`
    /// bytes are left, or no block can be removed. Returns the number removed.
    pub(super) fn shrink(&mut self, folder: &Path, most: u64, spared: &HashSet<ObjectId>) -> u64 {
        self.blocks.sort_unstable_by_key(|block| (block.read, block.id));
        let mut n_removed = 0;
        for block in self.blocks.iter().filter(|block| !spared.contains(&block.id.object)) {
            if self.cost <= most {
                break;
            }
            let path = folder.join(block.id.folder()).join(block.id.name());
            match fs::remove_file(path) {
                Ok(()) => n_removed += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // It still takes room.
                Err(_) => continue,
            }
            self.cost -= block.cost;
        }
        n_removed
    }
}
