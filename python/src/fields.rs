//! Fields: samples of Zarr arrays, with their loader and batches.

use std::sync::{Arc, OnceLock};

use arrays::{
    ArrayBatch, ArraySamples, CoordinateValues, Coordinates, Dimension, Direction, ElementType,
    LeftOut, Missing, OwnedValues, Patches, Period, SampleSpec, TimeSpan, Variable,
};
use pipeline::{BatchPlace, Stop};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use storage::Config;

use crate::border::{Element, Memory};
use crate::engine::{NumberedBatch, PlacedBatch};
use crate::errors::SomafeedError;
use crate::field_missing::{self, Counted};
use crate::field_variables::{Described, DescribedPatches, DimensionValue};
use crate::memory_limit::KeptBatches;
use crate::numpy::{self, array_of};
use crate::samples::{Chosen, Kind, Samples, StoreAddress};
use crate::waiting::{computed, stoppable};

/// A dimension's selected indices, those of a patch, the number of patches, and that of the indices
/// left out.
type Cut = (DimensionValue, u64, u64, u64, u64);

/// Name, type of elements, dimensions and their lengths, and whether the array has steps.
type SampleShape = (String, &'static str, Vec<String>, Vec<usize>, bool);

/// Where the arrays are, and which parts of them make a sample.
#[derive(Debug)]
struct Stores {
    addresses: Vec<StoreAddress>,
    spec: SampleSpec,
    /// What was counted when they were opened first: a forked process does not count again.
    counted: OnceLock<Missing>,
}

impl Stores {
    /// The result, or the exception without what must not be in a message.
    fn hiding<T>(&self, result: Result<T, arrays::Error>) -> PyResult<T> {
        StoreAddress::hiding_all(&self.addresses, result)
    }
}

impl Kind for Stores {
    type Source = ArraySamples;
    type Class = Fields;

    fn open(&self) -> PyResult<ArraySamples> {
        let storages = self.addresses.iter().map(StoreAddress::storage);
        let storages = storages.collect::<PyResult<Vec<_>>>()?;
        let samples = match self.counted.get() {
            None => ArraySamples::open_all(&storages, &self.spec),
            counted => {
                let spec = SampleSpec { counted: counted.cloned(), ..self.spec.clone() };
                ArraySamples::open_all(&storages, &spec)
            }
        };
        let samples = self.hiding(samples)?;
        if let Some(counted) = samples.counted() {
            self.counted.get_or_init(|| counted.clone());
        }
        Ok(samples)
    }

    fn class(chosen: Arc<Chosen<Self>>) -> Fields {
        Fields(chosen)
    }
}

/// Samples of the arrays of a Zarr store.
#[pyclass(extends = Samples, frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Fields(Arc<Chosen<Stores>>);

#[pymethods]
impl Fields {
    #[new]
    #[pyo3(signature = (
        uris, variables, *, config = None, dim = None, lead = None, start = None, end = None,
        stride = 1, periods = Vec::new(), frequency = None, patches = None, dims = Vec::new(),
        orient = Vec::new(), missing = Vec::new(), counted = None, threads = 1, coordinates = true
    ))]
    fn new(
        py: Python<'_>,
        uris: Vec<String>,
        variables: Vec<Described>,
        config: Option<Config>,
        dim: Option<DimensionValue>,
        lead: Option<String>,
        start: Option<u64>,
        end: Option<u64>,
        stride: u64,
        periods: Vec<(Option<String>, Option<String>)>,
        frequency: Option<i64>,
        patches: Option<DescribedPatches>,
        dims: Vec<String>,
        orient: Vec<(String, bool)>,
        missing: Vec<(String, String)>,
        counted: Option<Counted>,
        threads: usize,
        coordinates: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let variables = variables.into_iter().map(Variable::from);
        let along = dim.map(Dimension::from);
        let directions = orient.into_iter().map(|(name, descends)| {
            (name, if descends { Direction::Descending } else { Direction::Ascending })
        });
        let periods = periods.into_iter().map(|(start, end)| Period { start, end }).collect();
        let spec = SampleSpec {
            periods,
            frequency: frequency.map(|micros| TimeSpan { micros }),
            patches: patches.map(Patches::from),
            along,
            lead,
            start,
            end,
            stride,
            order: dims,
            directions: directions.collect(),
            missing: field_missing::policy(missing)?,
            counted: counted.map(field_missing::missing),
            threads,
            coordinates,
            shares_blocks: false,
            ..SampleSpec::new(variables)
        };
        let address = |uri| StoreAddress::new(uri, config.clone());
        let addresses = uris.into_iter().map(address).collect();
        Chosen::open(py, Stores { addresses, spec, counted: OnceLock::new() })
    }

    /// The step of each sample, as an array.
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let here = self.0.here(py)?;
        let steps = computed(py, move || {
            here.rows().iter().map(|row| here.source().step(row)).collect::<Vec<u64>>()
        })?;
        array_of(py, steps)
    }

    /// The lead time of each sample in microseconds, as an array; empty if samples have none.
    fn lead_times<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let here = self.0.here(py)?;
        let times = computed(py, move || {
            let rows = here.rows().iter();
            rows.filter_map(|row| Some(here.source().lead_time(row)?.micros)).collect::<Vec<i64>>()
        })?;
        array_of(py, times)
    }

    /// The number of the store of each sample, as an array.
    fn stores<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let here = self.0.here(py)?;
        let stores = computed(py, move || {
            here.rows().iter().map(|row| here.source().store(row) as u64).collect::<Vec<u64>>()
        })?;
        array_of(py, stores)
    }

    /// How many samples were left out, by the reason.
    fn left_out(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, u64)>> {
        let found = self.0.here(py)?.source().left_out();
        let LeftOut { ends, gaps, doubled, invalid, chunks, fills, nans } = found;
        let of_times = [("ends", ends), ("gaps", gaps), ("doubled", doubled), ("invalid", invalid)];
        let of_missing = [("chunk", chunks), ("fill", fills), ("nan", nans)];
        Ok(of_times.into_iter().chain(of_missing).collect())
    }

    /// What is missing of the samples: all chunks are read.
    fn missing(&self, py: Python<'_>) -> PyResult<Counted> {
        let here = self.0.here(py)?;
        let stop = Stop::default();
        let of_work = stop.clone();
        let counted = stoppable(
            py,
            move || {
                let missing = here.source().missing(here.rows().iter(), &of_work);
                missing.map(|missing| field_missing::counted(&missing))
            },
            move || stop.set(),
        )?;
        self.0.kind().hiding(counted)
    }

    /// What was counted when the samples were opened, if anything was.
    fn counted(&self, py: Python<'_>) -> PyResult<Option<Counted>> {
        Ok(self.0.here(py)?.source().counted().map(field_missing::counted))
    }

    /// Each dimension that is cut.
    fn patches(&self, py: Python<'_>) -> PyResult<Vec<Cut>> {
        let here = self.0.here(py)?;
        let each = here.source().patches().iter().map(|cut| {
            let dimension = match cut.dimension.clone() {
                Dimension::Name(name) => DimensionValue::Name(name),
                Dimension::Position(position) => DimensionValue::Position(position),
            };
            (dimension, cut.len, cut.size, cut.n, cut.left_out)
        });
        Ok(each.collect())
    }

    /// The first index of each sample's patch in each of these dimensions, as an array.
    fn patch_starts<'py>(&self, py: Python<'py>, epoch: u64) -> PyResult<Bound<'py, PyAny>> {
        let here = self.0.here(py)?;
        let starts = computed(py, move || {
            let rows = here.rows().iter();
            rows.flat_map(|row| here.source().patch_starts(row, epoch)).collect::<Vec<i64>>()
        })?;
        array_of(py, starts)
    }

    /// Name, type, dimensions and shape of one sample of each variable, and whether it has steps.
    fn variables(&self, py: Python<'_>) -> PyResult<Vec<SampleShape>> {
        let here = self.0.here(py)?;
        let described = here.source().elements().map(|(name, element)| {
            let shape = here.source().sample_shape(name).unwrap_or_default();
            let dimensions = here.source().sample_dimensions(name).unwrap_or_default();
            let dimensions = dimensions.into_iter().map(str::to_owned).collect();
            let has_steps = here.source().is_static(name) == Some(false);
            (name.to_owned(), element.zarr_name(), dimensions, shape, has_steps)
        });
        Ok(described.collect())
    }

    /// The first variable that has latitudes and longitudes, and the names of these dimensions.
    fn grid(&self, py: Python<'_>) -> PyResult<Option<(String, String, String)>> {
        let here = self.0.here(py)?;
        let found = here.source().grid();
        Ok(found.map(|(name, [one, other])| (name.to_owned(), one.to_owned(), other.to_owned())))
    }

    /// The coordinates of a variable's dimension, which is not the first; `None` if it has none.
    fn coordinates<'py>(
        &self,
        py: Python<'py>,
        variable: &str,
        dimension: &str,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let here = self.0.here(py)?;
        let found = here.source().coordinates(variable, dimension);
        found.map(|coordinates| coordinate_values(py, coordinates)).transpose()
    }
}

/// The type of the memory that numpy sees: bfloat16, which it does not have, as the bits.
fn seen_by_numpy(variable: &str, element: ElementType) -> PyResult<Element> {
    match element {
        ElementType::BF16 => Ok(Element::U16),
        element => element_of(variable, element),
    }
}

/// The type as numpy has it.
pub(crate) fn element_of(variable: &str, element: ElementType) -> PyResult<Element> {
    use ElementType as E;
    Ok(match element {
        E::Bool => Element::Bool,
        E::I8 => Element::I8,
        E::I16 => Element::I16,
        E::I32 => Element::I32,
        E::I64 => Element::I64,
        E::U8 => Element::U8,
        E::U16 => Element::U16,
        E::U32 => Element::U32,
        E::U64 => Element::U64,
        E::F16 => Element::F16,
        E::F32 => Element::F32,
        E::F64 => Element::F64,
        other => {
            let problem = format!(
                "variable {variable:?} has elements of type {}, which numpy does not have: give it \
                 dtype=\"float32\"",
                other.zarr_name()
            );
            return Err(PyTypeError::new_err(problem));
        }
    })
}

impl NumberedBatch for ArrayBatch {
    type Class = FieldBatch;

    fn place(&self) -> BatchPlace {
        self.place()
    }

    fn samples(&self) -> &[u64] {
        self.samples()
    }

    fn into_class(self, py: Python<'_>, kept: &Arc<KeptBatches>) -> PyResult<FieldBatch> {
        FieldBatch::new(py, self, kept)
    }
}

/// Samples of each variable.
#[pyclass(extends = PlacedBatch, frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct FieldBatch {
    variables: Vec<FieldValues>,
    patch_starts: Vec<i64>,
    /// Microseconds.
    lead_times: Vec<i64>,
}

/// The samples of a variable.
#[derive(Debug)]
struct FieldValues {
    name: String,
    values: Py<Memory>,
    dimensions: Vec<String>,
    /// Those of the array's first dimension: one for each sample and step.
    sample_coordinates: Option<Coordinates>,
    /// The lead times, alike.
    lead_coordinates: Option<Coordinates>,
    coordinates: Vec<Coordinates>,
    /// The dimensions that are cut into patches.
    cut: Vec<String>,
    /// Those of these dimensions: one for each sample and index of a patch.
    patch_coordinates: Vec<Coordinates>,
}

impl FieldBatch {
    fn new(py: Python<'_>, batch: ArrayBatch, kept: &Arc<KeptBatches>) -> PyResult<Self> {
        let mut n_bytes = 0;
        let patch_starts = batch.patch_starts();
        let lead_times = batch.lead_times().into_iter().map(|lead| lead.micros).collect();
        let variables = batch.into_values().map(|owned| {
            let values = owned.values();
            n_bytes += values.bytes().len() as u64;
            let name = values.name().to_owned();
            let dimensions = values.dimensions().into_iter().map(str::to_owned).collect();
            let sample_coordinates = values.sample_coordinates();
            let lead_coordinates = values.lead_coordinates();
            let names = values.dimensions();
            let of_names = names.into_iter().filter_map(|name| values.coordinates(name));
            let coordinates = of_names.cloned().collect();
            let cut = values.dimensions().into_iter().filter(|name| values.is_cut(name));
            let cut: Vec<String> = cut.map(str::to_owned).collect();
            let patch_coordinates =
                cut.iter().filter_map(|name| values.patch_coordinates(name)).collect();
            let values = Py::new(py, memory_of(&name, owned, kept)?)?;
            Ok(FieldValues {
                name,
                values,
                dimensions,
                sample_coordinates,
                lead_coordinates,
                coordinates,
                cut,
                patch_coordinates,
            })
        });
        let variables = variables.collect::<PyResult<_>>()?;
        kept.lease(n_bytes);
        Ok(Self { variables, patch_starts, lead_times })
    }

    fn variable(&self, name: &str) -> PyResult<&FieldValues> {
        let found = self.variables.iter().find(|variable| variable.name == name);
        found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }
}

/// Name, values and attributes (as JSON).
type CoordinatesOf<'py> = (String, Bound<'py, PyAny>, String);

/// Coordinates as an array, or as a list of texts.
fn coordinate_values<'py>(
    py: Python<'py>,
    coordinates: &Coordinates,
) -> PyResult<Bound<'py, PyAny>> {
    match coordinates.values() {
        CoordinateValues::Integers(values) => array_of(py, values.clone()),
        CoordinateValues::Floats(values) => array_of(py, values.clone()),
        CoordinateValues::Strings(values) => Ok(values.into_pyobject(py)?.into_any()),
        _ => Err(PyTypeError::new_err("coordinates of an unknown type")),
    }
}

/// Coordinates with name and attributes.
fn described<'py>(py: Python<'py>, coordinates: &Coordinates) -> PyResult<CoordinatesOf<'py>> {
    let attributes = serde_json::Value::from(coordinates.attributes().clone()).to_string();
    let name = coordinates.dimension().to_owned();
    Ok((name, coordinate_values(py, coordinates)?, attributes))
}

/// The values as memory of Python, which belongs to them alone.
fn memory_of(name: &str, values: OwnedValues, kept: &Arc<KeptBatches>) -> PyResult<Memory> {
    let seen = values.values();
    let (element, shape) = (seen_by_numpy(name, seen.element())?, seen.shape());
    let keep = kept.keep(seen.bytes().len() as u64);
    let shared = |_| SomafeedError::new_err("the memory of a batch is shared");
    let slot = values.into_slot().map_err(shared)?;
    Memory::of_slot(slot, shape.iter().product(), element, keep)?.with_shape(&shape)
}

#[pymethods]
impl FieldBatch {
    #[getter]
    fn variables(&self) -> Vec<&str> {
        self.variables.iter().map(|variable| variable.name.as_str()).collect()
    }

    fn values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        numpy::array(py, &self.variable(name)?.values)
    }

    fn dimensions(&self, name: &str) -> PyResult<Vec<String>> {
        Ok(self.variable(name)?.dimensions.clone())
    }

    /// The coordinates of the array's first dimension, in C order of `[samples, steps]`.
    fn sample_coordinates<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Option<CoordinatesOf<'py>>> {
        let found = self.variable(name)?.sample_coordinates.as_ref();
        found.map(|coordinates| described(py, coordinates)).transpose()
    }

    /// The lead times of forecasts, alike.
    fn lead_coordinates<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Option<CoordinatesOf<'py>>> {
        let found = self.variable(name)?.lead_coordinates.as_ref();
        found.map(|coordinates| described(py, coordinates)).transpose()
    }

    /// The lead time of each sample in microseconds; empty if samples have none.
    fn lead_times<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array_of(py, self.lead_times.clone())
    }

    /// The coordinates of the other dimensions that have some, and are not cut.
    fn coordinates<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Vec<CoordinatesOf<'py>>> {
        self.variable(name)?.coordinates.iter().map(|found| described(py, found)).collect()
    }

    /// The dimensions that are cut into patches.
    fn cut_dimensions(&self, name: &str) -> PyResult<Vec<String>> {
        Ok(self.variable(name)?.cut.clone())
    }

    /// The coordinates of these, in C order of `[samples, indices of a patch]`.
    fn patch_coordinates<'py>(
        &self,
        py: Python<'py>,
        name: &str,
    ) -> PyResult<Vec<CoordinatesOf<'py>>> {
        self.variable(name)?.patch_coordinates.iter().map(|found| described(py, found)).collect()
    }

    /// The first index of each sample's patch in each dimension that is cut, in C order.
    fn patch_starts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        array_of(py, self.patch_starts.clone())
    }
}
