//! Writes the forms of cubes into a folder.

use std::fmt;
use std::path::{Path, PathBuf};

use arrays::ElementType;
use clap::ValueEnum as _;
use half::f16;
use half::slice::HalfFloatSliceExt as _;
use images::files::{StoredArray, blosc, tivita};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::form_folder::FormFolder;
use crate::generate::Segmentation;
use crate::normalization::Normalization;
use crate::precision::Precision;
use crate::zarr_store::{ZarrCodec, ZarrSpec, ZarrStore};
use bench_run::Threads;
use bench_run::reserved;
use images::Form;

/// Specifies which forms are written, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormSpec {
    /// The forms.
    pub forms: Vec<Form>,
    /// How spectra are normalised in all forms but [`Form::Dat`].
    pub normalization: Normalization,
    /// Level of blosc, 0 to 9: of the blosc files, and of Zarr with that codec.
    pub level: u8,
    /// The compression of Zarr's chunks.
    pub zarr_codec: ZarrCodec,
}

impl Default for FormSpec {
    /// All forms, not normalised, compressed as htc does.
    fn default() -> Self {
        Self {
            forms: Form::ALL.to_vec(),
            normalization: Normalization::default(),
            level: 9,
            zarr_codec: ZarrCodec::default(),
        }
    }
}

/// The settings with which a form was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FormSettings {
    pub(crate) normalization: Normalization,
    pub(crate) codec: String,
}

impl fmt::Display for FormSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { normalization, codec } = self;
        let normalization = normalization.to_possible_value();
        let name = normalization.as_ref().map_or("", |value| value.get_name());
        write!(f, "normalisation {name} and codec {codec}")
    }
}

impl FormSpec {
    /// Fails if there is no form, or a level that blosc does not know.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.forms.is_empty() {
            return Err(Error::Settings { problem: "no form was chosen".to_owned() });
        }
        Error::check_size("the level of blosc", f64::from(self.level), (0.0, 9.0))
    }

    /// The settings of a form.
    pub(crate) fn settings(&self, form: Form) -> FormSettings {
        let blosc = || format!("blosc:{}", self.level);
        let (normalization, codec) = match form {
            Form::Dat => (Normalization::None, "none".to_owned()),
            Form::Raw32 | Form::Raw16 => (self.normalization, blosc()),
            Form::Zarr if self.zarr_codec == ZarrCodec::Blosc => (self.normalization, blosc()),
            Form::Zarr => (self.normalization, self.zarr_codec.to_string()),
        };
        FormSettings { normalization, codec }
    }
}

/// The folders that forms are written to.
#[derive(Debug)]
pub(crate) struct Forms {
    shape: [usize; 3],
    normalization: Normalization,
    level: u8,
    /// Folders of the forms that are files per image.
    files: Vec<(Form, FormFolder)>,
    zarr: Option<ZarrStore>,
}

/// How the folders of forms are made.
pub(crate) type MakeFolder = fn(PathBuf) -> Result<FormFolder, Error>;

impl Forms {
    /// Makes the folders of forms, and the metadata of Zarr.
    pub(crate) fn open(
        folder: &Path,
        spec: &FormSpec,
        zarr: &ZarrSpec,
        make_folder: MakeFolder,
    ) -> Result<Self, Error> {
        let (mut files, mut store) = (Vec::new(), None);
        for form in Form::ALL.into_iter().filter(|form| spec.forms.contains(form)) {
            let place = make_folder(folder.join(form.folder()))?;
            if form == Form::Zarr {
                store = Some(ZarrStore::open(place, zarr)?);
            } else {
                files.push((form, place));
            }
        }
        let FormSpec { normalization, level, .. } = *spec;
        Ok(Self { shape: zarr.shape, normalization, level, files, zarr: store })
    }

    /// The folders that killed runs had left, and that were removed.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        let zarr = self.zarr.iter().map(ZarrStore::place);
        let files = self.files.iter().map(|(_, place)| place);
        files.chain(zarr).filter_map(FormFolder::leftover).collect()
    }

    /// The forms that an image does not have yet.
    pub(crate) fn missing(&self, image: u64, name: &str) -> Result<Vec<Form>, Error> {
        let mut missing = Vec::new();
        for (form, place) in &self.files {
            if let Some(file) = form.file_name(name)
                && !place.has(&file)?
            {
                missing.push(*form);
            }
        }
        if let Some(store) = &self.zarr
            && !store.has(image)?
        {
            missing.push(Form::Zarr);
        }
        Ok(missing)
    }
}

/// An image whose cube is written.
#[derive(Debug)]
pub(crate) struct NewImage<'a> {
    /// Its number in the list of images.
    pub(crate) idx: u64,
    pub(crate) name: &'a str,
    /// The file that its cube is from.
    pub(crate) path: &'a Path,
    /// Its labels, if the data have any.
    pub(crate) segmentation: Option<&'a Segmentation>,
    /// The forms to write.
    pub(crate) forms: &'a [Form],
}

/// What was written of an image.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct WrittenImage {
    pub(crate) n_bytes: u64,
    /// The error of the 16-bit forms, if one was written.
    pub(crate) precision: Option<Precision>,
}

/// Writes cubes on one thread, with memory that is used again.
#[derive(Debug)]
pub(crate) struct CubeWriter<'a> {
    forms: &'a Forms,
    threads: &'a Threads,
    halves: Vec<f16>,
}

impl<'a> CubeWriter<'a> {
    pub(crate) fn new(forms: &'a Forms, threads: &'a Threads) -> Self {
        Self { forms, threads, halves: Vec::new() }
    }

    /// Fails if the caller interrupted the run.
    pub(crate) fn check_interrupted(&self) -> Result<(), Error> {
        self.threads.check_interrupted()
    }

    /// Writes the forms of an image. `cube` has reflectances, and is normalised in place.
    pub(crate) fn write(
        &mut self,
        image: &NewImage<'_>,
        cube: &mut [f32],
    ) -> Result<WrittenImage, Error> {
        let Forms { shape, normalization, level, .. } = *self.forms;
        let wants = |form: Form| image.forms.contains(&form);
        let mut written = WrittenImage::default();
        if wants(Form::Dat) {
            written.n_bytes += self.write_file(image, Form::Dat, tivita::write(cube, shape))?;
        }
        normalization.apply(cube, shape[2]);
        let array = |element| StoredArray { name: String::new(), shape: shape.to_vec(), element };
        if wants(Form::Raw32) {
            let bytes = bytemuck::must_cast_slice(cube);
            let file = blosc::write_array(&array(ElementType::F32), bytes, level);
            written.n_bytes += self.write_file(image, Form::Raw32, file)?;
        }
        if ![Form::Raw16, Form::Zarr].into_iter().any(wants) {
            return Ok(written);
        }
        let mut halves = std::mem::take(&mut self.halves);
        reserved(&mut halves, cube.len(), "a cube of 16 bits")?.convert_from_f32_slice(cube);
        let precision = Precision::measure(cube, &halves);
        if !precision.largest.is_finite() {
            return Err(Error::bad_file(image.path, "it has a value that exceeds 16 bits, 65,504"));
        }
        written.precision = Some(precision);
        if wants(Form::Raw16) {
            let bytes = bytemuck::must_cast_slice(&halves);
            let file = blosc::write_array(&array(ElementType::F16), bytes, level);
            written.n_bytes += self.write_file(image, Form::Raw16, file)?;
        }
        if wants(Form::Zarr)
            && let Some(store) = &self.forms.zarr
        {
            self.check_interrupted()?;
            written.n_bytes += store.write(image.idx, &halves, image.segmentation)?;
        }
        self.halves = halves;
        Ok(written)
    }

    /// Writes a file of a form and returns its size.
    fn write_file(
        &self,
        image: &NewImage<'_>,
        form: Form,
        file: Result<Vec<u8>, images::files::FileError>,
    ) -> Result<u64, Error> {
        self.check_interrupted()?;
        let Some((_, place)) = self.forms.files.iter().find(|(of, _)| *of == form) else {
            return Ok(0);
        };
        let name = form.file_name(image.name).unwrap_or_default();
        let file = file.map_err(|error| Error::write(&place.folder().join(&name), error))?;
        place.write(&name, &file)?;
        Ok(file.len() as u64)
    }
}
