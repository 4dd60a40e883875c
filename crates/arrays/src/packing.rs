//! The attributes by which an array says what its numbers stand for.

use serde_json::{Map, Value};

use crate::convert::number_of;
use crate::element::ElementType;
use crate::function::Function;
use crate::metadata::{Version, base64};

/// What stored numbers stand for, by the CF conventions: `n * scale + offset`, or a missing value.
///
/// Source: CF Conventions 1.11, section 8.1 for `scale_factor` and `add_offset`, section 2.5.1 for
/// `_FillValue` and `missing_value`; the NetCDF User Guide for `_Unsigned`. Where these leave open
/// what is meant, it is what xarray (2026.9) reads.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Packing {
    /// The attribute `scale_factor`, 1 if absent.
    pub(crate) scale: f64,
    /// The attribute `add_offset`, 0 if absent.
    pub(crate) offset: f64,
    /// Stored numbers that are delivered as NaN.
    pub(crate) missing: Vec<f64>,
    /// Whether there is one of the first two.
    is_scaled: bool,
    /// What becomes of the numbers then.
    pub(crate) function: Option<Function>,
}

/// An attribute that is not understood.
#[derive(Debug, PartialEq)]
pub(crate) struct Refused {
    pub(crate) attribute: &'static str,
    pub(crate) value: Value,
    pub(crate) expected: &'static str,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { attribute, value, expected } = self;
        write!(f, "the attribute {attribute} is {value}, and {expected}")
    }
}

impl std::error::Error for Refused {}

const ONE_NUMBER: &str = "a number is expected, or a list of one";
const NUMBERS: &str = "a number is expected, or a list of numbers";
const BASE64: &str = "in Zarr v3 that of floating point numbers is 8 little-endian bytes in base64, as xarray writes";
const IN_RANGE: &str = "a whole number of the array's type is expected";
const UNSIGNED: &str = "\"true\" or \"false\" is expected";

/// The attributes of an array, with what their meaning depends on.
pub(crate) struct Attributes<'a> {
    pub(crate) all: &'a Map<String, Value>,
    pub(crate) version: Version,
    /// The stored element of chunks that are not stored.
    pub(crate) fill: &'a [u8],
    pub(crate) element: ElementType,
}

impl Attributes<'_> {
    /// The type that stored bytes are to be taken for, and what the numbers stand for; `None` for
    /// themselves.
    pub(crate) fn packing(&self) -> Result<(ElementType, Option<Packing>), Refused> {
        let element = self.signedness()?;
        let (scale, offset) = (self.one("scale_factor")?, self.one("add_offset")?);
        // One that is null makes floating point numbers, too.
        let is_scaled = self.is_scaled();
        let mut missing = self.numbers("missing_value")?;
        missing.extend(self.fill_values(element)?);
        // Those are NaN already.
        missing.retain(|number| !number.is_nan());
        missing.dedup();
        let packing = (is_scaled || !missing.is_empty()).then(|| Packing {
            scale: scale.unwrap_or(1.0),
            offset: offset.unwrap_or(0.0),
            missing,
            is_scaled,
            function: None,
        });
        Ok((element, packing))
    }

    /// The stored type, with the sign that `_Unsigned` gives it.
    fn signedness(&self) -> Result<ElementType, Refused> {
        let element = self.element;
        let Some(other) = other_sign(element) else { return Ok(element) };
        match self.all.get("_Unsigned") {
            None | Some(Value::Null) => Ok(element),
            Some(Value::String(text)) if text == "true" => {
                Ok(if is_signed(element) { other } else { element })
            }
            Some(Value::String(text)) if text == "false" => {
                Ok(if is_signed(element) { element } else { other })
            }
            Some(value) => Err(refused("_Unsigned", value, UNSIGNED)),
        }
    }

    fn is_scaled(&self) -> bool {
        ["scale_factor", "add_offset"].iter().any(|name| self.all.contains_key(*name))
    }

    /// An attribute of one number; `None` if it is absent or null.
    fn one(&self, name: &'static str) -> Result<Option<f64>, Refused> {
        let Some(mut value) = self.all.get(name) else { return Ok(None) };
        while let Some([only]) = value.as_array().map(Vec::as_slice) {
            value = only;
        }
        match value {
            Value::Null => Ok(None),
            Value::Number(number) => Ok(number.as_f64()),
            other => Err(refused(name, other, ONE_NUMBER)),
        }
    }

    /// An attribute of any number of numbers.
    fn numbers(&self, name: &'static str) -> Result<Vec<f64>, Refused> {
        let mut numbers = Vec::new();
        let Some(value) = self.all.get(name) else { return Ok(numbers) };
        let mut left = vec![value];
        while let Some(one) = left.pop() {
            match one {
                Value::Null => {}
                Value::Array(list) => left.extend(list),
                Value::Bool(is) if self.element == ElementType::Bool => {
                    numbers.push(f64::from(u8::from(*is)));
                }
                other => {
                    let number = number(other).ok_or_else(|| refused(name, value, NUMBERS))?;
                    numbers.push(number);
                }
            }
        }
        Ok(numbers)
    }

    /// The numbers that `_FillValue` names, in the type `element`. The fill value of Zarr v2 takes
    /// its place where xarray, which has dimensions, writes it there; and where numbers are packed.
    fn fill_values(&self, element: ElementType) -> Result<Vec<f64>, Refused> {
        const NAME: &str = "_FillValue";
        let value = self.all.get(NAME);
        let numbers = match self.version {
            Version::V2 { has_fill } if has_fill && self.fill_is_missing() => {
                return Ok(vec![number_of(element, self.fill)]);
            }
            Version::V3 if element.is_float() => match value {
                None => return Ok(Vec::new()),
                Some(value) => {
                    let bytes = value.as_str().and_then(base64);
                    let bytes = bytes.and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
                    let bytes = bytes.ok_or_else(|| refused(NAME, value, BASE64))?;
                    return Ok(vec![f64::from_le_bytes(bytes)]);
                }
            },
            Version::V3 if value.is_some_and(|value| !value.is_number() && !value.is_boolean()) => {
                return Err(refused(NAME, value.unwrap_or(&Value::Null), IN_RANGE));
            }
            // xarray takes the whole part of a number for an array of whole ones.
            Version::V3 => self.numbers(NAME)?.into_iter().map(f64::trunc).collect(),
            Version::V2 { .. } => self.numbers(NAME)?,
        };
        let Some(value) = value.filter(|_| element != self.element) else { return Ok(numbers) };
        // The bytes have another sign, and so has the number that they stand for.
        let numbers = numbers.into_iter().filter(|number| !number.is_nan());
        let turned = numbers.map(|number| with_other_sign(self.element, number));
        turned.collect::<Option<_>>().ok_or_else(|| refused(NAME, value, IN_RANGE))
    }

    /// Whether the fill value of Zarr v2 means "missing".
    fn fill_is_missing(&self) -> bool {
        // xarray would make Python objects of Booleans.
        let is_of_xarray =
            self.all.contains_key("_ARRAY_DIMENSIONS") && self.element != ElementType::Bool;
        is_of_xarray || self.is_scaled()
    }
}

fn refused(attribute: &'static str, value: &Value, expected: &'static str) -> Refused {
    Refused { attribute, value: value.clone(), expected }
}

/// A number, or the text of one that JSON lacks.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn is_signed(element: ElementType) -> bool {
    use ElementType::{I8, I16, I32, I64};
    matches!(element, I8 | I16 | I32 | I64)
}

/// The integers of the same width and the other sign.
fn other_sign(element: ElementType) -> Option<ElementType> {
    use ElementType::{I8, I16, I32, I64, U8, U16, U32, U64};
    let pairs = [(I8, U8), (I16, U16), (I32, U32), (I64, U64)];
    pairs.iter().find_map(|(one, other)| match element {
        of if of == *one => Some(*other),
        of if of == *other => Some(*one),
        _ => None,
    })
}

/// The number that has the same bits as `number` in the integers of the other sign; `None` if it
/// is none of `element`'s.
fn with_other_sign(element: ElementType, number: f64) -> Option<f64> {
    let n_values = 256_f64.powi(element.n_bytes() as i32);
    let half = n_values / 2.0;
    let range = if is_signed(element) { -half..half } else { 0.0..n_values };
    let is_one = range.contains(&number) && number.trunc() == number;
    is_one.then_some(match number {
        _ if number < 0.0 => number + n_values,
        _ if number >= half => number - n_values,
        _ => number,
    })
}

impl Packing {
    /// What `packing`, if there is one, makes of numbers, and then `function`.
    pub(crate) fn with_function(packing: Option<Self>, function: Function) -> Self {
        let packing = packing.unwrap_or_else(Self::none);
        Self { function: Some(function), is_scaled: true, ..packing }
    }

    /// What `packing`, if there is one, makes of numbers, less a mean and divided by a deviation.
    pub(crate) fn normalized(packing: Option<&Self>, by: (f64, f64)) -> Self {
        let packing = packing.cloned().unwrap_or_else(Self::none);
        if let Some(function) = &packing.function {
            return Self { function: Some(function.normalized(by)), ..packing };
        }
        let (mean, deviation) = by;
        Self {
            scale: packing.scale / deviation,
            offset: (packing.offset - mean) / deviation,
            is_scaled: true,
            ..packing
        }
    }

    /// Numbers as they are.
    fn none() -> Self {
        let (missing, function) = (Vec::new(), None);
        Self { scale: 1.0, offset: 0.0, missing, is_scaled: false, function }
    }

    /// The type in which numbers of type `element` are delivered: the smallest floating point type
    /// that holds each of them, and at least `f32` after scaling.
    pub(crate) fn delivered(&self, element: ElementType) -> ElementType {
        let is_half = matches!(element, ElementType::F16 | ElementType::BF16);
        if is_half && !self.is_scaled { element } else { element.computed() }
    }

    /// Whether numbers are scaled or moved.
    pub(crate) fn is_scaled(&self) -> bool {
        self.is_scaled
    }

    /// The stored number that is delivered as NaN, if there is one; `None` if there are several, or
    /// other numbers change, too.
    pub(crate) fn masked(&self) -> Option<&[f64]> {
        let is_masked = (self.scale, self.offset) == (1.0, 0.0)
            && self.function.is_none()
            && self.missing.len() <= 1;
        is_masked.then_some(&self.missing[..])
    }

    /// The number that a stored one stands for.
    pub(crate) fn unpack(&self, number: f64) -> f64 {
        if self.missing.contains(&number) {
            return f64::NAN;
        }
        let number = number * self.scale + self.offset;
        self.function.as_ref().map_or(number, |function| function.call(number))
    }
}
