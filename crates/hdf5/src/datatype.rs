//! What the elements of a dataset or an attribute are.
//!
//! `hdf5-reader` parses datatypes without the offset, precision and exponent of numbers, so the
//! messages are parsed here.

use hdf5_reader::error::Error;
use hdf5_reader::io::Cursor;

use crate::header::invalid;
use crate::numbers::{Bits, FloatFormat, Number, Order, Stored};
use crate::unreadable::Unreadable;

/// Most types within each other.
const MAX_LEVELS: usize = 8;

/// A datatype: bytes of an element in the file, and what it is.
#[derive(Debug, Clone)]
pub(crate) struct Datatype {
    pub(crate) n_bytes: usize,
    pub(crate) element: Element,
}

/// An element.
#[derive(Debug, Clone)]
pub(crate) enum Element {
    Number(Number),
    /// A string of the type's length.
    FixedText(Padding),
    /// A string in a heap.
    Text,
    /// The address of an object.
    Reference,
    /// One that is not read.
    Other(Unreadable),
}

/// What fills the rest of a string of fixed length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Padding {
    /// Anything, behind a zero.
    Terminated,
    Zeros,
    Spaces,
}

/// The first 8 bytes of a datatype.
#[derive(Debug, Clone, Copy)]
struct Head {
    version: u8,
    flags: u32,
    n_bytes: usize,
}

impl Datatype {
    /// Parses the message of a datatype.
    pub(crate) fn parse(message: &[u8]) -> Result<Self, Error> {
        Self::parse_within(&mut Cursor::new(message), MAX_LEVELS)
    }

    fn parse_within(cursor: &mut Cursor<'_>, levels: usize) -> Result<Self, Error> {
        let (first, n_bytes) = (cursor.read_u32_le()?, cursor.read_u32_le()? as usize);
        let (class, version) = (first as u8 & 15, (first >> 4) as u8 & 15);
        let head = Head { version, flags: first >> 8, n_bytes };
        if n_bytes == 0 {
            return Err(invalid("its datatype has no bytes"));
        }
        let kind = head.flags & 15;
        let element = match class {
            0 => integer(cursor, head)?,
            1 => float(cursor, head)?,
            3 => fixed_text(head),
            7 if kind == 0 => Element::Reference,
            8 if 0 < levels => enumeration(cursor, head, levels - 1)?,
            9 if kind == 1 => Element::Text,
            class => Element::Other(Unreadable::datatype(class_name(class), "")),
        };
        Ok(Self { n_bytes, element })
    }
}

fn class_name(class: u8) -> &'static str {
    match class {
        2 => "time",
        4 => "bitfield",
        5 => "opaque",
        6 => "compound",
        7 => "reference",
        8 => "enum",
        9 => "vlen",
        10 => "array",
        11 => "complex",
        _ => "type",
    }
}

fn unreadable(name: &'static str, why: &str) -> Element {
    Element::Other(Unreadable::datatype(name, why))
}

/// The names of Zarr's integers, by whether they are signed, and by bytes.
fn integer_name(is_signed: bool, n_bytes: usize) -> Option<&'static str> {
    Some(match (is_signed, n_bytes) {
        (true, 1) => "int8",
        (true, 2) => "int16",
        (true, 4) => "int32",
        (true, 8) => "int64",
        (false, 1) => "uint8",
        (false, 2) => "uint16",
        (false, 4) => "uint32",
        (false, 8) => "uint64",
        _ => return None,
    })
}

fn integer(cursor: &mut Cursor<'_>, head: Head) -> Result<Element, Error> {
    let (start, len) = (u32::from(cursor.read_u16_le()?), u32::from(cursor.read_u16_le()?));
    let (is_big_endian, is_signed) = (head.flags & 1 != 0, head.flags & 8 != 0);
    let n_bytes = head.n_bytes;
    let Some(name) = integer_name(is_signed, n_bytes) else {
        return Ok(unreadable("integer", &format!("of {n_bytes} bytes")));
    };
    let n_bits = n_bytes as u32 * 8;
    if len == 0 || n_bits < start + len {
        let what = format!("an integer of {n_bits} bits has {len} from bit {start}");
        return Err(Error::InvalidData(what));
    }
    let order = if is_big_endian { Order::Big } else { Order::Little };
    let stored = match (start, len) {
        (0, len) if len == n_bits => Stored::Plain { is_big_endian },
        // libhdf5 takes a byte in the other order for one that it needs not convert.
        (0, _) if is_big_endian && n_bytes == 1 => Stored::Plain { is_big_endian },
        _ => Stored::Integer { order, bits: Bits { start, len }, is_signed },
    };
    Ok(Element::Number(Number { name, n_bytes, stored_bytes: n_bytes, stored }))
}

fn float(cursor: &mut Cursor<'_>, head: Head) -> Result<Element, Error> {
    let (start, n_bits) = (u32::from(cursor.read_u16_le()?), u32::from(cursor.read_u16_le()?));
    let mut part = || cursor.read_u8().map(u32::from);
    let exponent = Bits { start: part()?, len: part()? };
    let mantissa = Bits { start: part()?, len: part()? };
    let bias = cursor.read_u32_le()?;
    let order = match head.flags & 0x41 {
        0 => Order::Little,
        1 => Order::Big,
        _ => return Ok(unreadable("float", "in the byte order of VAX")),
    };
    let (normalization, sign) = (head.flags >> 4 & 3, head.flags >> 8 & 0xff);
    let all_bits = 8 * head.n_bytes.min(16) as u32;
    let parts = [exponent, mantissa, Bits { start: sign, len: 1 }, Bits { start, len: n_bits }];
    if 16 < head.n_bytes
        || parts.iter().any(|bits| bits.len == 0 || all_bits < bits.start + bits.len)
    {
        let why = format!("of {} bytes with its parts at {parts:?}", head.n_bytes);
        return Ok(unreadable("float", &why));
    }
    let has_first_bit = match normalization {
        1 => true,
        2 => false,
        other => {
            return Ok(unreadable(
                "float",
                &format!("with the normalization {other} of its mantissa"),
            ));
        }
    };
    let format = FloatFormat { sign, exponent, mantissa, bias, has_first_bit };
    Ok(float_of(format, order, head.n_bytes))
}

/// The smallest type of Zarr that has all numbers of a format.
fn float_of(format: FloatFormat, order: Order, stored_bytes: usize) -> Element {
    let plain = plain_float(stored_bytes).filter(|(_, plain)| format == *plain);
    if let Some((name, _)) = plain {
        let stored = Stored::Plain { is_big_endian: order == Order::Big };
        return Element::Number(Number { name, n_bytes: stored_bytes, stored_bytes, stored });
    }
    if 15 < format.exponent.len {
        return unreadable("float", &format!("with an exponent of {} bits", format.exponent.len));
    }
    let (fraction, (least, most)) = (format.n_fraction_bits(), format.exponents());
    let (name, n_bytes) = if fraction <= 23 && -149 <= least && most <= 127 {
        ("float32", 4)
    } else if fraction <= 52 && -1074 <= least && most <= 1023 {
        ("float64", 8)
    } else {
        let why = format!(
            "with a mantissa of {} bits, an exponent of {} bits and a bias of {}, which are more \
             than 64 bits have",
            format.mantissa.len, format.exponent.len, format.bias
        );
        return unreadable("float", &why);
    };
    Element::Number(Number { name, n_bytes, stored_bytes, stored: Stored::Float { order, format } })
}

/// The type of Zarr with this number of bytes, and its format, that of IEEE 754.
fn plain_float(n_bytes: usize) -> Option<(&'static str, FloatFormat)> {
    let (name, sign, exponent_bits) = match n_bytes {
        2 => ("float16", 15, 5),
        4 => ("float32", 31, 8),
        8 => ("float64", 63, 11),
        _ => return None,
    };
    let mantissa = Bits { start: 0, len: sign - exponent_bits };
    let exponent = Bits { start: mantissa.len, len: exponent_bits };
    let bias = (1 << (exponent_bits - 1)) - 1;
    Some((name, FloatFormat { sign, exponent, mantissa, bias, has_first_bit: false }))
}

fn fixed_text(head: Head) -> Element {
    Element::FixedText(match head.flags & 15 {
        0 => Padding::Terminated,
        1 => Padding::Zeros,
        2 => Padding::Spaces,
        other => return unreadable("string", &format!("with the padding {other}")),
    })
}

/// An enumeration is the integers of its base, or `bool` if its members are FALSE and TRUE.
fn enumeration(cursor: &mut Cursor<'_>, head: Head, levels: usize) -> Result<Element, Error> {
    let base = Datatype::parse_within(cursor, levels)?;
    let Element::Number(base) = base.element else {
        return Ok(unreadable("enum", "whose base is no integer"));
    };
    let n_members = head.flags as usize & 0xffff;
    if n_members != 2 {
        return Ok(Element::Number(base));
    }
    let mut members = Vec::new();
    for _ in 0..n_members {
        let start = cursor.position();
        let name = cursor.read_null_terminated_string()?;
        if head.version < 3 {
            let used = (cursor.position() - start) as usize;
            cursor.skip(used.next_multiple_of(8) - used)?;
        }
        members.push((name, 0));
    }
    for (_, value) in &mut members {
        let bytes = cursor.read_bytes(head.n_bytes)?;
        *value = base.value(bytes).and_then(|value| value.as_i64()).unwrap_or(-1);
    }
    members.sort();
    let is_boolean = members == [("FALSE".to_owned(), 0), ("TRUE".to_owned(), 1)];
    Ok(Element::Number(if is_boolean { truth(&base) } else { base }))
}

/// Booleans that are stored as integers.
fn truth(base: &Number) -> Number {
    let stored = match base.stored {
        Stored::Plain { is_big_endian } if base.n_bytes != 1 => Stored::Integer {
            order: if is_big_endian { Order::Big } else { Order::Little },
            bits: Bits { start: 0, len: 8 * base.n_bytes as u32 },
            is_signed: false,
        },
        stored => stored,
    };
    Number { name: "bool", n_bytes: 1, stored, stored_bytes: base.stored_bytes }
}
