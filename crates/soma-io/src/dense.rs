//! The native reader of dense arrays.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use csr::Narrowing;
use storage::{CacheUse, CachedStorage};
use tiledb_native::DenseArray;

use crate::exact::{Request, is_within_f32};
use crate::{CsrBuffers, Error, GeneSelection, ReadForm, ReadStats, RowRanges, XReader, coo};

/// Places that are in memory at once; a longer row is read alone.
const PIECE_PLACES: u64 = 8 << 20;

/// Reads rows of a dense array, and returns the values that are not zero.
#[derive(Debug)]
pub(crate) struct DenseReader {
    array: Arc<DenseArray>,
    narrowing: Narrowing,
    uri: String,
    shape: (u64, u64),
    data_type: DataType,
    is_remote: bool,
    /// The cache in front of an object store, if the config sets one.
    cache: Option<Arc<CachedStorage>>,
    /// Buffers for the places of some rows, and for the rows of a read as COO, reused by the next
    /// read.
    places: Mutex<Vec<f32>>,
    csr: Mutex<CsrBuffers>,
}

impl DenseReader {
    pub(crate) fn new(
        array: DenseArray,
        uri: &str,
        (shape, data_type): ((u64, u64), DataType),
        (is_remote, cache): (bool, Option<Arc<CachedStorage>>),
    ) -> Self {
        Self {
            array: Arc::new(array),
            narrowing: Narrowing::Nearest,
            uri: uri.to_owned(),
            shape,
            data_type,
            is_remote,
            cache,
            places: Mutex::default(),
            csr: Mutex::default(),
        }
    }

    /// Identifies the array and the state in which it was opened.
    pub(crate) fn version(&self) -> String {
        self.array.version()
    }
}

/// The columns that a selection reads.
#[derive(Debug, PartialEq)]
struct SelectedPlaces {
    /// Ascending.
    ranges: Vec<Range<u64>>,
    /// For each column of the result its place among those that are read; `None` if all keep
    /// theirs.
    order: Option<Vec<u32>>,
}

impl SelectedPlaces {
    /// The columns of a selection that was [checked](GeneSelection::n_columns) for an array with
    /// `n_columns` columns.
    fn new(genes: &GeneSelection, n_columns: u64) -> Self {
        let list = match genes {
            GeneSelection::All => return Self { ranges: vec![0..n_columns], order: None },
            GeneSelection::Range(range) => {
                return Self { ranges: vec![range.clone()], order: None };
            }
            GeneSelection::List(list) => list,
        };
        let mut sorted = list.clone();
        sorted.sort_unstable();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for gene in &sorted {
            match ranges.last_mut() {
                Some(last) if last.end == *gene => last.end += 1,
                _ => ranges.push(*gene..gene + 1),
            }
        }
        let place = |gene: &u64| sorted.partition_point(|other| other < gene) as u32;
        let order = (!list.is_sorted()).then(|| list.iter().map(place).collect());
        Self { ranges, order }
    }

    /// Appends the values of a row that are not zero.
    fn append(&self, row: &[f32], out: &mut CsrBuffers) {
        let mut append = |column: u32, value: f32| {
            if value != 0.0 {
                out.columns.push(column);
                out.values.push(value);
            }
        };
        match &self.order {
            None => (0..).zip(row).for_each(|(column, value)| append(column, *value)),
            Some(order) => {
                (0..).zip(order).for_each(|(column, place)| append(column, row[*place as usize]));
            }
        }
        out.row_offsets.push(out.values.len());
    }
}

/// Cuts rows so that each piece has at most `most` of them.
fn pieces(rows: &RowRanges, most: u64) -> Vec<Vec<Range<u64>>> {
    let (mut pieces, mut room) = (Vec::<Vec<Range<u64>>>::new(), 0);
    for range in rows.ranges() {
        let mut first = range.start;
        while first < range.end {
            if room == 0 {
                pieces.push(Vec::new());
                room = most;
            }
            let end = range.end.min(first.saturating_add(room));
            if let Some(last) = pieces.last_mut() {
                last.push(first..end);
            }
            room -= end - first;
            first = end;
        }
    }
    pieces
}

impl XReader for DenseReader {
    fn name(&self) -> &'static str {
        "native"
    }

    fn n_rows(&self) -> u64 {
        self.shape.0
    }

    fn n_columns(&self) -> u64 {
        self.shape.1
    }

    fn data_type(&self) -> &DataType {
        &self.data_type
    }

    fn nnz(&self) -> Result<Option<u64>, Error> {
        Ok(Some(self.shape.0.saturating_mul(self.shape.1)))
    }

    fn working_bytes(&self, nnz: u64, _genes: &GeneSelection, form: ReadForm) -> u64 {
        let places = PIECE_PLACES.saturating_add(self.shape.1).saturating_mul(4);
        let of_array = self.array.working_bytes().saturating_add(places);
        coo::working_bytes(nnz, form).saturating_add(of_array)
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn cache(&self) -> Option<CacheUse> {
        self.cache.as_ref().map(|cache| cache.usage())
    }

    fn index_bytes(&self) -> u64 {
        self.array.index_bytes()
    }

    fn exact(&self) -> Result<Arc<dyn XReader>, Error> {
        Ok(Arc::new(Self {
            array: Arc::clone(&self.array),
            narrowing: Narrowing::Exact,
            uri: self.uri.clone(),
            shape: self.shape,
            data_type: self.data_type.clone(),
            is_remote: self.is_remote,
            cache: self.cache.clone(),
            places: Mutex::default(),
            csr: Mutex::default(),
        }))
    }

    fn read_csr(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        out: &mut CsrBuffers,
    ) -> Result<ReadStats, Error> {
        rows.check_within(&self.uri, self.shape.0)?;
        let n_columns = genes.n_columns(self.shape.1)?;
        let selected = SelectedPlaces::new(genes, self.shape.1);
        out.clear();
        out.n_columns = n_columns;
        let mut total = ReadStats::nothing();
        // A concurrent read uses memory of its own.
        let mut own = Vec::new();
        let mut shared = self.places.try_lock().ok();
        let places = shared.as_deref_mut().unwrap_or(&mut own);
        for piece in pieces(rows, (PIECE_PLACES / (n_columns as u64).max(1)).max(1)) {
            let n_rows: u64 = piece.iter().map(|range| range.end - range.start).sum();
            if n_columns == 0 {
                out.row_offsets.extend((0..n_rows).map(|_| 0));
                continue;
            }
            places.clear();
            places.resize(n_rows as usize * n_columns, 0.0);
            total += self.array.read(&piece, &selected.ranges, self.narrowing, places)?;
            let start = worktime::now();
            places.chunks_exact(n_columns).for_each(|row| selected.append(row, out));
            total.add_decoded(0, 0, worktime::now() - start);
        }
        if self.narrowing == Narrowing::Exact && !is_within_f32(&self.data_type) {
            let (uri, data_type) = (self.uri.as_str(), &self.data_type);
            Request { uri, rows, genes, data_type }.check_csr(out)?;
        }
        let values = out.nnz() as u64;
        Ok(ReadStats {
            values,
            // A read of nothing sends none, and those of a folder are not counted.
            requests: self.is_remote.then(|| total.requests.unwrap_or(0)),
            bytes_needed: Some(values.saturating_mul(self.array.value_bytes() as u64)),
            ..total
        })
    }

    fn read_coo(
        &self,
        rows: &RowRanges,
        genes: &GeneSelection,
        each: &mut dyn FnMut(&RecordBatch) -> Result<(), Error>,
    ) -> Result<ReadStats, Error> {
        coo::read((self, &self.uri), (rows, genes), &self.csr, each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_where_a_piece_is_full() {
        let rows = RowRanges::new(vec![2..5, 7..8, 10..20]).unwrap();
        assert_eq!(pieces(&rows, 5), [vec![2..5, 7..8, 10..11], vec![11..16], vec![16..20]]);
        assert_eq!(pieces(&RowRanges::new(vec![]).unwrap(), 5), Vec::<Vec<Range<u64>>>::new());
    }

    #[test]
    fn a_list_of_genes_is_read_by_ranges_and_put_in_its_order() {
        let selected = SelectedPlaces::new(&GeneSelection::List(vec![7, 2, 3, 9]), 10);
        assert_eq!(selected.ranges, [2..4, 7..8, 9..10]);
        let mut out = CsrBuffers::default();
        selected.append(&[20.0, 30.0, 0.0, 90.0], &mut out);
        assert_eq!((out.columns, out.values), (vec![1, 2, 3], vec![20.0, 30.0, 90.0]));
    }
}
