//! An opened array: its chunks, its elements, and the part of it that is selected.

use std::sync::Arc;

use slots::Pool;
use storage::Storage;
use zarrs::array::Array;
use zarrs::plugin::ExtensionName as _;

use crate::chunks::Chunks;
use crate::convert::Convert;
use crate::coordinate_arrays::CoordinateArrays;
use crate::coordinates::Coordinates;
use crate::element::ElementType;
use crate::error::Error;
use crate::labels::Selection;
use crate::metadata::{self, Opened};
use crate::packing::{Attributes, Packing};
use crate::selection::Indices;
use crate::spec::{Dimension, Variable};
use crate::store::Store;

/// A variable whose array is open.
#[derive(Debug)]
pub(crate) struct OpenVariable {
    pub(crate) name: String,
    pub(crate) steps: Vec<i64>,
    pub(crate) chunks: Chunks,
    pub(crate) convert: Convert,
    /// Elements as delivered.
    pub(crate) element: ElementType,
    /// Names of the dimensions but that of the steps; empty where the metadata has none.
    pub(crate) dimensions: Vec<String>,
    /// The selected indices of all dimensions but that of the steps.
    pub(crate) selected: Vec<Indices>,
    /// The coordinates of the selected indices, for all dimensions but that of the steps.
    pub(crate) coordinates: Vec<Option<Arc<Coordinates>>>,
    /// The coordinates of the steps.
    pub(crate) step_coordinates: Option<Arc<Coordinates>>,
    /// The number of steps.
    pub(crate) n_steps: u64,
    /// Memory of its batches.
    pub(crate) pool: Arc<Pool>,
}

impl OpenVariable {
    /// Opens the array of a variable. Takes the coordinates of its dimensions from `arrays` if
    /// `with_coordinates`, or if a selection needs them.
    pub(crate) fn open(
        storage: &Arc<dyn Storage>,
        (spec, along): (&Variable, Option<&Dimension>),
        (arrays, with_coordinates): (&mut CoordinateArrays<'_>, bool),
    ) -> Result<Self, Error> {
        let path = spec.path.trim_matches('/').to_owned();
        let opened = metadata::open(storage, &path).map_err(|unopened| Error::Open {
            array: path.clone(),
            place: storage.place(),
            source: unopened.into(),
        })?;
        let array = &opened.array;
        if array.shape().is_empty() {
            return Err(Error::NoRows { array: path });
        }
        let dimensions = dimension_names(array);
        let needs = |(_, selection): &(_, Selection)| matches!(selection, Selection::Labels(_));
        let coordinates = if with_coordinates || spec.select.iter().any(needs) {
            arrays.of_array(&path, &dimensions, array.shape())?
        } else {
            vec![None; dimensions.len()]
        };
        let known = Dimensions { array: &path, names: &dimensions, shape: array.shape() };
        let axis = along.map_or(Ok(0), |along| {
            known.position(along).ok_or_else(|| known.refused(along, known.listed()))
        })?;
        let selected = known.selected((&spec.select, axis), &coordinates, arrays)?;
        let mut others = coordinates;
        let step_coordinates = others.remove(axis);
        let mut lens = array.shape().to_vec();
        let n_steps = lens.remove(axis);
        let cut = others.iter().zip(&selected).zip(&lens).map(|((found, indices), len)| {
            let coordinates = found.as_ref()?;
            let is_whole = *indices == Indices::Range(0..*len);
            Some(if is_whole {
                Arc::clone(coordinates)
            } else {
                Arc::new(coordinates.pick(indices.iter()))
            })
        });
        let coordinates = cut.collect();
        let packing = (!spec.as_stored).then(|| packing(&opened, &path)).transpose()?;
        let opened = Self::build(opened.array, &path, &**storage, (axis, selected))?;
        let opened = match packing {
            Some((element, packing)) => opened.unpacked(element, packing),
            None => opened,
        };
        Ok(Self {
            name: spec.name.clone(),
            steps: spec.steps.clone(),
            coordinates,
            step_coordinates,
            n_steps,
            ..if spec.as_f32 { opened.into_f32() } else { opened }
        })
    }

    /// The array as a variable of its own name, at the sample's own step, with its elements as
    /// stored.
    fn build(
        array: Array<Store>,
        path: &str,
        storage: &dyn Storage,
        (axis, selected): (usize, Vec<Indices>),
    ) -> Result<Self, Error> {
        let mut dimensions = dimension_names(&array);
        dimensions.remove(axis);
        let chunks = Chunks::new(array, path, storage, (axis, &selected))?;
        Ok(Self {
            name: path.to_owned(),
            steps: vec![0],
            convert: Convert::Copy,
            element: chunks.stored,
            chunks,
            dimensions,
            selected,
            coordinates: Vec::new(),
            step_coordinates: None,
            n_steps: 0,
            pool: Arc::default(),
        })
    }

    /// The same with stored bytes taken for elements of type `stored`, and unpacked.
    fn unpacked(self, stored: ElementType, packing: Option<Packing>) -> Self {
        let chunks = Chunks { stored, ..self.chunks };
        let Some(packing) = packing else { return Self { chunks, element: stored, ..self } };
        let to = packing.delivered(stored);
        let convert = Convert::Floats { to, packing: Some(packing) };
        Self { chunks, convert, element: to, ..self }
    }

    /// The same with elements converted to `f32`.
    fn into_f32(self) -> Self {
        let packing = match self.convert {
            Convert::Copy if self.element == ElementType::F32 => return self,
            Convert::Floats { packing, .. } => packing,
            Convert::Copy | Convert::Numbers { .. } => None,
        };
        let convert = Convert::Floats { to: ElementType::F32, packing };
        Self { convert, element: ElementType::F32, ..self }
    }

    /// Bytes of the selected part of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        self.chunks.geometry.row_len * self.element.n_bytes()
    }

    /// Shape of a sample: its steps, if there are several, then the selected part of a step.
    pub(crate) fn sample_shape(&self) -> Vec<usize> {
        let steps = (self.steps.len() != 1).then_some(self.steps.len());
        steps.into_iter().chain(self.chunks.geometry.row_shape.iter().copied()).collect()
    }

    /// The names of the dimensions of [`sample_shape`](Self::sample_shape).
    pub(crate) fn sample_dimensions(&self) -> Vec<&str> {
        let steps = (self.steps.len() != 1).then_some("step");
        let row = self.dimensions.iter().map(String::as_str);
        steps.into_iter().chain(row).collect()
    }

    /// The coordinates of the selected indices of a dimension that is not that of the steps.
    pub(crate) fn coordinates_of(&self, dimension: &str) -> Option<&Coordinates> {
        let mut pairs = self.dimensions.iter().zip(&self.coordinates);
        let (_, coordinates) = pairs.find(|(name, _)| *name == dimension)?;
        coordinates.as_deref()
    }

    /// Bytes of a sample.
    pub(crate) fn sample_bytes(&self) -> u64 {
        (self.row_bytes() as u64).saturating_mul(self.steps.len() as u64)
    }

    /// Whether rows of `other` are rows of this one: the same part of the same array, delivered
    /// alike.
    pub(crate) fn has_rows_of(&self, other: &Self) -> bool {
        self.chunks.path == other.chunks.path
            && self.selected == other.selected
            && self.element == other.element
            && self.convert.is_copy() == other.convert.is_copy()
    }

    /// Bytes of the decoded chunks of the largest task.
    pub(crate) fn task_bytes(&self) -> u64 {
        let segments = self.chunks.geometry.segments();
        let n_chunks = segments.iter().map(|segment| segment.chunks.len()).max();
        (n_chunks.unwrap_or(0) * self.chunks.chunk_bytes()) as u64
    }
}

pub(crate) fn element_type(array: &Array<Store>, path: &str) -> Result<ElementType, Error> {
    let name = array.data_type().name_v3();
    let known = name.as_deref().and_then(ElementType::from_zarr_name);
    known.ok_or_else(|| Error::Element {
        array: path.to_owned(),
        stored: name.map_or_else(|| format!("{:?}", array.data_type()), Into::into),
    })
}

/// The type that an array's stored bytes are to be taken for, and what its numbers stand for.
pub(crate) fn packing(
    opened: &Opened,
    path: &str,
) -> Result<(ElementType, Option<Packing>), Error> {
    let Opened { array, version, .. } = opened;
    let element = element_type(array, path)?;
    let attributes = Attributes {
        all: array.attributes(),
        version: *version,
        fill: array.fill_value().as_ne_bytes(),
        element,
    };
    attributes
        .packing()
        .map_err(|source| Error::Attribute { array: path.to_owned(), source: source.into() })
}

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
struct Dimensions<'a> {
    array: &'a str,
    names: &'a [String],
    shape: &'a [u64],
}

impl Dimensions<'_> {
    /// The dimensions, for a message.
    fn listed(&self) -> String {
        if self.names.iter().all(String::is_empty) {
            return format!("the array has {} dimensions without names", self.shape.len());
        }
        format!("the dimensions are {}", self.names.join(", "))
    }

    /// The selected indices of each dimension but `axis`.
    fn selected(
        &self,
        (select, axis): (&[(Dimension, Selection)], usize),
        coordinates: &[Option<Arc<Coordinates>>],
        arrays: &CoordinateArrays<'_>,
    ) -> Result<Vec<Indices>, Error> {
        let Self { array, names, shape } = *self;
        let mut all: Vec<Indices> = shape.iter().map(|len| Indices::Range(0..*len)).collect();
        for (dimension, selection) in select {
            let Some(at) = self.position(dimension) else {
                return Err(self.refused(dimension, self.listed()));
            };
            if at == axis {
                let reason = "samples are made of it: set start and stride".to_owned();
                return Err(self.refused(dimension, reason));
            }
            all[at] = match (selection, coordinates.get(at)) {
                (Selection::Indices(indices), _) => indices.clone(),
                (Selection::Labels(labels), Some(Some(of))) => {
                    of.indices_of(labels).map_err(|reason| self.refused(dimension, reason))?
                }
                (Selection::Labels(_), _) => {
                    let reason = names.get(at).and_then(|name| arrays.problem(array, name));
                    let reason = match reason {
                        Some(reason) => format!("the array of its coordinates {reason}"),
                        None => "it has no coordinates: select by index".to_owned(),
                    };
                    return Err(self.refused(dimension, reason));
                }
            };
        }
        for (at, (indices, len)) in all.iter().zip(shape).enumerate().filter(|(at, _)| *at != axis)
        {
            if let Some(reason) = indices.problem(*len) {
                let dimension = match names.get(at).filter(|name| !name.is_empty()) {
                    Some(name) => Dimension::Name(name.clone()),
                    None => Dimension::Position(at),
                };
                return Err(self.refused(&dimension, reason));
            }
        }
        all.remove(axis);
        Ok(all)
    }

    fn position(&self, dimension: &Dimension) -> Option<usize> {
        match dimension {
            Dimension::Position(at) => Some(*at).filter(|at| *at < self.shape.len()),
            // A dimension without a name has the empty one.
            Dimension::Name(name) if name.is_empty() => None,
            Dimension::Name(name) => self.names.iter().position(|known| known == name),
        }
    }

    fn refused(&self, dimension: &Dimension, reason: String) -> Error {
        let (array, dimension) = (self.array.to_owned(), dimension.to_string());
        Error::Select { array, dimension, reason }
    }
}
