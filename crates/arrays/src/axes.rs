//! The order in which dimensions are delivered, and the direction in which each goes.

use std::sync::Arc;

use crate::coordinate_arrays::CoordinateArrays;
use crate::coordinates::{CoordinateValues, Coordinates};
use crate::dimensions::Dimensions;
use crate::error::Error;
use crate::open_array::OpenArray;
use crate::selection::Indices;
use crate::spec::{Dimension, Direction, SampleSpec, Variable};
use crate::stacked::CHANNEL;
use crate::variable::OpenVariable;

/// What is asked of the dimensions of all variables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axes<'a> {
    pub(crate) order: &'a [String],
    pub(crate) directions: &'a [(String, Direction)],
}

impl<'a> Axes<'a> {
    pub(crate) fn of(spec: &'a SampleSpec) -> Self {
        Self { order: &spec.order, directions: &spec.directions }
    }

    /// Whether one of these dimensions is turned by its coordinates.
    pub(crate) fn turns(&self, dimensions: &[String]) -> bool {
        self.directions.iter().any(|(name, _)| dimensions.contains(name))
    }

    /// Fails if a name comes twice.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let directed: Vec<&String> = self.directions.iter().map(|(name, _)| name).collect();
        let ordered: Vec<&String> = self.order.iter().collect();
        for (names, what) in [(ordered, "order"), (directed, "directions")] {
            let is_again = |at: &usize| names[..*at].contains(&names[*at]);
            if let Some(at) = (0..names.len()).find(is_again) {
                let reason = format!("dimension {} comes twice in the {what}", names[at]);
                return Err(Error::Spec { reason });
            }
        }
        Ok(())
    }

    /// Fails if no variable has a dimension that is named.
    pub(crate) fn check_known(
        &self,
        opened: &[OpenVariable],
        spec: &[Variable],
    ) -> Result<(), Error> {
        let directed = self.directions.iter().map(|(name, _)| name);
        let is_known = |name: &String| {
            opened.iter().any(|of| of.dimensions.contains(name))
                || spec.iter().any(|of| of.ensemble.as_ref() == Some(name))
        };
        let mut names = self.order.iter().filter(|name| *name != CHANNEL).chain(directed);
        match names.find(|name| !is_known(name)) {
            Some(name) => {
                Err(Error::Spec { reason: format!("no variable has the dimension {name}") })
            }
            None => Ok(()),
        }
    }
}

impl Dimensions<'_> {
    /// The dimensions in the order in which they are delivered, without that of the steps: those
    /// that are not named first, as they are stored. Every dimension of `own` must be there; of
    /// `of_all`, which counts if there is none of `own`, those that are there count.
    pub(crate) fn order(
        &self,
        (own, of_all): (&[Dimension], &[String]),
        axis: Option<usize>,
    ) -> Result<Vec<usize>, Error> {
        let mut named = Vec::new();
        for dimension in own {
            let Some(at) = self.position(dimension) else {
                return Err(self.refused(dimension, self.listed()));
            };
            named.push((at, dimension.clone()));
        }
        if own.is_empty() {
            let of_all = of_all.iter().map(|name| Dimension::Name(name.clone()));
            named.extend(of_all.filter_map(|name| Some((self.position(&name)?, name))));
        }
        for (idx, (at, dimension)) in named.iter().enumerate() {
            if Some(*at) == axis {
                let reason = "samples are made of it, and come first".to_owned();
                return Err(self.refused(dimension, reason));
            }
            if named[..idx].iter().any(|(other, _)| other == at) {
                let reason = "the order of dimensions has it twice".to_owned();
                return Err(self.refused(dimension, reason));
            }
        }
        let is_named = |at: &usize| named.iter().any(|(named, _)| named == at);
        let others = (0..self.shape.len()).filter(|at| Some(*at) != axis && !is_named(at));
        let others: Vec<usize> = others.collect();
        Ok(others.into_iter().chain(named.iter().map(|(at, _)| *at)).collect())
    }

    /// Turns the selected indices of dimensions round whose coordinates go the other way than is
    /// asked for.
    pub(crate) fn turn(
        &self,
        (selected, axis): (&mut [Indices], Option<usize>),
        directions: &[(String, Direction)],
        coordinates: &[Option<Arc<Coordinates>>],
        arrays: &CoordinateArrays<'_>,
    ) -> Result<(), Error> {
        for (name, wanted) in directions {
            let dimension = Dimension::Name(name.clone());
            let Some(at) = self.position(&dimension) else { continue };
            if Some(at) == axis {
                let reason = "samples are made of it, and come by their steps".to_owned();
                return Err(self.refused(&dimension, reason));
            }
            let Some(Some(of)) = coordinates.get(at) else {
                let reason = self.without_coordinates(name, arrays);
                return Err(self.refused(&dimension, reason));
            };
            let indices = &mut selected[at];
            let found = of.pick(indices.iter()).direction();
            match found.map_err(|reason| self.refused(&dimension, reason))? {
                Some(found) if found != *wanted => {
                    let mut all: Vec<u64> = indices.iter().collect();
                    all.reverse();
                    *indices = Indices::List(all);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Why a dimension has no coordinates.
    pub(crate) fn without_coordinates(&self, name: &str, arrays: &CoordinateArrays<'_>) -> String {
        match arrays.problem(self.array, name) {
            Some(reason) => format!("the array of its coordinates {reason}"),
            None => "it has no coordinates: select by index".to_owned(),
        }
    }
}

impl Coordinates {
    /// The direction in which they go; `None` if there is one only.
    fn direction(&self) -> Result<Option<Direction>, String> {
        match self.values() {
            CoordinateValues::Integers(values) => direction(values),
            CoordinateValues::Floats(values) => direction(values),
            CoordinateValues::Strings(_) => {
                Err("its coordinates are texts, which have no direction".to_owned())
            }
        }
    }
}

fn direction<T: PartialOrd>(values: &[T]) -> Result<Option<Direction>, String> {
    let all = |goes: fn(&T, &T) -> bool| values.windows(2).all(|two| goes(&two[0], &two[1]));
    match values.len() {
        0 | 1 => Ok(None),
        _ if all(|one, next| one < next) => Ok(Some(Direction::Ascending)),
        _ if all(|one, next| one > next) => Ok(Some(Direction::Descending)),
        _ => Err("its selected coordinates neither ascend nor descend".to_owned()),
    }
}

impl OpenArray {
    /// The same with the dimensions of a row in another order: numbers of those that are selected.
    pub(crate) fn ordered(mut self, order: &[usize]) -> Self {
        self.chunks.geometry = self.chunks.geometry.ordered(order);
        self
    }
}

/// A list in another order: `order` has the number of each of its entries.
pub(crate) fn reordered<T: Clone>(all: &[T], order: &[usize]) -> Vec<T> {
    order.iter().filter_map(|at| all.get(*at).cloned()).collect()
}

/// The order of the dimensions of a member of a stack: its own, or that of the stack, in which the
/// channels may be named first.
pub(crate) fn order_in_stack(stack: &Variable, member: &Variable) -> Vec<Dimension> {
    if !member.order.is_empty() {
        return member.order.clone();
    }
    let outermost = Dimension::from(outermost(stack));
    stack.order.iter().filter(|dimension| **dimension != outermost).cloned().collect()
}

/// The dimension of a stack's members: channels, or members of an ensemble.
fn outermost(stack: &Variable) -> &str {
    stack.ensemble.as_deref().unwrap_or(CHANNEL)
}

/// Fails if the channels of a stack, or the members of an ensemble, are not to come first.
pub(crate) fn check_channels(spec: &SampleSpec) -> Result<(), Error> {
    let of_all = || spec.order.iter().map(|name| Dimension::Name(name.clone())).collect();
    for stack in spec.variables.iter().filter(|variable| !variable.stack.is_empty()) {
        let order: Vec<Dimension> =
            if stack.order.is_empty() { of_all() } else { stack.order.clone() };
        let outermost = Dimension::from(outermost(stack));
        if order.iter().skip(1).any(|name| *name == outermost) {
            let what = match &stack.ensemble {
                Some(dimension) => format!("its dimension {dimension} comes"),
                None => "its channels come".to_owned(),
            };
            let reason =
                format!("{} is a stack: {what} first, before all other dimensions", stack.name);
            return Err(Error::Spec { reason });
        }
    }
    Ok(())
}
