//! Forecasts fields one step ahead: a small convolutional model against persistence, the forecast
//! that nothing changes.
//!
//! ```text
//! cargo xtask fields generate weather-small --samples 256 --lat 48 --lon 96 \
//!     --inputs 16 --targets 16
//! cargo run --release -p somafeed-torch-feed --example forecast -- weather-small
//! ```
//!
//! A sample has the inputs of a step and of the one before it, and as targets the inputs' first
//! channels one step later. The model is trained on the first steps of the store, and after each
//! epoch tested on the last ones. The program prints the error of both forecasts on those, and
//! writes `forecast.png` and `errors.csv`. `--help` lists all options. The same program runs on a
//! GPU (`--device cuda:0`), which has not been tried yet.

mod arguments;
mod data;
mod model;
mod picture;
mod report;
#[cfg(test)]
mod tests;
mod train;

use std::error::Error;

use clap::Parser as _;

use crate::arguments::Arguments;
use crate::data::Data;
use crate::train::{Errors, train};

/// An error that stops the program, shown to its user.
type Failure = Box<dyn Error + Send + Sync>;

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    run(&arguments, &mut |line| println!("{line}"))?;
    Ok(())
}

/// Trains, prints each epoch's errors, and writes the results.
fn run(arguments: &Arguments, print: &mut dyn FnMut(&str)) -> Result<Errors, Failure> {
    tch::set_num_threads(arguments.threads);
    let device = arguments.device.find()?;
    let data = Data::open(arguments, device)?;
    print(&data.describe());
    let errors = train(&data, arguments, device, print)?;
    report::write(&arguments.out, &errors)?;
    print(&format!("wrote {}", arguments.out.join("forecast.png").display()));
    Ok(errors)
}
