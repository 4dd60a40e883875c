//! The flags that have the same name and letter in every program, and the commands in the pages.

use std::path::Path;
use std::{fs, io};

use clap::Command;

/// Names of flags, each with its letter.
const WORDS: [(&str, char); 6] = [
    ("batch", 'B'),
    ("epochs", 'E'),
    ("quiet", 'q'),
    ("results", 'd'),
    ("threads", 't'),
    ("workers", 'w'),
];

/// Earlier names of flags, which stay as hidden aliases.
const EARLIER: [&str; 5] = ["batch-size", "num-epochs", "out", "output", "rng-seed"];

/// Says which flags of a program's commands have another name or letter than in other programs.
/// For tests.
#[doc(hidden)]
pub fn unlike_words(program: &Command) -> Vec<String> {
    let mut found = Vec::new();
    for command in program.get_subcommands() {
        for flag in command.get_arguments() {
            let Some(name) = flag.get_long() else { continue };
            let letter = WORDS.iter().find(|(word, _)| *word == name).map(|(_, letter)| *letter);
            if EARLIER.contains(&name) || (letter.is_some() && flag.get_short() != letter) {
                found.push(format!("{} --{name}", command.get_name()));
            }
        }
    }
    found
}

/// The commands of a program in the pages of `docs/` and in `README.md`, in words after `cargo
/// xtask` or `somafeed`; those that `cargo xtask` adds for `peers` included. `manifest_dir` is the
/// folder of a crate. For tests.
///
/// # Errors
/// A page cannot be read.
#[doc(hidden)]
pub fn documented_commands(manifest_dir: &str, program: &str) -> io::Result<Vec<Vec<String>>> {
    let root = Path::new(manifest_dir).join("../..");
    let mut pages = vec![root.join("README.md")];
    for page in fs::read_dir(root.join("docs"))? {
        pages.push(page?.path());
    }
    let mut found = Vec::new();
    for page in pages.iter().filter(|page| page.is_file()) {
        let text = fs::read_to_string(page)?;
        let called = |line| {
            ["cargo xtask ", "somafeed "].into_iter().find_map(|by| str::strip_prefix(line, by))
        };
        for command in text.lines().filter_map(called) {
            let words = command.split('#').next().unwrap_or_default().split_whitespace();
            let mut words: Vec<String> = words.map(str::to_owned).collect();
            if words.first().is_none_or(|first| first != program) {
                continue;
            }
            if words.get(1).is_some_and(|name| name == "peers") {
                words.extend(["--python", "p", "--script", "s"].map(str::to_owned));
            }
            found.push(words);
        }
    }
    Ok(found)
}
