//! The `sequences` program: commands on DNA, RNA and other sequences.

use std::process::ExitCode;

fn main() -> ExitCode {
    sequence_bench::run(std::env::args_os())
}
