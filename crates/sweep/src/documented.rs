//! Checks that the program accepts the commands in README.md and docs/.
//!
//! A command that no longer parses means that the page is out of date.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser as _};

use crate::cli::{Cli, Command};
use crate::grid::Config;

#[path = "../tests/sweep/markdown.rs"]
mod markdown;

/// Commands that `cargo xtask` does not forward to this program.
const OF_XTASK: [&str; 20] = [
    "ci",
    "fuzz",
    "gpu-bundle",
    "gpu-check",
    "instructions",
    "native",
    "package",
    "platforms",
    "pytest",
    "python",
    "release-check",
    "scvi",
    "site",
    "test",
    "test-ecosystem",
    "test-launchers",
    "test-wheel",
    "tidy",
    "versions",
    "wheel",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns name and text of README.md and of each page in docs/.
fn pages() -> Vec<(String, String)> {
    let docs = fs::read_dir(root().join("docs")).unwrap();
    let mut paths: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.push(root().join("README.md"));
    paths.sort();
    let named = |path: &PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap())
    };
    paths.iter().map(named).collect()
}

/// Fails with the reason why a command in a shell block cannot be run.
fn check_command(words: &[&str]) -> Result<(), String> {
    match words {
        ["cargo", "xtask", name, rest @ ..] if OF_XTASK.contains(name) => {
            if rest.is_empty() {
                Ok(())
            } else {
                Err(format!("{name} is given {rest:?}"))
            }
        }
        // Crates `fields`, `cubes` and `sequence-bench` check the commands of their programs.
        ["cargo", "xtask", "fields" | "cubes" | "preprocess" | "sequences", ..]
        | ["somafeed", "fields" | "cubes" | "sequences", ..] => Ok(()),
        ["cargo", "xtask", arguments @ ..] | ["somafeed", arguments @ ..] => {
            check_arguments(arguments)
        }
        ["cargo", "run", "--release", "-p", package, "--example", name, "--", ..] => {
            // A crate that is published is named after its folder.
            let folder = package.strip_prefix("somafeed-").unwrap_or(package);
            let examples = root().join("crates").join(folder).join("examples");
            let is_there = examples.join(format!("{name}.rs")).is_file()
                || examples.join(name).join("main.rs").is_file();
            if is_there { Ok(()) } else { Err(format!("{package} has no example {name}")) }
        }
        _ => Err("nothing here knows how to check it".to_owned()),
    }
}

fn check_arguments(arguments: &[&str]) -> Result<(), String> {
    let all = ["sweep"].iter().chain(arguments);
    let parsed = Cli::try_parse_from(all).map_err(|error| error.to_string())?;
    match parsed.command {
        Command::Sweep(args) => {
            Config::resolve(&args).map(drop).map_err(|error| format!("{error:#}"))
        }
        Command::Ranks(args) => args.resolve().map(drop).map_err(|error| format!("{error:#}")),
        // `growth` passes these on to `sweep`.
        Command::Growth(args) => {
            let sweep: Vec<&str> = args.sweep.iter().map(String::as_str).collect();
            check_arguments(&[&["sweep"][..], &sweep].concat())
        }
        _ => Ok(()),
    }
}

/// Fails if a command within a sentence names an unknown command or flag.
///
/// The command may be incomplete.
fn check_mention(words: &[&str]) -> Result<(), String> {
    let [name, rest @ ..] = words else { return Ok(()) };
    if OF_XTASK.contains(name) || ["fields", "cubes", "preprocess", "sequences"].contains(name) {
        return Ok(());
    }
    let cli = Cli::command();
    let command = cli.find_subcommand(name).ok_or("there is no such command")?;
    for word in rest.iter().take_while(|word| **word != "--") {
        let Some(flag) = word.strip_prefix("--") else { continue };
        let flag = flag.split('=').next().unwrap_or_default();
        let mut known = command.get_arguments().filter_map(clap::Arg::get_long);
        if flag != "help" && !known.any(|known| known == flag) {
            return Err(format!("{name} has no --{flag}"));
        }
    }
    Ok(())
}

/// Returns the text between single backquotes outside of blocks.
fn mentions(text: &str) -> Vec<String> {
    let mut in_block = false;
    let outside = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    });
    let outside = outside.collect::<Vec<_>>().join(" ");
    let spans = outside.split('`').skip(1).step_by(2);
    spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn commands_in_blocks_are_taken_by_the_program() {
    let mut n_checked = 0;
    for (name, text) in pages() {
        let blocks = markdown::blocks(&text).unwrap_or_else(|why| panic!("{name}: {why}"));
        for block in blocks.iter().filter(|block| block.kind.split(' ').next() == Some("sh")) {
            let commands = markdown::commands(block);
            for command in commands.unwrap_or_else(|why| panic!("{name}: {why}")) {
                let words: Vec<&str> = command.words.iter().map(String::as_str).collect();
                check_command(&words)
                    .unwrap_or_else(|why| panic!("{name}: `{}`: {why}", words.join(" ")));
                n_checked += 1;
            }
        }
    }
    assert!(30 < n_checked, "{n_checked} commands were found");
}

#[test]
fn commands_within_sentences_are_there() {
    let mut n_checked = 0;
    for (name, text) in pages() {
        for mention in mentions(&text) {
            let called = ["cargo xtask ", "somafeed "];
            let mut commands = called.iter().filter_map(|called| mention.strip_prefix(called));
            let Some(command) = commands.next() else { continue };
            let words: Vec<&str> = command.split(' ').collect();
            check_mention(&words).unwrap_or_else(|why| panic!("{name}: `{mention}`: {why}"));
            n_checked += 1;
        }
    }
    assert!(10 < n_checked, "{n_checked} mentions were found");
}

#[test]
fn a_stale_command_is_seen() {
    for command in [
        "cargo xtask sweep --uri x --blocks 64x64",
        "cargo xtask sweep --uri x -b 64x64x64",
        "cargo xtask swep",
        "cargo xtask growth --data x -- --blocks 1",
        "cargo xtask tidy --all",
        "cargo run --release -p somafeed-torch-feed --example gone -- x",
        "ls",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        assert!(check_command(&words).is_err(), "{command}");
    }
    assert!(check_mention(&["sweep", "--blocks"]).is_err());
    assert!(check_mention(&["swep"]).is_err());
    assert_eq!(check_mention(&["sweep", "--help"]), Ok(()));
    assert_eq!(mentions("a `b\nc` d\n```sh\n`e`\n```\n`f`"), ["b c", "f"]);
}
