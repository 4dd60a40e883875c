//! The `sweep` program, which `cargo xtask sweep`, `generate` and `import` start.

use std::process::ExitCode;

fn main() -> ExitCode {
    sweep::run(std::env::args_os())
}
