//! Enumerations: the values that the codes of an attribute stand for.
//!
//! Specification: `format_spec/enumeration.md`. Each is a generic tile in
//! `__schema/__enumerations`: version (u32), name and file name, each after its length (u32), type
//! (u8), values per cell (u32), whether it is ordered (u8), the values after their length (u64); if
//! a value may have any size, the offsets of all values (u64 each) after the length of these.

use storage::Files;
use tiledb::{Enumeration, EnumerationValues};

use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::error::{Error, Fault};
use crate::generic_tile;
use crate::schema::VARIABLE;
use crate::unsupported::Unsupported;

const FOLDER: &str = "__schema/__enumerations";
/// The only version of the form so far.
const VERSION: u32 = 0;

/// Reads the enumeration in `file`, a name in the folder of enumerations.
pub(crate) fn load(files: &Files, file: &str) -> Result<Enumeration, Error> {
    let path = format!("{FOLDER}/{file}");
    let bytes = generic_tile::read_file(files, &path)?;
    let damaged = |fault: Fault| fault.in_unfiltered(files.name(&path), 0);
    let version = Cursor::new(&bytes).u32("an enumeration's version").map_err(damaged)?;
    if version != VERSION {
        let reason = Unsupported::EnumerationVersion { version };
        return Err(Error::Unsupported { place: files.place(), reason });
    }
    parse(&bytes).map_err(damaged)
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Enumeration, Fault> {
    let mut cursor = Cursor::new(bytes);
    cursor.u32("an enumeration's version")?;
    let name = cursor.name("an enumeration's name")?;
    cursor.name("an enumeration's file name")?;
    let datatype = Datatype(cursor.u8("an enumeration's type")?);
    let values_per_cell = cursor.u32("the values of an enumeration's cell")?;
    let ordered = cursor.flag("whether an enumeration is ordered")?;
    let data = block(&mut cursor, "an enumeration's values")?;
    let values = if values_per_cell == VARIABLE {
        let at = cursor.at();
        let offsets = block(&mut cursor, "an enumeration's offsets")?;
        let values = variable(data, offsets).map_err(|fault| Fault::at(at, fault.what))?;
        EnumerationValues::VarSized(values)
    } else {
        EnumerationValues::Fixed(data.to_vec())
    };
    Ok(Enumeration { name, datatype: datatype.described(), ordered, values })
}

/// Bytes after their length. An enumeration without values may end before the length.
fn block<'a>(cursor: &mut Cursor<'a>, what: &str) -> Result<&'a [u8], Fault> {
    if cursor.remaining().is_empty() {
        return Ok(&[]);
    }
    let len = cursor.u64(what)?;
    cursor.take(usize::try_from(len).unwrap_or(usize::MAX), what)
}

/// Splits `data` at `offsets`, the places of the values' first bytes.
fn variable(data: &[u8], offsets: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
    let (offsets, rest) = offsets.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(Fault::new("the offsets of an enumeration are not whole numbers"));
    }
    let place =
        |offset: &[u8; 8]| usize::try_from(u64::from_le_bytes(*offset)).unwrap_or(usize::MAX);
    let ends = offsets.iter().skip(1).map(place).chain([data.len()]);
    let value = |(start, end): (usize, usize)| {
        data.get(start..end).map(<[u8]>::to_vec).ok_or_else(|| {
            Fault::new(format!("a value from byte {start} to {end} of {} bytes", data.len()))
        })
    };
    offsets.iter().map(place).zip(ends).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(values_per_cell: u32, data: &[u8], offsets: Option<&[u64]>) -> Vec<u8> {
        let mut out = VERSION.to_le_bytes().to_vec();
        for name in ["kind", "__0"] {
            out.extend((name.len() as u32).to_le_bytes());
            out.extend(name.as_bytes());
        }
        out.push(12);
        out.extend(values_per_cell.to_le_bytes());
        out.push(1);
        out.extend((data.len() as u64).to_le_bytes());
        out.extend(data);
        if let Some(offsets) = offsets {
            out.extend((offsets.len() as u64 * 8).to_le_bytes());
            out.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
        }
        out
    }

    #[test]
    fn texts_come_back() {
        let found = parse(&stored(VARIABLE, b"B cellT cell", Some(&[0, 6, 6]))).unwrap();
        assert_eq!(found.strings(), Some(vec!["B cell", "", "T cell"]));
        assert!(found.ordered);
        assert_eq!(found.name, "kind");
    }

    #[test]
    fn damage_is_an_error() {
        for offsets in [&[0, 13][..], &[5, 3], &[u64::MAX]] {
            assert!(parse(&stored(VARIABLE, b"B cellT cell", Some(offsets))).is_err());
        }
        let whole = stored(1, b"abc", None);
        assert_eq!(parse(&whole).unwrap().values, EnumerationValues::Fixed(b"abc".to_vec()));
        assert!(parse(&whole[..whole.len() - 1]).is_err());
    }
}
