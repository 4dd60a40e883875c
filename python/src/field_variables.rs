//! Variables and patches of fields, as Python describes them.

use arrays::{
    Dimension, ElementType, Forcing, Indices, Label, Padding, PatchDimension, Patches,
    RandomPatches, Selection, TimeSpan, Variable,
};
use pyo3::prelude::*;

use crate::numpy::Rows;

/// One array of a sample, as Python describes it.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Described {
    name: String,
    path: String,
    along: Option<DimensionValue>,
    stores: Vec<usize>,
    steps: Vec<i64>,
    /// Microseconds.
    spans: Vec<i64>,
    rollout: Vec<(u64, usize)>,
    isel: Vec<(String, Rows)>,
    sel: Vec<(String, Vec<LabelValue>)>,
    dims: Vec<String>,
    /// The type of elements, by its name; `None` is as stored.
    dtype: Option<String>,
    mask_and_scale: bool,
    clip: Option<(f64, f64)>,
    log: Option<f64>,
    minus: Vec<i64>,
    /// Microseconds.
    minus_spans: Vec<i64>,
    /// Means and deviations.
    normalize: Vec<(f64, f64)>,
    stack: Vec<Self>,
    ensemble: Option<String>,
    /// What is computed in place of an array.
    forcing: Option<String>,
}

#[derive(Debug, FromPyObject)]
enum LabelValue {
    Text(String),
    Number(f64),
}

#[derive(Debug, FromPyObject, IntoPyObject)]
pub(crate) enum DimensionValue {
    Name(String),
    Position(usize),
}

impl From<DimensionValue> for Dimension {
    fn from(dimension: DimensionValue) -> Self {
        match dimension {
            DimensionValue::Name(name) => Self::Name(name),
            DimensionValue::Position(position) => Self::Position(position),
        }
    }
}

/// What a dimension is padded with: the mode, indices before, indices after.
type DescribedPadding = (String, u64, Option<u64>);

/// Patches, as Python describes them.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DescribedPatches {
    /// Dimension, size, stride and padding.
    dimensions: Vec<(DimensionValue, u64, u64, DescribedPadding)>,
    random: Option<u64>,
    seed: u64,
}

impl From<DescribedPatches> for Patches {
    fn from(described: DescribedPatches) -> Self {
        let DescribedPatches { dimensions, random, seed } = described;
        let dimensions = dimensions.into_iter().map(|(dimension, size, step, padding)| {
            let (mode, before, after) = padding;
            let padding = match mode.as_str() {
                "reflect" => Padding::Reflect { before, after },
                "periodic" => Padding::Periodic { before },
                _ => Padding::None,
            };
            PatchDimension { dimension: dimension.into(), size, step, padding }
        });
        let random = random.map(|n| RandomPatches { n, seed });
        Self { dimensions: dimensions.collect(), random }
    }
}

impl From<Described> for Variable {
    fn from(described: Described) -> Self {
        let Described {
            name,
            path,
            along,
            stores,
            steps,
            spans,
            rollout,
            isel,
            sel,
            dims,
            dtype,
            mask_and_scale,
            clip,
            log,
            minus,
            minus_spans,
            normalize,
            stack,
            ensemble,
            forcing,
        } = described;
        let stack = stack.into_iter().map(Self::from).collect();
        let [spans, minus_spans] = [spans, minus_spans]
            .map(|spans| spans.into_iter().map(|micros| TimeSpan { micros }).collect::<Vec<_>>());
        let mut variable = Self::new(path).named(name).steps(steps).spans(spans);
        variable = variable.ordered(dims.iter().map(String::as_str));
        for (dimension, indices) in isel {
            let indices = match indices {
                Rows::Range(start, end) => Indices::Range(start..end),
                Rows::List(list) => Indices::List(list),
            };
            variable = variable.select(dimension.as_str(), indices);
        }
        for (dimension, labels) in sel {
            let labels = labels.into_iter().map(|label| match label {
                LabelValue::Text(text) => Label::Text(text),
                LabelValue::Number(number) => Label::Number(number),
            });
            variable = variable.select(dimension.as_str(), Selection::labels(labels));
        }
        Self {
            along: along.map(Dimension::from),
            stores,
            rollout,
            element: dtype.as_deref().and_then(ElementType::from_zarr_name),
            as_stored: !mask_and_scale,
            clip,
            log,
            minus,
            minus_spans,
            normalize,
            stack,
            ensemble,
            forcing: forcing.as_deref().and_then(forcing_of),
            ..variable
        }
    }
}

/// What is computed, by its name.
fn forcing_of(name: &str) -> Option<Forcing> {
    Some(match name {
        "cos_solar_zenith_angle" => Forcing::CosineZenith,
        "year_progress_sin" => Forcing::YearSine,
        "year_progress_cos" => Forcing::YearCosine,
        "day_progress_sin" => Forcing::DaySine,
        "day_progress_cos" => Forcing::DayCosine,
        "time" => Forcing::Time,
        _ => return None,
    })
}
