//! What becomes of unknown words.

/// What to do with a word that has a letter outside the alphabet, such as `N` for any base, or that
/// the vocabulary lacks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum WhenUnknown {
    /// An error that names the sequence.
    #[default]
    Fail,
    /// The word is left out; its neighbours in the frame become neighbours of each other.
    Skip,
    /// One word stands for all unknown ones.
    Word,
}
