//! The metadata of a fragment: its footer, bounding rectangles and places of tiles.

use std::sync::{Arc, OnceLock};

use storage::Files;

use super::first_byte;
use crate::deletes::Deletes;
use crate::directory::FragmentFolder;
use crate::error::Error;
use crate::fragment::{Field, Footer, Fragment, RawFooter};
use crate::schema::{Layout, Schema};
use crate::timestamped_name::Times;
use storage::MemoryStorage;

/// The format versions that the first byte of the input chooses from.
const VERSIONS: [u32; 8] = [5, 7, 9, 10, 14, 15, 21, 22];

/// Input: a byte that selects the format version, then a fragment metadata file.
pub(super) fn fragment(input: &[u8]) {
    let (choice, file) = first_byte(input);
    let version = VERSIONS[usize::from(choice) % VERSIONS.len()];
    // An error is an acceptable result.
    let _read = read(version, file);
}

fn read(version: u32, file: &[u8]) -> Result<(), Error> {
    let name = format!("__1_2_70f1b2c0f0669ba097275f1a0db8dd1c_{version}");
    let path = format!("__fragments/{name}");
    let served = MemoryStorage::one(&format!("{path}/__fragment_metadata.tdb"), file);
    let files = Files::new(Arc::new(MemoryStorage { serves_all: true, ..served }));
    let times = Times { start: 1, end: 2, version: Some(version) };
    let folder = FragmentFolder { name, path, times };
    let schema = schema();
    for raw in RawFooter::load_all(&files, std::slice::from_ref(&folder), Some(schema))? {
        let layout = Layout::from_schema(schema, version, None)
            .map_err(|reason| Error::Unsupported { place: files.place(), reason })?;
        let parsed = raw.parse(&files, &folder, schema)?;
        let footer = raw.matrix(&files, &folder, &parsed, layout.attribute_idx)?;
        let deletes = Deletes::default().concerning(&files, &folder, &parsed)?;
        let n_tiles = usize::try_from(footer.n_tiles).unwrap_or(usize::MAX);
        let shape = layout.shape;
        let fragment = Fragment::new(folder.clone(), footer, Arc::new(layout), deletes);
        let n_cells = fragment.n_cells();
        assert_eq!(n_cells == 0, n_tiles == 0);
        let tiles = fragment.tiles(&files)?;
        let mut met = Vec::new();
        tiles.meeting(0, u64::MAX, &mut |tile| met.push(tile));
        assert_eq!(met.len(), n_tiles);
        for tile in met {
            let bounds = tiles.bounds(tile);
            assert!(bounds.rows.0 <= bounds.rows.1 && bounds.rows.1 < shape[0].1);
            assert!(bounds.columns.0 <= bounds.columns.1);
            assert!(u64::from(bounds.columns.1) < shape[1].1);
            for field in fields(&fragment.footer) {
                let bytes = tiles.bytes(field, tile);
                assert!(
                    bytes.start < bytes.end && bytes.end <= MemoryStorage::EMPTY_FILE_BYTES,
                    "{bytes:?}"
                );
            }
        }
    }
    Ok(())
}

fn fields(footer: &Footer) -> impl Iterator<Item = Field> {
    let Footer { has_timestamps, has_delete_times, .. } = *footer;
    Field::ALL.into_iter().filter(move |field| match field {
        Field::Times => has_timestamps,
        Field::DeleteTimes => has_delete_times,
        Field::Rows | Field::Columns | Field::Values => true,
    })
}

/// The schema of a stored array.
fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let stored = include_bytes!("../../tests/data/format-22.files");
        let served = MemoryStorage::unpack(stored);
        let schemas = served.files.keys().find(|path| path.starts_with("__schema/"));
        let file = schemas.cloned().unwrap_or_default();
        let schema = Schema::load(&Files::new(Arc::new(served)), &file);
        schema.unwrap_or_else(|error| panic!("the stored array has no schema: {error}"))
    })
}
