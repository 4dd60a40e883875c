//! The shuffle of rows that do not fit into memory: scattered to files by where they go, then each file put in order in memory.
//!
//! A bucket is a run of new rows. As the source is read in order, each cell is appended to the bucket of its new row, so that both
//! passes read and write long runs of bytes.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use soma_io::CsrBuffers;

use crate::Error;
use crate::record::{self, Record};

/// A buffer smaller than this would be written too often.
const SMALLEST_BUFFER_BYTES: usize = 1 << 16;

/// All buckets.
#[derive(Debug)]
pub(crate) struct Buckets {
    each: Vec<Bucket>,
    bucket_rows: u64,
    n_rows: u64,
    n_columns: usize,
    buffer_bytes: usize,
}

#[derive(Debug)]
struct Bucket {
    path: PathBuf,
    buffer: Vec<u8>,
    n_bytes: u64,
}

impl Buckets {
    /// Buckets in `folder` for `n_rows` rows, of `bucket_rows` each; what waits to be written takes about `buffer_bytes`.
    pub(crate) fn new(
        folder: &Path,
        n_rows: u64,
        n_columns: usize,
        bucket_rows: u64,
        buffer_bytes: u64,
    ) -> Self {
        let n_buckets = n_rows.div_ceil(bucket_rows);
        let buffer_bytes = (buffer_bytes / n_buckets.max(1)) as usize;
        let bucket = |idx| Bucket {
            path: folder.join(format!("rows-{idx}")),
            buffer: Vec::new(),
            n_bytes: 0,
        };
        Self {
            each: (0..n_buckets).map(bucket).collect(),
            bucket_rows,
            n_rows,
            n_columns,
            buffer_bytes: buffer_bytes.max(SMALLEST_BUFFER_BYTES),
        }
    }

    /// Puts rows into their buckets: row `i` becomes the new row `places[i]`.
    pub(crate) fn scatter(&mut self, rows: &CsrBuffers, places: &[u32]) -> Result<(), Error> {
        let column_bytes = record::column_bytes(self.n_columns);
        for (row_idx, place) in places.iter().enumerate() {
            let (columns, values) = rows.row(row_idx);
            let place = u64::from(*place);
            let bucket = &mut self.each[(place / self.bucket_rows) as usize];
            let row = (place % self.bucket_rows) as u32;
            record::push(&mut bucket.buffer, row, columns, values, column_bytes);
            if bucket.buffer.len() >= self.buffer_bytes {
                bucket.flush()?;
            }
        }
        Ok(())
    }

    /// Ends the scattering; what comes out are the rows in their new order.
    pub(crate) fn gather(mut self) -> Result<Gather, Error> {
        for bucket in &mut self.each {
            bucket.flush()?;
            bucket.buffer = Vec::new();
        }
        Ok(Gather { buckets: self, bucket: 0, bytes: Vec::new(), starts: Vec::new(), row: 0 })
    }

    fn rows_of(&self, bucket: usize) -> u64 {
        self.bucket_rows.min(self.n_rows - bucket as u64 * self.bucket_rows)
    }
}

impl Bucket {
    fn flush(&mut self) -> Result<(), Error> {
        // Opened anew each time: there may be more buckets than files may be open.
        let append = || {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            file.write_all(&self.buffer)
        };
        append().map_err(|source| file_error("write rows to", &self.path, source))?;
        self.n_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Reads all of it into `bytes`, and removes the file.
    fn load(&self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        bytes.resize(self.n_bytes as usize, 0);
        let mut read = || File::open(&self.path)?.read_exact(bytes);
        read().map_err(|source| file_error("read rows from", &self.path, source))?;
        std::fs::remove_file(&self.path).map_err(|source| file_error("remove", &self.path, source))
    }
}

fn file_error(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::File { action, path: path.to_owned(), source }
}

/// Rows in their new order, bucket by bucket.
#[derive(Debug)]
pub(crate) struct Gather {
    buckets: Buckets,
    /// The bucket after the one in memory.
    bucket: usize,
    bytes: Vec<u8>,
    /// Where in `bytes` each row of the bucket is.
    starts: Vec<usize>,
    /// The next row of the bucket.
    row: usize,
}

impl Gather {
    /// The next rows, with about `n_values`; none when all have come.
    pub(crate) fn next(
        &mut self,
        n_values: usize,
        mut out: CsrBuffers,
    ) -> Result<Option<CsrBuffers>, Error> {
        out.clear();
        out.n_columns = self.buckets.n_columns;
        let column_bytes = record::column_bytes(out.n_columns);
        while out.nnz() < n_values {
            if self.row == self.starts.len() && !self.next_bucket()? {
                break;
            }
            let start = self.starts[self.row];
            Record::at(&self.bytes[start..], column_bytes).append(&mut out);
            self.row += 1;
        }
        Ok((out.n_rows() > 0).then_some(out))
    }

    fn next_bucket(&mut self) -> Result<bool, Error> {
        let Some(bucket) = self.buckets.each.get(self.bucket) else { return Ok(false) };
        bucket.load(&mut self.bytes)?;
        self.starts.clear();
        self.starts.resize(self.buckets.rows_of(self.bucket) as usize, 0);
        let column_bytes = record::column_bytes(self.buckets.n_columns);
        let mut at = 0;
        while at < self.bytes.len() {
            let record = Record::at(&self.bytes[at..], column_bytes);
            self.starts[record.row as usize] = at;
            at += record.len();
        }
        self.bucket += 1;
        self.row = 0;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_come_out_where_they_were_sent(lengths in prop::collection::vec(0_usize..6, 1..60), bucket_rows in 1_u64..20, n_values in 1_usize..40, seed in any::<u64>()) {
            let folder = tempfile::tempdir().unwrap();
            let n_rows = lengths.len();
            let mut rows = CsrBuffers { n_columns: 9, ..CsrBuffers::default() };
            for (row, len) in lengths.iter().enumerate() {
                rows.columns.extend(0..*len as u32);
                rows.values.extend((0..*len).map(|idx| (row * 10 + idx) as f32 - 3.5));
                rows.row_offsets.push(rows.values.len());
            }
            let places = shuffle::storage_order(n_rows as u32, seed);
            let mut buckets = Buckets::new(folder.path(), n_rows as u64, 9, bucket_rows, 64);
            buckets.buffer_bytes = 40;
            buckets.scatter(&rows, &places).unwrap();
            let mut gather = buckets.gather().unwrap();
            let mut found = Vec::new();
            while let Some(piece) = gather.next(n_values, CsrBuffers::default()).unwrap() {
                piece.check().unwrap();
                for row in 0..piece.n_rows() {
                    let (columns, values) = piece.row(row);
                    found.push((columns.to_vec(), values.to_vec()));
                }
            }
            prop_assert_eq!(found.len(), n_rows);
            for (row, place) in places.iter().enumerate() {
                let (columns, values) = rows.row(row);
                prop_assert_eq!(&found[*place as usize], &(columns.to_vec(), values.to_vec()));
            }
            prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_folder_that_is_gone_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let mut buckets = Buckets::new(&gone, 1, 1, 1, 1);
        let row = CsrBuffers {
            row_offsets: vec![0, 1],
            columns: vec![0],
            values: vec![1.0],
            n_columns: 1,
        };
        buckets.scatter(&row, &[0]).unwrap();
        let error = buckets.gather().unwrap_err().to_string();
        assert!(error.contains("gone/rows-0"), "{error}");
    }
}
