//! Results folders: those of earlier versions, and several writers of one.

mod earlier_results;
mod writers;
