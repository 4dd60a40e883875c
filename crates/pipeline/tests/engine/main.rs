//! The engine over samples that are numbers: order, exactness, threads, errors and memory.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod damage;
mod epochs;
mod hand_over;
mod memory;
mod numbers;
mod samplers;
mod selected;
mod sizes;
mod threads;
