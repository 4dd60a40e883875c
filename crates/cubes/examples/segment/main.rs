//! Segments image cubes: a small U-Net that predicts the class of each pixel from its spectrum and
//! its surroundings.
//!
//! ```text
//! cargo xtask cubes generate cubes-small --images 48 --size 48x64x30 --formats raw16 --level 5
//! cargo run --release -p cubes --example segment -- cubes-small
//! ```
//!
//! The images of the last subjects are held out, and after each epoch the model is tested on them.
//! Training images are mapped and flipped at random. The program prints the loss and the share of
//! valid pixels that are classified correctly, and writes `segments.png` (image, labels and
//! prediction side by side) and `scores.csv`. `--help` lists all options. The same program runs on
//! a GPU (`--device cuda:0`), which has not been tried yet.

mod arguments;
mod data;
mod picture;
mod report;
#[cfg(test)]
mod tests;
mod train;

use std::error::Error;

use clap::Parser as _;
use torch_feed::tch;

use crate::arguments::Arguments;
use crate::data::Data;
use crate::train::{Scores, train};

/// An error that stops the program, shown to its user.
type Failure = Box<dyn Error + Send + Sync>;

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    run(&arguments, &mut |line| println!("{line}"))?;
    Ok(())
}

/// Trains, prints each epoch's scores, and writes the results.
fn run(arguments: &Arguments, print: &mut dyn FnMut(&str)) -> Result<Scores, Failure> {
    tch::set_num_threads(arguments.threads);
    let device = arguments.device.find()?;
    let data = Data::open(arguments, device)?;
    print(&data.describe());
    let (model, scores) = train(&data, arguments, print)?;
    report::write(&arguments.out, &scores, &picture::tensor(&data, &model)?)?;
    print(&format!("wrote {}", arguments.out.join("segments.png").display()));
    Ok(scores)
}
