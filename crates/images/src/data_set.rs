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

/// A data set of image cubes in a storage. Cheap to clone.
#[derive(Clone)]
pub struct DataSet {
    storage: Arc<dyn Storage>,
    list: Arc<ImageList>,
    /// The place of each image in the stored list, which is its place in Zarr arrays.
    positions: Arc<[u64]>,
}

impl fmt::Debug for DataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataSet")
            .field("place", &self.storage.place())
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
        check(&list).map_err(|reason| failed(reason.into()))?;
        let positions = (0..list.images.len() as u64).collect();
        Ok(Self { storage, list: Arc::new(list), positions })
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
        check(&list).map_err(|reason| Error::Spec { reason })?;
        let positions = samples.iter().map(|sample| self.positions[*sample]).collect();
        Ok(Self { storage: Arc::clone(&self.storage), list: Arc::new(list), positions })
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

    /// The forms of which the data set has a folder.
    ///
    /// # Errors
    /// The storage cannot be listed.
    pub fn forms(&self) -> Result<Vec<Form>, Error> {
        let failed = |source: std::io::Error| Error::List {
            place: self.storage.place(),
            source: source.into(),
        };
        let entries = self.storage.list("").map_err(failed)?;
        let has = |form: &Form| {
            entries.iter().any(|entry| entry.is_folder && entry.name == form.folder())
        };
        Ok(Form::ALL.into_iter().filter(has).collect())
    }

    /// The place of a sample in the stored list.
    pub(crate) fn position(&self, sample: u64) -> Option<u64> {
        self.positions.get(usize::try_from(sample).ok()?).copied()
    }

    /// The storage of the data set.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }
}

/// Checks that a list can be used. The error says what is wrong.
fn check(list: &ImageList) -> Result<(), String> {
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
    let mut names: Vec<&str> = list.images.iter().map(|image| image.name.as_str()).collect();
    if let Some(name) = names.iter().find(|name| !is_file_name(name)) {
        return Err(format!("an image is called {name:?}, which is not the name of a file"));
    }
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("it has the image {} twice", pair[0])),
        None => Ok(()),
    }
}

/// Whether a name stays within its folder: a list must not make us read other files.
pub(crate) fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '\0']) && name != "." && name != ".."
}
