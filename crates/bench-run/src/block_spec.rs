//! Parses `-b`: the chunk sizes and numbers of chunks per block to measure.
//!
//! | written | meaning |
//! |---|---|
//! | `SIZE` | a block is one chunk of SIZE rows |
//! | `NxSIZE` | a block is N chunks of SIZE rows |
//! | `BLOCK / N` | a block of BLOCK rows in N chunks; N must divide BLOCK |
//! | `BLOCK / [A,B]` | the same for N = A, 2A, 4A ... up to B; if A is above B, N = B, 2B, 4B ... up to A, the most chunks first |
//!
//! Numbers are plain integers; blanks are allowed anywhere between the parts.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Chunk size and number of chunks of a block: one value for both axes of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockSpec {
    /// Rows of a chunk, which are read together.
    pub chunk_rows: u64,
    /// Chunks of a block, which are in memory and shuffled together.
    pub chunks_per_block: u64,
}

impl BlockSpec {
    /// Makes a specification. Fails for sizes of zero and for blocks with more than `u64::MAX`
    /// rows.
    fn new(chunks_per_block: u64, chunk_rows: u64) -> Result<Self, Problem> {
        match chunks_per_block.checked_mul(chunk_rows) {
            Some(0) => Err(Problem::Zero),
            Some(_) => Ok(Self { chunk_rows, chunks_per_block }),
            None => Err(Problem::TooLarge),
        }
    }

    /// Returns the number of rows of a block.
    pub fn block_rows(self) -> u64 {
        self.chunk_rows * self.chunks_per_block
    }
}

impl fmt::Display for BlockSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.chunks_per_block, self.chunk_rows)
    }
}

/// Error for a block specification that cannot be parsed or measured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("block specification {text:?}: {problem}")]
pub struct GridError {
    text: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum Problem {
    #[error("expected {expected} at character {at}, found {found}")]
    Unexpected { expected: &'static str, at: usize, found: String },
    #[error("the number at character {at} is too large")]
    Number { at: usize },
    #[error("sizes and numbers of chunks must be 1 or more")]
    Zero,
    #[error("a block of that many rows cannot be counted")]
    TooLarge,
    #[error("{block_rows} rows cannot be divided into {n_chunks} equal chunks")]
    Indivisible { block_rows: u64, n_chunks: u64 },
}

/// Parses one `-b` into its blocks, at least one, in the order of measurement. Fails if the text
/// does not follow the grammar, or a block is empty, too large or not divisible into chunks.
pub fn parse(text: &str) -> Result<Vec<BlockSpec>, GridError> {
    Parser { text, at: 0 }.specs().map_err(|problem| GridError { text: text.to_owned(), problem })
}

/// Parses the text; `at` is the byte position of a character's start.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn specs(&mut self) -> Result<Vec<BlockSpec>, Problem> {
        let first = self.number("a number of rows")?;
        let (specs, expected) = if self.takes('x') {
            (vec![BlockSpec::new(first, self.number("the rows of a chunk")?)?], "the end")
        } else if self.takes('/') {
            let counts = self.counts()?;
            (
                counts
                    .into_iter()
                    .map(|n_chunks| divide(first, n_chunks))
                    .collect::<Result<_, _>>()?,
                "the end",
            )
        } else {
            (vec![BlockSpec::new(1, first)?], "`x`, `/` or the end")
        };
        if self.rest().is_empty() { Ok(specs) } else { Err(self.unexpected(expected)) }
    }

    /// Parses the numbers of chunks after the slash: one, or a doubling range.
    fn counts(&mut self) -> Result<Vec<u64>, Problem> {
        if !self.takes('[') {
            return Ok(vec![self.number("a number of chunks or `[`")?]);
        }
        let from = self.number("a number of chunks")?;
        self.require(',', "`,`")?;
        let to = self.number("a number of chunks")?;
        self.require(']', "`]`")?;
        if from == 0 || to == 0 {
            return Err(Problem::Zero);
        }
        let doubling = |from: u64, to: u64| {
            std::iter::successors(Some(from), |n| n.checked_mul(2)).take_while(move |n| *n <= to)
        };
        if from <= to {
            return Ok(doubling(from, to).collect());
        }
        let mut counts: Vec<u64> = doubling(to, from).collect();
        counts.reverse();
        Ok(counts)
    }

    /// Skips blanks and returns the rest of the text.
    fn rest(&mut self) -> &str {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        &self.text[self.at..]
    }

    fn takes(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn require(&mut self, wanted: char, expected: &'static str) -> Result<(), Problem> {
        if self.takes(wanted) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn number(&mut self, expected: &'static str) -> Result<u64, Problem> {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.unexpected(expected));
        }
        let number = rest[..length].parse().map_err(|_| Problem::Number { at: self.position() })?;
        self.at += length;
        Ok(number)
    }

    /// Returns the position for messages: in characters, counted from 1.
    fn position(&self) -> usize {
        self.text[..self.at].chars().count() + 1
    }

    fn unexpected(&mut self, expected: &'static str) -> Problem {
        let found =
            self.rest().chars().next().map_or_else(|| "the end".to_owned(), |c| format!("{c:?}"));
        Problem::Unexpected { expected, at: self.position(), found }
    }
}

fn divide(block_rows: u64, n_chunks: u64) -> Result<BlockSpec, Problem> {
    if block_rows == 0 || n_chunks == 0 {
        return Err(Problem::Zero);
    }
    if !block_rows.is_multiple_of(n_chunks) {
        return Err(Problem::Indivisible { block_rows, n_chunks });
    }
    BlockSpec::new(n_chunks, block_rows / n_chunks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let parsed = match parse(text) {
            Ok(specs) => specs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        };
        assert_eq!(parsed, expect, "{text:?}");
    }

    #[test]
    fn what_the_grammar_allows() {
        check("1024", "1x1024");
        check("64x2048", "64x2048");
        check("65536 / 64", "64x1024");
        check("65536/64", "64x1024");
        check("  8 x 16 ", "8x16");
        check("100 / 100", "100x1");
        check("16 / [1,4]", "1x16 2x8 4x4");
        check("16/[ 4 , 1 ]", "4x4 2x8 1x16");
        check("96 / [3,13]", "3x32 6x16 12x8");
        check("96 / [13,3]", "12x8 6x16 3x32");
        check("8 / [8,8]", "8x1");
        check("7 / [1,1]", "1x7");
    }

    #[test]
    fn the_original_range_gives_thirteen() {
        let specs = parse("131072 / [1,4096]").unwrap();
        assert_eq!(specs.len(), 13);
        assert!(specs.iter().all(|spec| spec.block_rows() == 131_072));
        assert_eq!(specs[12], BlockSpec { chunk_rows: 32, chunks_per_block: 4096 });
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        check(
            "",
            "block specification \"\": expected a number of rows at character 1, found the end",
        );
        check(
            "x64",
            "block specification \"x64\": expected a number of rows at character 1, found 'x'",
        );
        check(
            "64x",
            "block specification \"64x\": expected the rows of a chunk at character 4, found the end",
        );
        check(
            "64 64",
            "block specification \"64 64\": expected `x`, `/` or the end at character 4, found '6'",
        );
        check(
            "64k",
            "block specification \"64k\": expected `x`, `/` or the end at character 3, found 'k'",
        );
        check(
            "-64",
            "block specification \"-64\": expected a number of rows at character 1, found '-'",
        );
        check(
            "64 / a",
            "block specification \"64 / a\": expected a number of chunks or `[` at character 6, found 'a'",
        );
        check(
            "64 / [1;2]",
            "block specification \"64 / [1;2]\": expected `,` at character 8, found ';'",
        );
        check(
            "64 / [1,2",
            "block specification \"64 / [1,2\": expected `]` at character 10, found the end",
        );
        check(
            "64 / [1,2] 3",
            "block specification \"64 / [1,2] 3\": expected the end at character 12, found '3'",
        );
        check(
            "é",
            "block specification \"é\": expected a number of rows at character 1, found 'é'",
        );
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let zero = "sizes and numbers of chunks must be 1 or more";
        for text in ["0", "0x5", "5x0", "0 / 1", "5 / 0", "0 / [1,2]", "8 / [0,2]", "8 / [2,0]"] {
            check(text, &format!("block specification {text:?}: {zero}"));
        }
        check(
            "100 / 3",
            "block specification \"100 / 3\": 100 rows cannot be divided into 3 equal chunks",
        );
        check(
            "100 / [1,8]",
            "block specification \"100 / [1,8]\": 100 rows cannot be divided into 8 equal chunks",
        );
        check(
            "2 / 4",
            "block specification \"2 / 4\": 2 rows cannot be divided into 4 equal chunks",
        );
        check(
            "99999999999999999999",
            "block specification \"99999999999999999999\": the number at character 1 is too large",
        );
        check(
            "9999999999x9999999999",
            "block specification \"9999999999x9999999999\": a block of that many rows cannot be counted",
        );
    }

    proptest! {
        #[test]
        fn any_text_gives_specs_or_one_line(text in "[0-9x/\\[\\], k\\-é]{0,20}") {
            match parse(&text) {
                Ok(specs) => {
                    prop_assert!(!specs.is_empty());
                    prop_assert!(specs.iter().all(|spec| 0 < spec.block_rows()));
                }
                Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
            }
        }

        #[test]
        fn any_unicode_is_survived(text in ".{0,12}") {
            let _specs = parse(&text);
        }

        #[test]
        fn ranges_double_and_keep_the_block(chunk_rows in 1_u64..50, from in 1_u64..20, doublings in 0_u32..8) {
            let to = from << doublings;
            let block_rows = chunk_rows * to;
            let specs = parse(&format!("{block_rows} / [{from},{to}]")).unwrap();
            let backwards = parse(&format!("{block_rows} / [{to},{from}]")).unwrap();
            prop_assert_eq!(specs.len(), doublings as usize + 1);
            for (idx, spec) in specs.iter().enumerate() {
                prop_assert_eq!(spec.chunks_per_block, from << idx);
                prop_assert_eq!(spec.block_rows(), block_rows);
                prop_assert_eq!(parse(&spec.to_string()).unwrap(), vec![*spec]);
            }
            prop_assert!(specs.iter().rev().eq(&backwards));
        }
    }
}
