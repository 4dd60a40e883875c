//! Details of groups, metadata, and enumerations.

use tiledb::EnumerationValues;

use crate::{enumeration, group, metadata};

/// Input: unfiltered details of a group.
pub(super) fn group(input: &[u8]) {
    let Ok(members) = group::parse(input) else { return };
    assert!(members.is_sorted_by(|a, b| a.name < b.name), "{members:?}");
}

/// Input: unfiltered records of metadata.
pub(super) fn metadata(input: &[u8]) {
    let Ok(n_keys) = metadata::parse(input) else { return };
    // A record takes five bytes at least.
    assert!(n_keys <= input.len() / 5, "{n_keys} keys in {} bytes", input.len());
}

/// Input: an unfiltered enumeration.
pub(super) fn enumeration(input: &[u8]) {
    let Ok(enumeration) = enumeration::parse(input) else { return };
    let _texts = enumeration.strings();
    let n_bytes = match &enumeration.values {
        EnumerationValues::VarSized(values) => values.iter().map(Vec::len).sum(),
        EnumerationValues::Fixed(bytes) => bytes.len(),
    };
    assert!(n_bytes <= input.len(), "{n_bytes} bytes of values in {}", input.len());
}
