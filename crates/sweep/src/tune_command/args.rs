//! Command line of `tune` for cells, as typed.

use bench_run::{LinkFlags, OutputFlags};
use clap::Args;
use grid_point::{Data, DataFlags, FormFlag, ReaderFlag, SelectionFlags, share_with_libtiledb};
use loader::{PipelineSpec, ReaderChoice};
use tune::{TuneFlags, Wanted};

/// Flags of `tune`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    pub(super) data: DataFlags,
    #[command(flatten)]
    pub(super) selection: SelectionFlags,
    #[command(flatten)]
    pub(super) link: LinkFlags,
    #[command(flatten)]
    pub(super) tune: TuneFlags,
    /// obs column whose entropy within batches is the measure of randomness [default: of cell_type
    /// and the first of donor_id, donor, sample_id, sample, batch, dataset_id that obs has, the one
    /// that is harder to mix]
    #[arg(long, visible_alias = "entropy-of", value_name = "COLUMN")]
    pub(super) label: Option<String>,
    /// Rows per batch
    #[arg(short = 'B', long = "batch", alias = "batch-size", value_name = "ROWS", default_value_t = PipelineSpec::default().batch_rows, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) batch_size: u64,
    /// Form of a batch's X
    #[arg(long, value_enum, default_value_t = FormFlag::Dense)]
    pub(super) batch_form: FormFlag,
    /// Reader of X; auto measures both readers if both can read the array
    #[arg(long, value_enum, default_value_t = ReaderFlag::Auto)]
    pub(super) reader: ReaderFlag,
    /// Seed of the shuffle
    #[arg(long, default_value_t = PipelineSpec::default().seed)]
    pub(super) seed: u64,
    #[command(flatten)]
    pub(super) output: OutputFlags,
}

const EXAMPLES: &str = "\
Chunk size, chunks per block, blocks read ahead and reader are proposed: the fastest that fit, by a model of the cost that a few
short runs are fitted to, and two to four runs of what it takes for the fastest correct (docs/tune.md). The proposal is then run as
a whole, and what was predicted stands beside what was measured.

Examples:
  cargo xtask tune --uri ~/census/experiment --memory 4GiB
  cargo xtask tune --uri ~/census/experiment --memory 2GiB --entropy 3.4 --label tissue --batch-form csr
  cargo xtask tune --uri ~/census/experiment --memory 1GiB --entropy 95% -v 20000 --json";

impl TuneArgs {
    /// Whether the entropy of a label is wanted.
    pub(super) fn wants_label(&self) -> bool {
        self.tune.entropy != Wanted::Nothing
    }

    /// The data as typed; its URI is empty if the example is meant.
    pub(super) fn data(&self) -> anyhow::Result<Data> {
        let mut data = self.selection.apply(self.data.data()?)?;
        // libtiledb's default buffers exceed most memory goals.
        share_with_libtiledb(&mut data.config, self.tune.memory.as_u64());
        Ok(Data {
            reader: ReaderChoice::from(self.reader).name().to_owned(),
            entropy_of: match &self.label {
                _ if !self.wants_label() => Some(Vec::new()),
                label => label.clone().map(|label| vec![label]),
            },
            ..data
        })
    }
}
