//! The whole pipeline on readers in memory: every cell, in every method; and what happens when things go wrong.

mod every_cell;
mod sample;
mod scripted;
mod stopping;
mod what_ran;
