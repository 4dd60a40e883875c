//! The memory that grows with the number of cells, part by part.

use crate::dataset::Dataset;

/// Bytes of memory of the parts that grow with the number of selected cells and that live as long
/// as a loader. Blocks and batches are not among them: they have the sizes that the settings give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CellMemory {
    /// Which cells are selected: their joinids.
    pub joinids: u64,
    /// The obs columns, with the values of their categories.
    pub obs: u64,
    /// The codes of the encoders.
    pub codes: u64,
    /// The totals by which values are scaled.
    pub totals: u64,
    /// The order of one epoch: that of its chunks, and the rows that a sampling draws. An epoch
    /// that follows without a gap has its own while both are in progress.
    pub order: u64,
    /// What the readers remember of where rows are stored, up to a limit of each reader. Grows with
    /// the rows that were read.
    pub index: u64,
}

impl CellMemory {
    /// The parts with their names.
    pub fn parts(&self) -> [(&'static str, u64); 6] {
        let Self { joinids, obs, codes, totals, order, index } = *self;
        [
            ("joinids", joinids),
            ("obs", obs),
            ("codes", codes),
            ("totals", totals),
            ("order", order),
            ("index", index),
        ]
    }

    /// Bytes of all parts together.
    pub fn bytes(&self) -> u64 {
        self.parts().iter().map(|(_, bytes)| bytes).sum()
    }
}

impl Dataset {
    /// Bytes of memory of the parts that grow with the number of cells. The order is that of a
    /// loader: [`Loader::cell_memory`](crate::Loader::cell_memory) has it, too.
    pub fn cell_memory(&self) -> CellMemory {
        let joinids = self.sources.iter().map(|source| source.cells.memory_bytes());
        CellMemory {
            joinids: joinids.sum::<usize>() as u64,
            obs: self.obs.get_array_memory_size() as u64,
            codes: self.codes.get_array_memory_size() as u64,
            totals: self.totals().map_or(0, |totals| size_of_val(totals) as u64),
            order: 0,
            index: self.distinct_readers().map(|(_, reader)| reader.index_bytes()).sum(),
        }
    }
}
