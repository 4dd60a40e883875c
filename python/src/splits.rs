//! Splits of rows, and samplings: which rows an epoch has.

use loader::sample::{
    ClassDraw, ClassSets, Controls, GroupBatches, Hierarchical, Replacement, Rest,
    Sampling as Drawn,
};
use loader::{RowSet, sample, split};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use shuffle::stop;

use crate::errors::OrException as _;
use crate::numpy::{Integers, array_of, elements};
use crate::waiting::computed;

type Splits<'py> = PyResult<Vec<Bound<'py, PyAny>>>;

/// The rows of each split as an array.
fn arrays(
    py: Python<'_>,
    split: impl FnOnce() -> PyResult<Vec<RowSet>> + Send + 'static,
) -> Splits<'_> {
    let listed = |rows: &RowSet| stop::collect(rows.len(), rows.iter()).or_exception();
    let listed = move || split()?.iter().map(listed).collect();
    let listed: PyResult<Vec<Vec<u64>>> = computed(py, listed)?;
    listed?.into_iter().map(|rows| array_of(py, rows)).collect()
}

/// Splits rows by fractions.
#[pyfunction]
#[pyo3(signature = (n_rows, fractions, *, seed, method = "stochastic_rounding"))]
pub(crate) fn split_by_fraction<'py>(
    py: Python<'py>,
    n_rows: u64,
    fractions: Vec<f64>,
    seed: u64,
    method: &str,
) -> Splits<'py> {
    let method: split::Method = method.parse::<split::Method>().or_exception()?;
    arrays(py, move || split::by_fraction(n_rows, &fractions, method, seed).or_exception())
}

/// Splits groups of rows.
#[pyfunction]
#[pyo3(signature = (groups, fractions, *, seed, labels = None))]
pub(crate) fn split_by_group(
    py: Python<'_>,
    groups: Integers,
    fractions: Vec<f64>,
    seed: u64,
    labels: Option<Integers>,
) -> Splits<'_> {
    arrays(py, move || {
        let groups = groups.codes()?;
        let splits = match labels {
            Some(labels) => split::by_group_stratified(&groups, &labels.codes()?, &fractions, seed),
            None => split::by_group(&groups, &fractions, seed),
        };
        splits.or_exception()
    })
}

/// Splits the rows of each label.
#[pyfunction]
#[pyo3(signature = (labels, fractions, *, seed))]
pub(crate) fn split_by_label(
    py: Python<'_>,
    labels: Integers,
    fractions: Vec<f64>,
    seed: u64,
) -> Splits<'_> {
    arrays(py, move || split::stratified(&labels.codes()?, &fractions, seed).or_exception())
}

/// Which rows an epoch has, and how often.
#[pyclass(frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Sampling {
    pub(crate) drawn: Drawn,
}

impl Sampling {
    /// Draws in a thread.
    fn draw(
        py: Python<'_>,
        draw: impl FnOnce() -> PyResult<Result<Drawn, sample::Error>> + Send + 'static,
    ) -> PyResult<Self> {
        Ok(Self { drawn: computed(py, draw)??.or_exception()? })
    }
}

#[pymethods]
impl Sampling {
    #[staticmethod]
    fn with_replacement(py: Python<'_>, n_rows: u64, n_samples: u64) -> PyResult<Self> {
        Self::draw(py, move || Ok(Drawn::with_replacement(n_rows, n_samples)))
    }

    #[staticmethod]
    fn listed(py: Python<'_>, n_rows: u64, rows: Integers) -> PyResult<Self> {
        Self::draw(py, move || Ok(Drawn::listed(n_rows, rows.codes()?)))
    }

    #[staticmethod]
    #[pyo3(signature = (weights, n_samples, *, replacement = true))]
    fn weighted(weights: &Bound<'_, PyAny>, n_samples: u64, replacement: bool) -> PyResult<Self> {
        let py = weights.py();
        let weights = if let Some(weights) = elements::<f64>(weights)? {
            weights
        } else if let Some(weights) = elements::<f32>(weights)? {
            weights.into_iter().map(f64::from).collect()
        } else {
            weights.extract::<Vec<f64>>().map_err(|error| {
                PyTypeError::new_err(format!("weights must be float64: {error}"))
            })?
        };
        Self::draw(py, move || Ok(Drawn::weighted(&weights, n_samples, with(replacement))))
    }

    #[staticmethod]
    #[pyo3(signature = (labels, n_samples, *, replacement = true))]
    fn class_balanced(
        py: Python<'_>,
        labels: Integers,
        n_samples: u64,
        replacement: bool,
    ) -> PyResult<Self> {
        let replacement = with(replacement);
        Self::draw(py, move || Ok(Drawn::class_balanced(&labels.codes()?, n_samples, replacement)))
    }

    #[staticmethod]
    #[pyo3(signature = (groups, shares, n_samples, *, replacement = true))]
    fn by_group(
        py: Python<'_>,
        groups: Integers,
        shares: Vec<f64>,
        n_samples: u64,
        replacement: bool,
    ) -> PyResult<Self> {
        let replacement = with(replacement);
        Self::draw(py, move || {
            Ok(Drawn::by_group(&groups.codes()?, &shares, n_samples, replacement))
        })
    }

    #[staticmethod]
    fn stratified(py: Python<'_>, labels: Integers, n_samples: u64) -> PyResult<Self> {
        Self::draw(py, move || Ok(Drawn::stratified(&labels.codes()?, n_samples)))
    }

    #[staticmethod]
    fn at_most_per_class(py: Python<'_>, labels: Integers, most: u64) -> PyResult<Self> {
        Self::draw(py, move || Ok(Drawn::at_most_per_class(&labels.codes()?, most)))
    }

    #[staticmethod]
    #[pyo3(signature = (
        groups, batch_size, *, is_control = None, contexts = None, n_controls = 0, fill = false,
        chunk_rows = 64, window_rows = 65_536,
    ))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn group_batches(
        py: Python<'_>,
        groups: Integers,
        batch_size: u64,
        is_control: Option<Integers>,
        contexts: Option<Integers>,
        n_controls: u64,
        fill: bool,
        chunk_rows: u64,
        window_rows: u64,
    ) -> PyResult<Self> {
        if is_control.is_none() && n_controls > 0 {
            let problem = "n_controls is above 0: say by is_control which rows are controls";
            return Err(PyValueError::new_err(problem));
        }
        Self::draw(py, move || {
            let groups = groups.codes()?;
            let contexts = contexts.map(|codes| codes.codes()).transpose()?;
            let contexts = contexts.unwrap_or_else(|| vec![0; groups.len()]);
            let is_control: Option<Vec<bool>> =
                is_control.map(|marks| marks.0.into_iter().map(|mark| mark != 0).collect());
            let controls = is_control.as_deref().map(|is_control| Controls {
                is_control,
                contexts: &contexts,
                n_rows: n_controls,
            });
            Ok(Drawn::group_batches(&GroupBatches {
                groups: &groups,
                controls,
                batch_rows: batch_size,
                rest: if fill { Rest::Fill } else { Rest::Drop },
                chunk_rows,
                window_rows,
            }))
        })
    }

    #[staticmethod]
    #[pyo3(signature = (
        domains, subjects, batch_size, n_batches, *, labels = None, least_drawn = false
    ))]
    fn hierarchical(
        py: Python<'_>,
        domains: Integers,
        subjects: Integers,
        batch_size: u64,
        n_batches: u64,
        labels: Option<Integers>,
        least_drawn: bool,
    ) -> PyResult<Self> {
        Self::draw(py, move || {
            let (domains, subjects) = (domains.codes()?, subjects.codes()?);
            let labels = labels.map(|labels| labels.codes()).transpose()?;
            let sets = labels.map(|labels| ClassSets::new(labels.into_iter().map(Some)));
            let sets = sets.transpose().or_exception()?;
            let draw = if least_drawn { ClassDraw::LeastDrawn } else { ClassDraw::Uniform };
            Ok(Drawn::hierarchical(&Hierarchical {
                domains: &domains,
                subjects: &subjects,
                classes: sets.as_ref().map(|sets| (sets, draw)),
                batch_rows: batch_size,
                n_batches,
            }))
        })
    }

    #[getter]
    fn is_listed(&self) -> bool {
        self.drawn.is_listed()
    }

    #[getter]
    fn n_rows(&self) -> u64 {
        self.drawn.n_rows()
    }

    #[getter]
    fn n_samples(&self) -> u64 {
        self.drawn.n_samples()
    }

    fn __repr__(&self) -> String {
        format!("Sampling({} of {} rows)", self.drawn.n_samples(), self.drawn.n_rows())
    }
}

fn with(replacement: bool) -> Replacement {
    if replacement { Replacement::With } else { Replacement::Without }
}
