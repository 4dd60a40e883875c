//! The `cubes` program: commands on image cubes.
//!
//! - `generate` writes a data set of cubes from a seed, as a library ([`generate::generate`]) and
//!   as a command (`generate_command`);
//! - `preprocess` writes cubes of Tivita's files in other forms, as a library
//!   ([`preprocess::preprocess`]) and as a command (`preprocess_command`);
//! - `sweep` measures feeding cubes to a device ([htc's benchmark], `sweep_command`), each point in
//!   a process of its own (`bench`), and draws htc's figures (`figures`). With the feature `torch`,
//!   which is off by default, the device may be a training on a GPU or on the processor;
//! - `tune` proposes settings for an amount of memory and a randomness of batches (`tune_command`).
//!
//! [htc's benchmark]: https://github.com/IMSY-DKFZ/htc
//!
//! ```
//! use cubes::generate::{CubeSpec, GenerateSpec, generate};
//! use cubes::preprocess::{PreprocessSpec, preprocess};
//! use cubes::{Form, FormSpec};
//!
//! let folder = tempfile::tempdir()?;
//! let data = folder.path().join("data");
//! let forms = |forms: &[Form]| FormSpec { forms: forms.to_vec(), ..FormSpec::default() };
//! let spec = GenerateSpec {
//!     cubes: CubeSpec { n_images: 3, shape: [12, 16, 10], ..CubeSpec::default() },
//!     forms: forms(&[Form::Dat]),
//!     ..GenerateSpec::default()
//! };
//! generate(&data, &spec, &mut |n_images| assert!(n_images <= 3))?;
//! let spec = PreprocessSpec { forms: forms(&[Form::Raw16]), ..PreprocessSpec::default() };
//! let report = preprocess(&data, &spec, &mut |_| {}, &mut |_| {})?;
//! assert_eq!(report.n_written, 3);
//! assert!(data.join("raw16/P001_000001.blosc").is_file());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bench;
mod checksums;
mod cli;
mod curves;
mod device;
mod figures;
mod form_flags;
mod form_folder;
mod forms;
pub mod generate;
mod generate_command;
mod image_list;
mod normalization;
mod peers_command;
mod precision;
pub mod preprocess;
mod preprocess_command;
mod published;
mod sampler;
mod segmentation;
mod statistics;
mod summary;
mod sweep_command;
mod sweep_report;
mod tune_command;
mod zarr_store;

use std::ffi::OsString;
use std::process::ExitCode;

use bench_run::run_program;

pub use bench_run::DataError as Error;
use cli::{Cli, Command};
pub use forms::FormSpec;
pub use images::Form;
pub use normalization::Normalization;
pub use precision::Precision;
pub use zarr_store::ZarrCodec;

/// Runs the program on a command line ([`run_program`]).
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    run_program(arguments, |cli: Cli, arguments| match cli.command {
        Command::Generate(args) => generate_command::run(&args),
        Command::Preprocess(args) => preprocess_command::run(&args),
        Command::Sweep(args) => sweep_command::run(&args, arguments),
        Command::Tune(args) => tune_command::run(&args, arguments),
        Command::Peers(args) => peers_command::run(&args, arguments),
        Command::Point => bench::serve().map(|()| ExitCode::SUCCESS),
    })
}
