//! Creates arrays.

mod check;

use std::path::Path;

use super::new_file::{
    StagedFolder, absolute, create_folders, sync_folder, timestamped, unique, write_new,
};
use super::{generic_tile, schema};
use crate::error::Error;
use tiledb::Schema;

/// The folder whose presence makes an array.
const SCHEMAS: &str = "__schema";
/// The folder of enumerations in that of the schemas.
const ENUMERATIONS: &str = "__enumerations";
/// The other folders of an array, as libtiledb creates them.
const FOLDERS: [&str; 5] = ["__fragments", "__commits", "__fragment_meta", "__meta", "__labels"];

/// Creates an array in `folder`, with a schema of `timestamp`, in milliseconds since 1970.
///
/// The folder of schemas appears last and whole. So an incomplete array is not an array, and a
/// failed call can be repeated. An empty list of filters means libtiledb's default where [`Schema`]
/// says so. The array has format version 22, which libtiledb 2.26 and later read.
///
/// # Errors
/// [`Error::Schema`] if the schema is not that of a sparse array with integer dimensions, if an
/// enumeration has more than 1 GiB, or if there is an array already; [`Error::Storage`].
pub fn create_array(
    folder: impl AsRef<Path>,
    schema: &Schema,
    timestamp: u64,
) -> Result<(), Error> {
    let root = absolute(folder.as_ref());
    let failed = |problem| Error::Schema { place: root.display().to_string(), problem };
    check::check(schema).map_err(failed)?;
    if is_array(&root) {
        return Err(failed("there is an array already".to_owned()));
    }
    let files = schema_files(&root, schema, timestamp).map_err(failed)?;
    create_folders(&root, &FOLDERS)?;
    let schemas = StagedFolder::create(&root)?;
    create_folders(schemas.path(), &[ENUMERATIONS])?;
    for (path, bytes) in files {
        write_new(&schemas.path().join(path), &bytes)?;
    }
    sync_folder(&schemas.path().join(ENUMERATIONS))?;
    schemas.publish(SCHEMAS)
}

/// Whether there is an array in `root`.
pub(super) fn is_array(root: &Path) -> bool {
    root.join(SCHEMAS).exists() || root.join("__array_schema.tdb").exists()
}

/// The files of the folder of schemas: of the enumerations, and of the schema.
///
/// # Errors
/// The part that cannot be stored, and why.
fn schema_files(
    root: &Path,
    schema: &Schema,
    timestamp: u64,
) -> Result<Vec<(String, Vec<u8>)>, String> {
    let names: Vec<String> =
        schema.enumerations.iter().map(|_| format!("__{}_0", unique(root))).collect();
    let file = |content: &[u8]| generic_tile::file(schema::VERSION, content);
    let mut files = Vec::new();
    for (enumeration, name) in schema.enumerations.iter().zip(&names) {
        let bytes = file(&schema::enumeration(enumeration, name)?)
            .map_err(|problem| format!("enumeration {:?}: {problem}", enumeration.name))?;
        files.push((format!("{ENUMERATIONS}/{name}"), bytes));
    }
    let bytes = file(&schema::schema(schema, &names)?)?;
    files.push((timestamped(root, (timestamp, timestamp)), bytes));
    Ok(files)
}
