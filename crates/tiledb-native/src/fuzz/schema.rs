//! Array schemas, and the generic tiles that they come in.

use std::sync::Arc;

use storage::Files;

use crate::generic_tile::Source;
use crate::schema::{Layout, Schema};
use storage::MemoryStorage;

/// Input: an unfiltered schema, parsed, and laid out in several formats.
pub(super) fn schema(input: &[u8]) {
    let Ok(schema) = Schema::parse(input) else { return };
    let attribute = schema.attributes.last().map(|attribute| attribute.name.as_str());
    for version in [schema.version, 5, 12, 22] {
        for attribute in [None, attribute] {
            if let Ok(layout) = Layout::from_schema(&schema, version, attribute) {
                assert!(layout.capacity > 0, "{layout:?}");
                assert_eq!(layout.differs(&layout), None);
            }
        }
    }
}

/// Input: a file with one generic tile, which is also read as a schema.
pub(super) fn generic_tile(input: &[u8]) {
    const FILE: &str = "__schema/__1_1_70f1b2c0f0669ba097275f1a0db8dd1c";
    let files = Files::new(Arc::new(MemoryStorage::one(FILE, input)));
    let whole = Source::new(&files, FILE, input.len() as u64).read(0);
    // With its first bytes loaded it is the same tile.
    let loaded = Source::new(&files, FILE, input.len() as u64)
        .with_loaded(0, &input[..input.len() / 2])
        .read(0);
    assert_eq!(whole.as_ref().ok(), loaded.as_ref().ok());
    let _schema = Schema::load(&files, FILE);
}
