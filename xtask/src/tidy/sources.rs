//! Rules for every source file: a module comment, a limited length, a telling name, and `unsafe`
//! only in its places.

use std::path::Path;

use super::code::{code_only, has_word};
use super::source_files::Source;

/// A crate's page in the registry says it, with an example.
const INCLUDED_PAGE: &str = r#"#![doc = include_str!("../README.md")]"#;
const LONGEST_FILE: usize = 700;

/// Names that do not describe a file's content.
const EMPTY_NAMES: [&str; 8] =
    ["mod", "utils", "util", "helpers", "common", "manager", "types", "misc"];

/// The crate that wraps C, and the places that may have a single file with `unsafe`: for torch's
/// memory, for CUDA's streams and pinned memory, for the processor's own instructions, and for
/// Python's border.
const UNSAFE_CRATE: &str = "crates/tiledb/";
const ONE_UNSAFE_FILE: [&str; 5] = [
    "crates/slots/",
    "crates/torch-feed/src/memory.rs",
    "crates/torch-feed/src/copy_stream.rs",
    "crates/densify/",
    "python/",
];

/// Largest distance in lines from an unsafe block up to the start of its reason.
const REASON_LINES: usize = 12;

/// Checks all Rust files and manifests.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let mut breaches: Vec<String> = sources.iter().flat_map(check_source).collect();
    breaches.extend(check_unsafe_places(sources));
    breaches
}

fn check_source(source: &Source) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut breach =
        |line: usize, what: &str| breaches.push(format!("{}:{line}: {what}", source.path));
    if source.path.ends_with("Cargo.toml") {
        // A package that is its own workspace, like the fuzz targets, cannot inherit lints.
        let is_root = source.text.contains("\n[workspace]\n");
        if !is_root && !source.text.contains("[lints]\nworkspace = true") {
            breach(1, "does not take the workspace's lints");
        }
        return breaches;
    }
    if !source
        .text
        .lines()
        .find(|line| !line.trim().is_empty())
        .is_some_and(|line| line.starts_with("//!") || line == INCLUDED_PAGE)
    {
        breach(1, "does not start with `//!` and what it is for");
    }
    let n_lines = source.text.lines().count();
    if LONGEST_FILE < n_lines {
        breach(n_lines, &format!("has more than {LONGEST_FILE} lines; split it"));
    }
    let stem =
        Path::new(&source.path).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    if EMPTY_NAMES.contains(&&*stem) {
        breach(1, "has a name that says nothing about what is in it");
    }
    for line in unsafe_without_reason(&source.text) {
        breach(line, "`unsafe` without a `// SAFETY:` comment above it");
    }
    breaches
}

/// Numbers (from 1) of lines with unsafe blocks or implementations without a reason just above.
fn unsafe_without_reason(text: &str) -> Vec<usize> {
    let code = code_only(text);
    let lines: Vec<&str> = text.lines().collect();
    let needs_reason = |line: &str| {
        has_word(line, "unsafe")
            && (line.contains("unsafe {")
                || line.contains("unsafe impl")
                || line.trim_end().ends_with("unsafe"))
    };
    let given = |idx: usize| {
        lines[idx.saturating_sub(REASON_LINES)..=idx].iter().any(|line| line.contains("// SAFETY:"))
    };
    code.lines()
        .enumerate()
        .filter(|(idx, line)| needs_reason(line) && !given(*idx))
        .map(|(idx, _)| idx + 1)
        .collect()
}

/// `unsafe` is allowed in one crate, and in one file of each of three others.
fn check_unsafe_places(sources: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut in_one_file = ONE_UNSAFE_FILE.map(|of| (of, Vec::new()));
    for source in
        sources.iter().filter(|source| source.is_rust() && !source.path.starts_with(UNSAFE_CRATE))
    {
        let code = code_only(&source.text);
        // Lifting the lint without using it is a breach, too.
        let lifts = |line: &str| {
            has_word(line, "unsafe_code") && (line.contains("allow") || line.contains("expect"))
        };
        let Some(idx) = code.lines().position(|line| has_word(line, "unsafe") || lifts(line))
        else {
            continue;
        };
        match in_one_file.iter_mut().find(|(of, _)| source.path.starts_with(of)) {
            Some((_, files)) => files.push(source.path.as_str()),
            None => breaches.push(format!(
                "{}:{}: `unsafe` has its place in {UNSAFE_CRATE} and one file in each of {}",
                source.path,
                idx + 1,
                ONE_UNSAFE_FILE.join(", ")
            )),
        }
    }
    // Declaring the module lifts nothing; the lint may be lifted at the declaration or in the file
    // itself.
    for (of, files) in in_one_file.iter().filter(|(_, files)| 1 < files.len()) {
        breaches.push(format!("{of}: `unsafe` in more than one file: {}", files.join(", ")));
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_one(path: &str, text: &str, expect: &[&str]) {
        let source = Source::new(path, text);
        let mut breaches = check_source(&source);
        breaches.extend(check_unsafe_places(&[source]));
        assert_eq!(breaches.len(), expect.len(), "{breaches:?}");
        for (breach, part) in breaches.iter().zip(expect) {
            assert!(breach.starts_with(path) && breach.contains(part), "{breach}");
        }
    }

    #[test]
    fn files_say_what_they_are_for() {
        check_one("crates/shuffle/src/plan.rs", "//! Plans.\nfn f() {}\n", &[]);
        check_one("crates/shuffle/src/plan.rs", "\n//! Plans.\n", &[]);
        check_one("crates/shuffle/src/lib.rs", &format!("{INCLUDED_PAGE}\n"), &[]);
        check_one("crates/shuffle/src/plan.rs", "fn f() {}\n", &["does not start with `//!`"]);
        check_one("crates/shuffle/src/plan.rs", "", &["does not start with `//!`"]);
    }

    #[test]
    fn files_are_short_and_well_named() {
        let long = format!("//! Long.\n{}", "fn f() {}\n".repeat(LONGEST_FILE));
        check_one("crates/shuffle/src/plan.rs", &long, &["more than 700 lines"]);
        check_one("crates/shuffle/src/plan/mod.rs", "//! Plans.\n", &["says nothing"]);
        check_one("crates/shuffle/src/utils.rs", "//! Things.\n", &["says nothing"]);
    }

    #[test]
    fn unsafe_has_its_place() {
        let with_reason = "//! C.\n// SAFETY: the pointer is ours.\nlet x = unsafe { f() };\n";
        check_one("crates/tiledb/src/array.rs", with_reason, &[]);
        check_one("crates/torch-feed/src/memory.rs", with_reason, &[]);
        check_one("crates/torch-feed/src/pool.rs", with_reason, &["`unsafe` has its place"]);
        check_one("crates/tiledb-native/src/tile.rs", with_reason, &["`unsafe` has its place"]);
        check_one(
            "crates/loader/src/lib.rs",
            "//! L.\n#![allow(unsafe_code)]\n",
            &["`unsafe` has its place"],
        );
        check_one("crates/loader/src/lib.rs", "//! No unsafe here.\n", &[]);
        for (second, expect) in [("crates/densify/src/b.rs", 1), ("python/src/b.rs", 0)] {
            let two = [
                Source::new("crates/densify/src/a.rs", with_reason),
                Source::new(second, with_reason),
            ];
            assert_eq!(check_unsafe_places(&two).len(), expect);
        }
    }

    #[test]
    fn unsafe_gives_its_reason() {
        fn check(text: &str, expect: &[usize]) {
            assert_eq!(unsafe_without_reason(text), expect, "{text}");
        }
        check("unsafe { f() }", &[1]);
        check("// SAFETY: fine\nunsafe { f() }", &[]);
        check("// SAFETY: fine\nlet x =\n    unsafe { f() };", &[]);
        check("unsafe impl Send for X {}", &[1]);
        check("pub(crate) unsafe fn f() {}", &[]);
        check("type F = unsafe extern \"C\" fn();", &[]);
        let far = format!("// SAFETY: far\n{}unsafe {{ f() }}", "\n".repeat(19));
        check(&far, &[21]);
    }

    #[test]
    fn manifests_take_the_workspace_lints() {
        check_one("crates/x/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n", &[]);
        check_one("crates/x/Cargo.toml", "[package]\n", &["does not take the workspace's lints"]);
        check_one("crates/x/fuzz/Cargo.toml", "[package]\n\n[workspace]\n", &[]);
    }
}
