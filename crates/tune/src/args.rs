//! Flags of `tune` that all kinds of samples have.

use std::str::FromStr;

use bytesize::ByteSize;
use clap::Args;

/// What stands below the flags of `tune` for a kind of samples.
pub const HELP: &str = "\
Chunk size, chunks per block and blocks read ahead are proposed: the fastest that fit the memory and are random enough, by a model
that a few short runs are fitted to (docs/tune.md). The proposal is then run, and what was predicted stands beside what was measured.";

/// Flags of `tune` that all kinds of samples have.
#[derive(Debug, Args)]
pub struct TuneFlags {
    /// Peak memory of the whole process, e.g. 2GiB
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    pub memory: ByteSize,
    /// Required randomness: mean entropy of the label within a batch, in bits (3.4) or as a share
    /// of a perfect shuffle's (99%); or none
    #[arg(long, value_name = "ENTROPY", default_value = "99%")]
    pub entropy: Wanted,
    /// Skip the run that verifies the proposal
    #[arg(long)]
    pub no_verify: bool,
    /// Fail if the run differs from the prediction or needs more than --memory
    #[arg(long, conflicts_with = "no_verify")]
    pub strict: bool,
    /// Print JSON objects, one per line, instead of the tables
    #[arg(long)]
    pub json: bool,
}

/// Randomness that batches must have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wanted {
    /// Mean entropy of the label within a batch, in bits.
    Bits(f64),
    /// Share of a perfect shuffle's entropy, 0 to 1.
    Share(f64),
    /// No requirement.
    Nothing,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        let wanted = match (text.trim(), text.trim().strip_suffix('%')) {
            ("none", _) => Some(Self::Nothing),
            (_, Some(percent)) => number(percent)
                .filter(|percent| (0.0..=100.0).contains(percent))
                .map(|percent| Self::Share(percent / 100.0)),
            (bits, None) => number(bits).filter(|bits| 0.0 <= *bits).map(Self::Bits),
        };
        wanted.ok_or_else(|| "expected bits, as 3.4, a share from 0% to 100%, or none".to_owned())
    }
}

impl Wanted {
    /// Returns the required entropy in bits, given that of a perfect shuffle.
    pub fn bits(self, perfect_bits: f64) -> f64 {
        match self {
            Self::Bits(bits) => bits,
            Self::Share(share) => share * perfect_bits,
            Self::Nothing => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_bits_or_a_share() {
        assert_eq!("3.4".parse(), Ok(Wanted::Bits(3.4)));
        assert_eq!("0".parse(), Ok(Wanted::Bits(0.0)));
        assert_eq!(" 99 %".parse(), Ok(Wanted::Share(0.99)));
        assert_eq!("none".parse(), Ok(Wanted::Nothing));
        for text in ["", "%", "101%", "-1", "nan", "inf", "3.4 bits", "-0.1%"] {
            assert!(text.parse::<Wanted>().is_err(), "{text}");
        }
        assert_eq!(Wanted::Share(0.5).bits(4.0), 2.0);
    }
}
