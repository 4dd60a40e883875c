//! The number of crates that a build compiles: what makes a first build long, whatever the machine.

use crate::cargo;
use crate::native::Native;

/// What is built, cargo's arguments for it, and how many crates that compiles, ours among them. A
/// change that needs more raises the number here, and says why in its message.
const MOST: [(&str, &[&str], usize); 4] = [
    ("the first `cargo xtask sweep`", &["-p=sweep", "--no-default-features", "-F=torch"], 289),
    ("sweep with all features", &["-p=sweep"], 391),
    ("somafeed with its default features", &["-p=somafeed"], 156),
    ("the wheel", &["-p=somafeed-python"], 389),
];

const PLACE: &str = "xtask/src/tidy/dependencies.rs";

/// Counts the crates, and compares them with [`MOST`].
pub(super) fn check() -> anyhow::Result<Vec<String>> {
    let mut breaches = Vec::new();
    for (what, arguments, most) in MOST {
        let found = n_crates(arguments)?;
        if most < found {
            breaches.push(format!(
                "{PLACE}: {what} compiles {found} crates, {most} before: leave the new ones out, or \
                 raise the number and say why"
            ));
        } else if found < most {
            breaches.push(format!(
                "{PLACE}: {what} compiles {found} crates, no longer {most}: write that down"
            ));
        }
    }
    // What a fresh clone takes by `cargo test`, which has no libtorch.
    let packages = packages("normal,build,dev", &[])?;
    if packages.iter().any(|package| package.starts_with("torch-sys ")) {
        breaches.push(
            "Cargo.toml: the tests of a default member link libtorch, which a fresh clone lacks: \
             take it out of `default-members`"
                .to_owned(),
        );
    }
    Ok(breaches)
}

/// The packages in cargo's tree, those of build scripts too.
fn n_crates(arguments: &[&str]) -> anyhow::Result<usize> {
    Ok(packages("normal,build", arguments)?.len())
}

/// The packages in cargo's tree with these edges, each once.
fn packages(edges: &str, arguments: &[&str]) -> anyhow::Result<Vec<String>> {
    // The tree of one system, so that the number is the same on all.
    let edges = format!("--edges={edges}");
    let tree = ["tree", &edges, "--prefix=none", "--target=x86_64-unknown-linux-gnu"];
    let text = cargo::output([&tree, arguments].concat(), &Native::default())?;
    // A package that came before ends with a star.
    let mut packages: Vec<String> = text
        .lines()
        .map(|line| line.trim_end_matches(" (*)").to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    packages.sort_unstable();
    packages.dedup();
    Ok(packages)
}
