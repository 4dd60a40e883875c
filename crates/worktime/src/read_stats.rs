//! Counts of reads.

use std::ops::AddAssign;

use crate::{ReadTimes, ThreadTime};

/// Counts and times of a read, of any kind of samples.
///
/// A count is `None` if the reader does not know it; the sum with another is then `None`, too.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ReadStats {
    /// Values returned: stored values of sparse samples, elements of dense samples.
    pub values: u64,
    /// Values decoded to find them, without those taken from a cache. Usually more than were
    /// wanted, since a chunk is decoded as a whole.
    pub values_decoded: Option<u64>,
    /// Bytes read from a folder, or asked of an object store, including those between ranges that
    /// are read as one. What is fetched ahead counts for the read that is under way. libtiledb
    /// counts them per reader, so of two concurrent reads each includes part of the other's.
    pub bytes_read: Option<u64>,
    /// Requests sent to an object store, including those that fetch ahead and those that repeat a
    /// late one, but not repetitions after a failure. `None` for a folder. Each counts for one
    /// read, the first of this reader or of an exact copy of it that ends after it was sent.
    pub requests: Option<u64>,
    /// Bytes after the filters or codecs decoded them.
    pub bytes_decoded: Option<u64>,
    /// Bytes of the returned values as they are stored, uncompressed.
    pub bytes_needed: Option<u64>,
    /// Time that the reader's threads spent fetching and decoding. A reader that can separate the
    /// two reports it for every form of read.
    pub times: Option<ReadTimes>,
    /// Time on the calling thread to convert the data read into the form that was asked for.
    pub convert: ThreadTime,
}

impl ReadStats {
    /// The counts before any read: 0, and known.
    pub fn nothing() -> Self {
        let known = Some(0);
        Self {
            values_decoded: known,
            bytes_read: known,
            requests: known,
            bytes_decoded: known,
            bytes_needed: known,
            times: Some(ReadTimes::default()),
            ..Self::default()
        }
    }

    /// The counts of decoding values, and nothing else.
    pub fn of_decoded(values: u64, bytes: u64) -> Self {
        let (values_decoded, bytes_decoded) = (Some(values), Some(bytes));
        Self { values_decoded, bytes_decoded, ..Self::nothing() }
    }

    /// Counts bytes that were fetched in this time.
    pub fn add_fetched(&mut self, bytes: u64, fetch: ThreadTime) {
        let (bytes_read, times) = (Some(bytes), Some(ReadTimes { fetch, ..ReadTimes::default() }));
        *self += Self { bytes_read, times, ..Self::nothing() };
    }

    /// Counts values and bytes that were decoded in this time.
    pub fn add_decoded(&mut self, values: u64, bytes: u64, decode: ThreadTime) {
        let times = Some(ReadTimes { decode, ..ReadTimes::default() });
        *self += Self { times, ..Self::of_decoded(values, bytes) };
    }
}

impl AddAssign for ReadStats {
    fn add_assign(&mut self, other: Self) {
        let sum = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        self.values += other.values;
        self.values_decoded = sum(self.values_decoded, other.values_decoded);
        self.bytes_read = sum(self.bytes_read, other.bytes_read);
        self.requests = sum(self.requests, other.requests);
        self.bytes_decoded = sum(self.bytes_decoded, other.bytes_decoded);
        self.bytes_needed = sum(self.bytes_needed, other.bytes_needed);
        self.times = self.times.zip(other.times).map(|(mut sum, part)| {
            sum += part;
            sum
        });
        self.convert += other.convert;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_a_part_does_not_know_is_not_known_of_the_sum() {
        let mut sum = ReadStats::nothing();
        sum.add_decoded(3, 12, ThreadTime::default());
        sum += ReadStats { values: 2, bytes_read: Some(7), ..ReadStats::default() };
        sum.add_fetched(5, ThreadTime::default());
        assert_eq!((sum.values, sum.bytes_read), (2, Some(12)));
        assert_eq!((sum.values_decoded, sum.bytes_decoded, sum.times), (None, None, None));
    }
}
