//! Targets for fuzzing: functions that give any bytes to one part of the crate and panic if a
//! promise is broken.
//!
//! Compiled for this crate's tests, which run every kept input, and with the feature `fuzz`, for
//! the package in `fuzz/` that runs them under libFuzzer.

pub use crate::served::{EMPTY_FILE_BYTES, Served};

use crate::cache::block::{BlockId, HEADER_BYTES, ObjectId, object_id};
use crate::storage::FileVersion;

/// A target's name, which is also that of its corpus, and the function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of this crate.
pub const TARGETS: [Target; 1] = [("cache_block", cache_block)];

/// Length of a name (1 byte), the name, and the block's file.
fn cache_block(input: &[u8]) {
    let (name_len, rest) = input.split_first().map_or((0, input), |(len, rest)| (*len, rest));
    let (name, file) = rest.split_at(rest.len().min(name_len.into()));
    let text = String::from_utf8_lossy(name);
    if let Some(id) = BlockId::parse(&text) {
        assert_eq!(id.name(), text);
        assert_eq!(id.folder().len(), 2);
        check_file(&id, file);
    }
    // Any bytes make a block. It is accepted only whole, and only under its own name.
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

#[cfg(test)]
mod tests {
    #[test]
    fn no_kept_input_breaks_a_promise() {
        fuzz_corpus::run_kept_inputs(&super::TARGETS);
    }
}
