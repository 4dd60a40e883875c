//! Missing numbers of fields: what is done with samples that have some, and how many there are.

use arrays::{Missing, MissingCounts, MissingNumbers, MissingPolicy, WhenMissing};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Whether numbers in stored chunks were counted, and the counts of each variable.
pub(crate) type Counted = (bool, Vec<CountedVariable>);

/// Name and description, numbers of a step, the steps, and for each of them the numbers in chunks
/// that are not stored, of fill values and of NaN.
pub(crate) type CountedVariable = (String, String, u64, Vec<u64>, Vec<u64>, Vec<u64>, Vec<u64>);

/// What is done with samples, by what they lack: pairs of names.
pub(crate) fn policy(given: Vec<(String, String)>) -> PyResult<MissingPolicy> {
    let mut policy = MissingPolicy::default();
    for (what, done) in given {
        let unknown = |text: &str| PyValueError::new_err(format!("missing: {text:?} is unknown"));
        let of = match what.as_str() {
            "chunk" => &mut policy.chunks,
            "fill" => &mut policy.fills,
            "nan" => &mut policy.nans,
            other => return Err(unknown(other)),
        };
        *of = match done.as_str() {
            "keep" => WhenMissing::Keep,
            "leave out" => WhenMissing::LeaveOut,
            "error" => WhenMissing::Fail,
            other => return Err(unknown(other)),
        };
    }
    Ok(policy)
}

/// Counts as Python has them.
pub(crate) fn counted(missing: &Missing) -> Counted {
    let of_variable = |of: &MissingNumbers| {
        let all = |n: fn(&MissingCounts) -> u64| of.counts.iter().map(n).collect();
        let (chunks, fills) = (all(|of| of.in_chunks), all(|of| of.fills));
        let (name, description) = (of.name.clone(), of.description.clone());
        (name, description, of.n_elements, of.steps.clone(), chunks, fills, all(|of| of.nans))
    };
    (missing.has_values, missing.variables.iter().map(of_variable).collect())
}

/// Counts that Python has.
pub(crate) fn missing((has_values, variables): Counted) -> Missing {
    let of_variable = |of: CountedVariable| {
        let (name, description, n_elements, steps, chunks, fills, nans) = of;
        let counts = chunks.into_iter().zip(fills).zip(nans);
        let counts =
            counts.map(|((in_chunks, fills), nans)| MissingCounts { in_chunks, fills, nans });
        MissingNumbers { name, description, n_elements, steps, counts: counts.collect() }
    };
    Missing { variables: variables.into_iter().map(of_variable).collect(), has_values }
}
