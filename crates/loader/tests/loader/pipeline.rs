//! The whole pipeline on readers in memory: every cell, in every method; and what happens when things go wrong.
mod at_once;
mod counted;
mod delivered;
mod edge_cases;
mod every_cell;
mod experiment;
mod memory;
mod ranks;
mod sample;
mod scripted;
mod several;
mod stopping;
mod subset;
mod what_ran;
mod world;
