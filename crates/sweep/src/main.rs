//! The `sweep` program, which `cargo xtask sweep` and the other measuring commands start.

use std::process::ExitCode;

fn main() -> ExitCode {
    sweep::run(std::env::args_os())
}
