//! The cubes to convert: which images there are, and where.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use images::files::{CubeFile, FileFormat};

use super::read_file;
use crate::Error;
use crate::image_list::{ImageList, ListedImage};
use crate::segmentation::{SEGMENTATIONS, file_name};
use bench_run::Cause;
use images::{DAT_SUFFIX, Form};

/// The images of a data set and their files.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) list: ImageList,
    /// The file of each image's cube. It may be missing.
    pub(super) paths: Vec<PathBuf>,
    /// Whether there are segmentations.
    pub(super) has_labels: bool,
    data: PathBuf,
}

impl Source {
    /// Finds the cubes of a data set. Without a list of images, all files are images, in the order
    /// of their names. The shape of the first decides; with `skip_bad`, the first that is one.
    pub(super) fn find(data: &Path, skip_bad: bool) -> Result<Self, Error> {
        let failed = |source: Cause| Error::Source { what: "cubes", path: data.to_owned(), source };
        let folder = data.join(Form::Dat.folder());
        let has_folder = folder.is_dir();
        let mut found = Vec::new();
        let below = if has_folder { &folder } else { data };
        find_files(below, &mut found).map_err(|error| failed(error.into()))?;
        found.sort_unstable();
        let mut paths = HashMap::new();
        for (name, path) in &found {
            if let Some(other) = paths.insert(name.clone(), path.clone()) {
                let (path, other) = (path.display(), other.display());
                return Err(failed(format!("{path} and {other} have the same name").into()));
            }
        }
        let list = if let Some(list) = ImageList::read(data)? {
            list
        } else {
            let files: Vec<&Path> = found.iter().map(|(_, path)| path.as_path()).collect();
            let shape = first_shape(&files, skip_bad)?.ok_or_else(|| {
                failed(format!("no file below it is called *{DAT_SUFFIX}").into())
            })?;
            let image = |(name, _): &(String, PathBuf)| {
                ListedImage::new(name.clone(), String::new(), String::new())
            };
            ImageList::new(shape, found.iter().map(image).collect())
        };
        let path = |image: &ListedImage| {
            let expected = folder.join(format!("{}{DAT_SUFFIX}", image.name));
            paths.remove(&image.name).unwrap_or(expected)
        };
        let paths = list.images.iter().map(path).collect();
        let has_labels = data.join(SEGMENTATIONS).is_dir();
        Ok(Self { list, paths, has_labels, data: data.to_owned() })
    }

    /// The file with the segmentation of an image.
    pub(super) fn segmentation(&self, image: &str) -> PathBuf {
        self.data.join(SEGMENTATIONS).join(file_name(image))
    }
}

/// Collects the names and paths of Tivita's files below a folder. Links to folders are not
/// followed: they may lead in circles.
fn find_files(folder: &Path, found: &mut Vec<(String, PathBuf)>) -> Result<(), std::io::Error> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            find_files(&path, found)?;
        } else if let Some(name) =
            entry.file_name().to_str().and_then(|n| n.strip_suffix(DAT_SUFFIX))
            && !name.is_empty()
        {
            found.push((name.to_owned(), path));
        }
    }
    Ok(())
}

/// The shape of the first cube that can be read; `None` if there are no files.
fn first_shape(files: &[&Path], skip_bad: bool) -> Result<Option<[usize; 3]>, Error> {
    let mut first_error = None;
    for path in files {
        match shape_of(path) {
            Ok(shape) => return Ok(Some(shape)),
            Err(error) if skip_bad => first_error = first_error.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    first_error.map_or(Ok(None), Err)
}

fn shape_of(path: &Path) -> Result<[usize; 3], Error> {
    let mut bytes = Vec::new();
    read_file(path, &mut bytes)?;
    let bad = |error: Cause| Error::bad_file(path, error);
    let file = CubeFile::parse(FileFormat::Tivita, &bytes).map_err(|error| bad(error.into()))?;
    let shape = file.arrays().first().and_then(|array| array.shape.clone().try_into().ok());
    shape.ok_or_else(|| bad("it has no cube".into()))
}
