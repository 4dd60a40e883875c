//! Which crate may depend on which, and on what from outside.

use anyhow::Context as _;
use serde_json::Value;

/// Our crates from the bottom up: each may know those before it.
const ORDER: [&str; 18] = [
    "worktime",
    "tiledb",
    "tiledb-native",
    "soma-io",
    "example-data",
    "experiment-copy",
    "shuffle",
    "relayout",
    "densify",
    "pipeline",
    "loader",
    "torch-feed",
    "bench-report",
    "bench-run",
    "grid-point",
    "tune",
    "compare",
    "sweep",
];

/// Crates that know few of ours, whatever stands before them: those that they know, then those that only their tests use.
const LIMITED: [(&str, &[&str], &[&str]); 9] = [
    ("worktime", &[], &[]),
    ("tiledb", &[], &[]),
    ("tiledb-native", &["worktime"], &["tiledb"]),
    ("shuffle", &[], &[]),
    ("densify", &[], &[]),
    ("pipeline", &["shuffle", "worktime"], &[]),
    ("bench-report", &[], &[]),
    ("bench-run", &["bench-report"], &[]),
    ("xtask", &[], &[]),
];

/// May know every crate.
const FREE: [&str; 1] = ["benches"];

/// Crates from outside that have one place.
const PLACES: [(&str, &str); 4] = [
    ("tch", "torch-feed"),
    ("torch-sys", "torch-feed"),
    ("libloading", "tiledb"),
    ("parquet", "bench-report"),
];

/// What `xtask` may be built from: it must compile quickly, and without native libraries.
const OF_XTASK: [&str; 2] = ["anyhow", "serde_json"];

/// A dependency as `cargo metadata` lists it.
#[derive(Debug)]
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    for_tests: bool,
}

/// The breaches in all packages.
pub(super) fn check(metadata: &Value) -> anyhow::Result<Vec<String>> {
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .context("`cargo metadata` lists no packages")?;
    let mut breaches = Vec::new();
    for package in packages {
        let name = text(package, "name")?;
        if !is_ours(name) {
            breaches.push(format!("{name}: not in the order of the crates (xtask/src/tidy/edges.rs); give it its place"));
        }
        if package
            .get("description")
            .and_then(Value::as_str)
            .is_none_or(|said| said.trim().is_empty())
        {
            breaches.push(format!("{name}: its Cargo.toml has no description"));
        }
        for dependency in
            package.get("dependencies").and_then(Value::as_array).into_iter().flatten()
        {
            let for_tests = dependency.get("kind").and_then(Value::as_str) == Some("dev");
            let edge = Edge { from: name, to: text(dependency, "name")?, for_tests };
            breaches.extend(
                judge(&edge).map(|why| format!("{name}: depends on {}, but {why}", edge.to)),
            );
        }
    }
    Ok(breaches)
}

fn text<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a str> {
    value
        .get(key)
        .and_then(Value::as_str)
        .with_context(|| format!("`cargo metadata` has an entry without {key}"))
}

fn is_ours(name: &str) -> bool {
    ORDER.contains(&name) || FREE.contains(&name) || name == "xtask"
}

/// Why the edge may not be.
fn judge(edge: &Edge<'_>) -> Option<String> {
    if !is_ours(edge.to) {
        return judge_outside(edge);
    }
    if let Some((_, known, in_tests)) = LIMITED.iter().find(|(name, ..)| *name == edge.from) {
        let allowed = known.contains(&edge.to) || edge.for_tests && in_tests.contains(&edge.to);
        let known = if known.is_empty() { "no crate".to_owned() } else { known.join(" and ") };
        return (!allowed).then(|| format!("it may know {known} of ours"));
    }
    if FREE.contains(&edge.from) {
        return None;
    }
    let place = |name: &str| ORDER.iter().position(|one| *one == name);
    match (place(edge.from), place(edge.to)) {
        (Some(from), Some(to)) if to < from => None,
        _ => Some("a crate knows only those before it in the order".to_owned()),
    }
}

fn judge_outside(edge: &Edge<'_>) -> Option<String> {
    if edge.from == "xtask" && !edge.for_tests && !OF_XTASK.contains(&edge.to) {
        return Some(format!("xtask is built from {} alone", OF_XTASK.join(" and ")));
    }
    let (_, place) = PLACES.iter().find(|(name, _)| *name == edge.to)?;
    (*place != edge.from).then(|| format!("only {place} may"))
}

/// The table of crates in docs/architecture.md lists ours, all and in order.
pub(super) fn check_architecture(text: &str) -> Vec<String> {
    let first_cell =
        |line: &str| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned());
    let listed: Vec<String> =
        text.lines().filter_map(first_cell).filter(|name| is_ours(name)).collect();
    let expected: Vec<&str> = ORDER.iter().copied().chain(["xtask", "benches"]).collect();
    if listed == expected {
        return Vec::new();
    }
    vec![format!(
        "docs/architecture.md: its table lists {}, the crates are {}",
        listed.join(", "),
        expected.join(", ")
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn edge(from: &str, to: &str, for_tests: bool, expect: Option<&str>) {
        let why = judge(&Edge { from, to, for_tests });
        assert_eq!(why.is_some(), expect.is_some(), "{from} to {to}: {why:?}");
        assert!(why.unwrap_or_default().contains(expect.unwrap_or_default()));
    }

    #[test]
    fn edges_point_to_crates_before() {
        edge("soma-io", "tiledb", false, None);
        edge("sweep", "bench-report", false, None);
        edge("compare", "grid-point", false, None);
        edge("tune", "compare", false, Some("before it"));
        edge("loader", "shuffle", false, None);
        edge("loader", "torch-feed", false, Some("before it"));
        edge("soma-io", "loader", true, Some("before it"));
        edge("loader", "loader", true, Some("before it"));
        edge("benches", "sweep", false, None);
        edge("sweep", "benches", true, Some("before it"));
    }

    #[test]
    fn some_crates_stand_alone() {
        edge("shuffle", "soma-io", true, Some("it may know no crate"));
        edge("densify", "shuffle", false, Some("it may know no crate"));
        edge("bench-report", "loader", false, Some("it may know no crate"));
        edge("bench-run", "bench-report", false, None);
        edge("bench-run", "soma-io", false, Some("it may know bench-report"));
        edge("xtask", "sweep", true, Some("it may know no crate"));
        edge("tiledb-native", "tiledb", true, None);
        edge("tiledb-native", "tiledb", false, Some("it may know worktime"));
    }

    #[test]
    fn outside_crates_have_their_places() {
        edge("torch-feed", "tch", false, None);
        edge("benches", "tch", true, Some("only torch-feed"));
        edge("soma-io", "libloading", false, Some("only tiledb"));
        edge("sweep", "parquet", false, Some("only bench-report"));
        edge("xtask", "anyhow", false, None);
        edge("xtask", "tempfile", true, None);
        edge("xtask", "clap", false, Some("built from anyhow and serde_json"));
        edge("loader", "rayon", false, None);
    }

    #[test]
    fn packages_without_a_place_or_description_are_named() {
        let metadata = json!({ "packages": [
            { "name": "shuffle", "description": "Plans", "dependencies": [{ "name": "tch", "kind": null }] },
            { "name": "newcomer", "description": " ", "dependencies": [] },
        ] });
        let breaches = check(&metadata).unwrap();
        assert_eq!(breaches.len(), 3, "{breaches:?}");
        assert!(breaches[0].starts_with("shuffle: depends on tch, but only torch-feed may"));
        assert!(breaches[1].contains("newcomer: not in the order"));
        assert!(breaches[2].contains("newcomer: its Cargo.toml has no description"));
        assert!(check(&json!({})).is_err());
    }

    #[test]
    fn the_architecture_table_must_list_the_crates() {
        let row = |name: &str| format!("| `{name}` | what | |\n");
        let mut names: Vec<&str> = ORDER.to_vec();
        names.extend(["xtask", "benches"]);
        let whole: String = names.iter().map(|name| row(name)).collect();
        assert!(check_architecture(&whole).is_empty());
        assert_eq!(check_architecture(&whole.replace(&row("shuffle"), "")).len(), 1);
        names.swap(0, 1);
        let swapped: String = names.iter().map(|name| row(name)).collect();
        assert_eq!(check_architecture(&swapped).len(), 1);
    }
}
