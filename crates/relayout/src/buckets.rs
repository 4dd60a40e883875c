//! Shuffles rows that do not fit into memory: scatters them to files by their new places, then
//! orders each file in memory.
//!
//! A bucket is a range of new rows. The source is read in order, and each cell is appended to the
//! bucket of its new row, so that both passes read and write long runs of bytes. Each attempt to
//! write the experiment has its own folder of buckets, removed when it ends.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use soma_io::CsrBuffers;

use crate::record::{self, Record};
use crate::{Error, Spilled};

/// The smallest buffer per bucket; smaller ones would be written too often.
const SMALLEST_BUFFER_BYTES: usize = 1 << 16;

/// All buckets. Dropping them removes their files.
#[derive(Debug)]
pub(crate) struct Buckets {
    folder: PathBuf,
    each: Vec<Bucket>,
    bucket_rows: u64,
    n_rows: u64,
    n_columns: usize,
    buffer_bytes: usize,
    spilled: Spilled,
}

#[derive(Debug)]
struct Bucket {
    path: PathBuf,
    buffer: Vec<u8>,
    /// Bytes of the file, which does not exist before the first write.
    n_bytes: u64,
}

/// Marks a row that was not found.
const NOWHERE: usize = usize::MAX;

impl Buckets {
    /// Makes buckets of `bucket_rows` rows each for `n_rows` rows, in a new folder below `folder`.
    /// Rows waiting to be written take about `buffer_bytes` bytes.
    pub(crate) fn create(
        folder: &Path,
        n_rows: u64,
        n_columns: usize,
        bucket_rows: u64,
        buffer_bytes: u64,
    ) -> Result<Self, Error> {
        let folder = new_folder(folder)?;
        let n_buckets = n_rows.div_ceil(bucket_rows);
        let buffer_bytes = (buffer_bytes / n_buckets.max(1)) as usize;
        let bucket = |idx| Bucket {
            path: folder.join(format!("rows-{idx}")),
            buffer: Vec::new(),
            n_bytes: 0,
        };
        Ok(Self {
            each: (0..n_buckets).map(bucket).collect(),
            folder,
            bucket_rows,
            n_rows,
            n_columns,
            buffer_bytes: buffer_bytes.max(SMALLEST_BUFFER_BYTES),
            spilled: Spilled::default(),
        })
    }

    /// Counts of everything written to files so far.
    pub(crate) fn spilled(&self) -> Spilled {
        self.spilled
    }

    /// Appends rows to their buckets: row `i` becomes the new row `places[i]`.
    pub(crate) fn scatter(&mut self, rows: &CsrBuffers, places: &[u32]) -> Result<(), Error> {
        let column_bytes = record::column_bytes(self.n_columns);
        for (row_idx, place) in places.iter().enumerate() {
            let (columns, values) = rows.row(row_idx);
            let place = u64::from(*place);
            let bucket = &mut self.each[(place / self.bucket_rows) as usize];
            let row = (place % self.bucket_rows) as u32;
            record::push(&mut bucket.buffer, row, columns, values, column_bytes);
            if bucket.buffer.len() >= self.buffer_bytes {
                bucket.flush(&mut self.spilled)?;
            }
        }
        Ok(())
    }

    /// Ends the scattering; the result returns the rows in their new order.
    pub(crate) fn gather(mut self) -> Result<Gather, Error> {
        for bucket in &mut self.each {
            bucket.flush(&mut self.spilled)?;
            bucket.buffer = Vec::new();
        }
        Ok(Gather { buckets: self, bucket: 0, bytes: Vec::new(), starts: Vec::new(), row: 0 })
    }

    fn rows_of(&self, bucket: usize) -> u64 {
        self.bucket_rows.min(self.n_rows - bucket as u64 * self.bucket_rows)
    }
}

/// Creates a folder that did not exist before.
fn new_folder(parent: &Path) -> Result<PathBuf, Error> {
    for attempt in 1_u32.. {
        let folder = parent.join(format!("attempt-{attempt}"));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(file_error("create the folder", &folder, error)),
        }
    }
    Err(file_error("create a folder in", parent, ErrorKind::AlreadyExists.into()))
}

impl Drop for Buckets {
    fn drop(&mut self) {
        // If removing fails here, the folder goes with its parent.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

impl Bucket {
    fn flush(&mut self, spilled: &mut Spilled) -> Result<(), Error> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let is_first = self.n_bytes == 0;
        // Opened anew each time: there may be more buckets than the limit of open files.
        let append = || {
            let mut options = OpenOptions::new();
            options.append(true).create_new(is_first);
            options.open(&self.path)?.write_all(&self.buffer)
        };
        append().map_err(|source| file_error("write rows to", &self.path, source))?;
        self.n_bytes += self.buffer.len() as u64;
        spilled.n_files += u64::from(is_first);
        spilled.n_writes += 1;
        spilled.n_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Reads the whole file into `bytes`, and removes it. Sets `starts` to the offsets of its
    /// `n_rows` rows in `bytes`.
    fn load(
        &self,
        n_rows: u64,
        column_bytes: usize,
        bytes: &mut Vec<u8>,
        starts: &mut Vec<usize>,
    ) -> Result<(), Error> {
        let damaged = |problem| Error::Temporary { path: self.path.clone(), problem };
        let failed = |source| file_error("read rows from", &self.path, source);
        let mut file = File::open(&self.path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        if found != self.n_bytes {
            return Err(damaged(format!("it has {found} bytes instead of {}", self.n_bytes)));
        }
        bytes.resize(self.n_bytes as usize, 0);
        file.read_exact(bytes).map_err(failed)?;
        find_rows(bytes, n_rows, column_bytes, starts).map_err(damaged)?;
        std::fs::remove_file(&self.path).map_err(|source| file_error("remove", &self.path, source))
    }
}

/// Sets `starts` to the offset of each of `n_rows` rows in `bytes`. Fails unless `bytes` contains
/// each row exactly once and nothing else.
fn find_rows(
    bytes: &[u8],
    n_rows: u64,
    column_bytes: usize,
    starts: &mut Vec<usize>,
) -> Result<(), String> {
    starts.clear();
    starts.resize(n_rows as usize, NOWHERE);
    let mut at = 0;
    while at < bytes.len() {
        let Some(record) = Record::at(&bytes[at..], column_bytes) else {
            return Err(format!("no whole row is at byte {at}"));
        };
        match starts.get_mut(record.row as usize) {
            Some(start) if *start == NOWHERE => *start = at,
            Some(_) => return Err(format!("row {} is there twice", record.row)),
            None => return Err(format!("row {} is there, of {n_rows}", record.row)),
        }
        at += record.len();
    }
    match starts.iter().position(|start| *start == NOWHERE) {
        Some(row) => Err(format!("row {row} is missing")),
        None => Ok(()),
    }
}

fn file_error(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::File { action, path: path.to_owned(), source }
}

/// Returns rows in their new order, bucket by bucket.
#[derive(Debug)]
pub(crate) struct Gather {
    buckets: Buckets,
    /// The bucket after the one in memory.
    bucket: usize,
    bytes: Vec<u8>,
    /// The offset of each row in `bytes`.
    starts: Vec<usize>,
    /// The next row of the bucket.
    row: usize,
}

impl Gather {
    /// Counts of everything written to files.
    pub(crate) fn spilled(&self) -> Spilled {
        self.buckets.spilled
    }

    /// Returns the next rows, with about `n_values` values; none at the end.
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
            // The bucket was checked when it was loaded, so there is a record here.
            if let Some(record) = Record::at(&self.bytes[self.starts[self.row]..], column_bytes) {
                record.append(&mut out);
            }
            self.row += 1;
        }
        Ok((out.n_rows() > 0).then_some(out))
    }

    fn next_bucket(&mut self) -> Result<bool, Error> {
        let Some(bucket) = self.buckets.each.get(self.bucket) else { return Ok(false) };
        let n_rows = self.buckets.rows_of(self.bucket);
        let column_bytes = record::column_bytes(self.buckets.n_columns);
        bucket.load(n_rows, column_bytes, &mut self.bytes, &mut self.starts)?;
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
            let mut buckets = Buckets::create(folder.path(), n_rows as u64, 9, bucket_rows, 64).unwrap();
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
            let spilled = gather.spilled();
            prop_assert_eq!(spilled.n_files, (n_rows as u64).div_ceil(bucket_rows));
            drop(gather);
            prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    /// Rows of one value each, and their buckets after scattering.
    fn scattered(folder: &Path, n_rows: u32, bucket_rows: u64) -> Gather {
        let rows = CsrBuffers {
            row_offsets: (0..=n_rows as usize).collect(),
            columns: vec![0; n_rows as usize],
            values: (0..n_rows).map(|row| row as f32).collect(),
            n_columns: 1,
        };
        let mut buckets = Buckets::create(folder, n_rows.into(), 1, bucket_rows, 1).unwrap();
        buckets.buffer_bytes = 20;
        let places: Vec<u32> = (0..n_rows).collect();
        buckets.scatter(&rows, &places).unwrap();
        buckets.gather().unwrap()
    }

    fn error_of(gather: &mut Gather) -> Error {
        loop {
            match gather.next(1, CsrBuffers::default()) {
                Ok(rows) => assert!(rows.is_some(), "all rows came"),
                Err(error) => return error,
            }
        }
    }

    #[test]
    fn a_later_attempt_sees_nothing_of_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let first = scattered(folder.path(), 7, 3);
        let mut second = scattered(folder.path(), 7, 3);
        let mut n_rows = 0;
        while let Some(rows) = second.next(1, CsrBuffers::default()).unwrap() {
            n_rows += rows.n_rows();
        }
        assert_eq!(n_rows, 7);
        assert_eq!(first.spilled(), second.spilled());
        drop((first, second));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_changed_is_an_error() {
        type Change = fn(&mut Vec<u8>);
        let record_bytes = 9 + 2 + 1;
        let changes: [(Change, &str); 8] = [
            (|bytes| bytes.truncate(bytes.len() - 1), "35 bytes instead of 36"),
            (|bytes| bytes.push(0), "37 bytes instead of 36"),
            (|bytes| bytes.extend_from_within(..12), "48 bytes instead of 36"),
            (Vec::clear, "0 bytes instead of 36"),
            (|bytes| bytes.copy_within(..12, 12), "row 0 is there twice"),
            (|bytes| bytes[0] = 3, "row 3 is there, of 3"),
            (|bytes| bytes[4] = 200, "no whole row is at byte 0"),
            (|bytes| bytes[8] = 3, "no whole row is at byte 0"),
        ];
        for (change, problem) in changes {
            let folder = tempfile::tempdir().unwrap();
            let mut gather = scattered(folder.path(), 9, 3);
            let path = gather.buckets.each[1].path.clone();
            let mut bytes = std::fs::read(&path).unwrap();
            assert_eq!(bytes.len(), 3 * record_bytes);
            change(&mut bytes);
            std::fs::write(&path, bytes).unwrap();
            let error = error_of(&mut gather);
            assert!(matches!(error, Error::Temporary { .. }), "{error:?}");
            assert!(error.to_string().contains(problem), "{problem}: {error}");
        }
        // A file of the same length with one row less: the other rows are one value longer.
        let mut bytes = Vec::new();
        record::push(&mut bytes, 0, &[0, 0, 0, 0, 0], &[1.0; 5], 2);
        record::push(&mut bytes, 2, &[], &[], 2);
        let missing = find_rows(&bytes, 3, 2, &mut Vec::new());
        assert_eq!(missing.unwrap_err(), "row 1 is missing");
    }

    #[test]
    fn a_file_that_is_gone_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut gather = scattered(folder.path(), 9, 3);
        std::fs::remove_file(&gather.buckets.each[2].path).unwrap();
        let error = error_of(&mut gather).to_string();
        assert!(error.contains("attempt-1/rows-2"), "{error}");
    }

    #[test]
    fn a_file_that_is_there_already_is_not_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let mut buckets = Buckets::create(folder.path(), 1, 1, 1, 1).unwrap();
        std::fs::write(&buckets.each[0].path, "other").unwrap();
        let row = CsrBuffers {
            row_offsets: vec![0, 1],
            columns: vec![0],
            values: vec![1.0],
            n_columns: 1,
        };
        buckets.scatter(&row, &[0]).unwrap();
        let error = buckets.gather().unwrap_err().to_string();
        assert!(error.contains("attempt-1/rows-0"), "{error}");
    }

    #[test]
    fn a_folder_that_is_gone_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Buckets::create(&folder.path().join("gone"), 1, 1, 1, 1).unwrap_err();
        assert!(error.to_string().contains("gone/attempt-1"), "{error}");
    }
}
