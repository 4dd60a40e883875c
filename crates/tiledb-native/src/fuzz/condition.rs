//! Conditions of deletes.

use std::sync::{Arc, OnceLock};

use storage::Files;
use storage::MemoryStorage;

use crate::deletes::{Condition, FieldCells, Places, kept_by};
use crate::schema::{Schema, VARIABLE};

/// Cells of which a condition is evaluated.
const N_CELLS: usize = 3;

/// Input: the unfiltered tile of a delete commit.
pub(super) fn condition(input: &[u8]) {
    let schema = schema();
    let Ok(condition) = Condition::parse(input, schema) else { return };
    let n_fields = schema.dimensions.len() + schema.attributes.len();
    condition.fields(&mut |field| assert!(field < n_fields));
    // The values of the cells are bytes of the input, as far as there are any.
    let offsets = [0, 1, 1, 4].map(|place: usize| place.min(input.len()));
    let sizes = schema.attributes.iter().map(|attribute| {
        let size = attribute.datatype.size().unwrap_or(1);
        (attribute.values_per_cell != VARIABLE).then_some(size)
    });
    let fields: Vec<_> = [Some(8)]
        .into_iter()
        .chain(sizes)
        .map(|size| {
            let places = size.map_or(Places::VarSized(&offsets), Places::Fixed);
            Some(FieldCells { bytes: input, places, validity: Some(&[1, 0, 1]) })
        })
        .collect();
    let none = vec![None; n_fields];
    for fields in [&fields, &none] {
        let kept = kept_by(&condition, fields, N_CELLS);
        // A null meets no condition, and neither does a field that is not there.
        assert!(!kept[1] && (fields[0].is_some() || kept == [false; N_CELLS]));
    }
}

/// The schema of a stored table.
fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let served = MemoryStorage::unpack(include_bytes!("../../tests/data/table-deleted.files"));
        let is_schema = |path: &&String| path.starts_with("__schema/__5_");
        let file = served.files.keys().find(is_schema).cloned().unwrap_or_default();
        let schema = Schema::load(&Files::new(Arc::new(served)), &file);
        schema.unwrap_or_else(|error| panic!("the stored table has no schema: {error}"))
    })
}
