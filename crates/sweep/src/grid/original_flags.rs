//! Flags of arrayloader-benchmarks' `alb data-loader` that have other names here.
//!
//! Flags that apply here are translated; the others are rejected with the reason. `docs/sweep.md`
//! has the complete list.

use bench_run::{Address, UsageError};
use bytesize::ByteSize;
use clap::Args;

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Flags of arrayloader-benchmarks")]
pub(crate) struct OriginalFlags {
    /// Census release, e.g. 2025-11-08: short for --uri census://RELEASE/homo_sapiens
    #[arg(short = 'V', long, value_name = "RELEASE", conflicts_with_all = ["uri", "place"])]
    census_version: Option<String>,
    /// Address of a Census or a copy: short for --uri URI/census_data/homo_sapiens
    #[arg(short = 'u', long, value_name = "URI", conflicts_with_all = ["uri", "place", "census_version"])]
    census_uri: Option<Address>,
    /// Region of the S3 bucket: short for --config vfs.s3.region=REGION
    #[arg(short = 'r', long, value_name = "REGION")]
    region: Option<String>,
    /// libtiledb's buffer for each column read, e.g. 1GiB: short for --config
    /// soma.init_buffer_bytes=BYTES
    #[arg(short = 'z', long, value_name = "SIZE")]
    soma_buffer_size: Option<ByteSize>,
    #[arg(short = 'c', long, hide = true, value_name = "ID")]
    collection_id: Option<String>,
    #[arg(short = 'S', long, hide = true)]
    sorted_datasets: bool,
    #[arg(short = 'C', long, hide = true)]
    no_cuda_conversion: bool,
    #[arg(short = 'F', long, hide = true)]
    no_exclude_first_batch: bool,
    #[arg(short = 'g', long, hide = true, value_name = "N")]
    gc_freq: Option<String>,
    #[arg(short = 'P', long, hide = true, value_name = "SIZE")]
    py_buffer_size: Option<String>,
}

impl OriginalFlags {
    /// Fails if a flag is given that does not apply here.
    pub(crate) fn refuse(&self) -> Result<(), UsageError> {
        let refused = [
            (
                self.collection_id.is_some(),
                "-c/--collection-id: cells are chosen by joinid (-s, -e) or by condition, as --obs-filter 'dataset_id in [\"..\"]'",
            ),
            (
                self.sorted_datasets,
                "-S/--sorted-datasets: -s and -e are joinids of cells here, not numbers of data sets, so there is nothing to sort",
            ),
            (
                self.no_cuda_conversion,
                "-C/--no-cuda-conversion: batches stay on the CPU and nothing is copied, so leave it out",
            ),
            (
                self.no_exclude_first_batch,
                "-F/--no-exclude-first-batch: speed with and without the first batch is in every row, so leave it out",
            ),
            (
                self.gc_freq.is_some(),
                "-g/--gc-freq: nothing collects garbage here, so leave it out",
            ),
            (
                self.py_buffer_size.is_some(),
                "-P/--py-buffer-size: there is no second buffer here; -z/--soma-buffer-size is libtiledb's",
            ),
        ];
        match refused.iter().find(|(given, _)| *given) {
            Some((_, why)) => Err(UsageError::new(*why)),
            None => Ok(()),
        }
    }

    /// Returns the experiment that the flags name.
    pub(crate) fn uri(&self) -> Option<Address> {
        let of_release =
            self.census_version.as_ref().map(|release| format!("census://{release}/homo_sapiens"));
        let below = |uri: &Address| {
            format!("{}/census_data/homo_sapiens", uri.full().trim_end_matches('/'))
        };
        of_release.or_else(|| self.census_uri.as_ref().map(below)).map(Address::from)
    }

    /// Returns the TileDB settings that the flags stand for.
    pub(crate) fn config(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let region = self.region.iter().map(|region| ("vfs.s3.region".to_owned(), region.clone()));
        let buffer = self.soma_buffer_size.iter();
        region.chain(
            buffer.map(|size| ("soma.init_buffer_bytes".to_owned(), size.as_u64().to_string())),
        )
    }
}
