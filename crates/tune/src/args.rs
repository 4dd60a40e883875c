//! Command line of `tune`, as typed.

use std::str::FromStr;

use bench_run::{LinkFlags, OutputFlags};
use bytesize::ByteSize;
use clap::Args;
use grid_point::{DataFlags, FormFlag, ReaderFlag, SelectionFlags};
use loader::PipelineSpec;

/// Flags of `tune`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TuneArgs {
    #[command(flatten)]
    pub(crate) data: DataFlags,
    #[command(flatten)]
    pub(crate) selection: SelectionFlags,
    #[command(flatten)]
    pub(crate) link: LinkFlags,
    /// Peak memory of the whole process, e.g. 2GiB
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    pub(crate) memory: ByteSize,
    /// Required randomness: mean entropy of the label within a batch, in bits (3.4) or as a share
    /// of a perfect shuffle's (99%); or none
    #[arg(long, value_name = "ENTROPY", default_value = "99%")]
    pub(crate) entropy: Wanted,
    /// obs column whose entropy within batches is the measure of randomness
    #[arg(long, value_name = "COLUMN", default_value = "cell_type")]
    pub(crate) label: String,
    /// Rows per batch
    #[arg(short = 'B', long = "batch", alias = "batch-size", value_name = "ROWS", default_value_t = PipelineSpec::default().batch_rows, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) batch_size: u64,
    /// Form of a batch's X
    #[arg(long, value_enum, default_value_t = FormFlag::Dense)]
    pub(crate) batch_form: FormFlag,
    /// Reader of X; auto measures both readers if both can read the array
    #[arg(long, value_enum, default_value_t = ReaderFlag::Auto)]
    pub(crate) reader: ReaderFlag,
    /// Seed of the shuffle
    #[arg(long, default_value_t = PipelineSpec::default().seed)]
    pub(crate) seed: u64,
    /// Skip the run that verifies the proposal
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Fail if the run differs from the prediction or needs more than --memory
    #[arg(long, conflicts_with = "no_verify")]
    pub(crate) strict: bool,
    /// Print JSON objects, one per line, instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

const EXAMPLES: &str = "\
Chunk size, chunks per block, blocks read ahead and reader are proposed: the fastest that fit, by a model of the cost that a few
short runs are fitted to, and two to four runs of what it takes for the fastest correct (docs/tune.md). The proposal is then run as
a whole, and what was predicted stands beside what was measured.

Examples:
  cargo xtask tune --uri ~/census/experiment --memory 4GiB
  cargo xtask tune --uri ~/census/experiment --memory 2GiB --entropy 3.4 --label tissue --batch-form csr
  cargo xtask tune --uri ~/census/experiment --memory 1GiB --entropy 95% -v 20000 --json";

/// Randomness that batches must have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted {
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
    pub(crate) fn bits(self, perfect_bits: f64) -> f64 {
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
