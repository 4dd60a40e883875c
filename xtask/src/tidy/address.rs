//! The repository's address: one key that the owner fills in, and the places that wait for it.

use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

use crate::cargo;

/// What stands where the address will.
const PLACEHOLDER: &str = "REPOSITORY-ADDRESS";
/// The key in `Cargo.toml`, below `[workspace.metadata]`.
const KEY: &str = "repository";

/// Once the address is known, a breach for each line that still waits for it.
pub(super) fn check(metadata: &Value) -> anyhow::Result<Vec<String>> {
    let address = metadata["metadata"][KEY].as_str().unwrap_or_default();
    if address.is_empty() {
        return Ok(Vec::new());
    }
    let waiting = waiting()?.into_iter();
    Ok(waiting.map(|place| format!("{place}: {PLACEHOLDER} is {address} now")).collect())
}

/// The lines that wait, as `file:line`.
fn waiting() -> anyhow::Result<Vec<String>> {
    let mut command = Command::new("git");
    command.current_dir(cargo::workspace_root());
    command.args(["grep", "-n", PLACEHOLDER, "--", ".", ":!xtask/src/tidy/address.rs"]);
    let output = command.output().context("cannot run git, which finds the places")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let place = |line: &str| line.splitn(3, ':').take(2).collect::<Vec<_>>().join(":");
    Ok(text.lines().map(place).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_place_is_named_once_the_address_is_known() {
        let unknown = json!({ "metadata": { "repository": "" } });
        assert!(check(&unknown).unwrap().is_empty());
        let known = json!({ "metadata": { "repository": "https://example.org/somafeed" } });
        let breaches = check(&known).unwrap();
        for file in ["SECURITY.md", "CITATION.cff", ".github/ISSUE_TEMPLATE/config.yml"] {
            assert!(breaches.iter().any(|breach| breach.starts_with(file)), "{breaches:?}");
        }
    }
}
