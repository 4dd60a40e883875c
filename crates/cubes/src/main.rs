//! The `cubes` program: commands on image cubes.

use std::process::ExitCode;

fn main() -> ExitCode {
    cubes::run(std::env::args_os())
}
