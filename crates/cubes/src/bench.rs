//! Measurements of feeding cubes to a device: each point of a grid in its own process, rows in a
//! results folder.

mod core_loads;
mod epochs;
mod evicting;
mod floors;
mod label;
mod load;
mod open;
mod point;
mod read_limit;
mod run;
mod settings;
mod task;

pub(crate) use floors::{DECODE, Floor, PLAIN_READ};
pub(crate) use label::CubeLabel;
pub(crate) use load::serve;
pub(crate) use open::{pipeline, plain_memory};
#[cfg(test)]
pub(crate) use point::point_for_tests;
pub(crate) use point::{Consumer, Point, STORED_FORM};
pub(crate) use read_limit::LimitFlags;
pub(crate) use run::{Cubes, DataFlags};
pub(crate) use settings::{
    Augment, BatchElement, Copies, Memory, Mode, Release, Settings, Strategy, value_name,
};
pub(crate) use task::{CubeData, CubeWork};
