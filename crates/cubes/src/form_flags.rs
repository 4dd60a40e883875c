//! Flags about the forms of cubes, and what is printed about them.

use clap::Args;

use crate::forms::FormSpec;
use crate::normalization::Normalization;
use crate::precision::Precision;
use crate::zarr_store::ZarrCodec;
use images::Form;

/// Flags that `generate` and `preprocess` share.
#[derive(Debug, Args)]
pub(crate) struct FormFlags {
    /// Normalisation of each spectrum, in all forms but dat
    #[arg(long, value_name = "NORM", default_value = "none")]
    normalize: Normalization,
    /// Level of blosc, 0 to 9. At 9, as in htc, a core takes 20 to 30 s for a cube in one form; at
    /// 7 it takes 4 s, and files are 2 % larger
    #[arg(long, value_name = "LEVEL", default_value_t = 9)]
    level: u8,
    /// Compression of Zarr's chunks: none, blosc (like the blosc files), or zstd with a level, like
    /// zstd:3
    #[arg(long, value_name = "CODEC", default_value_t = ZarrCodec::Blosc)]
    zarr_codec: ZarrCodec,
}

impl FormFlags {
    /// The specification of these forms.
    pub(crate) fn spec(&self, forms: &[Form]) -> FormSpec {
        FormSpec {
            forms: forms.to_vec(),
            normalization: self.normalize,
            level: self.level,
            zarr_codec: self.zarr_codec,
        }
    }
}

/// Formats the error of the 16-bit forms.
pub(crate) fn format_precision(precision: &Precision) -> String {
    format!(
        "error of f16: mean {:.2e}, largest {:.2e}, mean relative {:.2e}",
        precision.mean(),
        precision.largest,
        precision.mean_relative()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn errors_are_formatted() {
        let precision = Precision::measure(&[1.0, 3.0e-7], &[f16::ONE, f16::from_bits(5)]);
        let text = format_precision(&precision);
        assert!(text.starts_with("error of f16: mean 9.8"), "{text}");
        assert!(text.contains("e-10, largest 1.98e-9, mean relative 3.2"), "{text}");
    }
}
