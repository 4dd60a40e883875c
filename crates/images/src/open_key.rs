//! The keys of a batch once their shapes and elements are known.

use std::sync::Arc;

use arrays::ElementType;
use slots::{Pool, PooledSlot};

use crate::data_set::{DataSet, Form};
use crate::error::Error;
use crate::files::{CubeFile, FileFormat};
use crate::image_files::ImageFile;
use crate::spec::{ImageSpec, Key, Origin, Role};
use crate::zarr_arrays::ZarrArrays;

/// A key of batches.
#[derive(Debug, Clone)]
pub(crate) struct OpenKey {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    pub(crate) role: Role,
    /// Shape of an image's array.
    pub(crate) shape: Vec<usize>,
    /// The elements as stored.
    pub(crate) stored: ElementType,
    /// The elements in batches.
    pub(crate) element: ElementType,
    /// Memory of blocks and batches that goes round.
    pub(crate) pool: Arc<Pool>,
}

impl OpenKey {
    /// Bytes of an image's array in a batch.
    pub(crate) fn n_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.element.n_bytes()
    }

    /// Memory from the pool for the arrays of `n_samples`.
    pub(crate) fn pooled(&self, n_samples: usize) -> Result<PooledSlot, Error> {
        let n_bytes = self.n_bytes().checked_mul(n_samples);
        let slot = n_bytes.and_then(|n_bytes| self.pool.take(n_bytes));
        slot.ok_or(Error::Memory { bytes: n_bytes.unwrap_or(usize::MAX) as u64, n_samples })
    }

    /// Bytes of an image's array as decoded.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.stored.n_bytes()
    }

    /// Says how an array differs from what this key expects; `None` if it does not.
    pub(crate) fn mismatch(&self, shape: &[usize], element: ElementType) -> Option<String> {
        (self.shape != shape || self.stored != element).then(|| {
            format!(
                "its array for {} has shape {shape:?} of {element}, that of the other images is \
                 {:?} of {}",
                self.name, self.shape, self.stored
            )
        })
    }
}

/// Opens the keys of `spec`: reads shapes and elements from the first image of each storage, or
/// from the arrays.
pub(crate) fn open_keys(
    data: &DataSet,
    spec: &ImageSpec,
    zarr: Option<&ZarrArrays>,
) -> Result<Vec<OpenKey>, Error> {
    let mut keys: Vec<OpenKey> = Vec::with_capacity(spec.keys.len());
    for key in &spec.keys {
        if keys.iter().any(|other| other.name == key.name) {
            return Err(refused(format!("two keys have the name {}", key.name)));
        }
        let (shape, stored) = described(data, (spec.form, key), zarr)?;
        if key.origin == Origin::Cube && shape != data.shape() {
            let listed = data.shape();
            let reason = format!("cubes of shape {shape:?} are stored, the list says {listed:?}");
            return Err(refused(reason));
        }
        let element = if key.role == Role::Image { spec.element.unwrap_or(stored) } else { stored };
        keys.push(OpenKey {
            name: key.name.clone(),
            origin: key.origin.clone(),
            role: key.role,
            shape,
            stored,
            element,
            pool: Arc::default(),
        });
    }
    keys.iter().try_for_each(|key| check(key, data, spec))?;
    Ok(keys)
}

/// Shape and elements of a key, which are the same in all storages.
fn described(
    data: &DataSet,
    (form, key): (Form, &Key),
    zarr: Option<&ZarrArrays>,
) -> Result<(Vec<usize>, ElementType), Error> {
    let mut first: Option<(usize, (Vec<usize>, ElementType))> = None;
    let has_images = |storage: &usize| data.samples_in(*storage).next().is_some();
    for storage in (0..data.storages().len()).filter(has_images) {
        let found = match zarr {
            Some(arrays) => arrays.describe(storage, &key.name)?,
            None => first_array(data, storage, (form, key))?,
        };
        match &first {
            Some((of_first, expected)) if *expected != found => {
                let place = |storage: usize| data.storages()[storage].place();
                return Err(refused(format!(
                    "{} has shape {:?} of {} in {}, and {:?} of {} in {}",
                    key.name,
                    expected.0,
                    expected.1,
                    place(*of_first),
                    found.0,
                    found.1,
                    place(storage)
                )));
            }
            Some(_) => {}
            None => first = Some((storage, found)),
        }
    }
    first.map(|(_, found)| found).ok_or_else(|| refused("there are no images".to_owned()))
}

/// Shape and elements of a key in the first image of a storage that has a readable file.
fn first_array(
    data: &DataSet,
    storage: usize,
    (form, key): (Form, &Key),
) -> Result<(Vec<usize>, ElementType), Error> {
    if key.origin == Origin::Cube {
        // What every file of the form has; files are compared with it when they are read.
        let element = match form {
            Form::Dat | Form::Raw32 => ElementType::F32,
            Form::Raw16 | Form::Zarr => ElementType::F16,
        };
        return Ok((data.shape().to_vec(), element));
    }
    let Origin::Array { array, .. } = &key.origin else {
        return Err(refused(format!("{} has no files", key.name)));
    };
    let mut first_error = None;
    for sample in data.samples_in(storage) {
        let file = ImageFile::of_key(data, form, &key.origin, sample)?;
        let mut bytes = Vec::new();
        let described = file.read(data, &mut bytes).and_then(|()| {
            let parsed =
                CubeFile::parse(file.format, &bytes).map_err(|error| file.failed(data, error))?;
            let found = parsed.index(array).map(|idx| &parsed.arrays()[idx]);
            let found = found.ok_or_else(|| {
                file.failed(data, format!("it has no array {array:?} for the key {}", key.name))
            })?;
            Ok((found.shape.clone(), found.element))
        });
        match described {
            Ok(described) => return Ok(described),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or_else(|| refused("there are no images".to_owned())))
}

/// Checks that a key's array can be treated as the settings want.
fn check(key: &OpenKey, data: &DataSet, spec: &ImageSpec) -> Result<(), Error> {
    let [height, width, _] = data.shape();
    let is_float = |element| matches!(element, ElementType::F16 | ElementType::F32);
    let pixels = key.shape.get(..2) == Some(&[height, width]);
    match key.role {
        Role::Image if key.shape.len() != 3 || !pixels => Err(refused(format!(
            "{} has shape {:?}: an image has {height} x {width} pixels and channels",
            key.name, key.shape
        ))),
        Role::Image if !is_float(key.stored) || !is_float(key.element) => Err(refused(format!(
            "{} is stored as {} and wanted as {}: images are float16 or float32",
            key.name, key.stored, key.element
        ))),
        Role::Image if spec.norm.is_some() && key.stored != ElementType::F32 => {
            Err(refused(format!(
                "{} is stored as {}: only float32 is normalised while it is read",
                key.name, key.stored
            )))
        }
        Role::Mask if key.shape != [height, width] => Err(refused(format!(
            "{} has shape {:?}: a mask has {height} x {width} pixels",
            key.name, key.shape
        ))),
        _ => Ok(()),
    }
}

/// The format of a key's files in a form.
pub(crate) fn format_of(form: Form, origin: &Origin) -> Option<FileFormat> {
    match origin {
        Origin::Cube => form.file_format(),
        Origin::Array { .. } => Some(FileFormat::Blosc),
    }
}

fn refused(reason: String) -> Error {
    Error::Spec { reason }
}
