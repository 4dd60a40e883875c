//! Blocks of a cache on disk.

use super::{first_byte, split_at_most};
use crate::storage::cache::block::{BlockId, HEADER_BYTES, ObjectId, object_id};
use crate::storage::{FileVersion, cache};

/// Input: length of a name (1 byte), the name, and the block's file.
pub(super) fn cache_block(input: &[u8]) {
    let (name_len, rest) = first_byte(input);
    let (name, file) = split_at_most(rest, name_len.into());
    let text = String::from_utf8_lossy(name);
    let _ = cache::is_in_fragment(&text);
    if let Some(id) = BlockId::parse(&text) {
        assert_eq!(id.name(), text);
        assert_eq!(id.folder().len(), 2);
        check_file(&id, file);
    }
    // A block must be accepted only if complete, and only under its own name.
    let version = FileVersion { size: file.len() as u64, tag: Some(text.into_owned()) };
    let object: ObjectId = object_id("memory", "file", &version, 4096);
    let id = BlockId { object, idx: name.len() as u64 };
    let mut whole = id.header(file).to_vec();
    whole.extend_from_slice(file);
    assert_eq!(id.payload(&whole), Some(file));
    assert_eq!(BlockId { idx: id.idx + 1, ..id }.payload(&whole), None);
    assert_eq!(id.payload(&whole[..whole.len() - 1]), None);
    let at = name.iter().fold(0, |at, byte| (at * 31 + usize::from(*byte)) % whole.len());
    whole[at] ^= 1;
    assert_eq!(id.payload(&whole), None, "byte {at}");
}

fn check_file(id: &BlockId, file: &[u8]) {
    if let Some(payload) = id.payload(file) {
        assert_eq!(payload.len() + HEADER_BYTES, file.len());
        assert_eq!(id.header(payload), file[..HEADER_BYTES]);
    }
}
