//! A block on disk: its name, and how damage and other blocks are recognized.
//!
//! The file is a header of [`HEADER_BYTES`] (magic, format, payload length, object, number of the
//! block, checksum; little-endian) and the payload. The header depends on the block's name and its
//! payload alone, so a check makes it anew and compares.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use twox_hash::XxHash3_64;

use crate::storage::FileVersion;

pub(crate) const HEADER_BYTES: usize = 48;
const MAGIC: [u8; 8] = *b"TDBblock";
/// Format of the files and of object ids. Blocks of another format are missed and, in time,
/// evicted.
const FORMAT: u32 = 2;

/// Identifies what blocks belong to: for a file its place, name and version, and the size of its
/// blocks.
pub type ObjectId = [u8; 16];

/// Identifies a block of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId {
    /// The object.
    pub object: ObjectId,
    /// The block's number in it. A block of a file begins at this multiple of the block size.
    pub idx: u64,
}

/// The id of `file` at `place` in this version. It depends on both together, the file's address: a
/// file has one id in storages of any folder above it.
pub(crate) fn object_id(
    place: &str,
    file: &str,
    version: &FileVersion,
    block_bytes: u64,
) -> ObjectId {
    let mut hasher = Sha256::new();
    hasher.update(FORMAT.to_le_bytes());
    hasher.update(block_bytes.to_le_bytes());
    hasher.update(version.size.to_le_bytes());
    hasher.update([u8::from(version.tag.is_some())]);
    let address = format!("{}/{file}", place.trim_end_matches('/'));
    for text in [address.as_str(), version.tag.as_deref().unwrap_or_default()] {
        // Each text follows its length, so no two lists of texts give the same bytes.
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    let mut object = ObjectId::default();
    object.copy_from_slice(&hasher.finalize()[..size_of::<ObjectId>()]);
    object
}

impl BlockId {
    /// The folder it is in: one of 256, so that none grows too large.
    pub(crate) fn folder(&self) -> String {
        format!("{:02x}", self.object[0].wrapping_add(self.idx as u8))
    }

    pub(crate) fn name(&self) -> String {
        let mut name = String::with_capacity(50);
        for byte in self.object {
            // Writing to a string does not fail.
            let _ = write!(name, "{byte:02x}");
        }
        let _ = write!(name, "-{:x}", self.idx);
        name
    }

    /// Parses a block's name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (object, idx) = name.split_once('-')?;
        let object = u128::from_str_radix(object, 16).ok()?.to_be_bytes();
        let found = Self { object, idx: u64::from_str_radix(idx, 16).ok()? };
        (found.name() == name).then_some(found)
    }

    /// The header of the block for this payload.
    pub(crate) fn header(&self, payload: &[u8]) -> [u8; HEADER_BYTES] {
        let mut header = self.unchecked_header(payload.len());
        header[40..].copy_from_slice(&XxHash3_64::oneshot(payload).to_le_bytes());
        header
    }

    /// The header for a payload of `len` bytes, without its checksum.
    fn unchecked_header(&self, len: usize) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        header[12..16].copy_from_slice(&(len as u32).to_le_bytes());
        header[16..32].copy_from_slice(&self.object);
        header[32..40].copy_from_slice(&self.idx.to_le_bytes());
        header
    }

    /// The beginning of the payload in the beginning of the block's file, which has `file_len`
    /// bytes; `None` if the file is another block's or cut short. Does not check the payload.
    pub(crate) fn payload_start<'a>(&self, start: &'a [u8], file_len: u64) -> Option<&'a [u8]> {
        let (header, payload) = start.split_first_chunk::<HEADER_BYTES>()?;
        let len = usize::try_from(file_len).ok()?.checked_sub(HEADER_BYTES)?;
        (header[..40] == self.unchecked_header(len)[..40]).then_some(payload)
    }

    /// The payload in the block's file; `None` if the file is another block's, or damaged.
    pub(crate) fn payload<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let (header, payload) = file.split_first_chunk::<HEADER_BYTES>()?;
        (*header == self.header(payload)).then_some(payload)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_are_read_back(object in any::<ObjectId>(), idx: u64) {
            let id = BlockId { object, idx };
            prop_assert_eq!(BlockId::parse(&id.name()), Some(id));
        }

        #[test]
        fn any_damage_is_seen(
            payload in prop::collection::vec(any::<u8>(), 0..300),
            at: prop::sample::Index,
            flip in 1..=255_u8,
            cut: prop::sample::Index,
        ) {
            let id = BlockId { object: [7; 16], idx: 3 };
            let mut file = [&id.header(&payload)[..], &payload].concat();
            prop_assert_eq!(id.payload(&file), Some(&payload[..]));
            prop_assert_eq!(id.payload(&file[..cut.index(file.len())]), None);
            prop_assert_eq!(BlockId { idx: 4, ..id }.payload(&file), None);
            let start = &file[..file.len().min(60)];
            let of_start = &payload[..payload.len().min(12)];
            prop_assert_eq!(id.payload_start(start, file.len() as u64), Some(of_start));
            prop_assert_eq!(id.payload_start(start, file.len() as u64 + 1), None);
            prop_assert_eq!(BlockId { idx: 4, ..id }.payload_start(start, file.len() as u64), None);
            let at = at.index(file.len());
            file[at] ^= flip;
            prop_assert_eq!(id.payload(&file), None);
        }
    }

    #[test]
    fn other_names_are_no_blocks() {
        let name = BlockId { object: [0xab; 16], idx: 0x1f }.name();
        assert_eq!(name, "abababababababababababababababab-1f");
        let with = |from: &str, to: &str| BlockId::parse(&name.replace(from, to));
        assert_eq!(with("-1f", "-01f"), None);
        assert_eq!(with("-1f", "-1F"), None);
        assert_eq!(with("-1f", ""), None);
        assert_eq!(with("abab", "+bab"), None);
        assert_eq!(with("-1f", "-1f.tmp"), None);
    }

    #[test]
    fn every_part_of_the_identity_counts() {
        let version = |size, tag: Option<&str>| FileVersion { size, tag: tag.map(str::to_owned) };
        let of_root = object_id("s3://a", "b/c", &version(9, None), 64);
        assert_eq!(of_root, object_id("s3://a/b", "c", &version(9, None), 64));
        let ids = [
            object_id("s3://a", "b", &version(9, None), 64),
            object_id("s3://a", "b", &version(9, Some("")), 64),
            object_id("s3://a", "b", &version(9, Some("x")), 64),
            object_id("s3://a", "b", &version(8, None), 64),
            object_id("s3://a", "b", &version(9, None), 32),
            object_id("s3://", "ab", &version(9, None), 64),
            object_id("s3://ab", "", &version(9, None), 64),
        ];
        for (idx, id) in ids.iter().enumerate() {
            assert!(!ids[..idx].contains(id), "{idx}");
        }
    }
}
