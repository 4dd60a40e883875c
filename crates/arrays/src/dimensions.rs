//! The dimensions of an array: their names, and the indices that are selected of each.

use std::sync::Arc;

use zarrs::array::Array;

use crate::coordinate_arrays::CoordinateArrays;
use crate::coordinates::Coordinates;
use crate::error::Error;
use crate::labels::Selection;
use crate::selection::Indices;
use crate::spec::Dimension;
use crate::store::Store;

/// The names of an array's dimensions; empty where it has none.
pub(crate) fn dimension_names(array: &Array<Store>) -> Vec<String> {
    let n = array.dimensionality();
    if let Some(names) = array.dimension_names() {
        return names.iter().map(|name| name.clone().unwrap_or_default()).collect();
    }
    let names = array.attributes().get("_ARRAY_DIMENSIONS").and_then(serde_json::Value::as_array);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let names: Vec<String> =
        names.map(|names| names.iter().map(text).collect()).unwrap_or_default();
    if names.len() == n { names } else { vec![String::new(); n] }
}

/// The dimensions of an array.
pub(crate) struct Dimensions<'a> {
    pub(crate) array: &'a str,
    pub(crate) names: &'a [String],
    pub(crate) shape: &'a [u64],
}

impl Dimensions<'_> {
    /// The dimensions, for a message.
    pub(crate) fn listed(&self) -> String {
        if self.names.iter().all(String::is_empty) {
            return format!("the array has {} dimensions without names", self.shape.len());
        }
        format!("the dimensions are {}", self.names.join(", "))
    }

    /// The dimension of the steps; `None` if the array has names and none is this one.
    pub(crate) fn axis(&self, along: Option<&Dimension>) -> Result<Option<usize>, Error> {
        let Some(along) = along else { return Ok(Some(0)) };
        let has_names = self.names.iter().any(|name| !name.is_empty());
        match (self.position(along), along) {
            (None, Dimension::Name(_)) if has_names => Ok(None),
            (None, _) => Err(self.refused(along, self.listed())),
            (at, _) => Ok(at),
        }
    }

    /// The selected indices of each dimension, all of that of the steps.
    pub(crate) fn selected(
        &self,
        (select, axis): (&[(Dimension, Selection)], Option<usize>),
        coordinates: &[Option<Arc<Coordinates>>],
        arrays: &CoordinateArrays<'_>,
    ) -> Result<Vec<Indices>, Error> {
        let Self { names, shape, .. } = *self;
        let mut all: Vec<Indices> = shape.iter().map(|len| Indices::Range(0..*len)).collect();
        for (dimension, selection) in select {
            let Some(at) = self.position(dimension) else {
                return Err(self.refused(dimension, self.listed()));
            };
            if Some(at) == axis {
                let reason = "samples are made of it: set start and stride".to_owned();
                return Err(self.refused(dimension, reason));
            }
            all[at] = match (selection, coordinates.get(at)) {
                (Selection::Indices(indices), _) => indices.clone(),
                (Selection::Labels(labels), Some(Some(of))) => {
                    of.indices_of(labels).map_err(|reason| self.refused(dimension, reason))?
                }
                (Selection::Labels(_), _) => {
                    let name = names.get(at).map_or("", String::as_str);
                    let reason = self.without_coordinates(name, arrays);
                    return Err(self.refused(dimension, reason));
                }
            };
        }
        let others = all.iter().zip(shape).enumerate().filter(|(at, _)| Some(*at) != axis);
        for (at, (indices, len)) in others {
            if let Some(reason) = indices.problem(*len) {
                let dimension = match names.get(at).filter(|name| !name.is_empty()) {
                    Some(name) => Dimension::Name(name.clone()),
                    None => Dimension::Position(at),
                };
                return Err(self.refused(&dimension, reason));
            }
        }
        Ok(all)
    }

    pub(crate) fn position(&self, dimension: &Dimension) -> Option<usize> {
        match dimension {
            Dimension::Position(at) => Some(*at).filter(|at| *at < self.shape.len()),
            // A dimension without a name has the empty one.
            Dimension::Name(name) if name.is_empty() => None,
            Dimension::Name(name) => self.names.iter().position(|known| known == name),
        }
    }

    pub(crate) fn refused(&self, dimension: &Dimension, reason: String) -> Error {
        let (array, dimension) = (self.array.to_owned(), dimension.to_string());
        Error::Select { array, dimension, reason }
    }
}
