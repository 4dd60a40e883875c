//! Creates arrays.

mod check;

use std::path::Path;

use super::new_file::{absolute, create_folders, sync_folder, timestamped, unique, write_new};
use super::{generic_tile, schema};
use crate::error::Error;
use tiledb_schema::Schema;

/// The folders of an array, as libtiledb creates them.
const FOLDERS: [&str; 6] = [
    "__schema/__enumerations",
    "__fragments",
    "__commits",
    "__fragment_meta",
    "__meta",
    "__labels",
];

/// Creates an array in `folder`, with a schema of `timestamp`, in milliseconds since 1970.
///
/// The schema is written last, so that an incomplete array is none. An empty list of filters means
/// libtiledb's default where [`Schema`] says so. The array has format version 22, which libtiledb
/// 2.26 and later read.
///
/// # Errors
/// [`Error::Schema`] for what is no schema of a sparse array with integer dimensions, or if there
/// is an array already; [`Error::Storage`].
pub fn create_array(
    folder: impl AsRef<Path>,
    schema: &Schema,
    timestamp: u64,
) -> Result<(), Error> {
    let root = absolute(folder.as_ref());
    let failed = |problem| Error::Schema { place: root.display().to_string(), problem };
    check::check(schema).map_err(failed)?;
    let schemas = root.join("__schema");
    if schemas.exists() || root.join("__array_schema.tdb").exists() {
        return Err(failed("there is an array already".to_owned()));
    }
    let files: Vec<String> =
        schema.enumerations.iter().map(|_| format!("__{}_0", unique(&root))).collect();
    let content = schema::schema(schema, &files).map_err(failed)?;
    let enumerations = schema.enumerations.iter().zip(&files);
    let enumerations = enumerations
        .map(|(enumeration, file)| Ok((file, schema::enumeration(enumeration, file)?)))
        .collect::<Result<Vec<_>, String>>()
        .map_err(failed)?;
    create_folders(&root, &FOLDERS)?;
    let folder = schemas.join("__enumerations");
    for (file, content) in enumerations {
        write_new(&folder.join(file), &generic_tile::file(schema::VERSION, &content))?;
    }
    sync_folder(&folder)?;
    let name = timestamped(&root, (timestamp, timestamp));
    write_new(&schemas.join(name), &generic_tile::file(schema::VERSION, &content))?;
    sync_folder(&schemas)?;
    sync_folder(&root)
}
