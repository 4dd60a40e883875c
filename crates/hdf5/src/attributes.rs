//! Attributes of groups and datasets, as JSON.

use hdf5_reader::error::Error;
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::attribute_info;
use hdf5_reader::messages::dataspace::{self, DataspaceMessage, DataspaceType};
use hdf5_reader::messages::{MSG_ATTRIBUTE, MSG_ATTRIBUTE_INFO, MSG_DATASPACE, MSG_DATATYPE};
use serde_json::{Map, Value};

use crate::datatype::{Datatype, Element};
use crate::file::{File, Widths};
use crate::header::{Header, invalid, shared_message};
use crate::heap::indexed_objects;
use crate::strings::Strings;

/// Flags of an attribute: its datatype or its dataspace lies elsewhere.
const DATATYPE_IS_SHARED: u8 = 1;
const DATASPACE_IS_SHARED: u8 = 2;

/// An attribute.
struct Attribute {
    name: String,
    datatype: Datatype,
    is_single: bool,
    /// The bytes of its elements.
    bytes: Vec<u8>,
}

/// Returns the attributes of an object. Leaves out those whose type JSON has no value for, and
/// damaged ones. `path_of` finds the path of the object at an address.
///
/// # Errors
/// The storage fails.
pub(crate) fn json(
    file: &File,
    header: &Header,
    path_of: &dyn Fn(u64) -> Result<Option<String>, Error>,
) -> Result<Map<String, Value>, Error> {
    let mut strings = Strings::new(file);
    let mut json = Map::new();
    for message in messages(file, header)? {
        let attribute = readable(message.and_then(|bytes| Attribute::parse(file, &bytes)))?;
        let Some(attribute) = attribute else { continue };
        let value = readable(attribute.value(file, &mut strings, path_of))?.flatten();
        json.extend(value.map(|value| (attribute.name, value)));
    }
    Ok(json)
}

/// The messages of all attributes, wherever they are.
fn messages(file: &File, header: &Header) -> Result<Vec<Result<Vec<u8>, Error>>, Error> {
    let mut messages: Vec<Result<Vec<u8>, Error>> = header.all(file, MSG_ATTRIBUTE).collect();
    let Widths { offsets, lengths } = file.widths();
    if let Some(bytes) = header.first(file, MSG_ATTRIBUTE_INFO)? {
        let info = attribute_info::parse(&mut Cursor::new(&bytes), offsets, lengths, bytes.len())?;
        if file.is_address(info.fractal_heap_address) {
            let (heap, index) = (info.fractal_heap_address, info.btree_name_index_address);
            messages.extend(indexed_objects(file, heap, index)?.into_iter().map(Ok));
        }
    }
    Ok(messages)
}

/// `None` if it cannot be read, unless the storage failed.
fn readable<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(read) => Ok(Some(read)),
        Err(error @ Error::Io(_)) => Err(error),
        Err(_) => Ok(None),
    }
}

impl Attribute {
    fn parse(file: &File, message: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(message);
        let (version, flags) = (cursor.read_u8()?, cursor.read_u8()?);
        let mut len = || cursor.read_u16_le().map(usize::from);
        let (name_bytes, datatype_bytes, dataspace_bytes) = (len()?, len()?, len()?);
        if version == 3 {
            cursor.skip(1)?;
        }
        let mut part = |n_bytes: usize| {
            let padded = if version == 1 { n_bytes.next_multiple_of(8) } else { n_bytes };
            let part = cursor.read_bytes(padded)?;
            Ok::<_, Error>(&part[..n_bytes])
        };
        let name = Cursor::new(part(name_bytes)?).read_fixed_string(name_bytes)?;
        let (datatype, dataspace) = (part(datatype_bytes)?, part(dataspace_bytes)?);
        let flags = if version == 1 { 0 } else { flags };
        let elsewhere = |flag, kind, bytes: &[u8]| {
            if flags & flag == 0 { Ok(bytes.to_vec()) } else { shared_message(file, kind, bytes) }
        };
        let datatype = elsewhere(DATATYPE_IS_SHARED, MSG_DATATYPE, datatype)?;
        let dataspace = elsewhere(DATASPACE_IS_SHARED, MSG_DATASPACE, dataspace)?;
        let datatype = Datatype::parse(&datatype)?;
        let dataspace = parse_dataspace(file, &dataspace)?;
        let n_bytes = n_elements(&dataspace)
            .and_then(|n_elements| usize::try_from(n_elements).ok()?.checked_mul(datatype.n_bytes));
        let rest = &message[cursor.position() as usize..];
        let bytes = n_bytes.and_then(|n_bytes| rest.get(..n_bytes));
        let bytes = bytes.ok_or_else(|| invalid("an attribute is shorter than declared"))?.to_vec();
        let is_single = dataspace.dataspace_type == DataspaceType::Scalar;
        Ok(Self { name, datatype, is_single, bytes })
    }

    /// Its value; `None` if JSON has none.
    fn value(
        &self,
        file: &File,
        strings: &mut Strings<'_>,
        path_of: &dyn Fn(u64) -> Result<Option<String>, Error>,
    ) -> Result<Option<Value>, Error> {
        let elements = self.bytes.chunks_exact(self.datatype.n_bytes);
        let values: Vec<Value> = match &self.datatype.element {
            Element::Number(number) => elements.map_while(|bytes| number.value(bytes)).collect(),
            Element::Reference if self.is_single => {
                let address = Cursor::new(&self.bytes).read_offset(file.widths().offsets)?;
                path_of(address)?.map(Value::from).into_iter().collect()
            }
            _ => match strings.read(&self.datatype, &self.bytes)? {
                Some(strings) => strings.into_iter().map(Value::from).collect(),
                None => return Ok(None),
            },
        };
        Ok(if self.is_single { values.into_iter().next() } else { Some(values.into()) })
    }
}

/// Parses the message of a dataspace.
pub(crate) fn parse_dataspace(file: &File, bytes: &[u8]) -> Result<DataspaceMessage, Error> {
    let Widths { offsets, lengths } = file.widths();
    dataspace::parse(&mut Cursor::new(bytes), offsets, lengths, bytes.len())
}

/// The number of elements; `None` if it exceeds 64 bits.
pub(crate) fn n_elements(dataspace: &DataspaceMessage) -> Option<u64> {
    match dataspace.dataspace_type {
        DataspaceType::Null => Some(0),
        _ => dataspace.dims.iter().try_fold(1_u64, |n, len| n.checked_mul(*len)),
    }
}
