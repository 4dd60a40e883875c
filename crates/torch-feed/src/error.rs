//! What can go wrong between a loader's batch and its tensors.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The loader could not be made or could not go on.
    #[error(transparent)]
    Loader(#[from] loader::Error),

    /// torch refused an operation.
    #[error("torch could not make {what}")]
    Torch {
        /// What was to be made.
        what: &'static str,
        /// torch's own words.
        #[source]
        source: tch::TchError,
    },

    /// Batches cannot be of the type that X is stored as.
    #[error("batches cannot be of X's own type: {problem}")]
    StoredType {
        /// Why not.
        problem: String,
    },

    /// A whole number of X is beyond those that are read exactly.
    #[error(
        "X has values up to {largest}, and whole numbers from 16777216 on are not read exactly: take batches of f32"
    )]
    Inexact {
        /// The largest magnitude of the batch.
        largest: String,
    },

    /// A CSR batch has more values than its 32-bit row offsets count.
    #[error(
        "a CSR batch has {nnz} values, at most {} are counted: make the batches smaller",
        i32::MAX
    )]
    TooManyValues {
        /// Its values.
        nnz: usize,
    },

    /// A GPU that is not there.
    #[error(
        "there is no cuda:{idx}: torch sees {n_gpus} GPUs; take Device::Cpu, or link a libtorch for CUDA where there is a GPU"
    )]
    NoGpu {
        /// Its number, from 0.
        idx: usize,
        /// How many torch sees.
        n_gpus: i64,
    },

    /// Only dense batches can be made dense on the device.
    #[error(
        "batches of {form} are not dense, so they cannot be made dense on the device: ask for dense or f16"
    )]
    DensifySparse {
        /// What was asked for.
        form: loader::BatchForm,
    },

    /// The batches have no codes of a label.
    #[error("batches have no codes of {encoder:?}: give the data set an encoder of that name")]
    NoCodes {
        /// The encoder's name.
        encoder: String,
    },

    /// A state that was saved is of another classifier.
    #[error("the state is of another classifier: {problem}")]
    ClassifierState {
        /// How it differs.
        problem: String,
    },

    /// A size does not fit torch's 64-bit signed sizes.
    #[error(
        "a tensor of {n_values} values is larger than torch can address: make the batches smaller"
    )]
    TooLarge {
        /// Its length.
        n_values: usize,
    },
}

impl Error {
    /// For `map_err`: what torch was to make.
    pub(crate) fn torch(what: &'static str) -> impl FnOnce(tch::TchError) -> Self {
        move |source| Self::Torch { what, source }
    }
}
