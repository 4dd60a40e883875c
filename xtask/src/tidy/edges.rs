//! Allowed dependencies, between our crates and from outside.

use anyhow::Context as _;
use serde_json::Value;

/// Our crates from the bottom up: each may depend on those before it.
const ORDER: [&str; 35] = [
    "worktime",
    "csr",
    "storage",
    "link",
    "shuffle",
    "pipeline",
    "slots",
    "arrays",
    "anndata",
    "hdf5",
    "tiledb",
    "tiledb-native",
    "soma-io",
    "example-data",
    "experiment-copy",
    "doc2vec",
    "relayout",
    "densify",
    "tokens",
    "images",
    "key-values",
    "sequences",
    "bench-report",
    "bench-run",
    "tune",
    "fields",
    "sequence-bench",
    "loader",
    "torch-feed",
    "cubes",
    "somafeed",
    "grid-point",
    "compare",
    "sweep",
    "somafeed-python",
];

/// Crates with fewer dependencies than the order allows: the allowed ones, then those for tests
/// only.
const LIMITED: [(&str, &[&str], &[&str]); 24] = [
    ("worktime", &[], &[]),
    ("csr", &[], &[]),
    ("storage", &[], &[]),
    ("tiledb", &[], &[]),
    ("tiledb-native", &["csr", "storage", "tiledb", "worktime"], &[]),
    (
        "soma-io",
        &["anndata", "csr", "hdf5", "storage", "tiledb", "tiledb-native", "worktime"],
        &["link"],
    ),
    ("shuffle", &[], &[]),
    ("doc2vec", &["shuffle"], &[]),
    ("densify", &["csr"], &[]),
    ("tokens", &["csr", "shuffle", "worktime"], &[]),
    ("pipeline", &["shuffle", "worktime"], &[]),
    ("slots", &[], &[]),
    ("arrays", &["slots", "storage", "pipeline", "shuffle", "worktime"], &[]),
    ("anndata", &["arrays", "csr", "storage", "worktime"], &["hdf5"]),
    ("hdf5", &["storage"], &["anndata", "arrays", "csr"]),
    ("images", &["arrays", "pipeline", "shuffle", "slots", "storage", "worktime"], &[]),
    ("sequences", &["key-values", "pipeline", "shuffle", "storage", "worktime"], &[]),
    ("bench-report", &[], &[]),
    ("bench-run", &["bench-report", "link", "pipeline", "shuffle", "storage"], &[]),
    ("tune", &["bench-report", "bench-run"], &["pipeline", "shuffle"]),
    ("link", &[], &["storage"]),
    ("key-values", &[], &[]),
    (
        "somafeed-python",
        &[
            "arrays",
            "bench-run",
            "cubes",
            "doc2vec",
            "example-data",
            "fields",
            "images",
            "loader",
            "pipeline",
            "sequence-bench",
            "sequences",
            "shuffle",
            "slots",
            "soma-io",
            "storage",
            "sweep",
            "tiledb",
            "tiledb-native",
            "tokens",
            "worktime",
        ],
        &[],
    ),
    ("xtask", &[], &[]),
];

/// Crates that only dev-dependencies may name, from any crate. They know none of ours.
const FOR_TESTS: [&str; 2] = ["fuzz-corpus", "test-storage"];

/// May know every crate.
const FREE: [&str; 2] = ["benches", "kernels"];

/// Crates from outside that only some crates may name, and the crates whose tests may, too.
const PLACES: [(&str, &[&str], &[&str]); 13] = [
    ("tch", &["torch-feed"], &[]),
    ("torch-sys", &["torch-feed"], &[]),
    ("libloading", &["slots", "tiledb", "torch-feed"], &[]),
    ("parquet", &["bench-report"], &[]),
    ("pyo3", &["somafeed-python"], &[]),
    ("object_store", &["storage"], &["tiledb-native"]),
    ("redis", &["key-values"], &["sequences"]),
    ("reqwest", &["storage"], &[]),
    ("rustls", &["key-values", "storage", "test-storage"], &[]),
    ("rustls-native-certs", &["storage"], &[]),
    ("hdf5-reader", &["hdf5"], &[]),
    ("rawzip", &["storage", "test-storage"], &[]),
    ("zarrs", &["arrays", "cubes", "fields"], &["anndata"]),
];

/// Dependencies that `xtask` may have: it must compile quickly, and without native libraries.
const XTASK_DEPENDENCIES: [&str; 2] = ["anyhow", "serde_json"];

/// A dependency as `cargo metadata` lists it.
#[derive(Debug)]
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    for_tests: bool,
}

/// Checks the dependencies and descriptions of all packages.
pub(super) fn check(metadata: &Value) -> anyhow::Result<Vec<String>> {
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .context("`cargo metadata` lists no packages")?;
    let mut breaches = Vec::new();
    for package in packages {
        let name = short(text(package, "name")?);
        if !is_ours(name) {
            breaches.push(format!("{name}: not in the order of the crates (xtask/src/tidy/edges.rs); give it its place"));
        }
        if package
            .get("description")
            .and_then(Value::as_str)
            .is_none_or(|text| text.trim().is_empty())
        {
            breaches.push(format!("{name}: its Cargo.toml has no description"));
        }
        for dependency in
            package.get("dependencies").and_then(Value::as_array).into_iter().flatten()
        {
            let for_tests = dependency.get("kind").and_then(Value::as_str) == Some("dev");
            let edge = Edge { from: name, to: short(text(dependency, "name")?), for_tests };
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

/// The name of a crate's folder, which that of a published package has a prefix before.
fn short(name: &str) -> &str {
    name.strip_prefix("somafeed-").filter(|short| is_ours(short)).unwrap_or(name)
}

fn is_ours(name: &str) -> bool {
    ORDER.contains(&name) || FOR_TESTS.contains(&name) || FREE.contains(&name) || name == "xtask"
}

/// The reason why the edge is not allowed, if so.
fn judge(edge: &Edge<'_>) -> Option<String> {
    if !is_ours(edge.to) {
        return judge_outside(edge);
    }
    // A package that names itself switches its own features on for its tests.
    if edge.from == edge.to && edge.for_tests {
        return None;
    }
    if FOR_TESTS.contains(&edge.from) {
        return Some("it may know no crate of ours".to_owned());
    }
    if FOR_TESTS.contains(&edge.to) {
        return (!edge.for_tests).then(|| "only tests may use it (dev-dependencies)".to_owned());
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
    if edge.from == "xtask" && !edge.for_tests && !XTASK_DEPENDENCIES.contains(&edge.to) {
        return Some(format!("xtask is built from {} alone", XTASK_DEPENDENCIES.join(" and ")));
    }
    let (_, places, in_tests) = PLACES.iter().find(|(name, ..)| *name == edge.to)?;
    let allowed = places.contains(&edge.from) || edge.for_tests && in_tests.contains(&edge.from);
    (!allowed).then(|| format!("only {} may", places.join(" and ")))
}

/// Checks that the table of crates in docs/architecture.md lists ours, complete and in order.
pub(super) fn check_architecture(text: &str) -> Vec<String> {
    let first_cell =
        |line: &str| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned());
    let listed: Vec<String> =
        text.lines().filter_map(first_cell).filter(|name| is_ours(name)).collect();
    let expected: Vec<&str> =
        ORDER.iter().chain(&FOR_TESTS).copied().chain(["xtask", "benches"]).collect();
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
        edge("cubes", "torch-feed", false, None);
        edge("torch-feed", "cubes", true, Some("before it"));
        edge("tune", "grid-point", false, Some("it may know bench-report and bench-run"));
        edge("loader", "shuffle", false, None);
        edge("loader", "torch-feed", false, Some("before it"));
        edge("soma-io", "loader", true, Some("it may know anndata and csr"));
        edge("soma-io", "shuffle", false, Some("it may know anndata and csr"));
        edge("loader", "loader", true, None);
        edge("loader", "loader", false, Some("before it"));
        edge("benches", "sweep", false, None);
        edge("sweep", "benches", true, Some("before it"));
    }

    #[test]
    fn some_crates_stand_alone() {
        edge("shuffle", "soma-io", true, Some("it may know no crate"));
        edge("densify", "csr", false, None);
        edge("densify", "shuffle", false, Some("it may know csr"));
        edge("bench-report", "loader", false, Some("it may know no crate"));
        edge("bench-run", "bench-report", false, None);
        edge(
            "bench-run",
            "soma-io",
            false,
            Some("it may know bench-report and link and pipeline and shuffle and storage"),
        );
        edge("xtask", "sweep", true, Some("it may know no crate"));
        edge("tiledb-native", "tiledb", false, None);
        edge("tiledb", "tiledb-native", true, Some("it may know no crate"));
        edge("tiledb-native", "soma-io", true, Some("it may know csr and storage and"));
        edge("storage", "tiledb-native", true, Some("it may know no crate"));
    }

    #[test]
    fn some_crates_are_for_tests_alone() {
        edge("soma-io", "test-storage", true, None);
        edge("pipeline", "fuzz-corpus", true, None);
        edge("soma-io", "test-storage", false, Some("only tests"));
        edge("benches", "test-storage", false, Some("only tests"));
        edge("test-storage", "soma-io", false, Some("no crate of ours"));
        edge("fuzz-corpus", "test-storage", true, Some("no crate of ours"));
    }

    #[test]
    fn outside_crates_have_their_places() {
        edge("torch-feed", "tch", false, None);
        edge("benches", "tch", true, Some("only torch-feed"));
        edge("soma-io", "libloading", false, Some("only slots and tiledb and torch-feed"));
        edge("sweep", "parquet", false, Some("only bench-report"));
        edge("xtask", "anyhow", false, None);
        edge("xtask", "tempfile", true, None);
        edge("xtask", "clap", false, Some("built from anyhow and serde_json"));
        edge("loader", "rayon", false, None);
        edge("fields", "zarrs", false, None);
        edge("loader", "zarrs", false, Some("only arrays and cubes and fields may"));
        edge("soma-io", "object_store", false, Some("only storage"));
        edge("tiledb-native", "object_store", true, None);
        edge("tiledb-native", "object_store", false, Some("only storage"));
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
        let mut names: Vec<&str> = ORDER.iter().chain(&FOR_TESTS).copied().collect();
        names.extend(["xtask", "benches"]);
        let whole: String = names.iter().map(|name| row(name)).collect();
        assert!(check_architecture(&whole).is_empty());
        assert_eq!(check_architecture(&whole.replace(&row("shuffle"), "")).len(), 1);
        names.swap(0, 1);
        let swapped: String = names.iter().map(|name| row(name)).collect();
        assert_eq!(check_architecture(&swapped).len(), 1);
    }
}
