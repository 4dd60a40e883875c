//! What a batch of images consists of, and how it is read.

use std::sync::Arc;

use arrays::ElementType;
use slots::Allocate;

use crate::augment::Augmentation;
use crate::data_set::Form;
use crate::files::Norm;

/// Which arrays of an image a batch has, and how they are read.
#[derive(Debug, Clone)]
pub struct ImageSpec {
    /// The stored form of the cubes.
    pub form: Form,
    /// The arrays of a sample.
    pub keys: Vec<Key>,
    /// The elements of cubes in a batch, `F16` or `F32`; `None` for those that are stored.
    pub element: Option<ElementType>,
    /// Divides each pixel's spectrum by its norm. For forms that are not normalised yet.
    pub norm: Option<Norm>,
    /// Random maps that are applied while a batch is read.
    pub augmentation: Option<SeededAugmentation>,
    /// Threads that share the cubes of one batch.
    pub threads: usize,
    /// The memory of batches.
    pub memory: BatchMemory,
    /// Whether opening fails if an image has no file of a key. Otherwise reading that image does.
    pub checks_files: bool,
}

impl ImageSpec {
    /// Cubes of a form with labels and valid pixels, as they are stored, read by one thread a batch
    /// into memory that is allocated for each batch.
    pub fn new(form: Form) -> Self {
        Self {
            form,
            keys: vec![Key::cube("features"), Key::mask("labels"), Key::mask("valid_pixels")],
            element: None,
            norm: None,
            augmentation: None,
            threads: 1,
            memory: BatchMemory::Collated,
            checks_files: true,
        }
    }
}

/// An array of each image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Name of the array in batches.
    pub name: String,
    /// Where it is stored.
    pub origin: Origin,
    /// How augmentation treats it.
    pub role: Role,
}

impl Key {
    /// The cube of the spec's form.
    pub fn cube(name: impl Into<String>) -> Self {
        Self { name: name.into(), origin: Origin::Cube, role: Role::Image }
    }

    /// The mask `name` of the images' segmentations.
    pub fn mask(name: impl Into<String>) -> Self {
        let name = name.into();
        Self::array(name.clone(), "segmentations", name, Role::Mask)
    }

    /// Array `array` of the blosc files `<image>.blosc` in `folder`. `array` is empty for files of
    /// one array. In the form Zarr, the Zarr array `name` beside the cubes.
    pub fn array(
        name: impl Into<String>,
        folder: impl Into<String>,
        array: impl Into<String>,
        role: Role,
    ) -> Self {
        let origin = Origin::Array { folder: folder.into(), array: array.into() };
        Self { name: name.into(), origin, role }
    }
}

/// Where an array of an image is stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The cube itself.
    Cube,
    /// An array of a blosc file.
    Array {
        /// The folder of the files, one for each image.
        folder: String,
        /// Name of the array in the file; empty for files of one array.
        array: String,
    },
}

/// How augmentation treats an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// An image of shape `[height, width, channels]`, f16 or f32: interpolated between pixels.
    Image,
    /// Classes or flags of shape `[height, width]`: takes the nearest pixel.
    Mask,
    /// Values that do not depend on pixels: left as they are.
    Plain,
}

/// Random maps with the seed that they are drawn from.
#[derive(Debug, Clone, PartialEq)]
pub struct SeededAugmentation {
    /// The maps.
    pub augmentation: Augmentation,
    /// A sample's map depends on this seed, the epoch and the sample alone.
    pub seed: u64,
    /// A mask of which at least one pixel must stay in the image: otherwise the image comes as it
    /// is. `None` allows any map.
    pub valid_pixels: Option<String>,
}

/// The memory of batches.
#[derive(Debug, Clone)]
pub enum BatchMemory {
    /// Each cube is decoded into memory of its own, then copied into a batch that is allocated
    /// anew, as a `DataLoader` of PyTorch does.
    Collated,
    /// The cubes of a block are decoded side by side, into memory that goes round and grows as
    /// needed. A batch that is a whole block takes that memory without a copy and may be kept for
    /// any time; others are copied.
    Pooled,
    /// Cubes are decoded into a slot of a ring, which is the batch. Blocks must be as large as
    /// batches.
    Ring {
        /// Number of slots ([`n_slots`](crate::n_slots)).
        n_slots: usize,
        /// Samples of a slot: the batch size.
        n_samples: usize,
        /// Makes the memory, for example pinned for a GPU.
        allocate: Arc<dyn Allocate>,
    },
}
