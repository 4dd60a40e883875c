//! Tensors of the type in which X's values are stored.
//!
//! Values are read as f32, which represents every 8- and 16-bit integer and all whole numbers up to
//! 2^24 exactly. So integers come back as they were stored; a larger one is detected and is an
//! error, never a rounded number.

use arrow_schema::DataType;
use loader::{BatchForm, Dataset, LoaderSpec};
use tch::{Kind, Tensor};

use crate::error::Error;

/// Whole numbers below this are exact in f32, and no number from here on is rounded to one below.
const EXACT_BELOW: f64 = (1 << 24) as f64;

/// The kind of tensors for a data set's own type.
pub(crate) fn stored_kind(dataset: &Dataset, spec: &LoaderSpec) -> Result<Kind, Error> {
    let refuse = |problem: &str| Error::StoredType { problem: problem.to_owned() };
    let Some(data_type) = dataset.data_type() else {
        return Err(refuse("the experiments store different types"));
    };
    if spec.batch_form == BatchForm::F16 {
        return Err(refuse("f16 was requested, too"));
    }
    let kind = match data_type {
        DataType::Float32 => return Ok(Kind::Float),
        DataType::Boolean => Kind::Bool,
        DataType::Int8 => Kind::Int8,
        DataType::UInt8 => Kind::Uint8,
        DataType::Int16 => Kind::Int16,
        DataType::Int32 => Kind::Int,
        DataType::Int64 => Kind::Int64,
        other => {
            return Err(refuse(&format!(
                "X holds {other}, which f32 values cannot be converted back to, or which torch lacks"
            )));
        }
    };
    if spec.transform.is_identity() {
        Ok(kind)
    } else {
        Err(refuse(&format!("transformed values are not {data_type}")))
    }
}

/// Converts `x` to this kind, which [`stored_kind`] returned.
pub(crate) fn to_stored(x: &Tensor, kind: Kind) -> Result<Tensor, Error> {
    if matches!(kind, Kind::Int | Kind::Int64) {
        let values = if x.f_crow_indices().is_ok() {
            x.f_values()
        } else if x.is_sparse() {
            x.f_internal_values()
        } else {
            Ok(x.shallow_clone())
        };
        let failed = Error::torch("the largest value of a batch");
        let values = values.map_err(Error::torch("the values of a batch"))?;
        let largest = if values.numel() == 0 {
            0.0
        } else {
            values
                .f_abs()
                .and_then(|v| v.f_max())
                .and_then(|v| v.f_double_value(&[]))
                .map_err(failed)?
        };
        if largest >= EXACT_BELOW {
            return Err(Error::Inexact { largest: largest.to_string() });
        }
    }
    x.f_to_kind(kind).map_err(Error::torch("a batch of X's own type"))
}
