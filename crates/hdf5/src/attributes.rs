//! Attributes of groups and datasets, as JSON.

use hdf5_reader::reference::resolve_object_reference;
use hdf5_reader::{Attribute, Datatype, Hdf5File};
use serde_json::{Map, Value};

use crate::numbers::number_type;

/// The group in which versions of Python's anndata before 0.8 keep categories, which columns beside
/// it refer to.
const CATEGORIES: &str = "__categories";

/// Returns the attributes of the object at `path`. Leaves out those whose type JSON has no value
/// for.
pub(crate) fn json(
    file: &Hdf5File,
    path: &str,
    attributes: &[Attribute],
) -> Result<Map<String, Value>, hdf5_reader::error::Error> {
    let mut json = Map::new();
    for attribute in attributes {
        if let Some(value) = value(file, path, attribute)? {
            json.insert(attribute.name.clone(), value);
        }
    }
    Ok(json)
}

fn value(
    file: &Hdf5File,
    path: &str,
    attribute: &Attribute,
) -> Result<Option<Value>, hdf5_reader::error::Error> {
    let is_scalar = attribute.shape.is_empty();
    match &attribute.datatype {
        Datatype::String { .. } | Datatype::VarLen { .. } if is_scalar => {
            Ok(attribute.read_string().ok().map(Value::from))
        }
        Datatype::String { .. } | Datatype::VarLen { .. } => {
            Ok(attribute.read_strings().ok().map(Value::from))
        }
        Datatype::Reference { .. } if is_scalar => {
            let offset_size = file.superblock().offset_size;
            let address = resolve_object_reference(&attribute.raw_data, offset_size)?;
            Ok(path_of(file, path, address)?.map(Value::from))
        }
        other => {
            let Some(numbers) = number_type(other) else { return Ok(None) };
            let values = attribute.raw_data.chunks_exact(numbers.n_bytes);
            let mut values = values.map_while(|bytes| numbers.value(bytes));
            Ok(if is_scalar { values.next() } else { Some(values.collect()) })
        }
    }
}

/// Returns the path of the object at an address, if it lies beside the object at `path` or in the
/// group of categories there.
fn path_of(
    file: &Hdf5File,
    path: &str,
    address: u64,
) -> Result<Option<String>, hdf5_reader::error::Error> {
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let beside = file.group(parent)?;
    let folders = beside.group(CATEGORIES).map(|group| (format!("{parent}/{CATEGORIES}"), group));
    for (folder, group) in folders.into_iter().chain([(parent.to_owned(), beside)]) {
        if let Some(name) = group.child_name_by_address(address)? {
            return Ok(Some(format!("{folder}/{name}")));
        }
    }
    Ok(None)
}
