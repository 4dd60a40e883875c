//! Tests of the whole loader on readers in memory: every cell in every form, and every failure.
mod at_once;
mod beside;
mod counted;
mod delivered;
mod edge_cases;
mod element_types;
mod every_cell;
mod experiment;
mod memory;
mod one_line;
mod ranks;
pub(crate) mod sample;
mod scripted;
mod several;
mod stopping;
mod subset;
mod what_ran;
mod world;
