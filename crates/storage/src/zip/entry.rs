//! One entry of an archive.

use std::io;
use std::sync::OnceLock;

use rawzip::{CompressionMethod, ZipFileHeaderRecord};

/// Bytes of the header before an entry's bytes, without its name and its further fields.
pub(super) const HEADER_BYTES: u64 = 30;
/// How such a header begins.
const SIGNATURE: &[u8; 4] = b"PK\x03\x04";
/// Where it has the lengths of its name and of its further fields.
const LENGTHS: usize = 26;
/// The most bytes that deflate makes of one.
const MOST_INFLATED: u64 = 1032;

/// How an entry is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is.
    Stored,
    Deflated,
    /// By a method of this number, which is not read.
    Other(u16),
    Encrypted,
}

/// What the directory says of an entry.
#[derive(Debug)]
pub(super) struct Entry {
    /// Where its header is.
    pub(super) header: u64,
    /// Bytes in the archive.
    pub(super) n_stored: u64,
    pub(super) n_bytes: u64,
    pub(super) form: Form,
    pub(super) sum: u32,
    /// Where its bytes begin, once its header was read.
    start: OnceLock<u64>,
}

impl Entry {
    pub(super) fn new(record: &ZipFileHeaderRecord<'_>) -> Self {
        let form = match record.compression_method() {
            _ if record.flags().is_encrypted() => Form::Encrypted,
            CompressionMethod::STORE => Form::Stored,
            CompressionMethod::DEFLATE => Form::Deflated,
            other => Form::Other(other.as_u16()),
        };
        Self {
            header: record.local_header_offset(),
            n_stored: record.compressed_size_hint(),
            n_bytes: record.uncompressed_size_hint(),
            form,
            sum: record.crc32(),
            start: OnceLock::new(),
        }
    }

    /// Fails if it cannot be what the directory says. Entries lie before `end`.
    pub(super) fn check(&self, end: u64) -> io::Result<()> {
        let most = match self.form {
            Form::Stored => self.n_stored,
            Form::Deflated => self.n_stored.saturating_mul(MOST_INFLATED),
            Form::Encrypted => return Err(invalid("it is encrypted: write it without")),
            Form::Other(method) => {
                let what = format!(
                    "it is compressed by method {method}; stored and deflated entries are read: \
                     write the archive anew, best without compression, as zarr.storage.ZipStore does"
                );
                return Err(invalid(&what));
            }
        };
        let is_equal = self.form != Form::Stored || self.n_bytes == most;
        if most < self.n_bytes || !is_equal {
            let what = format!("{} bytes are stored in {}", self.n_bytes, self.n_stored);
            return Err(invalid(&what));
        }
        let after = self.header.checked_add(HEADER_BYTES + self.n_stored.min(end));
        if after.is_none_or(|after| end < after) || end < self.n_stored {
            return Err(invalid("it reaches beyond the archive"));
        }
        Ok(())
    }

    /// Where its bytes begin, if that is known.
    pub(super) fn start(&self) -> Option<u64> {
        self.start.get().copied()
    }

    /// Learns from its header where its bytes begin. Returns the bytes of the header's further
    /// fields.
    pub(super) fn learn(&self, name: &str, header: &[u8], end: u64) -> io::Result<u64> {
        let lengths = header.get(LENGTHS..HEADER_BYTES as usize);
        let Some(&[n0, n1, f0, f1]) = lengths.filter(|_| header.starts_with(SIGNATURE)) else {
            return Err(invalid("there is no header of an entry where the directory has one"));
        };
        let of_name = u16::from_le_bytes([n0, n1]);
        if usize::from(of_name) != name.len() || !header.ends_with(name.as_bytes()) {
            return Err(invalid("another entry is where the directory has it"));
        }
        let fields = u64::from(u16::from_le_bytes([f0, f1]));
        let start = self.header + header.len() as u64 + fields;
        if end < start.saturating_add(self.n_stored) {
            return Err(invalid("it reaches beyond the archive"));
        }
        Ok(self.start.get_or_init(|| start) - self.header - header.len() as u64)
    }

    /// Compares all its bytes with their checksum.
    pub(super) fn check_sum(&self, bytes: &[u8]) -> io::Result<()> {
        check_sum(crc32fast::hash(bytes), self.sum)
    }
}

/// Compares a checksum with the one in the directory.
pub(super) fn check_sum(found: u32, expected: u32) -> io::Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(invalid("its checksum is another: it is damaged"))
}

pub(super) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
