//! Errors between a loader's batches and their tensors.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The loader could not be made, or failed.
    #[error(transparent)]
    Loader(#[from] loader::LoaderError),

    /// There are no tensors of neighbours.
    #[error(
        "there are no tensors of neighbours: leave DatasetSpec::neighbours out, or take the batches \
         of loader::Loader"
    )]
    Neighbours,

    /// A batch's buffer has elements of another type than its form says.
    #[error(transparent)]
    ElementType(#[from] loader::ElementTypeError),

    /// The arrays could not be opened or read.
    #[cfg(feature = "arrays")]
    #[error(transparent)]
    Arrays(#[from] arrays::Error),

    /// Image cubes cannot be opened or read.
    #[cfg(feature = "images")]
    #[error(transparent)]
    Images(#[from] images::Error),

    /// Sequences cannot be read.
    #[cfg(feature = "sequences")]
    #[error(transparent)]
    Sequences(#[from] sequences::Error),

    /// torch, or tch, has no tensors of a variable's elements.
    #[cfg(feature = "arrays")]
    #[error(
        "there are no tensors of {element}, the elements of variable {variable}: convert them with Variable::as_f32"
    )]
    Element {
        /// The variable.
        variable: String,
        /// The type of its elements.
        element: arrays::ElementType,
    },

    /// The batches have no variable of this name.
    #[cfg(feature = "arrays")]
    #[error("the batches have no variable {variable}, but {known}")]
    NoVariable {
        /// The requested name.
        variable: String,
        /// The names that they have.
        known: String,
    },

    /// A tensor of images or masks is not of the shape that the maps were made for.
    #[cfg(feature = "images")]
    #[error("{what} must be of shape {expected}, not {found:?}")]
    ImageShape {
        /// Images or masks.
        what: &'static str,
        /// The needed shape.
        expected: String,
        /// The tensor's shape.
        found: Vec<i64>,
    },

    /// torch refused an operation.
    #[error("torch could not make {what}")]
    Torch {
        /// The object that torch should have made.
        what: &'static str,
        /// torch's own message.
        #[source]
        source: tch::TchError,
    },

    /// Batches cannot have the type in which X is stored.
    #[error("batches cannot be of X's own type: {problem}")]
    StoredType {
        /// The reason.
        problem: String,
    },

    /// A whole number of X is too large to be read exactly.
    #[error(
        "X has values up to {largest}, and whole numbers from 16777216 on are not read exactly: take batches of f32"
    )]
    Inexact {
        /// The largest magnitude of the batch.
        largest: String,
    },

    /// A CSR batch has more values than 32-bit row offsets can count.
    #[error(
        "a CSR batch has {nnz} values, at most {} are counted: make the batches smaller",
        i32::MAX
    )]
    TooManyValues {
        /// Number of its values.
        nnz: usize,
    },

    /// torch does not see this GPU.
    #[error(
        "there is no cuda:{idx}: torch sees {n_gpus} GPUs; take the CPU, or link a libtorch for CUDA where there is a GPU"
    )]
    NoGpu {
        /// Its index, from 0.
        idx: usize,
        /// Number of GPUs that torch sees.
        n_gpus: i64,
    },

    /// CUDA's runtime refused a call.
    #[error("CUDA's {call} failed with error {code}")]
    Cuda {
        /// The function.
        call: &'static str,
        /// CUDA's number of the error.
        code: i32,
    },

    /// Only dense batches can be made dense on the device.
    #[error(
        "batches of {form} are not dense, so they cannot be made dense on the device: ask for dense or f16"
    )]
    DensifySparse {
        /// The requested form.
        form: loader::BatchForm,
    },

    /// The loader delivered a batch in a form that this crate does not know.
    #[error("cannot make tensors of {batch}: ask for dense, f16, csr, coo or packed batches")]
    UnknownForm {
        /// The batch.
        batch: String,
    },

    /// The batches have no codes from this encoder.
    #[error("batches have no codes of {encoder:?}: give the data set an encoder of that name")]
    NoCodes {
        /// The encoder's name.
        encoder: String,
    },

    /// A saved state belongs to another classifier.
    #[error("the state is of another classifier: {problem}")]
    ClassifierState {
        /// The difference.
        problem: String,
    },

    /// Tensors of examples for a document model do not fit together.
    #[cfg(feature = "sequences")]
    #[error("{what} must be of shape {expected}, not {found:?}")]
    ExampleShape {
        /// The tensor.
        what: &'static str,
        /// The needed shape.
        expected: String,
        /// The tensor's shape.
        found: Vec<i64>,
    },

    /// A size exceeds torch's 64-bit signed sizes.
    #[error(
        "a tensor of {n_values} values is larger than torch can address: make the batches smaller"
    )]
    TooLarge {
        /// Number of values.
        n_values: usize,
    },
}

impl Error {
    /// For `map_err`: names the object that torch should have made.
    pub(crate) fn torch(what: &'static str) -> impl FnOnce(tch::TchError) -> Self {
        move |source| Self::Torch { what, source }
    }
}
