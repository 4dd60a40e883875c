//! Ranks: measured processes that prepare their tasks, begin at the same time, and end together.
//!
//! A command either starts all ranks itself ([`RankProcess`]), or a launcher starts the command
//! once for each rank, and each starts its own process. Then rank 0 has a [`Meeting`], to which the
//! other ranks connect ([`RankZero`]). In both ways [`gather_ranks`] waits until all are ready,
//! lets them begin, and ends the run if one of them fails, dies, or never comes.

mod gathering;
mod meeting;
mod message;
mod process;
mod rank_zero;

pub use gathering::{RanksEnd, gather_ranks};
pub use meeting::Meeting;
pub use message::RankEvent;
pub use process::RankProcess;
pub use rank_zero::{RankZero, follow_rank_zero};
