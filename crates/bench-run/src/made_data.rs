//! What the programs share that make data from a seed: errors, random choices, threads, the place
//! of the data, and the end of the command.

mod command;
mod error;
mod random;
mod threads;

pub use command::{claim, finished, show_leftover};
pub use error::{Cause, DataError};
pub use random::{Choices, PositionHash};
pub use threads::{Threads, check_interrupted, n_threads, reserved};
