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
    let all = spec.variables.iter().map(arrays_of).collect::<Result<Vec<_>, Error>>()?;
    let arrays: Vec<&Variable> = all.iter().flatten().filter(|of| of.forcing.is_none()).collect();
    let has_forcings = all.iter().flatten().any(|of| of.forcing.is_some());
    if has_forcings && arrays.is_empty() {
        let reason = "what is computed needs the times and the grid of a variable: name one";
        return Err(Error::Spec { reason: reason.to_owned() });
    }
    let is_there = |variable: &&&Variable| variable.stores.iter().all(|at| *at < stores.len());
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
                with_coordinates: spec.coordinates || spec.is_timed() || has_forcings,
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
    let refs: Vec<&OpenVariable> = opened.iter().collect();
    let forcings = all.iter().map(|of_variable| computed(of_variable, &refs, &arrays));
    let forcings = forcings.collect::<Result<Vec<_>, Error>>()?;
    let (mut opened, mut forcings) = (opened.into_iter(), forcings.into_iter().flatten());
    let variables = spec.variables.iter().zip(&all).map(|(variable, of_variable)| {
        let mut members: Vec<OpenVariable> = Vec::with_capacity(of_variable.len());
        for member in of_variable {
            members.extend(if member.forcing.is_some() { forcings.next() } else { opened.next() });
        }
        made(variable, members)
    });
    Ok((variables.collect::<Result<_, _>>()?, skipped))
}

/// The variable that consists of these, which are several only in a stack.
fn made(variable: &Variable, mut members: Vec<OpenVariable>) -> Result<OpenVariable, Error> {
    let mut made = match members.pop() {
        Some(only) if variable.stack.is_empty() => only,
        last => {
            members.extend(last);
            let by = (&variable.normalize[..], variable.element);
            let stacked = match &variable.ensemble {
                Some(dimension) => OpenVariable::ensemble(variable, dimension, members),
                None => OpenVariable::stacked(&variable.name, members, by),
            };
            stacked.map_err(|reason| Error::Spec {
                reason: format!("{} cannot be stacked: {reason}", variable.name),
            })?
        }
    };
    made.choose_read_element();
    Ok(made)
}

/// What is computed of a variable, a stack or not, from those that were opened for `arrays`.
fn computed(
    of_variable: &[Variable],
    opened: &[&OpenVariable],
    arrays: &[&Variable],
) -> Result<Vec<OpenVariable>, Error> {
    // Those of a stack are beside others of it.
    let beside: Vec<&OpenVariable> = opened
        .iter()
        .zip(arrays)
        .filter(|(_, array)| of_variable.iter().any(|of| std::ptr::eq(of, **array)))
        .map(|(opened, _)| *opened)
        .collect();
    let gridded = if beside.is_empty() { opened } else { &beside };
    let has_steps = |of: &&&OpenVariable| !of.is_static();
    let timed = gridded.iter().find(has_steps).or_else(|| opened.iter().find(has_steps));
    let made = of_variable.iter().filter_map(|of| Some((of, of.forcing?)));
    let made = made.map(|(variable, forcing)| match timed {
        Some(timed) => OpenVariable::computed(variable, forcing, (gridded, timed)),
        None => Err(Error::Spec {
            reason: format!("{} needs the times of a variable that has steps", variable.name),
        }),
    });
    made.collect()
}

/// The variables that are stacked, at the steps of the stack, or the variable itself.
fn arrays_of(variable: &Variable) -> Result<Vec<Variable>, Error> {
    if variable.stack.is_empty() {
        return Ok(vec![variable.clone()]);
    }
    if variable.clip.is_some() || variable.log.is_some() || variable.forcing.is_some() {
        let reason =
            format!("{} is a stack: clip, log and forcing are of its variables", variable.name);
        return Err(Error::Spec { reason });
    }
    let member = |member: &Variable| Variable {
        steps: variable.steps.clone(),
        spans: variable.spans.clone(),
        rollout: variable.rollout.clone(),
        minus: variable.minus.clone(),
        minus_spans: variable.minus_spans.clone(),
        order: if member.forcing.is_some() { Vec::new() } else { order_in_stack(variable, member) },
        element: variable.element.or(member.element),
        ..member.clone()
    };
    Ok(variable.stack.iter().map(member).collect())
}
