//! `cargo xtask tidy`: the project's rules that the compiler and clippy cannot check.
//! docs/architecture.md gives their reasons.

mod address;
mod claims;
mod code;
mod comments;
mod dependencies;
mod edges;
mod links;
mod published;
mod source_files;
mod sources;
mod surroundings;

use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::cargo;
use crate::native::Native;
use crate::progress::print_line;

pub(crate) use published::is_published;

/// Prints every breach as `where: what`, and fails if there is one.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let root = cargo::workspace_root();
    let metadata = cargo::metadata(&Native::default())?;
    let mut breaches = edges::check(&metadata)?;
    breaches.extend(address::check(&metadata)?);
    breaches.extend(published::check(&metadata)?);
    let architecture = root.join("docs/architecture.md");
    let text = std::fs::read_to_string(&architecture)
        .with_context(|| format!("cannot read {}", architecture.display()))?;
    breaches.extend(edges::check_architecture(&text));
    let sources = source_files::read_all(&root)?;
    breaches.extend(sources::check(&sources));
    breaches.extend(comments::check(&sources));
    breaches.extend(surroundings::check(&sources));
    breaches.extend(dependencies::check()?);
    breaches.extend(links::check(&root)?);
    breaches.extend(claims::check(&root)?);
    if breaches.is_empty() {
        print_line("tidy: no breaches");
        return Ok(ExitCode::SUCCESS);
    }
    for breach in &breaches {
        print_line(&format!("tidy: {breach}"));
    }
    bail!("tidy: {} breaches of the rules", breaches.len())
}
