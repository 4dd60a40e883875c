//! The manifests of the crates that are published: what a registry shows of them, and their names.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

/// What comes before the name of a crate's folder in the registry. The facade has no folder's name
/// behind it.
const PREFIX: &str = "somafeed";
/// Beside each manifest.
const FILES: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Whether a package of `cargo metadata` may be published.
pub(crate) fn is_published(package: &Value) -> bool {
    package["publish"].is_null()
}

/// A breach for each thing that a published crate lacks, or has too much.
pub(super) fn check(metadata: &Value) -> anyhow::Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("the metadata lists no packages")?;
    let published = packages.iter().filter(|package| is_published(package));
    Ok(published.flat_map(|package| faults(package, packages)).collect())
}

fn faults(package: &Value, all: &[Value]) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let folder = manifest.parent().unwrap_or(manifest);
    let mut faults = Vec::new();
    let of_folder = folder.file_name().unwrap_or_default().to_string_lossy();
    let expected = match of_folder.as_ref() {
        PREFIX => PREFIX.to_owned(),
        folder => format!("{PREFIX}-{folder}"),
    };
    if name != expected {
        faults.push(format!("it is published, so it is named {expected}"));
    }
    for key in ["description", "license", "repository", "rust_version"] {
        if package[key].as_str().unwrap_or_default().is_empty() {
            faults.push(format!("its manifest has no {}", key.replace('_', "-")));
        }
    }
    for key in ["keywords", "categories"] {
        if package[key].as_array().is_none_or(Vec::is_empty) {
            faults.push(format!("its manifest has no {key}"));
        }
    }
    let absent = FILES.iter().filter(|file| !folder.join(file).is_file());
    faults.extend(absent.map(|file| format!("beside its manifest is no {file}")));
    if package["features"].get("fuzz").is_some() {
        faults.push("its feature fuzz is of no use to others".to_owned());
    }
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    for dependency in dependencies.filter(|one| one["kind"] != "dev" && one["path"].is_string()) {
        let on = dependency["name"].as_str().unwrap_or_default();
        let known = all.iter().find(|package| package["name"] == on);
        if !known.is_some_and(is_published) {
            faults.push(format!("it needs {on}, which is not published"));
        } else if dependency["req"] == "*" {
            faults.push(format!("it needs {on} in no version"));
        }
    }
    faults.into_iter().map(|fault| format!("{name}: {fault}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_registry_shows_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let csr = folder.path().join("csr");
        std::fs::create_dir(&csr).unwrap();
        let needs = |name: &str, req: &str| json!({ "name": name, "req": req, "path": "/x" });
        let mut package = json!({
            "name": "somafeed-csr", "publish": null, "manifest_path": csr.join("Cargo.toml"),
            "description": "x", "license": "MIT", "repository": "x", "rust_version": "1.95",
            "keywords": ["x"], "categories": ["x"], "features": {}, "dependencies": [],
        });
        let private = json!({ "name": "link", "publish": [] });
        let found =
            |package: &Value| check(&json!({ "packages": [package, private] })).unwrap().join("; ");
        assert_eq!(found(&package).matches("beside its manifest").count(), FILES.len());
        for file in FILES {
            std::fs::write(csr.join(file), "").unwrap();
        }
        assert_eq!(found(&package), "");
        package["name"] = json!("csr");
        package["keywords"] = json!([]);
        package["features"] = json!({ "fuzz": [] });
        package["dependencies"] = json!([needs("link", "^1"), needs("csr", "*")]);
        let faults = found(&package);
        for part in
            ["named somafeed-csr", "no keywords", "fuzz", "link, which", "csr in no version"]
        {
            assert!(faults.contains(part), "{part}: {faults}");
        }
        package["publish"] = json!([]);
        assert_eq!(found(&package), "");
    }
}
