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
