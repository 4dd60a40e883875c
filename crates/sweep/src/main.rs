//! The `sweep` program, which `cargo xtask sweep`, `generate`, `import`, `relayout` and
//! `bench-readers` start.

use std::process::ExitCode;

fn main() -> ExitCode {
    sweep::run(std::env::args_os())
}
