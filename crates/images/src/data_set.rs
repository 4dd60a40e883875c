//! A folder of image cubes: its list of images and its stored forms.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use storage::{Piece, Storage};

use crate::error::Error;
use crate::files::FileFormat;

/// Name of the list of images in the folder.
pub const LIST_FILE: &str = "images.json";

/// The version of the list that this library writes and reads.
pub const LIST_VERSION: u32 = 1;

/// End of the names of Tivita's files.
pub const DAT_SUFFIX: &str = "_SpecCube.dat";

/// Why the form `packed16` of earlier data sets is not read, and what to do.
const PACKED16: &str = "files of packed16 were written and read by somafeed 0.1.0 up to commit \
     8a93f6aa alone; `cubes preprocess --to raw16` writes the same values from the files of dat";

/// Largest list that is read: 1 GiB, some 10 million images.
const MOST_LIST_BYTES: u64 = 1 << 30;

/// The list of a data set's images, as stored in [`LIST_FILE`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageList {
    /// [`LIST_VERSION`].
    pub version: u32,
    /// Height, width and channels of each cube.
    pub shape: [usize; 3],
    /// Number of classes of the labels.
    #[serde(default)]
    pub n_classes: usize,
    /// Names of the classes, in the order of their numbers.
    #[serde(default)]
    pub classes: Vec<String>,
    /// The images; sample `i` is `images[i]`.
    pub images: Vec<Image>,
    /// How the images were made, if they were generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<serde_json::Value>,
}

/// An image of a data set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Its name, which its files have.
    pub name: String,
    /// Where it comes from: a camera, a hospital.
    #[serde(default)]
    pub domain: String,
    /// Whom it shows.
    #[serde(default)]
    pub subject: String,
}

/// A stored form of the cubes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Tivita's files: big-endian f32, uncompressed.
    Dat,
    /// f32 in blosc files.
    Raw32,
    /// f16 in blosc files.
    Raw16,
    /// Zarr arrays, one chunk a cube.
    Zarr,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 4] = [Self::Dat, Self::Raw32, Self::Raw16, Self::Zarr];

    /// Name of the form: its folder's, except that Zarr's is `cubes.zarr`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dat => "dat",
            Self::Raw32 => "raw32",
            Self::Raw16 => "raw16",
            Self::Zarr => "zarr",
        }
    }

    /// The folder of the form within the data set's.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Zarr => "cubes.zarr",
            form => form.name(),
        }
    }

    /// The format of its files; `None` for Zarr.
    pub fn file_format(self) -> Option<FileFormat> {
        match self {
            Self::Dat => Some(FileFormat::Tivita),
            Self::Raw32 | Self::Raw16 => Some(FileFormat::Blosc),
            Self::Zarr => None,
        }
    }

    /// Name of an image's file in the form's folder; `None` for Zarr, which has no such files.
    pub fn file_name(self, image: &str) -> Option<String> {
        match self {
            Self::Dat => Some(format!("{image}{DAT_SUFFIX}")),
            Self::Raw32 | Self::Raw16 => Some(format!("{image}.blosc")),
            Self::Zarr => None,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "packed16" {
            return Err(PACKED16.to_owned());
        }
        Self::ALL.into_iter().find(|form| form.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            format!("expected one of {}", names.join(", "))
        })
    }
}

/// A data set of image cubes in one storage or several. Cheap to clone.
#[derive(Clone)]
pub struct DataSet {
    storages: Arc<[Arc<dyn Storage>]>,
    list: Arc<ImageList>,
    positions: Arc<[Position]>,
}

/// Where an image is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    /// The number of its storage.
    pub(crate) storage: usize,
    /// Its place in the list that is stored there, which is its place in Zarr arrays.
    pub(crate) image: u64,
}

impl fmt::Debug for DataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataSet")
            .field("place", &self.place())
            .field("images", &self.list.images.len())
            .finish_non_exhaustive()
    }
}

impl DataSet {
    /// Opens the data set in `storage`: reads its list of images.
    ///
    /// # Errors
    /// There is no list, or it cannot be read; it is of another version, has no images or a
    /// dimension of length 0, or has an image twice.
    pub fn open(storage: Arc<dyn Storage>) -> Result<Self, Error> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::List {
            place: storage.place(),
            source,
        };
        let size = storage.size(LIST_FILE).map_err(|error| failed(error.into()))?;
        if MOST_LIST_BYTES < size {
            return Err(failed(format!("it has {size} bytes, too many for a list").into()));
        }
        let mut text = vec![0; size as usize];
        storage
            .read(&[Piece { file: LIST_FILE, range: 0..size }], &mut text)
            .map_err(|error| failed(error.into()))?;
        let list: ImageList =
            serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        let positions: Vec<Position> =
            (0..list.images.len() as u64).map(|image| Position { storage: 0, image }).collect();
        check(&list, &positions).map_err(|reason| failed(reason.into()))?;
        Ok(Self {
            storages: Arc::new([storage]),
            list: Arc::new(list),
            positions: positions.into(),
        })
    }

    /// Joins data sets: the images of the first, then those of the second and so on. Names of
    /// images need to be unique in each storage only.
    ///
    /// # Errors
    /// There is none; their cubes have different shapes, or their labels different classes.
    pub fn joined(data_sets: &[Self]) -> Result<Self, Error> {
        let Some((first, others)) = data_sets.split_first() else {
            return Err(Error::Spec { reason: "there is no data set to join".to_owned() });
        };
        if others.is_empty() {
            return Ok(first.clone());
        }
        others.iter().try_for_each(|other| first.check_like(other))?;
        let mut list = ImageList { images: Vec::new(), generator: None, ..(*first.list).clone() };
        let (mut storages, mut positions) = (Vec::new(), Vec::new());
        for data in data_sets {
            if list.n_classes == 0 {
                list.n_classes = data.list.n_classes;
                list.classes.clone_from(&data.list.classes);
            }
            list.images.extend_from_slice(&data.list.images);
            let before = storages.len();
            let moved = |at: &Position| Position { storage: before + at.storage, ..*at };
            positions.extend(data.positions.iter().map(moved));
            storages.extend_from_slice(&data.storages);
        }
        let (storages, positions) = (storages.into(), positions.into());
        Ok(Self { storages, list: Arc::new(list), positions })
    }

    /// Fails unless cubes and classes of another data set are like these.
    fn check_like(&self, other: &Self) -> Result<(), Error> {
        let differ = |what: &str, here: String, there: String| {
            let (place, of_other) = (self.place(), other.place());
            let reason = format!("{what} in {place} {here}, those in {of_other} {there}");
            Err(Error::Spec { reason })
        };
        if self.shape() != other.shape() {
            let shape = |of: &Self| format!("have shape {:?}", of.shape());
            return differ("cubes", shape(self), shape(other));
        }
        let classes = |of: &Self| (of.n_classes(), of.classes().to_vec());
        let has_classes = 0 < self.n_classes() && 0 < other.n_classes();
        if has_classes && classes(self) != classes(other) {
            let described =
                |of: &Self| format!("have {} classes: {}", of.n_classes(), of.classes().join(", "));
            return differ("labels", described(self), described(other));
        }
        Ok(())
    }

    /// The images `samples` of this data set, in this order, as a data set of their own: a part for
    /// training or validation.
    ///
    /// # Errors
    /// A number is not below [`n_images`](Self::n_images), comes twice, or there is none.
    pub fn select(&self, samples: &[usize]) -> Result<Self, Error> {
        let image = |sample: &usize| {
            self.list.images.get(*sample).cloned().ok_or_else(|| Error::Spec {
                reason: format!("image {sample} of {} was selected", self.n_images()),
            })
        };
        let images = samples.iter().map(image).collect::<Result<Vec<Image>, Error>>()?;
        let list = ImageList { images, ..(*self.list).clone() };
        let positions: Vec<Position> =
            samples.iter().map(|sample| self.positions[*sample]).collect();
        check(&list, &positions).map_err(|reason| Error::Spec { reason })?;
        let storages = Arc::clone(&self.storages);
        Ok(Self { storages, list: Arc::new(list), positions: positions.into() })
    }

    /// The number of images.
    pub fn n_images(&self) -> usize {
        self.list.images.len()
    }

    /// Height, width and channels of each cube.
    pub fn shape(&self) -> [usize; 3] {
        self.list.shape
    }

    /// The names of the classes, in the order of their numbers; empty if they have none.
    pub fn classes(&self) -> &[String] {
        &self.list.classes
    }

    /// The number of classes of the labels.
    pub fn n_classes(&self) -> usize {
        self.list.n_classes
    }

    /// The images; sample `i` is the `i`th.
    pub fn images(&self) -> &[Image] {
        &self.list.images
    }

    /// The forms of which every storage has a folder.
    ///
    /// # Errors
    /// A storage cannot be listed.
    pub fn forms(&self) -> Result<Vec<Form>, Error> {
        let mut forms = Form::ALL.to_vec();
        for storage in self.storages.iter() {
            let failed = |source: std::io::Error| Error::List {
                place: storage.place(),
                source: source.into(),
            };
            let entries = storage.list("").map_err(failed)?;
            forms.retain(|form| {
                entries.iter().any(|entry| entry.is_folder && entry.name == form.folder())
            });
        }
        Ok(forms)
    }

    /// Where a sample is stored.
    pub(crate) fn position(&self, sample: usize) -> Option<Position> {
        self.positions.get(sample).copied()
    }

    /// The storages of the data set.
    pub fn storages(&self) -> &[Arc<dyn Storage>] {
        &self.storages
    }

    /// The storage of a sample; that of the first if there is no such sample.
    pub(crate) fn storage_of(&self, sample: usize) -> &Arc<dyn Storage> {
        &self.storages[self.storage_number(sample).unwrap_or(0)]
    }

    /// The number of images in each storage.
    pub fn sizes(&self) -> Vec<usize> {
        (0..self.storages.len()).map(|storage| self.samples_in(storage).count()).collect()
    }

    /// The number of a sample's storage; `None` if there is no such sample.
    pub fn storage_number(&self, sample: usize) -> Option<usize> {
        self.position(sample).map(|position| position.storage)
    }

    /// The samples that are in a storage.
    pub(crate) fn samples_in(&self, storage: usize) -> impl Iterator<Item = usize> {
        let positions = self.positions.iter().enumerate();
        positions.filter(move |(_, at)| at.storage == storage).map(|(sample, _)| sample)
    }

    /// The places of all storages, for errors.
    fn place(&self) -> String {
        let places: Vec<String> = self.storages.iter().map(|storage| storage.place()).collect();
        places.join(", ")
    }
}

/// Checks that a list can be used. The error says what is wrong.
fn check(list: &ImageList, positions: &[Position]) -> Result<(), String> {
    if list.version != LIST_VERSION {
        return Err(format!(
            "its version is {}, this library reads version {LIST_VERSION}",
            list.version
        ));
    }
    if list.shape.contains(&0) {
        return Err(format!("its shape {:?} has a dimension of length 0", list.shape));
    }
    if list.images.is_empty() {
        return Err("it has no images".to_owned());
    }
    let named = list.images.iter().zip(positions);
    let mut names: Vec<(usize, &str)> =
        named.map(|(image, at)| (at.storage, image.name.as_str())).collect();
    if let Some((_, name)) = names.iter().find(|(_, name)| !is_file_name(name)) {
        return Err(format!("an image is called {name:?}, which is not the name of a file"));
    }
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("it has the image {} twice", pair[0].1)),
        None => Ok(()),
    }
}

/// Whether a name stays within its folder: a list must not make us read other files.
pub(crate) fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '\0']) && name != "." && name != ".."
}
