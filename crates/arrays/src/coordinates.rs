//! Coordinates: the position that each index of a dimension stands for.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::labels::Label;
use crate::packing::Packing;
use crate::selection::Indices;
use crate::times::TimeUnits;

/// The coordinates of a dimension: latitudes, times, names of channels.
///
/// By the convention of CF and xarray they are the one-dimensional array in the same group that has
/// the dimension's name. Times are the stored numbers: the attributes `units` (`hours since
/// 2026-01-01`) and `calendar` say what they mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Coordinates {
    dimension: Arc<str>,
    values: CoordinateValues,
    attributes: Arc<Map<String, Value>>,
}

/// The values of coordinates, in a type that holds each of them exactly.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CoordinateValues {
    /// Integers and bool.
    Integers(Vec<i64>),
    /// Floating point numbers, and packed integers after unpacking.
    Floats(Vec<f64>),
    /// Strings of fixed or variable length.
    Strings(Vec<String>),
}

impl Coordinates {
    pub(crate) fn new(
        dimension: &str,
        values: CoordinateValues,
        mut attributes: Map<String, Value>,
    ) -> Self {
        // Zarr v2 keeps the names of dimensions among the attributes.
        attributes.remove("_ARRAY_DIMENSIONS");
        Self { dimension: dimension.into(), values, attributes: Arc::new(attributes) }
    }

    /// The name of the dimension.
    pub fn dimension(&self) -> &str {
        &self.dimension
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        match &self.values {
            CoordinateValues::Integers(values) => values.len(),
            CoordinateValues::Floats(values) => values.len(),
            CoordinateValues::Strings(values) => values.len(),
        }
    }

    /// Whether they are the same, or numbers that differ as those in single precision do from those
    /// in double precision.
    pub(crate) fn is_near(&self, other: &Self) -> bool {
        match (self.values.numbers(), other.values.numbers()) {
            (Some(these), Some(others)) => {
                let is_near = |(one, other): (&f64, &f64)| {
                    (one - other).abs() <= 1e-6 * one.abs().max(other.abs()).max(1.0)
                };
                these.len() == others.len() && these.iter().zip(&others).all(is_near)
            }
            _ => self.values == other.values,
        }
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values.
    pub fn values(&self) -> &CoordinateValues {
        &self.values
    }

    /// The values if they are integers.
    pub fn integers(&self) -> Option<&[i64]> {
        if let CoordinateValues::Integers(values) = &self.values { Some(values) } else { None }
    }

    /// The values if they are floating point numbers.
    pub fn floats(&self) -> Option<&[f64]> {
        if let CoordinateValues::Floats(values) = &self.values { Some(values) } else { None }
    }

    /// The values if they are strings.
    pub fn strings(&self) -> Option<&[String]> {
        if let CoordinateValues::Strings(values) = &self.values { Some(values) } else { None }
    }

    /// The attributes of the array, `units` for example.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    /// The attribute `name` if it is a text: `units`, `calendar`, `long_name`.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).and_then(Value::as_str)
    }

    /// A coordinate as a text.
    pub(crate) fn label(&self, at: usize) -> Option<String> {
        Some(match &self.values {
            CoordinateValues::Integers(values) => values.get(at)?.to_string(),
            CoordinateValues::Floats(values) => values.get(at)?.to_string(),
            CoordinateValues::Strings(values) => values.get(at)?.clone(),
        })
    }

    /// The coordinates of `indices`, in their order. Indices are in range.
    pub(crate) fn pick(&self, indices: impl Iterator<Item = u64>) -> Self {
        fn picked<T: Clone>(values: &[T], indices: impl Iterator<Item = u64>) -> Vec<T> {
            indices.filter_map(|at| values.get(usize::try_from(at).ok()?).cloned()).collect()
        }
        let values = match &self.values {
            CoordinateValues::Integers(values) => {
                CoordinateValues::Integers(picked(values, indices))
            }
            CoordinateValues::Floats(values) => CoordinateValues::Floats(picked(values, indices)),
            CoordinateValues::Strings(values) => CoordinateValues::Strings(picked(values, indices)),
        };
        let (dimension, attributes) = (Arc::clone(&self.dimension), Arc::clone(&self.attributes));
        Self { dimension, values, attributes }
    }

    /// These, then others of the same dimension: times in the units of these. `None` if the two
    /// have no units in common.
    pub(crate) fn then(&self, next: &Self) -> Option<Self> {
        use CoordinateValues::{Floats, Integers, Strings};
        let units = |of: &Self| of.attribute("units").map(str::to_owned);
        let is_same = units(self) == units(next)
            && self.attribute("calendar").unwrap_or("standard")
                == next.attribute("calendar").unwrap_or("standard");
        let numbers = |of: &Self| of.values.numbers();
        let values = match (&self.values, &next.values) {
            (Strings(all), Strings(more)) => Strings([&all[..], more].concat()),
            (Integers(all), Integers(more)) if is_same => Integers([&all[..], more].concat()),
            _ if is_same => Floats([numbers(self)?, numbers(next)?].concat()),
            _ => {
                let (to, from) = (TimeUnits::of(self)?, TimeUnits::of(next)?);
                let more = numbers(next)?.into_iter().map(|n| to.converted(n, &from));
                let more = more.collect::<Option<Vec<f64>>>()?;
                let is_whole = |n: &f64| n.fract() == 0.0 && n.abs() < 2_f64.powi(53);
                match &self.values {
                    Integers(all) if more.iter().all(is_whole) => Integers(
                        all.iter().copied().chain(more.iter().map(|n| *n as i64)).collect(),
                    ),
                    _ => Floats([numbers(self)?, more].concat()),
                }
            }
        };
        let (dimension, attributes) = (Arc::clone(&self.dimension), Arc::clone(&self.attributes));
        Some(Self { dimension, values, attributes })
    }

    /// The indices of `labels`, or the reason why they cannot be selected.
    pub(crate) fn indices_of(&self, labels: &[Label]) -> Result<Indices, String> {
        let mut indices = Vec::with_capacity(labels.len());
        for label in labels {
            let mut found = (0..self.len()).filter(|at| self.equals(*at, label));
            let Some(at) = found.next() else {
                return Err(format!("no coordinate equals {label}: they are {}", self.excerpt()));
            };
            if found.next().is_some() {
                return Err(format!("several coordinates equal {label}: select by index"));
            }
            indices.push(at as u64);
        }
        Ok(Indices::List(indices))
    }

    fn equals(&self, at: usize, label: &Label) -> bool {
        match (&self.values, label) {
            (CoordinateValues::Integers(values), Label::Number(label)) => {
                values[at] as f64 == *label
            }
            (CoordinateValues::Floats(values), Label::Number(label)) => values[at] == *label,
            (CoordinateValues::Strings(values), Label::Text(label)) => values[at] == *label,
            _ => false,
        }
    }

    /// The first values, for a message.
    fn excerpt(&self) -> String {
        const MOST: usize = 8;
        fn first<T: std::fmt::Debug>(values: &[T]) -> Vec<String> {
            values.iter().take(MOST).map(|value| format!("{value:?}")).collect()
        }
        let first = match &self.values {
            CoordinateValues::Integers(values) => first(values),
            CoordinateValues::Floats(values) => first(values),
            CoordinateValues::Strings(values) => first(values),
        };
        let rest = if self.len() > MOST {
            format!(" and {} more", self.len() - MOST)
        } else {
            String::new()
        };
        format!("{}{rest}", first.join(", "))
    }
}

impl CoordinateValues {
    /// The values in double precision; `None` if they are texts.
    pub(crate) fn numbers(&self) -> Option<Vec<f64>> {
        match self {
            Self::Integers(values) => Some(values.iter().map(|value| *value as f64).collect()),
            Self::Floats(values) => Some(values.clone()),
            Self::Strings(_) => None,
        }
    }

    /// Unpacks numbers. Integers stay exact where none of them stands for another number.
    pub(crate) fn unpacked(self, packing: &Packing) -> Self {
        let unpack = |n: f64| packing.unpack(n);
        match self {
            Self::Integers(values)
                if packing.is_scaled() || values.iter().any(|n| unpack(*n as f64).is_nan()) =>
            {
                Self::Floats(values.into_iter().map(|n| unpack(n as f64)).collect())
            }
            Self::Floats(values) => Self::Floats(values.into_iter().map(unpack).collect()),
            other => other,
        }
    }
}

/// An array that has a dimension's name and was not read as its coordinates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedCoordinates {
    /// Path of the array within the storage.
    pub array: String,
    /// The reason.
    pub reason: String,
}

impl std::fmt::Display for SkippedCoordinates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.array, self.reason)
    }
}
