//! Types of numbers, and numbers among metadata, as JSON of Zarr.

use hdf5_reader::{ByteOrder, Datatype};
use serde_json::{Value, json};

/// The type of a dataset's numbers.
#[derive(Debug, Clone)]
pub(crate) struct NumberType {
    /// Its name in Zarr v3.
    pub(crate) name: String,
    pub(crate) order: ByteOrder,
    pub(crate) n_bytes: usize,
}

/// Returns the type of a dataset's elements if they are numbers or Booleans.
pub(crate) fn number_type(datatype: &Datatype) -> Option<NumberType> {
    let (kind, size, order) = match datatype {
        Datatype::FixedPoint { size, signed, byte_order } => {
            (if *signed { "int" } else { "uint" }, *size, *byte_order)
        }
        Datatype::FloatingPoint { size, byte_order } => ("float", *size, *byte_order),
        Datatype::Enum { base, members } => {
            let of_base = number_type(base)?;
            let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            let values: Vec<&[u8]> = members.iter().map(|member| &*member.value).collect();
            let is_boolean = names == ["FALSE", "TRUE"] && values == [[0], [1]];
            let name = if is_boolean { "bool".to_owned() } else { of_base.name };
            return Some(NumberType { name, ..of_base });
        }
        _ => return None,
    };
    let known = match kind {
        "float" => [2, 4, 8].contains(&size),
        _ => [1, 2, 4, 8].contains(&size),
    };
    let name = format!("{kind}{}", u32::from(size) * 8);
    known.then_some(NumberType { name, order, n_bytes: usize::from(size) })
}

/// Returns the name of a type that Zarr does not have.
pub(crate) fn other_type(datatype: &Datatype) -> &'static str {
    match datatype {
        Datatype::FixedPoint { .. } => "hdf5.integer",
        Datatype::FloatingPoint { .. } => "hdf5.float",
        Datatype::String { .. } => "hdf5.string",
        Datatype::Compound { .. } => "hdf5.compound",
        Datatype::Array { .. } => "hdf5.array",
        Datatype::Enum { .. } => "hdf5.enum",
        Datatype::VarLen { .. } => "hdf5.vlen",
        Datatype::Opaque { .. } => "hdf5.opaque",
        Datatype::Reference { .. } => "hdf5.reference",
        Datatype::Bitfield { .. } => "hdf5.bitfield",
    }
}

impl NumberType {
    /// Returns the number of these bytes as JSON; `None` if there are too few.
    pub(crate) fn value(&self, bytes: &[u8]) -> Option<Value> {
        let bytes = bytes.get(..self.n_bytes)?;
        let mut wide = [0; 8];
        match self.order {
            ByteOrder::LittleEndian => wide[..self.n_bytes].copy_from_slice(bytes),
            ByteOrder::BigEndian => {
                for (into, byte) in wide.iter_mut().zip(bytes.iter().rev()) {
                    *into = *byte;
                }
            }
        }
        let bits = u64::from_le_bytes(wide);
        let unused = 64 - 8 * self.n_bytes as u32;
        Some(match self.name.as_str() {
            "bool" => json!(bits != 0),
            "float32" => float(f64::from(f32::from_bits(bits as u32))),
            "float64" => float(f64::from_bits(bits)),
            // The bits, as Zarr writes values that JSON has no number for.
            "float16" => json!(format!("0x{bits:04x}")),
            name if name.starts_with("uint") => json!(bits),
            _ => json!((bits << unused).cast_signed() >> unused),
        })
    }

    /// Returns zero as JSON.
    pub(crate) fn zero(&self) -> Value {
        if self.name == "bool" { json!(false) } else { json!(0) }
    }
}

/// A number, or its name where JSON has none.
fn float(value: f64) -> Value {
    if value.is_nan() {
        json!("NaN")
    } else if value.is_infinite() {
        json!(if value < 0.0 { "-Infinity" } else { "Infinity" })
    } else {
        json!(value)
    }
}
