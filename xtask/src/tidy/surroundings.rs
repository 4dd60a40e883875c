//! The clock and the environment are read only where that is the code's job.

use super::code::code_only;
use super::source_files::Source;

/// Calls that read the clock. `worktime` has its own.
const CLOCK: Surroundings = Surroundings {
    name: "clock",
    calls: &["Instant::now", "SystemTime::now"],
    places: &[
        // Measurements, and programs that print durations.
        "crates/bench-run/",
        "crates/compare/",
        "crates/cubes/src/bench/floors.rs",
        "crates/cubes/src/device/clock.rs",
        "crates/fields/src/bench/measure.rs",
        "crates/grid-point/",
        "xtask/",
        // The rates of a link.
        "crates/link/src/pace.rs",
        // How long a server may take, and the speed of a fill.
        "crates/key-values/src/clock.rs",
        // Durations of a run, in its report.
        "crates/cubes/src/generate.rs",
        "crates/cubes/src/preprocess.rs",
        "crates/example-data/src/generate.rs",
        "crates/example-data/src/tenx.rs",
        "crates/experiment-copy/src/slice.rs",
        "crates/fields/src/generate.rs",
        "crates/fields/src/relayout.rs",
        "crates/relayout/src/rewrite.rs",
        "crates/sequence-bench/src/bench/epochs.rs",
        "crates/sequence-bench/src/fill_command.rs",
        "crates/sequence-bench/src/generate.rs",
        "crates/sequence-bench/src/import_command.rs",
        "crates/sequence-bench/src/train_command.rs",
        "crates/sequence-bench/src/words_command.rs",
        // The speed of codecs and layouts.
        "crates/relayout/src/speed.rs",
        // TileDB's timestamps.
        "crates/soma-io/src/writer/store.rs",
        "crates/tiledb-native/src/write/new_file.rs",
        // The age of files in a cache; the rate of reads; how late answers come.
        "crates/storage/src/cache/store.rs",
        "crates/storage/src/limited/clock.rs",
        "crates/storage/src/object/clock.rs",
    ],
};

/// Calls that read environment variables.
const ENVIRONMENT: Surroundings = Surroundings {
    name: "environment",
    calls: &["env::var"],
    places: &[
        // The user's folders.
        "crates/bench-run/src/run_info.rs",
        "crates/grid-point/src/data/example.rs",
        "xtask/",
        // Proxies that do not reach a link's server.
        "crates/bench-run/src/over_link/proxies.rs",
        // The launcher's part of a grid, rank and world size.
        "crates/bench-run/src/shard.rs",
        "crates/pipeline/src/world.rs",
        // Region, endpoint and credentials of an object store.
        "crates/storage/src/environment.rs",
        // The place of libtiledb.
        "crates/tiledb/src/libtiledb/load.rs",
    ],
};

/// State outside of the program, the calls that read it, and the places that may.
#[derive(Debug)]
struct Surroundings {
    name: &'static str,
    calls: &'static [&'static str],
    /// Folders and files, relative to the workspace.
    places: &'static [&'static str],
}

/// Checks all code except tests, examples, benches and build scripts.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    [CLOCK, ENVIRONMENT].iter().flat_map(|surroundings| surroundings.check(sources)).collect()
}

impl Surroundings {
    fn check(&self, sources: &[Source]) -> Vec<String> {
        let mut breaches = Vec::new();
        let mut is_used = vec![false; self.places.len()];
        for source in
            sources.iter().filter(|source| source.is_rust() && !is_for_tests(&source.path))
        {
            let place = self.places.iter().position(|place| source.path.starts_with(place));
            match (self.lines(&source.text), place) {
                (lines, Some(place)) => is_used[place] |= !lines.is_empty(),
                (lines, None) => breaches.extend(lines.into_iter().map(|line| {
                    let Self { name, .. } = self;
                    format!("{}:{line}: reads the {name}, which is not its job", source.path)
                })),
            }
        }
        let unused = self.places.iter().zip(is_used).filter(|(_, is_used)| !is_used);
        breaches.extend(unused.map(|(place, _)| {
            format!(
                "xtask/src/tidy/surroundings.rs: {place} does not read the {}; remove it",
                self.name
            )
        }));
        breaches
    }

    /// Numbers, from 1, of the lines that call one of `calls` before the file's own tests.
    fn lines(&self, text: &str) -> Vec<usize> {
        let code = code_only(text);
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let reads = |line: &str| self.calls.iter().any(|call| line.contains(call));
        let lines = code.lines().enumerate().filter(|(_, line)| reads(line));
        lines.map(|(idx, _)| idx + 1).collect()
    }
}

fn is_for_tests(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    let file = parts.next().unwrap_or_default();
    ["build.rs", "tests.rs"].contains(&file)
        || parts.any(|folder| ["benches", "examples", "tests"].contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    const READS_CLOCK: &str = "//! Code.\nlet start = Instant::now();\n";

    fn breaches(surroundings: &Surroundings, path: &str, text: &str) -> Vec<String> {
        let all = surroundings.check(&[Source::new(path, text)]);
        all.into_iter().filter(|breach| breach.starts_with(path)).collect()
    }

    #[test]
    fn the_clock_is_read_in_its_places() {
        let found = breaches(&CLOCK, "crates/shuffle/src/plan.rs", READS_CLOCK);
        assert_eq!(found, ["crates/shuffle/src/plan.rs:2: reads the clock, which is not its job"]);
        for path in
            [CLOCK.places[0], "crates/shuffle/tests/plans.rs", "crates/shuffle/src/tests.rs"]
        {
            let path =
                if path.ends_with('/') { format!("{path}src/lib.rs") } else { path.to_owned() };
            assert!(breaches(&CLOCK, &path, READS_CLOCK).is_empty(), "{path}");
        }
        let in_tests = format!("//! Code.\n#[cfg(test)]\nmod tests {{\n{READS_CLOCK}}}\n");
        assert!(breaches(&CLOCK, "crates/shuffle/src/plan.rs", &in_tests).is_empty());
        assert!(breaches(&CLOCK, "crates/shuffle/src/plan.rs", "// Instant::now\n").is_empty());
    }

    #[test]
    fn the_environment_is_read_in_its_places() {
        for call in ["std::env::var(NAME)", "env::var_os(NAME)", "env::vars()"] {
            let found = breaches(&ENVIRONMENT, "crates/loader/src/lib.rs", &format!("{call};\n"));
            assert_eq!(found.len(), 1, "{call}");
        }
        let compiled_in = "env!(\"CARGO_MANIFEST_DIR\");\nenv::args();\n";
        assert!(breaches(&ENVIRONMENT, "crates/loader/src/lib.rs", compiled_in).is_empty());
    }

    #[test]
    fn a_place_that_reads_nothing_is_a_breach() {
        let path = format!("{}src/lib.rs", ENVIRONMENT.places[0]);
        let used = [Source::new(path, "env::var(NAME);\n")];
        assert_eq!(ENVIRONMENT.check(&[]).len(), ENVIRONMENT.places.len());
        assert_eq!(ENVIRONMENT.check(&used).len(), ENVIRONMENT.places.len() - 1);
    }
}
