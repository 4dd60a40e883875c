//! Builds of single packages use what a build of the workspace has compiled.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Feature lists by package. A package that build scripts use, too, may have two.
type Features = BTreeMap<String, BTreeSet<String>>;

#[track_caller]
fn features(edges: &str, selection: &[&str]) -> Features {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args(["tree", "--frozen", "--prefix", "none", "--format", "{p}\t{f}"]);
    let output = command.args(["--edges", edges]).args(selection).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut features = Features::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let line = line.trim_end_matches(" (*)");
        let (package, list) = line.split_once('\t').unwrap_or((line, ""));
        features.entry(package.to_owned()).or_default().insert(list.to_owned());
    }
    features
}

/// Cargo chooses features for the selected packages. If one below Arrow differs, all of Arrow is
/// compiled again: name the feature among the dev-dependencies of soma-io.
#[test]
fn arrow_is_compiled_once_for_the_program_and_its_packages() {
    let arrow = features("normal,build", &["-p", "arrow-cast", "-p", "arrow-select"]);
    assert!(arrow.keys().any(|package| package.starts_with("chrono ")), "{arrow:?}");
    let workspace = features("normal,build,dev", &["--workspace"]);
    // `cargo xtask sweep` and `wheel` leave dev-dependencies out.
    // Packages whose tests need fewer crates, such as torch-feed, have other features.
    let selections = ["sweep", "somafeed-python"]
        .map(|package| (package, "normal,build"))
        .into_iter()
        .chain(["sweep", "somafeed-soma-io"].map(|package| (package, "normal,build,dev")));
    for (package, edges) in selections {
        for (name, lists) in features(edges, &["-p", package]) {
            if arrow.contains_key(&name) {
                let expected = &workspace[&name];
                assert!(lists.is_subset(expected), "{package}: {name} {lists:?}, not {expected:?}");
            }
        }
    }
}
