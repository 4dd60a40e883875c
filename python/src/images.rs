//! Images: samples of cubes with masks, with their loader and batches.

use std::collections::HashMap;
use std::sync::Arc;

use arrays::ElementType;
use images::augment::{Affine, Augmentation};
use images::files::Norm;
use images::{
    BatchMemory, DataSet, Form, ImageBatch as Assembled, ImageMemory, ImageSamples, ImageSpec, Key,
    Origin, Role, SeededAugmentation,
};
use pipeline::BatchPlace;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use slots::SlotMemory;
use storage::Config;

use crate::border::{Element, Memory};
use crate::engine::{NumberedBatch, PlacedBatch, choice};
use crate::errors::{OrException as _, SomafeedError, value_error};
use crate::fields::element_of;
use crate::memory_limit::KeptBatches;
use crate::numpy::{self, Integers, array_of};
use crate::samples::{Chosen, Kind, Samples, StoreAddress};
use crate::waiting::computed;

/// An array of each image, as Python describes it.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
struct DescribedKey {
    name: String,
    /// The folder of its files and the array in each; `None` for the cube.
    origin: Option<(String, String)>,
    role: String,
}

impl DescribedKey {
    fn key(self) -> PyResult<Key> {
        let Self { name, origin, role } = self;
        let roles = [("image", Role::Image), ("mask", Role::Mask), ("plain", Role::Plain)];
        let role = choice("role", &role, &roles)?;
        let origin = origin.map_or(Origin::Cube, |(folder, array)| Origin::Array { folder, array });
        Ok(Key { name, origin, role })
    }
}

/// Random maps, as Python describes them.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DescribedAugmentation {
    /// Degrees, translation, scale and probability.
    affine: Option<(f64, [f64; 2], [f64; 2], f64)>,
    horizontal_flip: f64,
    vertical_flip: f64,
    seed: u64,
    valid_pixels: Option<String>,
}

impl DescribedAugmentation {
    fn seeded(self) -> PyResult<SeededAugmentation> {
        let affine = self.affine.map(|(degrees, translate, scale, probability)| Affine {
            degrees,
            translate,
            scale,
            probability,
        });
        let augmentation = Augmentation::new(affine, self.horizontal_flip, self.vertical_flip);
        let augmentation =
            augmentation.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(SeededAugmentation { augmentation, seed: self.seed, valid_pixels: self.valid_pixels })
    }
}

/// The maps of samples in an epoch: for each the six numbers that give a pixel's place in the
/// source, and whether values are interpolated.
#[pyfunction]
pub(crate) fn draw_maps(
    py: Python<'_>,
    augmentation: DescribedAugmentation,
    epoch: u64,
    samples: Integers,
    height: usize,
    width: usize,
) -> PyResult<(Bound<'_, PyAny>, Vec<bool>)> {
    let SeededAugmentation { augmentation, seed, .. } = augmentation.seeded()?;
    let drawn = computed(py, move || {
        let size = [height, width];
        let drawn = samples.0.into_iter().map(|sample| {
            let parameters = augmentation.draw(seed, epoch, sample, size);
            (parameters.source_matrix(size), parameters.affine.is_some())
        });
        drawn.unzip::<_, _, Vec<_>, Vec<_>>()
    })?;
    let (matrices, is_affine) = drawn;
    Ok((array_of(py, matrices.as_flattened().as_flattened().to_vec())?, is_affine))
}

/// Where the images are, and what is read of them.
#[derive(Debug)]
struct Folder {
    addresses: Vec<StoreAddress>,
    /// Names of the images; `None` means all.
    images: Option<Vec<String>>,
    /// `None` means the only form that there is.
    form: Option<Form>,
    spec: ImageSpec,
}

impl Kind for Folder {
    type Source = ImageSamples;
    type Class = Images;

    fn open(&self) -> PyResult<ImageSamples> {
        let open = |address: &StoreAddress| address.hiding(DataSet::open(address.storage()?));
        let opened = self.addresses.iter().map(open).collect::<PyResult<Vec<_>>>()?;
        let data = self.selected(self.hiding(DataSet::joined(&opened))?)?;
        let form = match self.form {
            Some(form) => form,
            None => only_form(&self.hiding(data.forms())?)?,
        };
        let spec = ImageSpec { form, ..self.spec.clone() };
        let samples = self.hiding(ImageSamples::open(&data, &spec))?;
        for (name, element) in samples.elements() {
            element_of(name, element)?;
        }
        Ok(samples)
    }

    fn class(chosen: Arc<Chosen<Self>>) -> Images {
        Images(chosen)
    }
}

impl Folder {
    /// The images with the wanted names, in their order: those of the first folder, then those of
    /// the second and so on.
    fn selected(&self, data: DataSet) -> PyResult<DataSet> {
        let Some(wanted) = &self.images else { return Ok(data) };
        let mut of_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, image) in data.images().iter().enumerate() {
            of_name.entry(&image.name).or_default().push(place);
        }
        let places = |name: &String| {
            let places = of_name.get(name.as_str()).cloned();
            places.ok_or_else(|| value_error(&format!("the data set has no image {name:?}")))
        };
        let mut places = wanted.iter().map(places).collect::<PyResult<Vec<_>>>()?.concat();
        places.sort_by_key(|place| data.storage_number(*place));
        data.select(&places).or_exception()
    }

    fn hiding<T>(&self, result: Result<T, images::Error>) -> PyResult<T> {
        StoreAddress::hiding_all(&self.addresses, result)
    }
}

fn only_form(forms: &[Form]) -> PyResult<Form> {
    match forms {
        [form] => Ok(*form),
        [] => {
            let problem = "the folder has cubes in no form that is read, or several folders have none \
                           in common: `somafeed cubes preprocess` writes one";
            Err(PyValueError::new_err(problem))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|form| form.name()).collect();
            let problem = format!("cubes are stored as {}: give stored=", names.join(", "));
            Err(PyValueError::new_err(problem))
        }
    }
}

/// Samples of image cubes.
#[pyclass(extends = Samples, frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct Images(Arc<Chosen<Folder>>);

/// Name, type of elements and shape of an image's array.
type KeyShape = (String, &'static str, Vec<usize>);

#[pymethods]
impl Images {
    #[new]
    #[pyo3(signature = (
        uris, keys, *, config = None, images = None, stored = None, dtype = None,
        normalization = None, augmentation = None, threads = 1, checks_files = true
    ))]
    fn new(
        py: Python<'_>,
        uris: Vec<String>,
        keys: Vec<DescribedKey>,
        config: Option<Config>,
        images: Option<Vec<String>>,
        stored: Option<&str>,
        dtype: Option<&str>,
        normalization: Option<&str>,
        augmentation: Option<DescribedAugmentation>,
        threads: usize,
        checks_files: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        let form = stored.map(str::parse::<Form>).transpose();
        let form = form.map_err(|error| value_error(&format!("stored: {error}")))?;
        let elements = [("float16", ElementType::F16), ("float32", ElementType::F32)];
        let norms = [("l1", Norm::L1), ("l2", Norm::L2)];
        let keys = keys.into_iter().map(DescribedKey::key).collect::<PyResult<Vec<Key>>>()?;
        let spec = ImageSpec {
            keys,
            element: dtype.map(|name| choice("dtype", name, &elements)).transpose()?,
            norm: normalization.map(|name| choice("normalization", name, &norms)).transpose()?,
            augmentation: augmentation.map(DescribedAugmentation::seeded).transpose()?,
            threads,
            memory: BatchMemory::Pooled,
            checks_files,
            ..ImageSpec::new(Form::Raw16)
        };
        let address = |uri| StoreAddress::new(uri, config.clone());
        let addresses = uris.into_iter().map(address).collect();
        Chosen::open(py, Folder { addresses, images, form, spec })
    }

    /// Name, domain and subject of each image that was opened, whether it is selected or not.
    fn images(&self, py: Python<'_>) -> PyResult<Vec<(String, String, String)>> {
        let here = self.0.here(py)?;
        let images = here.source().data().images().iter();
        let described = images.map(|images::Image { name, domain, subject }| {
            (name.clone(), domain.clone(), subject.clone())
        });
        Ok(described.collect())
    }

    /// The number of images of each folder.
    fn sizes(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        Ok(self.0.here(py)?.source().data().sizes())
    }

    /// The names of the labels' classes, in the order of their numbers.
    fn classes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.0.here(py)?.source().data().classes().to_vec())
    }

    /// Name, type and shape of one image's array of each key.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<KeyShape>> {
        let here = self.0.here(py)?;
        let described = here.source().elements().map(|(name, element)| {
            let shape = here.source().sample_shape(name).unwrap_or_default().to_vec();
            Ok((name.to_owned(), element_of(name, element)?.name(), shape))
        });
        described.collect()
    }
}

impl NumberedBatch for Assembled {
    type Class = ImageBatch;

    fn place(&self) -> BatchPlace {
        self.place()
    }

    fn samples(&self) -> &[u64] {
        self.samples()
    }

    fn into_class(self, py: Python<'_>, kept: &Arc<KeptBatches>) -> PyResult<ImageBatch> {
        ImageBatch::new(py, self, kept)
    }
}

/// Images, an array of each key.
#[pyclass(extends = PlacedBatch, frozen, module = "somafeed._somafeed")]
#[derive(Debug)]
pub(crate) struct ImageBatch {
    names: Vec<String>,
    /// The names of images that could not be read.
    skipped: Vec<String>,
    keys: Vec<(String, Py<Memory>)>,
}

impl ImageBatch {
    fn new(py: Python<'_>, batch: Assembled, kept: &Arc<KeptBatches>) -> PyResult<Self> {
        let name_of = |sample: &u64| batch.image(*sample).map(|image| image.name.clone());
        let names = batch.samples().iter().filter_map(name_of).collect();
        let skipped = batch.skipped().iter().map(|skipped| skipped.name.clone()).collect();
        let shapes = batch.keys().map(|values| {
            let name = values.name().to_owned();
            let element = element_of(&name, values.element())?;
            Ok((name, element, values.shape(), values.bytes().len()))
        });
        let shapes = shapes.collect::<PyResult<Vec<_>>>()?;
        kept.lease(shapes.iter().map(|(.., n_bytes)| *n_bytes as u64).sum());
        let Ok(ImageMemory::Owned(memory)) = batch.into_memory() else {
            return Err(SomafeedError::new_err("the memory of a batch is shared"));
        };
        let keys = shapes.into_iter().zip(memory).map(|((name, element, shape, _), memory)| {
            let memory = memory_of(memory, element, &shape, kept)?;
            Ok((name, Py::new(py, memory)?))
        });
        Ok(Self { names, skipped, keys: keys.collect::<PyResult<_>>()? })
    }
}

/// The memory of a key as Python sees it.
fn memory_of(
    memory: Box<dyn SlotMemory>,
    element: Element,
    shape: &[usize],
    kept: &Arc<KeptBatches>,
) -> PyResult<Memory> {
    let n: usize = shape.iter().product();
    let keep = kept.keep((n * element.n_bytes()) as u64);
    Memory::of_slot(memory, n, element, keep)?.with_shape(shape)
}

#[pymethods]
impl ImageBatch {
    #[getter]
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    #[getter]
    fn skipped(&self) -> Vec<String> {
        self.skipped.clone()
    }

    #[getter]
    fn keys(&self) -> Vec<&str> {
        self.keys.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let found = self.keys.iter().find(|(key, _)| key == name);
        let (_, memory) = found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        numpy::array(py, memory)
    }
}
