//! Errors of tokens that are made of batches.

use crate::spec::BatchForm;

/// The reason why batches cannot have tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Batches are not in CSR.
    #[error("tokens are made of batches of form csr, not of form {form}: take form csr")]
    Form {
        /// The form of the batches.
        form: BatchForm,
    },

    /// The tokenizer was made for other columns.
    #[error(
        "the tokenizer is for {found} genes, but batches have {expected}: make it with the names \
         of the selected genes, in their order"
    )]
    Columns {
        /// Number of columns of the tokenizer.
        found: usize,
        /// Number of selected genes.
        expected: usize,
    },

    /// Values are transformed before they are ranked.
    #[error(
        "ranks divide values by the cell's total themselves, but values are transformed before \
         ({transform}): leave the transform out"
    )]
    Transform {
        /// The operations.
        transform: String,
    },

    /// A cell has values that tokens cannot be made of.
    #[error("cannot make tokens of cell {joinid} of experiment {experiment}")]
    Cell {
        /// The experiment's index in the data set, from 0.
        experiment: usize,
        /// The cell's joinid.
        joinid: u64,
        /// The reason.
        #[source]
        source: tokens::Error,
    },

    /// The tokens of a batch could not be made.
    #[error("cannot make the tokens of a batch")]
    Batch {
        /// The reason.
        #[source]
        source: tokens::Error,
    },
}
