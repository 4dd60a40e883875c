//! Variables that are stacked as the channels of one, or as the members of an ensemble.

use std::sync::Arc;

use crate::coordinates::{CoordinateValues, Coordinates};
use crate::element::ElementType;
use crate::spec::Variable;
use crate::times::Times;
use crate::variable::OpenVariable;

/// Dimensions that all members of a stack have: those of the grid.
const GRID_DIMENSIONS: usize = 2;
/// The name of the dimension along which they are stacked.
pub(crate) const CHANNEL: &str = "channel";

impl OpenVariable {
    /// The members as the channels of one variable of this name. Each channel is normalised by its
    /// mean and deviation, if there are some, and then of this type. The error says what does not
    /// fit.
    pub(crate) fn stacked(
        name: &str,
        members: Vec<Self>,
        (normalize, element): (&[(f64, f64)], Option<ElementType>),
    ) -> Result<Self, String> {
        let rank = members.first().map_or(0, |first| first.row_shape.len());
        // One-dimensional grids have one dimension in each row.
        let n_grid = rank.min(GRID_DIMENSIONS);
        let (mut n_channels, mut names) = (0, Vec::new());
        let mut stacked: Option<Self> = None;
        let mut channel_dimensions = vec![CHANNEL.to_owned()];
        for member in members {
            let (n, of_member) = member.channels(n_grid)?;
            let n_outer = member.row_shape.len().saturating_sub(n_grid);
            channel_dimensions.extend(member.dimensions.iter().take(n_outer).cloned());
            let member = match normalize.get(n_channels..n_channels + n) {
                Some(by) => member.normalized(by, element)?,
                None if normalize.is_empty() => member,
                None => return Err(format!("it is normalised by {} pairs only", normalize.len())),
            };
            names.extend(of_member);
            match &mut stacked {
                Some(stack) => {
                    stack.check_beside(&member, n_grid)?;
                    stack.add(member, (n_channels, n));
                }
                None => stacked = Some(member),
            }
            n_channels += n;
        }
        let Some(mut stack) = stacked else { return Err("it has no variables".to_owned()) };
        if n_channels < normalize.len() {
            let n = normalize.len();
            return Err(format!("it has {n_channels} channels and is normalised by {n} pairs"));
        }
        let grid = stack.row_shape.len() - n_grid;
        stack.channel_dimensions = channel_dimensions;
        stack.row_shape.splice(..grid, [n_channels]);
        stack.dimensions.splice(..grid, [CHANNEL.to_owned()]);
        let values = CoordinateValues::Strings(names);
        let channels = Coordinates::new(CHANNEL, values, serde_json::Map::new());
        stack.coordinates.splice(..grid, [Some(Arc::new(channels))]);
        name.clone_into(&mut stack.name);
        Ok(stack)
    }

    /// Adds the parts of another variable's rows, `n` of equal size after the `n_before` of these.
    fn add(&mut self, other: Self, (n_before, n): (usize, usize)) {
        let n_arrays = self.members.len();
        self.forcings.extend(other.forcings.into_iter().map(|of| of.after(n_arrays)));
        self.members.extend(other.members);
        if let Some((one, next)) = self.difference.as_mut().zip(other.difference) {
            one.stack(n_before, &next, n);
        }
    }

    /// The members of an ensemble as one variable, along a first dimension of this name. Each is
    /// normalised alike. The error says what does not fit.
    pub(crate) fn ensemble(
        spec: &Variable,
        dimension: &str,
        members: Vec<Self>,
    ) -> Result<Self, String> {
        let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
        let mut joined: Option<Self> = None;
        for (at, member) in members.into_iter().enumerate() {
            if member.is_static() {
                return Err(format!("{} has no steps, so it is no member", member.name));
            }
            let member = match &spec.normalize[..] {
                [] => member,
                by => member.normalized(by, spec.element)?,
            };
            let Some(joined) = &mut joined else {
                joined = Some(member);
                continue;
            };
            joined.check_beside(&member, joined.row_shape.len().max(member.row_shape.len()))?;
            joined.add(member, (at, 1));
        }
        let Some(mut joined) = joined else { return Err("it has no members".to_owned()) };
        if joined.dimensions.iter().any(|known| known == dimension) {
            return Err(format!("its members have the dimension {dimension} already"));
        }
        let numbers: Option<Vec<i64>> = names.iter().map(|name| name.parse().ok()).collect();
        let values = match numbers {
            Some(numbers) => CoordinateValues::Integers(numbers),
            None => CoordinateValues::Strings(names),
        };
        let members = Coordinates::new(dimension, values, serde_json::Map::new());
        joined.row_shape.insert(0, members.len());
        joined.dimensions.insert(0, dimension.to_owned());
        joined.coordinates.insert(0, Some(Arc::new(members)));
        joined.channel_dimensions = vec![dimension.to_owned()];
        spec.name.clone_into(&mut joined.name);
        Ok(joined)
    }

    /// Fails if another variable's rows do not lie beside those of this one.
    fn check_beside(&self, other: &Self, n_grid: usize) -> Result<(), String> {
        let pair = format!("{} and {}", self.name, other.name);
        let grid = |of: &Self| -> Option<(Vec<usize>, Vec<String>)> {
            let start = of.row_shape.len().checked_sub(n_grid)?;
            Some((of.row_shape[start..].to_vec(), of.dimensions.get(start..)?.to_vec()))
        };
        if grid(self) != grid(other) {
            return Err(format!(
                "{pair} have steps of {:?} {:?} and {:?} {:?}: the last {n_grid} must be alike",
                self.dimensions, self.row_shape, other.dimensions, other.row_shape
            ));
        }
        let of_grid =
            |of: &Self| of.coordinates.iter().rev().take(n_grid).cloned().collect::<Vec<_>>();
        let differs = |(one, other): &(Option<Arc<Coordinates>>, Option<Arc<Coordinates>>)| {
            one.as_ref().zip(other.as_ref()).is_some_and(|(one, other)| !one.is_near(other))
        };
        if let Some((Some(of), _)) = of_grid(self).into_iter().zip(of_grid(other)).find(differs) {
            let name = of.dimension();
            return Err(format!(
                "the coordinates of {name} of {pair} differ: take those that are alike (sel), in \
                 one direction (orient)"
            ));
        }
        if self.element != other.element {
            let (one, another) = (self.element, other.element);
            return Err(format!(
                "{pair} have elements {one} and {another}: convert them to float32"
            ));
        }
        if self.n_steps != other.n_steps {
            return Err(format!("{pair} have {} and {} steps", self.n_steps, other.n_steps));
        }
        let steps = |of: &Self| of.step_coordinates.as_ref().map(|steps| steps.values().clone());
        let times = |of: &Self| of.step_coordinates.as_ref().map(|steps| Times::of(steps));
        // Times may be counted in other units; other numbers are compared as they are.
        let are_equal = match (times(self), times(other)) {
            (Some(Ok(one)), Some(Ok(other))) => one.are(&other),
            _ => steps(self) == steps(other),
        };
        let leads = |of: &Self| of.leads.as_ref().map(|leads| leads.micros.clone());
        if !are_equal || leads(self) != leads(other) {
            return Err(format!("the steps of {pair} have other coordinates"));
        }
        Ok(())
    }

    /// The number of channels that it makes, and their names.
    fn channels(&self, n_grid: usize) -> Result<(usize, Vec<String>), String> {
        if self.is_static() {
            return Err(format!("{} has no steps: take it as a variable of its own", self.name));
        }
        let n_outer = self.row_shape.len().saturating_sub(n_grid);
        let outer = &self.row_shape[..n_outer];
        let n_channels: usize = outer.iter().product();
        if n_channels == 1 && outer.is_empty() {
            return Ok((1, vec![self.name.clone()]));
        }
        let mut names = vec![self.name.clone()];
        for (len, coordinates) in outer.iter().zip(&self.coordinates) {
            let labels: Vec<String> = (0..*len)
                .map(|at| {
                    let label = coordinates.as_ref().and_then(|of| of.label(at));
                    label.unwrap_or_else(|| at.to_string())
                })
                .collect();
            names = names
                .iter()
                .flat_map(|name| labels.iter().map(move |label| format!("{name}_{label}")))
                .collect();
        }
        Ok((n_channels, names))
    }
}
