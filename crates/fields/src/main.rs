//! The `fields` program: commands on weather-like data in Zarr arrays.

use std::process::ExitCode;

fn main() -> ExitCode {
    fields::run(std::env::args_os())
}
