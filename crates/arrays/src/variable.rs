//! An opened variable: its array in each store, its elements, and the part of it that is selected.

use std::ops::Range;
use std::sync::Arc;

use pipeline::Stop;
use slots::Pool;
use storage::Storage;
use zarrs::array::Array;
use zarrs::plugin::ExtensionName as _;

use crate::chunk_task::tasks;
use crate::chunks::Chunks;
use crate::convert::Convert;
use crate::coordinate_arrays::CoordinateArrays;
use crate::coordinates::Coordinates;
use crate::element::ElementType;
use crate::error::{Cause, Error};
use crate::kept::KeptChunks;
use crate::labels::Selection;
use crate::memory::{check_chunk, words};
use crate::metadata::{self, Opened, Unopened};
use crate::packing::{Attributes, Packing};
use crate::read;
use crate::selection::Indices;
use crate::spec::{Dimension, Variable};
use crate::store::Store;
use crate::times::{TimeSpan, Times};
use crate::window::{SampleSteps, hash};

/// A variable whose array is open, in one store or several: the steps of the first, then those of
/// the second, and so on.
#[derive(Debug)]
pub(crate) struct OpenVariable {
    pub(crate) name: String,
    /// Which steps a sample has.
    pub(crate) steps: SampleSteps,
    /// The times between a sample's own and those of its steps, if they are found by these.
    pub(crate) spans: Vec<TimeSpan>,
    /// Elements as delivered.
    pub(crate) element: ElementType,
    /// Names of the dimensions but that of the steps; empty where the metadata has none.
    pub(crate) dimensions: Vec<String>,
    /// The coordinates of the selected indices, for all dimensions but that of the steps.
    pub(crate) coordinates: Vec<Option<Arc<Coordinates>>>,
    /// The coordinates of the steps.
    pub(crate) step_coordinates: Option<Arc<Coordinates>>,
    /// The number of steps.
    pub(crate) n_steps: u64,
    first: OpenArray,
    /// The arrays of later stores, each with its first step.
    later: Vec<(u64, OpenArray)>,
    /// The values of an array without steps.
    pub(crate) values: Option<StaticValues>,
    /// Memory of its batches.
    pub(crate) pool: Arc<Pool>,
}

/// An open array, and the part of each row that is selected.
#[derive(Debug)]
pub(crate) struct OpenArray {
    /// The number of its store.
    pub(crate) store: usize,
    pub(crate) chunks: Chunks,
    pub(crate) convert: Convert,
    /// Elements as delivered.
    element: ElementType,
    /// The selected indices of all dimensions but that of the steps.
    pub(crate) selected: Vec<Indices>,
    /// The first and the last valid date, if the store names them.
    valid: Option<(Option<String>, Option<String>)>,
}

/// The selected values of an array without steps, decoded.
#[derive(Debug)]
pub(crate) struct StaticValues {
    /// In words, so that elements are aligned.
    words: Vec<u64>,
    n_bytes: usize,
    /// Selected indices of the first dimension.
    n_outer: usize,
}

impl StaticValues {
    /// The values in C order.
    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.n_bytes]
    }
}

impl OpenArray {
    fn new(
        array: Array<Store>,
        path: &str,
        storage: &dyn Storage,
        (axis, selected): (usize, Vec<Indices>),
    ) -> Result<Self, Error> {
        let chunks = Chunks::new(array, path, storage, (axis, &selected))?;
        let (convert, element) = (Convert::Copy, chunks.stored);
        Ok(Self { store: 0, convert, element, chunks, selected, valid: None })
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
    fn row_bytes(&self) -> usize {
        self.chunks.geometry.row_len * self.element.n_bytes()
    }

    /// Whether rows of `other` are rows of this one: the same part of the same array, delivered
    /// alike.
    pub(crate) fn has_rows_of(&self, other: &Self) -> bool {
        self.store == other.store
            && self.chunks.path == other.chunks.path
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

    /// What distinguishes it from other arrays, and from other parts of it.
    fn fingerprint(&self) -> String {
        let Chunks { stored, geometry, .. } = &self.chunks;
        let along = match geometry.axis {
            0 => String::new(),
            axis => format!(" along {axis}"),
        };
        format!("{stored} {} {:?}{along}", self.element, self.selected)
    }

    /// Decodes all rows that `outer` selects.
    fn read_rows(
        &self,
        storage: &dyn Storage,
        outer: &Indices,
        threads: usize,
    ) -> Result<StaticValues, Cause> {
        let n_outer = usize::try_from(outer.len())?;
        let n_bytes = self.row_bytes().checked_mul(n_outer).ok_or("it is too large")?;
        check_chunk(n_bytes)?;
        let mut memory = Vec::new();
        let bytes = words(&mut memory, n_bytes)?;
        let rows = outer.iter().zip(bytes.chunks_exact_mut(self.row_bytes())).collect();
        let all = tasks((&self.chunks, &self.convert), rows);
        let with = (&mut Vec::new(), threads);
        read::run((storage, &KeptChunks::default()), all, with, &Stop::default())
            .map_err(|failure| failure.source)?;
        Ok(StaticValues { words: memory, n_bytes, n_outer })
    }
}

/// Where a variable is opened, and how.
pub(crate) struct Opening<'a, 's> {
    pub(crate) storage: &'s Arc<dyn Storage>,
    /// The number of the store.
    pub(crate) store: usize,
    /// The dimension of the steps.
    pub(crate) along: Option<&'a Dimension>,
    pub(crate) arrays: &'a mut CoordinateArrays<'s>,
    /// Whether coordinates are read that no selection needs.
    pub(crate) with_coordinates: bool,
    /// Whether the dates are looked for that the store names as valid.
    pub(crate) is_timed: bool,
    /// Threads that read values.
    pub(crate) threads: usize,
}

impl OpenVariable {
    /// Opens the array of a variable, and reads it if it has no steps. `None` if there is none.
    pub(crate) fn open(spec: &Variable, opening: Opening<'_, '_>) -> Result<Option<Self>, Error> {
        let Opening { storage, arrays, .. } = opening;
        let path = spec.path.trim_matches('/').to_owned();
        let opened = match metadata::open(storage, &path) {
            Err(Unopened::Missing) => return Ok(None),
            opened => opened.map_err(|unopened| unopened.error(&path, &**storage))?,
        };
        let array = &opened.array;
        if array.shape().is_empty() {
            return Err(Error::NoRows { array: path });
        }
        let dimensions = dimension_names(array);
        let needs = |(_, selection): &(_, Selection)| matches!(selection, Selection::Labels(_));
        let coordinates = if opening.with_coordinates || spec.select.iter().any(needs) {
            arrays.of_array(&path, &dimensions, array.shape())?
        } else {
            vec![None; dimensions.len()]
        };
        let known = Dimensions { array: &path, names: &dimensions, shape: array.shape() };
        let axis = known.axis(opening.along)?;
        let mut selected = known.selected((&spec.select, axis), &coordinates, arrays)?;
        let lens = array.shape();
        let cut = coordinates.iter().zip(&selected).zip(lens).map(|((found, indices), len)| {
            let coordinates = found.as_ref()?;
            let is_whole = *indices == Indices::Range(0..*len);
            Some(if is_whole {
                Arc::clone(coordinates)
            } else {
                Arc::new(coordinates.pick(indices.iter()))
            })
        });
        let mut coordinates: Vec<Option<Arc<Coordinates>>> = cut.collect();
        let mut of_rows = dimensions;
        let mut n_steps = 0;
        let mut step_coordinates = None;
        let rows_along = axis.unwrap_or(0);
        let outer = selected.remove(rows_along);
        if axis.is_some() {
            n_steps = outer.len();
            step_coordinates = coordinates.remove(rows_along);
            of_rows.remove(rows_along);
        }
        let packing = (!spec.as_stored).then(|| packing(&opened, &path)).transpose()?;
        let array = OpenArray::new(opened.array, &path, &**storage, (rows_along, selected))?;
        let array = match packing {
            Some((element, packing)) => array.unpacked(element, packing),
            None => array,
        };
        let array = if spec.as_f32 { array.into_f32() } else { array };
        let valid =
            if opening.is_timed && axis.is_some() { valid_dates(storage, &path)? } else { None };
        let values = if axis.is_some() {
            None
        } else {
            check_static(spec, opening.along)?;
            let values = array.read_rows(&**storage, &outer, opening.threads);
            let failed = |source| Error::ReadElements {
                array: path.clone(),
                place: storage.place(),
                source,
            };
            Some(values.map_err(failed)?)
        };
        let mut first = OpenArray { store: opening.store, valid, ..array };
        if 0 < opening.store {
            first.chunks.kept_as = format!("{} {path}", opening.store);
        }
        let steps = if spec.spans.is_empty() {
            SampleSteps::Relative(spec.steps.clone())
        } else {
            // Until the times are known.
            SampleSteps::Relative(vec![0; spec.spans.len()])
        };
        Ok(Some(Self {
            name: spec.name.clone(),
            steps,
            spans: spec.spans.clone(),
            element: first.element,
            dimensions: of_rows,
            coordinates,
            step_coordinates,
            n_steps,
            first,
            later: Vec::new(),
            values,
            pool: Arc::default(),
        }))
    }

    /// Appends the steps of the same variable in a later store.
    pub(crate) fn append(&mut self, next: Self) -> Result<(), String> {
        if self.is_static() || next.is_static() {
            return if self.is_static() && next.is_static() {
                Ok(())
            } else {
                Err("it has steps in one only".to_owned())
            };
        }
        let shapes = (self.row_shape(), next.row_shape());
        if self.dimensions != next.dimensions || shapes.0 != shapes.1 {
            return Err(format!(
                "its steps have the dimensions {:?} of {:?} and {:?} of {:?}",
                self.dimensions, shapes.0, next.dimensions, shapes.1
            ));
        }
        if self.element != next.element {
            return Err(format!(
                "its elements are {} and {}: convert them to float32",
                self.element, next.element
            ));
        }
        let mut pairs = self.dimensions.iter().zip(self.coordinates.iter().zip(&next.coordinates));
        let differs =
            |(one, other): (&Arc<Coordinates>, &Arc<Coordinates>)| one.values() != other.values();
        if let Some((dimension, _)) =
            pairs.find(|(_, (one, other))| one.as_ref().zip(other.as_ref()).is_some_and(differs))
        {
            return Err(format!("the coordinates of {dimension} differ"));
        }
        let both = self.step_coordinates.take().zip(next.step_coordinates);
        self.step_coordinates = both.and_then(|(these, next)| these.then(&next)).map(Arc::new);
        self.later.push((self.n_steps, next.first));
        self.n_steps += next.n_steps;
        Ok(())
    }

    /// The path of its array.
    pub(crate) fn path(&self) -> &str {
        &self.first.chunks.path
    }

    /// Whether it has no steps.
    pub(crate) fn is_static(&self) -> bool {
        self.values.is_some()
    }

    /// Its arrays, each with its first step.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = (u64, &OpenArray)> {
        let later = self.later.iter().map(|(start, array)| (*start, array));
        std::iter::once((0, &self.first)).chain(later)
    }

    /// The array that has a step, and the step in it.
    pub(crate) fn array_of(&self, step: u64) -> (&OpenArray, u64) {
        match self.later.partition_point(|(start, _)| *start <= step).checked_sub(1) {
            Some(at) => {
                let (start, array) = &self.later[at];
                (array, step - start)
            }
            None => (&self.first, step),
        }
    }

    /// The store and the row of chunks that have a step.
    pub(crate) fn chunk_of(&self, step: u64) -> (usize, u64) {
        let (array, step) = self.array_of(step);
        (array.store, step / array.chunks.geometry.chunk_rows.max(1))
    }

    /// The steps that are valid by what the stores say.
    pub(crate) fn valid_steps(&self, times: &Times) -> Result<Vec<Range<u64>>, String> {
        let ends = self.later.iter().map(|(start, _)| *start).chain([self.n_steps]);
        let valid = self.arrays().zip(ends).map(|((start, array), end)| {
            let Some((first, last)) = &array.valid else { return Ok(start..end) };
            let first = first.as_deref().map_or(Ok(0), |date| times.first_from(date))?;
            let last = last.as_deref().map_or(Ok(end), |date| times.first_after(date))?;
            Ok(first.max(start)..last.min(end))
        });
        valid.collect()
    }

    /// Bytes of the selected part of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        self.first.row_bytes()
    }

    fn row_shape(&self) -> &[usize] {
        &self.first.chunks.geometry.row_shape
    }

    /// Shape of a sample: its steps, if there are several, then the selected part of a step. Of an
    /// array without steps, the shape of its selected part.
    pub(crate) fn sample_shape(&self) -> Vec<usize> {
        let outer = match &self.values {
            Some(values) => Some(values.n_outer),
            None => (self.steps.len() != 1).then_some(self.steps.len()),
        };
        outer.into_iter().chain(self.row_shape().iter().copied()).collect()
    }

    /// The names of the dimensions of [`sample_shape`](Self::sample_shape).
    pub(crate) fn sample_dimensions(&self) -> Vec<&str> {
        let steps = (!self.is_static() && self.steps.len() != 1).then_some("step");
        let row = self.dimensions.iter().map(String::as_str);
        steps.into_iter().chain(row).collect()
    }

    /// The coordinates of the selected indices of a dimension that is not that of the steps.
    pub(crate) fn coordinates_of(&self, dimension: &str) -> Option<&Coordinates> {
        let mut pairs = self.dimensions.iter().zip(&self.coordinates);
        let (_, coordinates) = pairs.find(|(name, _)| *name == dimension)?;
        coordinates.as_deref()
    }

    /// Bytes of a sample: none of an array without steps, which a batch has once.
    pub(crate) fn sample_bytes(&self) -> u64 {
        if self.is_static() {
            return 0;
        }
        (self.row_bytes() as u64).saturating_mul(self.steps.len() as u64)
    }

    /// Bytes of `n_samples` samples in a batch.
    pub(crate) fn batch_bytes(&self, n_samples: u64) -> u64 {
        match &self.values {
            Some(values) => values.n_bytes as u64,
            None => self.sample_bytes().saturating_mul(n_samples),
        }
    }

    /// Elements of a sample that are read for it.
    pub(crate) fn sample_elements(&self) -> usize {
        if self.is_static() { 0 } else { self.first.chunks.geometry.row_len * self.steps.len() }
    }

    /// What distinguishes its samples from those of other variables.
    pub(crate) fn fingerprint(&self) -> String {
        let (path, n_steps) = (self.path(), self.n_steps);
        let steps = match &self.steps {
            SampleSteps::Relative(steps) => format!("{steps:?}"),
            SampleSteps::Listed { steps, n } => format!("{n} of {:016x}", hash(steps)),
        };
        let mut all = format!("{path} {n_steps} {steps} {}", self.first.fingerprint());
        for (start, array) in &self.later {
            all += &format!(", from {start} {}", array.fingerprint());
        }
        all
    }
}

/// Refuses steps of an array that has none.
fn check_static(spec: &Variable, along: Option<&Dimension>) -> Result<(), Error> {
    if spec.steps == [0] && spec.spans.is_empty() {
        return Ok(());
    }
    let dimension = along.map(ToString::to_string).unwrap_or_default();
    let reason = format!("{} has no dimension {dimension}, so it has no steps", spec.name);
    Err(Error::Spec { reason })
}

/// The first and the last date that the group of an array names as valid, both inclusive: the
/// attributes `valid_time_start` and `valid_time_stop` of ARCO-ERA5.
fn valid_dates(
    storage: &Arc<dyn Storage>,
    path: &str,
) -> Result<Option<(Option<String>, Option<String>)>, Error> {
    let group = path.rsplit_once('/').map_or("", |(group, _)| group);
    let attributes = metadata::group_attributes(&**storage, group)
        .map_err(|unopened| unopened.error(group, &**storage))?;
    let date = |name: &str| attributes.get(name)?.as_str().map(str::to_owned);
    let (start, stop) = (date("valid_time_start"), date("valid_time_stop"));
    Ok((start.is_some() || stop.is_some()).then_some((start, stop)))
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

    /// The dimension of the steps; `None` if the array has names and none is this one.
    fn axis(&self, along: Option<&Dimension>) -> Result<Option<usize>, Error> {
        let Some(along) = along else { return Ok(Some(0)) };
        let has_names = self.names.iter().any(|name| !name.is_empty());
        match (self.position(along), along) {
            (None, Dimension::Name(_)) if has_names => Ok(None),
            (None, _) => Err(self.refused(along, self.listed())),
            (at, _) => Ok(at),
        }
    }

    /// The selected indices of each dimension, all of that of the steps.
    fn selected(
        &self,
        (select, axis): (&[(Dimension, Selection)], Option<usize>),
        coordinates: &[Option<Arc<Coordinates>>],
        arrays: &CoordinateArrays<'_>,
    ) -> Result<Vec<Indices>, Error> {
        let Self { array, names, shape } = *self;
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
                    let reason = names.get(at).and_then(|name| arrays.problem(array, name));
                    let reason = match reason {
                        Some(reason) => format!("the array of its coordinates {reason}"),
                        None => "it has no coordinates: select by index".to_owned(),
                    };
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
