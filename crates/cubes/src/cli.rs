//! Root of the command line.

use clap::{Parser, Subcommand};

use crate::generate_command::GenerateArgs;
use crate::preprocess_command::PreprocessArgs;

/// Writes image cubes, and measures feeding them to a device.
#[derive(Debug, Parser)]
#[command(name = "cubes", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a data set of image cubes with labels, from a seed
    Generate(GenerateArgs),
    /// Write the cubes of Tivita's files in other forms; does what an earlier run left to do
    Preprocess(PreprocessArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn commands_in_the_pages_are_taken() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let docs = std::fs::read_dir(root.join("docs")).unwrap();
        let pages = docs.map(|page| page.unwrap().path()).filter(|page| page.is_file());
        let mut n_checked = 0;
        for page in pages.chain([root.join("README.md")]) {
            let text = std::fs::read_to_string(&page).unwrap();
            for command in text.lines().filter_map(|line| line.strip_prefix("cargo xtask ")) {
                let words = command.split('#').next().unwrap_or_default().split_whitespace();
                let words: Vec<&str> = match command.split_whitespace().next() {
                    Some("cubes") => words.collect(),
                    Some("preprocess") => ["cubes"].into_iter().chain(words).collect(),
                    _ => continue,
                };
                // `cargo xtask` names the script and its Python.
                let added = ["--python", "p", "--script", "s"];
                let added = if words[1] == "peers" { &added[..] } else { &[] };
                let parsed = Cli::try_parse_from(words.iter().chain(added));
                assert!(parsed.is_ok(), "{}: {command}: {:?}", page.display(), parsed.err());
                n_checked += 1;
            }
        }
        assert!(4 < n_checked, "{n_checked} commands were found");
    }

    #[test]
    fn what_does_not_parse_is_refused() {
        for arguments in [
            &["cubes"][..],
            &["cubes", "unknown"],
            &["cubes", "generate"],
            &["cubes", "generate", "x", "y"],
            &["cubes", "generate", "x", "--size", "480"],
            &["cubes", "generate", "x", "--formats", "npy"],
            &["cubes", "generate", "x", "--formats", ""],
            &["cubes", "generate", "x", "--normalize", "l3"],
            &["cubes", "preprocess"],
            &["cubes", "preprocess", "x"],
            &["cubes", "preprocess", "x", "--to", "raw64"],
            &["cubes", "preprocess", "x", "--to", "raw16", "--zarr-codec", "zstd:23"],
        ] {
            assert!(Cli::try_parse_from(arguments).is_err(), "{arguments:?}");
        }
    }
}
