//! Writes cubes of Tivita's files in other forms.
//!
//! A run can be repeated: it writes what is missing. A file gets its name when it is whole, so one
//! that has its name is kept; remove it to have it written again. A run that is killed loses the
//! files that it was just making, and the next one removes what is left of them.

mod source;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use images::files::{CubeFile, DecodeScratch, FileFormat};

use crate::Error;
use crate::form_folder::FormFolder;
use crate::forms::{CubeWriter, FormSettings, FormSpec, Forms, NewImage};
use crate::image_list::LIST_FILE;
use crate::precision::Precision;
use crate::segmentation::read_segmentation;
use crate::zarr_store::ZarrSpec;
use bench_run::Threads;
use bench_run::reserved;
use images::Form;
use source::Source;

/// Specifies a conversion.
#[derive(Debug, Clone, Default)]
pub struct PreprocessSpec {
    /// The forms to write.
    pub forms: FormSpec,
    /// Whether files that cannot be used are skipped and reported. Otherwise the first of them
    /// ends the run.
    pub skip_bad: bool,
    /// Threads that read and write cubes; 0 for one per processor.
    pub n_threads: usize,
    /// Ends the run with [`Error::Interrupted`] soon after this is set.
    pub interrupted: Option<&'static AtomicBool>,
}

/// The result of [`preprocess()`].
#[derive(Debug, Default)]
pub struct PreprocessReport {
    /// Number of images of which a form was written.
    pub n_written: u64,
    /// Number of images that had all forms.
    pub n_kept: u64,
    /// Why images were skipped: the errors of their files, in the order of the images.
    pub skipped: Vec<Error>,
    /// Bytes read and written.
    pub bytes_in: u64,
    /// Bytes of the files that were written.
    pub bytes_out: u64,
    /// The error of the 16-bit forms, if one was written.
    pub precision: Option<Precision>,
    /// Duration in seconds.
    pub seconds: f64,
    /// Killed runs' leftovers that were removed.
    pub leftovers: Vec<PathBuf>,
}

/// Converts the cubes in `data`: the `*_SpecCube.dat` in its folder `dat`, or, if there is no such
/// folder, those anywhere below it. A list of images is written if there is none.
///
/// `started` is called with the number of images, and `progress` with the number done so far. Each
/// thread needs memory for a cube about five times: as a file, as f32, as f16, and as a file again.
///
/// # Errors
/// - A setting is invalid, or differs from that with which a form was written before.
/// - There are no cubes, or [`Error::BadFile`]: one cannot be used.
/// - Writing fails, another run writes to the same place, or the run is interrupted. Everything
///   that was finished stays.
pub fn preprocess(
    data: &Path,
    spec: &PreprocessSpec,
    started: &mut dyn FnMut(u64),
    progress: &mut dyn FnMut(u64),
) -> Result<PreprocessReport, Error> {
    let start = Instant::now();
    spec.forms.check()?;
    if spec.forms.forms.contains(&Form::Dat) {
        let problem = "cubes are read from dat: choose other forms to write".to_owned();
        return Err(Error::Settings { problem });
    }
    let mut source = Source::find(data, spec.skip_bad)?;
    let root = FormFolder::shared(data.to_owned())?;
    record_forms(&root, &mut source, &spec.forms)?;
    let n_images = source.list.images.len() as u64;
    let zarr = ZarrSpec::new(n_images, source.list.shape, &spec.forms, source.has_labels);
    let forms = Forms::open(data, &spec.forms, &zarr, FormFolder::shared)?;
    let mut report = PreprocessReport {
        leftovers: root.leftover().into_iter().chain(forms.leftovers()).collect(),
        ..PreprocessReport::default()
    };
    started(n_images);
    let threads =
        Threads { name: "cubes", n_threads: spec.n_threads, interrupted: spec.interrupted };
    let mut images: Vec<Option<ConvertedImage>> = (0..n_images).map(|_| None).collect();
    let mut skipped: Vec<(u64, Error)> = Vec::new();
    let mut n_done = 0;
    let done = &mut |image: u64, converted: Result<ConvertedImage, Error>| {
        match converted {
            Ok(converted) => images[image as usize] = Some(converted),
            Err(error @ Error::BadFile { .. }) if spec.skip_bad => skipped.push((image, error)),
            Err(error) => return Err(error),
        }
        n_done += 1;
        progress(n_done);
        Ok(())
    };
    let converter = || Converter::new(&source, CubeWriter::new(&forms, &threads), &forms);
    threads.each(n_images, converter, Converter::convert, done)?;
    report.add_images(images.into_iter().flatten());
    skipped.sort_by_key(|(image, _)| *image);
    report.skipped = skipped.into_iter().map(|(_, error)| error).collect();
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// Writes the list of images with the settings of the forms. Fails if a form has files that were
/// written with others.
fn record_forms(root: &FormFolder, source: &mut Source, spec: &FormSpec) -> Result<(), Error> {
    for form in &spec.forms {
        let settings = spec.settings(*form);
        let folder = root.folder().join(form.folder());
        if has_files(&folder)? {
            check_settings(&folder, source.list.forms.get(form.name()), &settings)?;
        }
        source.list.forms.insert(form.name().to_owned(), settings);
    }
    let path = root.folder().join(LIST_FILE);
    let text = source.list.to_text().map_err(|error| Error::write(&path, error))?;
    if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(());
    }
    root.write(LIST_FILE, text.as_bytes())
}

/// Fails if the files in a folder were not written with these settings.
fn check_settings(
    folder: &Path,
    written: Option<&FormSettings>,
    settings: &FormSettings,
) -> Result<(), Error> {
    let problem = match written {
        Some(written) if written == settings => return Ok(()),
        Some(written) => format!("was written with {written}, not {settings}: use the same"),
        None => format!("has files, but {LIST_FILE} does not say how they were made: leave it out"),
    };
    let folder = folder.display();
    Err(Error::Settings { problem: format!("{folder} {problem}, or remove that folder") })
}

/// Whether there is a file in a folder, which need not exist.
fn has_files(folder: &Path) -> Result<bool, Error> {
    let failed =
        |error| Error::Source { what: "cubes", path: folder.to_owned(), source: Box::new(error) };
    match fs::read_dir(folder) {
        Ok(mut entries) => entries
            .try_fold(false, |found, entry| Ok(found || entry?.path().is_file()))
            .map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// What came of an image.
#[derive(Debug, Clone, Copy, Default)]
struct ConvertedImage {
    is_written: bool,
    bytes_in: u64,
    bytes_out: u64,
    precision: Option<Precision>,
}

impl PreprocessReport {
    /// Adds images in their order, so that sums do not depend on the threads.
    fn add_images(&mut self, images: impl Iterator<Item = ConvertedImage>) {
        let mut precisions = Vec::new();
        for image in images {
            *(if image.is_written { &mut self.n_written } else { &mut self.n_kept }) += 1;
            self.bytes_in += image.bytes_in;
            self.bytes_out += image.bytes_out;
            precisions.extend(image.precision);
        }
        self.precision = Precision::sum(precisions);
    }
}

/// Converts images on one thread, with memory that is used again.
#[derive(Debug)]
struct Converter<'a> {
    source: &'a Source,
    forms: &'a Forms,
    writer: CubeWriter<'a>,
    file: Vec<u8>,
    cube: Vec<f32>,
    scratch: DecodeScratch,
}

impl<'a> Converter<'a> {
    fn new(source: &'a Source, writer: CubeWriter<'a>, forms: &'a Forms) -> Self {
        let (file, cube, scratch) = (Vec::new(), Vec::new(), DecodeScratch::new());
        Self { source, forms, writer, file, cube, scratch }
    }

    /// Writes the forms that an image lacks.
    fn convert(&mut self, idx: u64) -> Result<ConvertedImage, Error> {
        self.writer.check_interrupted()?;
        let Source { list, paths, .. } = self.source;
        let name = &list.images[idx as usize].name;
        let missing = self.forms.missing(idx, name)?;
        if missing.is_empty() {
            return Ok(ConvertedImage::default());
        }
        let path = &paths[idx as usize];
        self.read_cube(path)?;
        let segmentation = if self.source.has_labels && missing.contains(&Form::Zarr) {
            Some(self.read_segmentation(name)?)
        } else {
            None
        };
        let segmentation = segmentation.as_ref();
        let image = NewImage { idx, name, path, segmentation, forms: &missing };
        let written = self.writer.write(&image, &mut self.cube)?;
        Ok(ConvertedImage {
            is_written: true,
            bytes_in: self.file.len() as u64,
            bytes_out: written.n_bytes,
            precision: written.precision,
        })
    }

    /// Reads and decodes a file of the shape of the data set.
    fn read_cube(&mut self, path: &Path) -> Result<(), Error> {
        let bad = |error: bench_run::Cause| Error::bad_file(path, error);
        read_file(path, &mut self.file)?;
        let file = CubeFile::parse(FileFormat::Tivita, &self.file).map_err(|e| bad(e.into()))?;
        let shape = self.source.list.shape;
        if let Some(array) = file.arrays().iter().find(|array| array.shape != shape) {
            let found = &array.shape;
            return Err(bad(format!("its shape is {found:?}; expected {shape:?}").into()));
        }
        let cube = reserved(&mut self.cube, shape.iter().product(), "a cube")?;
        let bytes = bytemuck::must_cast_slice_mut(cube);
        file.decode(0, bytes, &mut self.scratch).map_err(|error| bad(error.into()))
    }

    fn read_segmentation(&mut self, name: &str) -> Result<crate::generate::Segmentation, Error> {
        let path = self.source.segmentation(name);
        let mut file = Vec::new();
        read_file(&path, &mut file)?;
        read_segmentation(&file, self.source.list.shape, &mut self.scratch)
            .map_err(|error| Error::bad_file(&path, error))
    }
}

/// Reads a file into memory that is used again.
fn read_file(path: &Path, into: &mut Vec<u8>) -> Result<(), Error> {
    let bad = |error: io::Error| Error::bad_file(path, error);
    into.clear();
    let mut file = File::open(path).map_err(bad)?;
    let n_bytes = file.metadata().map_err(bad)?.len() as usize;
    into.try_reserve_exact(n_bytes).map_err(|_| Error::Memory { what: "a file", n_bytes })?;
    file.read_to_end(into).map_err(bad)?;
    Ok(())
}
