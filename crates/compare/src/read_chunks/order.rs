//! Writes the order of cells to a file of joinids. Every way reads it, so that all read the same
//! chunks.

use std::fs::File;
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use arrow_array::Int64Array;
use shuffle::PlanSpec;
use soma_io::DataFrame;
use tempfile::NamedTempFile;

/// How cells are shuffled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    None,
    WithinChunks,
    Global,
}

impl Shuffle {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::WithinChunks => "within-chunks",
            Self::Global => "global",
        }
    }

    /// Returns a description of the order.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::None => "not shuffled",
            Self::WithinChunks => "shuffled within chunks (-s)",
            Self::Global => "shuffled over all cells (-ss)",
        }
    }
}

/// Reads the joinids of obs. Fails if there are none or one is not a row of X.
pub(crate) fn joinids(obs: &DataFrame, x_rows: u64) -> anyhow::Result<Vec<i64>> {
    let columns = obs.read(Some(&["soma_joinid"]), None)?;
    let joinids = columns
        .column_by_name("soma_joinid")
        .and_then(|column| column.as_any().downcast_ref::<Int64Array>())
        .context("obs has no joinids")?
        .values()
        .to_vec();
    if joinids.is_empty() {
        bail!("{} has no cells", obs.uri());
    }
    if let Some(outside) = joinids.iter().find(|joinid| !(0..x_rows as i64).contains(joinid)) {
        bail!("{} has the joinid {outside}, X has rows 0..{x_rows}", obs.uri());
    }
    Ok(joinids)
}

/// Writes the joinids in reading order to a temporary file, 8 bytes each, little-endian. Dropping
/// the result deletes the file.
pub(crate) fn write(
    joinids: &[i64],
    chunk_rows: u64,
    shuffle: Shuffle,
    seed: u64,
) -> anyhow::Result<NamedTempFile> {
    let mut file = NamedTempFile::with_prefix("somafeed-read-chunks-")
        .context("cannot make a file for the joinids in the folder for temporary files")?;
    let mut writer = BufWriter::new(file.as_file_mut());
    let mut written = Ok(());
    each_chunk(joinids.len() as u64, chunk_rows, shuffle, seed, &mut |rows| {
        written = rows.iter().try_for_each(|row| {
            let joinid = joinids.get(*row as usize).copied().unwrap_or_default();
            writer.write_all(&joinid.to_le_bytes())
        });
        written.is_ok()
    })?;
    let written = written.and_then(|()| writer.flush());
    drop(writer);
    written.with_context(|| format!("cannot write the joinids to {}", file.path().display()))?;
    Ok(file)
}

/// Calls `each` with the rows of one chunk after another, until it returns false.
fn each_chunk(
    n_rows: u64,
    chunk_rows: u64,
    shuffle: Shuffle,
    seed: u64,
    each: &mut dyn FnMut(&[u64]) -> bool,
) -> anyhow::Result<()> {
    let whole = |n_rows, chunks_per_block| PlanSpec {
        n_rows,
        chunk_rows: 1,
        chunks_per_block,
        seed,
        ..PlanSpec::default()
    };
    let largest = chunk_rows.min(n_rows);
    if shuffle == Shuffle::Global {
        let plan = whole(n_rows, largest).epoch(0)?;
        for idx in 0..plan.n_blocks() {
            let block = plan.block(idx).context("a plan has all its blocks")?;
            if !each(&block.delivered_rows()) {
                return Ok(());
            }
        }
        return Ok(());
    }
    for chunk_idx in 0..n_rows.div_ceil(largest.max(1)) {
        let start = chunk_idx * largest;
        let length = largest.min(n_rows - start);
        let rows: Vec<u64> = if shuffle == Shuffle::None {
            (start..start + length).collect()
        } else {
            // One block of single rows. The number of the chunk serves as the epoch, so that each
            // chunk is shuffled differently.
            let plan = whole(length, length).epoch(chunk_idx)?;
            let block = plan.block(0).context("a plan has all its blocks")?;
            block.delivered_rows().iter().map(|row| start + row).collect()
        };
        if !each(&rows) {
            return Ok(());
        }
    }
    Ok(())
}

/// Reads the chunks of a file of joinids.
pub(crate) struct ChunkFile {
    file: File,
    n_left: u64,
    chunk_rows: u64,
}

impl ChunkFile {
    pub(crate) fn open(path: &Path, chunk_rows: u64) -> anyhow::Result<Self> {
        let cannot = || format!("cannot read the joinids from {}", path.display());
        let mut file = File::open(path).with_context(cannot)?;
        let bytes = file.seek(SeekFrom::End(0)).with_context(cannot)?;
        file.rewind().with_context(cannot)?;
        Ok(Self { file, n_left: bytes / 8, chunk_rows })
    }

    /// Returns the number of cells in the remaining chunks.
    pub(crate) fn n_left(&self) -> u64 {
        self.n_left
    }

    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Vec<i64>>> {
        let n_rows = self.chunk_rows.min(self.n_left);
        if n_rows == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; n_rows as usize * 8];
        self.file.read_exact(&mut bytes).context("cannot read the joinids")?;
        self.n_left -= n_rows;
        let (joinids, _) = bytes.as_chunks::<8>();
        Ok(Some(joinids.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunks(joinids: &[i64], chunk_rows: u64, shuffle: Shuffle, seed: u64) -> Vec<Vec<i64>> {
        let file = write(joinids, chunk_rows, shuffle, seed).unwrap();
        let mut chunks = ChunkFile::open(file.path(), chunk_rows).unwrap();
        std::iter::from_fn(|| chunks.next().unwrap()).collect()
    }

    fn sorted(chunk: &[i64]) -> Vec<i64> {
        let mut sorted = chunk.to_vec();
        sorted.sort_unstable();
        sorted
    }

    proptest! {
        #[test]
        fn every_cell_comes_once_in_chunks_of_the_size(n_rows in 1_i64..200, chunk_rows in 1_u64..250, seed in any::<u64>()) {
            let joinids: Vec<i64> = (0..n_rows).map(|row| 3 * row + 1).collect();
            let in_order: Vec<Vec<i64>> = joinids.chunks(chunk_rows as usize).map(<[i64]>::to_vec).collect();
            prop_assert_eq!(&chunks(&joinids, chunk_rows, Shuffle::None, seed), &in_order);
            let within = chunks(&joinids, chunk_rows, Shuffle::WithinChunks, seed);
            prop_assert_eq!(within.iter().map(|chunk| sorted(chunk)).collect::<Vec<_>>(), &in_order[..]);
            let global = chunks(&joinids, chunk_rows, Shuffle::Global, seed);
            let lengths = |chunks: &[Vec<i64>]| chunks.iter().map(Vec::len).collect::<Vec<_>>();
            prop_assert_eq!(lengths(&global), lengths(&in_order));
            prop_assert_eq!(sorted(&global.concat()), joinids);
        }
    }

    #[test]
    fn shuffles_shuffle_and_can_be_repeated() {
        let joinids: Vec<i64> = (0..1_000).collect();
        let chunks_of = |shuffle, seed| chunks(&joinids, 100, shuffle, seed);
        for shuffle in [Shuffle::WithinChunks, Shuffle::Global] {
            assert_eq!(chunks_of(shuffle, 3), chunks_of(shuffle, 3));
            assert_ne!(chunks_of(shuffle, 3), chunks_of(shuffle, 4));
            assert_ne!(chunks_of(shuffle, 3), chunks_of(Shuffle::None, 3));
        }
        // Each chunk is shuffled differently, and a global shuffle mixes chunks.
        let within = chunks_of(Shuffle::WithinChunks, 3);
        assert_ne!(within[0], within[1].iter().map(|joinid| joinid - 100).collect::<Vec<_>>());
        let first = &chunks_of(Shuffle::Global, 3)[0];
        assert!(first.iter().any(|joinid| 900 <= *joinid));
    }
}
