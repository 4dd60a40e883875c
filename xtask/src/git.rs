//! What git knows of the workspace.

use std::process::Command;

use anyhow::{Context as _, bail};

use crate::cargo;

/// The output of `git <arguments>` in the workspace's folder. Fails if git does.
pub(crate) fn git(arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    let output = command.current_dir(cargo::workspace_root()).args(arguments).output();
    let output = output.context("cannot run git, which knows the files of the workspace")?;
    if !output.status.success() {
        let name = arguments.first().copied().unwrap_or_default();
        bail!("`git {name}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("git's answer is not UTF-8")
}
