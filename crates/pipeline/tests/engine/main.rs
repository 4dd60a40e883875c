//! The engine over samples that are numbers: order, exactness, threads, errors and memory.

mod epochs;
mod memory;
mod numbers;
mod sizes;
mod threads;
