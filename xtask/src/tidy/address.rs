//! The repository's address: one key that the owner fills in, and the places that wait for it.

use std::fs;

use serde_json::Value;

use crate::cargo;
use crate::git::git;

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
    let mut breaches = Vec::new();
    for file in git(&["ls-files", ":!xtask/src/tidy/address.rs"])?.lines() {
        // What is no text has no address.
        let text = fs::read_to_string(cargo::workspace_root().join(file)).unwrap_or_default();
        let waiting = text.lines().zip(1..).filter(|(line, _)| line.contains(PLACEHOLDER));
        breaches.extend(
            waiting.map(|(_, line)| format!("{file}:{line}: {PLACEHOLDER} is {address} now")),
        );
    }
    Ok(breaches)
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
