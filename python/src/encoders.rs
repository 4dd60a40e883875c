//! Encoders of obs columns as integer codes.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch};
use loader::encode::{self, Encoder, Nulls, Rules, Unseen};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrow_table::{ArrowTable, rows_of};
use crate::engine::choice;
use crate::errors::{OrException as _, value_error};
use crate::numpy::array_of;
use crate::waiting::computed;

/// An encoder of either class, as an argument.
pub(crate) struct AnyEncoder(pub(crate) Arc<dyn Encoder>);

impl<'py> FromPyObject<'_, 'py> for AnyEncoder {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(label) = object.cast::<LabelEncoder>() {
            return Ok(Self(Arc::clone(&label.get().encoder) as _));
        }
        match object.cast::<BatchKeyEncoder>() {
            Ok(key) => Ok(Self(Arc::clone(&key.get().encoder) as _)),
            Err(_) => Err(PyTypeError::new_err("a LabelEncoder or a BatchKeyEncoder is needed")),
        }
    }
}

/// A class of Python over the encoder of this name: its own methods, and those of all encoders.
macro_rules! encoder_class {
    ($(#[doc = $doc:literal])* $name:ident { $($own:tt)* }) => {
        $(#[doc = $doc])*
        #[pyclass(frozen, module = "somafeed._somafeed")]
        #[derive(Debug)]
        pub(crate) struct $name {
            encoder: Arc<encode::$name>,
        }

        #[pymethods]
        impl $name {
            $($own)*

            #[staticmethod]
            fn from_json(text: &str) -> PyResult<Self> {
                Ok(Self { encoder: Arc::new(encode::$name::from_json(text).or_exception()?) })
            }

            fn to_json(&self) -> PyResult<String> {
                self.encoder.to_json().or_exception()
            }

            #[getter]
            fn name(&self) -> &str {
                self.encoder.name()
            }

            #[getter]
            fn columns(&self) -> Vec<String> {
                self.encoder.columns().to_vec()
            }

            #[getter]
            fn n_classes(&self) -> usize {
                self.encoder.classes().len()
            }

            fn encode<'py>(
                &self,
                py: Python<'py>,
                table: &Bound<'_, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                encode_rows(py, Arc::clone(&self.encoder), table)
            }

            fn inverse(&self, py: Python<'_>, codes: Codes) -> PyResult<ArrowTable> {
                let encoder = Arc::clone(&self.encoder);
                let labels = computed(py, move || encoder.inverse(&codes.0))?;
                table_of(self.encoder.name(), labels.or_exception()?)
            }

            fn with_unseen(&self, unseen: &str) -> PyResult<Self> {
                let encoder = encode::$name::clone(&self.encoder);
                Ok(Self { encoder: Arc::new(encoder.with_unseen(unseen_rule(unseen)?)) })
            }

            fn __repr__(&self) -> String {
                let (class, name) = (stringify!($name), self.encoder.name());
                format!("{class}({name:?}, {} classes)", self.n_classes())
            }
        }
    };
}

encoder_class! {
    /// Codes of the labels of one obs column.
    LabelEncoder {
        #[staticmethod]
        #[pyo3(signature = (
            column, table, *, name = None, unseen = "error", nulls = "unseen", enumeration = false
        ))]
        fn fit(
            py: Python<'_>,
            column: &str,
            table: &Bound<'_, PyAny>,
            name: Option<String>,
            unseen: &str,
            nulls: &str,
            enumeration: bool,
        ) -> PyResult<Self> {
            let (rules, labels) = (rules(unseen, nulls)?, labels_of(table, column)?);
            let column = column.to_owned();
            let encoder = computed(py, move || {
                if enumeration {
                    encode::LabelEncoder::from_enumeration(&column, &labels, rules)
                } else {
                    encode::LabelEncoder::fit(&column, &labels, rules)
                }
            })?;
            let encoder = encoder.or_exception()?;
            let encoder = match name {
                Some(name) => encoder.with_name(name),
                None => encoder,
            };
            Ok(Self { encoder: Arc::new(encoder) })
        }

        fn classes(&self) -> PyResult<ArrowTable> {
            table_of(&self.encoder.columns()[0], self.encoder.classes())
        }

        fn extend(&self, table: &Bound<'_, PyAny>) -> PyResult<Self> {
            let labels = labels_of(table, &self.encoder.columns()[0])?;
            let encoder = Arc::clone(&self.encoder);
            let extended = computed(table.py(), move || encoder.extend(&labels))?;
            Ok(Self { encoder: Arc::new(extended.or_exception()?) })
        }
    }
}

encoder_class! {
    /// Codes of the tuples of labels of several obs columns.
    BatchKeyEncoder {
        #[staticmethod]
        #[pyo3(signature = (name, columns, table, *, unseen = "error", nulls = "unseen"))]
        fn fit(
            py: Python<'_>,
            name: &str,
            columns: Vec<String>,
            table: &Bound<'_, PyAny>,
            unseen: &str,
            nulls: &str,
        ) -> PyResult<Self> {
            let (rules, rows, name) = (rules(unseen, nulls)?, rows_of(table)?, name.to_owned());
            let fitted = computed(py, move || {
                let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
                encode::BatchKeyEncoder::fit(&name, &columns, &rows, rules)
            })?;
            Ok(Self { encoder: Arc::new(fitted.or_exception()?) })
        }

        fn classes(&self) -> ArrowTable {
            ArrowTable::new(RecordBatch::from(self.encoder.classes()))
        }

        fn joined_keys(&self) -> Vec<String> {
            self.encoder.joined_keys()
        }

        fn extend(&self, table: &Bound<'_, PyAny>) -> PyResult<Self> {
            let (encoder, rows) = (Arc::clone(&self.encoder), rows_of(table)?);
            let extended = computed(table.py(), move || encoder.extend(&rows))?;
            Ok(Self { encoder: Arc::new(extended.or_exception()?) })
        }
    }
}

/// Codes as an argument; -1 is one, too.
struct Codes(Int64Array);

impl<'py> FromPyObject<'_, 'py> for Codes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Some(codes) = crate::numpy::elements::<i64>(&object)? {
            return Ok(Self(codes.into()));
        }
        object.extract::<Vec<i64>>().map(|codes| Self(codes.into()))
    }
}

fn encode_rows<'py>(
    py: Python<'py>,
    encoder: Arc<impl Encoder + 'static>,
    table: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = rows_of(table)?;
    let encoded = move || encoder.encode(&rows).map(|codes| codes.values().to_vec());
    array_of(py, computed(py, encoded)?.or_exception()?)
}

fn labels_of(table: &Bound<'_, PyAny>, column: &str) -> PyResult<ArrayRef> {
    let rows = rows_of(table)?;
    rows.column_by_name(column).cloned().ok_or_else(|| {
        let existing: Vec<&str> =
            rows.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        let existing = existing.join(", ");
        value_error(&format!("there is no column {column:?}; there are {existing}"))
    })
}

fn table_of(name: &str, labels: ArrayRef) -> PyResult<ArrowTable> {
    RecordBatch::try_from_iter([(name, labels)])
        .map(ArrowTable::new)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

fn rules(unseen: &str, nulls: &str) -> PyResult<Rules> {
    let all = [("unseen", Nulls::Unseen), ("class", Nulls::Class)];
    Ok(Rules { unseen: unseen_rule(unseen)?, nulls: choice("nulls", nulls, &all)? })
}

fn unseen_rule(name: &str) -> PyResult<Unseen> {
    choice("unseen", name, &[("error", Unseen::Error), ("code", Unseen::Code)])
}
