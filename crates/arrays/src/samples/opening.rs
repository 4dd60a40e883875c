//! Opens the variables of samples in all stores.

use std::collections::HashMap;
use std::sync::Arc;

use storage::Storage;

use crate::axes::{Axes, check_channels, order_in_stack};
use crate::coordinate_arrays::CoordinateArrays;
use crate::coordinates::SkippedCoordinates;
use crate::error::Error;
use crate::metadata::Unopened;
use crate::spec::{SampleSpec, Variable};
use crate::variable::{OpenVariable, Opening};

/// Joins a variable of a store to what earlier stores have of it.
fn join(
    found: &mut Option<OpenVariable>,
    opened: OpenVariable,
    storage: &dyn Storage,
) -> Result<(), Error> {
    let Some(found) = found else {
        *found = Some(opened);
        return Ok(());
    };
    let path = opened.path().to_owned();
    found.append(opened).map_err(|reason| {
        let place = storage.place();
        Error::Spec {
            reason: format!("{path} in {place} does not follow the store before: {reason}"),
        }
    })
}

/// Whether a variable may be read from a store of this number.
fn is_of(variable: &Variable, store: usize) -> bool {
    variable.stores.is_empty() || variable.stores.contains(&store)
}

/// Opens the variables of a specification, with what was skipped of their coordinates.
pub(super) fn open_variables(
    stores: &[Arc<dyn Storage>],
    spec: &SampleSpec,
    threads: usize,
) -> Result<(Vec<OpenVariable>, Vec<SkippedCoordinates>), Error> {
    // Those that are stacked, each by itself first.
    let axes = Axes::of(spec);
    axes.check()?;
    check_channels(spec)?;
    let arrays: Vec<Variable> = spec.variables.iter().flat_map(arrays_of).collect();
    let is_there = |variable: &&Variable| variable.stores.iter().all(|at| *at < stores.len());
    if let Some(variable) = arrays.iter().find(|variable| !is_there(variable)) {
        let (name, of, n) = (&variable.name, &variable.stores, stores.len());
        let reason = format!("{name} is read from the stores {of:?}, and there are {n}");
        return Err(Error::Spec { reason });
    }
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    found.resize_with(arrays.len(), || None);
    for (store, storage) in stores.iter().enumerate() {
        let mut coordinates = CoordinateArrays::new(storage, threads);
        let mut valid = HashMap::new();
        let mut has_any = false;
        for (variable, found) in arrays.iter().zip(&mut found) {
            if !is_of(variable, store) {
                continue;
            }
            let opening = Opening {
                storage,
                store,
                along: spec.along.as_ref(),
                lead: spec.lead.as_ref(),
                axes,
                arrays: &mut coordinates,
                valid: &mut valid,
                with_coordinates: spec.coordinates || spec.is_timed(),
                is_timed: spec.is_timed(),
                threads,
            };
            let Some(opened) = OpenVariable::open(variable, opening)? else { continue };
            has_any = true;
            join(found, opened, &**storage)?;
        }
        let mut wanted = arrays.iter().filter(|variable| is_of(variable, store));
        if !has_any && let Some(variable) = wanted.next() {
            return Err(Unopened::Missing.error(variable.path.trim_matches('/'), &**storage));
        }
        skipped.extend(coordinates.into_skipped());
    }
    let missing =
        |variable: &Variable| match stores.get(variable.stores.first().map_or(0, |at| *at)) {
            Some(storage) => Unopened::Missing.error(variable.path.trim_matches('/'), &**storage),
            None => Error::Spec { reason: "there is no store".to_owned() },
        };
    let opened = found.into_iter().zip(&arrays);
    let opened = opened.map(|(found, variable)| found.ok_or_else(|| missing(variable)));
    let opened = opened.collect::<Result<Vec<OpenVariable>, Error>>()?;
    axes.check_known(&opened, &spec.variables)?;
    let mut opened = opened.into_iter();
    let variables = spec.variables.iter().map(|variable| {
        let n = variable.stack.len().max(1);
        let mut members: Vec<OpenVariable> = opened.by_ref().take(n).collect();
        if variable.stack.is_empty()
            && let Some(only) = members.pop()
        {
            return Ok(only);
        }
        let stacked = match &variable.ensemble {
            Some(dimension) => OpenVariable::ensemble(variable, dimension, members),
            None => OpenVariable::stacked(&variable.name, members, &variable.normalize),
        };
        stacked.map_err(|reason| Error::Spec {
            reason: format!("{} cannot be stacked: {reason}", variable.name),
        })
    });
    Ok((variables.collect::<Result<_, _>>()?, skipped))
}

/// The variables that have arrays: those that are stacked, at the steps of the stack, or itself.
fn arrays_of(variable: &Variable) -> Vec<Variable> {
    if variable.stack.is_empty() {
        return vec![variable.clone()];
    }
    let member = |member: &Variable| Variable {
        steps: variable.steps.clone(),
        spans: variable.spans.clone(),
        rollout: variable.rollout.clone(),
        order: order_in_stack(variable, member),
        as_f32: variable.as_f32 || member.as_f32,
        ..member.clone()
    };
    variable.stack.iter().map(member).collect()
}
