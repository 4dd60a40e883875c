//! Shapes and types of the arrays of a file, as a pickle that Python reads.

use arrays::ElementType;

use crate::files::{FileError, StoredArray};

use super::pickle::{self, Unpickled, Value};

/// Most dimensions of an array, as in numpy.
const MAX_DIMENSIONS: usize = 64;

/// The order of bytes of this machine, as numpy writes it.
const NATIVE_ORDER: &str = if cfg!(target_endian = "little") { "<" } else { ">" };

/// What the pickle says of an array.
#[derive(Debug, PartialEq)]
pub(super) struct Description {
    pub(super) shape: Vec<usize>,
    pub(super) element: ElementType,
    /// Whether the bytes of elements are not in this machine's order.
    pub(super) is_reversed: bool,
}

/// What the pickle says of a file.
#[derive(Debug, PartialEq)]
pub(super) enum Header<'a> {
    /// One array, whose buffer is the rest of the file.
    One(Description),
    /// Arrays with their names and the bytes of their buffers.
    Several(Vec<Named<'a>>),
}

/// An array of several.
#[derive(Debug, PartialEq)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) description: Description,
    /// Bytes of its buffer.
    pub(super) n_bytes: usize,
}

/// Reads the pickle at the beginning of a file, and returns its length, too.
pub(super) fn parse(file: &[u8]) -> Result<(Header<'_>, usize), FileError> {
    let read = pickle::read(file)?;
    let header = match read.top {
        Value::Dictionary => {
            let entries = read.entries.iter();
            Header::Several(
                entries.map(|(name, array)| named(&read, name, array)).collect::<Result<_, _>>()?,
            )
        }
        top => match read.tuple(top) {
            Some(&[shape, element]) => Header::One(description(&read, shape, element)?),
            _ => return Err(contradicts("a pickle of neither (shape, type) nor a dictionary")),
        },
    };
    Ok((header, read.n_bytes))
}

fn named<'a>(
    read: &Unpickled<'a>,
    name: &Value<'a>,
    array: &Value<'a>,
) -> Result<Named<'a>, FileError> {
    let Value::Text(name) = name else {
        return Err(FileError::unsupported(0, format!("the key {name:?}: text is")));
    };
    let Some(&[shape, element, Value::Integer(size)]) = read.tuple(*array) else {
        return Err(contradicts(format!("`{name}` has another value than (shape, type, size)")));
    };
    let negative = |_| contradicts(format!("`{name}` has a buffer of {size} bytes"));
    let size = usize::try_from(size).map_err(negative)?;
    Ok(Named { name, description: description(read, shape, element)?, n_bytes: size })
}

fn description<'a>(
    read: &Unpickled<'a>,
    shape: Value<'a>,
    element: Value<'a>,
) -> Result<Description, FileError> {
    let length = |value: &Value<'a>| match value {
        Value::Integer(length) => usize::try_from(*length).ok(),
        _ => None,
    };
    let shape: Option<Vec<usize>> = read
        .tuple(shape)
        .filter(|shape| shape.len() <= MAX_DIMENSIONS)
        .and_then(|shape| shape.iter().map(length).collect());
    let shape = shape.ok_or_else(|| contradicts("a shape that is not a tuple of lengths"))?;
    let found = read.numpy_type(element).ok_or_else(|| contradicts("an array without a type"))?;
    let element = ElementType::from_numpy_code(found.code).ok_or_else(|| {
        let reason = format!("elements of numpy's type `{}`: numbers and bool are", found.code);
        FileError::unsupported(0, reason)
    })?;
    let is_reversed = match found.order {
        Some("|") | None if element.n_bytes() == 1 => false,
        Some(order @ ("<" | ">")) => order != NATIVE_ORDER && element.n_bytes() > 1,
        order => {
            let reason = format!("byte order {order:?} of numpy's type `{}`", found.code);
            return Err(FileError::unsupported(0, format!("{reason}: `<` and `>` are")));
        }
    };
    Ok(Description { shape, element, is_reversed })
}

/// An error of a pickle that is valid and describes something else than arrays.
fn contradicts(reason: impl Into<String>) -> FileError {
    FileError::damaged(0, reason)
}

/// The pickle of a file of one array.
pub(super) fn write_one(array: &StoredArray) -> Result<Vec<u8>, FileError> {
    let mut operations = Vec::new();
    write_description(&mut operations, array)?;
    operations.extend_from_slice(b"\x86.");
    Ok(framed(&operations))
}

/// The pickle of a file of arrays and the bytes of their buffers.
pub(super) fn write_several(arrays: &[(&StoredArray, usize)]) -> Result<Vec<u8>, FileError> {
    let mut operations = b"}(".to_vec();
    for (array, size) in arrays {
        write_text(&mut operations, &array.name);
        write_description(&mut operations, array)?;
        write_integer(&mut operations, *size)?;
        operations.push(0x87);
    }
    operations.extend_from_slice(b"u.");
    Ok(framed(&operations))
}

/// Operations as a pickle of protocol 4, which Python has written by default since 3.8.
fn framed(operations: &[u8]) -> Vec<u8> {
    let mut pickle = b"\x80\x04\x95".to_vec();
    pickle.extend_from_slice(&(operations.len() as u64).to_le_bytes());
    pickle.extend_from_slice(operations);
    pickle
}

/// Shape and type, as two values.
fn write_description(
    operations: &mut Vec<u8>,
    StoredArray { name, shape, element }: &StoredArray,
) -> Result<(), FileError> {
    let Some(code) = element.numpy_code().filter(|_| shape.len() <= MAX_DIMENSIONS) else {
        let reason =
            format!("`{name}` of shape {shape:?} and type {element}: numpy has no such array");
        return Err(FileError::write(reason));
    };
    operations.push(b'(');
    for length in shape {
        write_integer(operations, *length)?;
    }
    operations.push(b't');
    // numpy.dtype(code, False, True), then its state: version 3, byte order, nothing of
    // structures, and -1 for sizes that follow from the code.
    write_text(operations, "numpy");
    write_text(operations, "dtype");
    operations.push(0x93);
    write_text(operations, code);
    operations.extend_from_slice(b"\x89\x88\x87R(K\x03");
    write_text(operations, if element.n_bytes() == 1 { "|" } else { NATIVE_ORDER });
    operations.extend_from_slice(b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb");
    Ok(())
}

fn write_integer(operations: &mut Vec<u8>, value: usize) -> Result<(), FileError> {
    if let Ok(value) = u16::try_from(value) {
        operations.push(b'M');
        operations.extend_from_slice(&value.to_le_bytes());
    } else {
        let too_large = |_| FileError::write(format!("the length {value} exceeds i64"));
        let value = i64::try_from(value).map_err(too_large)?;
        operations.extend_from_slice(&[0x8a, 8]);
        operations.extend_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

fn write_text(operations: &mut Vec<u8>, text: &str) {
    operations.push(b'X');
    operations.extend_from_slice(&(text.len() as u32).to_le_bytes());
    operations.extend_from_slice(text.as_bytes());
}
