//! Errors of opening and reading image cubes.

/// An error of opening a data set or reading its images.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The list of images cannot be read.
    #[error(
        "cannot read the list of images, images.json, in {place}; `cubes preprocess` and `cubes \
         generate` write it"
    )]
    List {
        /// The storage.
        place: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// Images have no files of the form that was asked for.
    #[error(
        "{n_missing} of {n_images} images have no file in {folder} of {place}, {first} is the first \
         of them; `cubes preprocess` writes the files of a form"
    )]
    Missing {
        /// The form's folder.
        folder: String,
        /// The storage.
        place: String,
        /// The first file that is missing.
        first: String,
        /// The number of images without a file.
        n_missing: usize,
        /// The number of all images.
        n_images: usize,
    },

    /// A file is damaged, cannot be read, or does not hold what the data set says.
    #[error("cannot read {file} of image {image} in {place}")]
    File {
        /// The file within the storage.
        file: String,
        /// The image's name.
        image: String,
        /// The storage.
        place: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The Zarr arrays of the data set cannot be opened or do not fit it.
    #[error("cannot read the arrays {folder} in {place}")]
    Arrays {
        /// The folder of the arrays.
        folder: String,
        /// The storage.
        place: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The settings do not fit together or do not fit the data set.
    #[error("{reason}")]
    Spec {
        /// What does not fit, and what would.
        reason: String,
    },

    /// Values were asked for as another type than they have.
    #[error("the key {key} has elements of type {element}, not {wanted}")]
    WrongElement {
        /// The key.
        key: String,
        /// The type that it has.
        element: arrays::ElementType,
        /// The requested Rust type.
        wanted: &'static str,
    },

    /// Memory is lacking.
    #[error("no memory for {bytes} bytes of {n_samples} cubes: use smaller batches")]
    Memory {
        /// Bytes of the batch or block.
        bytes: u64,
        /// Its samples.
        n_samples: usize,
    },

    /// A thread that reads images cannot be started.
    #[error("cannot start a thread that reads images")]
    Thread {
        /// The cause.
        #[source]
        source: std::io::Error,
    },

    /// No slot of the ring is free.
    #[error(transparent)]
    Slots(#[from] slots::Error),

    /// An error of the engine.
    #[error(transparent)]
    Pipeline(#[from] pipeline::Error),
}
