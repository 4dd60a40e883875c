//! `cargo xtask tidy`: the rules of the house that compiler and clippy cannot check. docs/architecture.md gives their reasons.

mod code;
mod edges;
mod sources;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::cargo;
use crate::native::Native;
use crate::progress::say;

/// Prints every breach, `where: what`, and fails if there is one.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let root = cargo::workspace_root();
    let mut breaches = edges::check(&metadata()?)?;
    let architecture = root.join("docs/architecture.md");
    let text = std::fs::read_to_string(&architecture)
        .with_context(|| format!("cannot read {}", architecture.display()))?;
    breaches.extend(edges::check_architecture(&text));
    breaches.extend(sources::check(&root)?);
    if breaches.is_empty() {
        say("tidy: nothing to say");
        return Ok(ExitCode::SUCCESS);
    }
    for breach in &breaches {
        say(&format!("tidy: {breach}"));
    }
    bail!("tidy: {} breaches of the house's rules", breaches.len())
}

/// What cargo knows of our packages; it neither builds nor downloads for this.
fn metadata() -> anyhow::Result<Value> {
    let output =
        cargo::cargo(["metadata", "--no-deps", "--format-version", "1"], &Native::default())
            .output()
            .context("cannot run `cargo metadata`")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("cannot read `cargo metadata`")
}
