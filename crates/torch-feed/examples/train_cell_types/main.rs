//! Logistic regression on cell types, after the Census's PyTorch tutorial: the same cells in three
//! orders, and the effect of the order on the loss and the result.
//!
//! ```text
//! cargo xtask generate my-experiment
//! cargo run --release -p somafeed-torch-feed --example train_cell_types -- my-experiment
//! ```
//!
//! It prints macro-F1 on held-out cells for each order, and writes `loss.svg` and `losses.csv`.
//! With `--checkpoint FOLDER` it can be stopped at any moment and continues with `--resume`, to the
//! same losses bit for bit on the same machine. `--help` lists all options. The same program runs
//! on a GPU (`--device cuda:0`).

mod arguments;
mod checkpoint;
mod data;
mod picture;
mod report;
mod run;
mod score;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::ops::ControlFlow;

use clap::Parser as _;

use crate::arguments::Arguments;
use crate::data::Labeled;
use crate::report::Finished;
use crate::run::Run;

/// An error that stops the program, shown to its user.
type Failure = Box<dyn Error + Send + Sync>;

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    tch::set_num_threads(arguments.threads);
    let finished = train_all(&arguments, &mut |line| println!("{line}"))?;
    println!("\n{}", report::table(&finished));
    report::write(&arguments.out, &finished)?;
    println!("wrote {}", arguments.out.join("loss.svg").display());
    Ok(())
}

/// Trains with each order and seed, and prints each result.
fn train_all(arguments: &Arguments, print: &mut dyn FnMut(&str)) -> Result<Vec<Finished>, Failure> {
    let device = arguments.device.find()?;
    let data = Labeled::open(arguments)?;
    print(&data.describe());
    let mut finished = Vec::new();
    for &order in &arguments.orders {
        for &seed in &arguments.seeds {
            let run = Run { data: &data, arguments, order, seed, device };
            let outcome = run.train(&mut |_| ControlFlow::Continue(()))?;
            let outcome = outcome.ok_or("a run that nobody stopped ended early")?;
            print(&outcome.describe(order, seed));
            finished.push(Finished { order, seed, outcome });
        }
    }
    Ok(finished)
}
