//! How arrays are stored: format, chunks, shards, codec, type of the values.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

use super::spec::check;
use crate::Error;

/// Largest number of samples in a chunk or a shard.
const MAX_TOGETHER: u64 = 1_000_000;

/// The version of the Zarr format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ZarrVersion {
    /// Zarr 2, with consolidated metadata
    #[value(name = "2")]
    V2,
    /// Zarr 3
    #[default]
    #[value(name = "3")]
    V3,
}

/// The stored type of the values of inputs and targets.
///
/// Integers have one factor and one offset for all channels of an array, because the CF attributes
/// have no more than that. Channels with small values, like humidity, keep few steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum StoredElement {
    /// 32-bit floating point
    #[default]
    F32,
    /// 16-bit floating point
    F16,
    /// 16-bit integers with the attributes scale_factor and add_offset
    I16,
}

impl fmt::Display for StoredElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::I16 => "i16",
        })
    }
}

/// The compression of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Codec {
    /// None.
    #[default]
    None,
    /// Zstandard with a level of 1 to 22.
    Zstd(u8),
    /// Gzip with a level of 0 to 9.
    Gzip(u8),
    /// Blosc's LZ4 after a byte shuffle, with a level of 0 to 9.
    Blosc(u8),
}

impl Codec {
    const DEFAULT_ZSTD: u8 = 1;
    const DEFAULT_GZIP: u8 = 5;
    const DEFAULT_BLOSC: u8 = 5;

    /// Fails if the codec does not know its level.
    pub(crate) fn check(self) -> Result<(), Error> {
        let (level, least, most) = match self {
            Self::None => return Ok(()),
            Self::Zstd(level) => (level, 1, 22),
            Self::Gzip(level) | Self::Blosc(level) => (level, 0, 9),
        };
        if (least..=most).contains(&level) {
            return Ok(());
        }
        let [value, least, most] = [level, least, most].map(f64::from);
        Err(Error::Size { what: "the level of the codec", value, least, most })
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Gzip(level) => write!(f, "gzip:{level}"),
            Self::Blosc(level) => write!(f, "blosc:{level}"),
        }
    }
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => {
                let level = level.parse::<u8>();
                (name, Some(level.map_err(|_| "the level is not a small number".to_owned())?))
            }
            None => (text, None),
        };
        match (name, level) {
            ("none", None) => Ok(Self::None),
            ("zstd", level) => Ok(Self::Zstd(level.unwrap_or(Self::DEFAULT_ZSTD))),
            ("gzip", level) => Ok(Self::Gzip(level.unwrap_or(Self::DEFAULT_GZIP))),
            ("blosc", level) => Ok(Self::Blosc(level.unwrap_or(Self::DEFAULT_BLOSC))),
            _ => Err("expected none, zstd, gzip or blosc, with a level like zstd:3".to_owned()),
        }
    }
}

/// Specifies how inputs and targets are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The version of the format.
    pub zarr: ZarrVersion,
    /// Number of samples in a chunk.
    pub chunk_samples: u64,
    /// Number of channels in a chunk; `None` for all.
    pub chunk_channels: Option<u64>,
    /// Number of samples in a shard, a multiple of those in a chunk; `None` for no shards. A shard
    /// has all channels.
    pub shard_samples: Option<u64>,
    /// The compression of chunks.
    pub codec: Codec,
    /// The stored type of the values.
    pub element: StoredElement,
}

impl Default for Layout {
    /// Zarr 3 with a chunk per sample, uncompressed 32-bit floating point.
    fn default() -> Self {
        Self {
            zarr: ZarrVersion::default(),
            chunk_samples: 1,
            chunk_channels: None,
            shard_samples: None,
            codec: Codec::default(),
            element: StoredElement::default(),
        }
    }
}

impl Layout {
    /// Samples per file: of a shard, or else of a chunk.
    pub(crate) fn file_samples(&self) -> u64 {
        self.shard_samples.unwrap_or(self.chunk_samples)
    }

    /// Fails if a setting is out of range, or two contradict each other.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check("the number of samples in a chunk", self.chunk_samples, MAX_TOGETHER)?;
        if let Some(n_channels) = self.chunk_channels {
            check("the number of channels in a chunk", n_channels, u64::from(u32::MAX))?;
        }
        self.codec.check()?;
        let Some(shard_samples) = self.shard_samples else { return Ok(()) };
        check("the number of samples in a shard", shard_samples, MAX_TOGETHER)?;
        let problem = if self.zarr == ZarrVersion::V2 {
            "Zarr 2 has no shards; choose Zarr 3, or leave out the shards".to_owned()
        } else if !shard_samples.is_multiple_of(self.chunk_samples) {
            format!(
                "a shard of {shard_samples} samples does not consist of whole chunks of {}; choose \
                 a multiple",
                self.chunk_samples
            )
        } else {
            return Ok(());
        };
        Err(Error::settings(format!("the layout cannot be written: {problem}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_written_as_they_are_parsed() {
        for (text, expect) in [
            ("none", Codec::None),
            ("zstd", Codec::Zstd(1)),
            ("zstd:19", Codec::Zstd(19)),
            ("gzip", Codec::Gzip(5)),
            ("blosc:9", Codec::Blosc(9)),
        ] {
            let codec: Codec = text.parse().unwrap();
            assert_eq!(codec, expect);
            assert_eq!(codec.to_string().parse(), Ok(codec));
        }
        for text in ["", "none:1", "zstd:", "zstd:x", "zstd:-1", "lz4", "zstd:1:2"] {
            text.parse::<Codec>().unwrap_err();
        }
    }

    #[test]
    fn layouts_that_cannot_be_written_are_refused() {
        let layout = Layout::default();
        layout.check().unwrap();
        let refused = |layout: Layout, expect: &str| {
            let error = layout.check().unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(expect), "{error}");
        };
        let sharded = Layout { shard_samples: Some(6), chunk_samples: 3, ..layout };
        sharded.check().unwrap();
        refused(Layout { zarr: ZarrVersion::V2, ..sharded }, "Zarr 2 has no shards");
        refused(Layout { chunk_samples: 4, ..sharded }, "whole chunks of 4");
        refused(Layout { shard_samples: Some(0), ..sharded }, "between 1 and");
        refused(Layout { chunk_samples: 0, ..layout }, "samples in a chunk is 0");
        refused(Layout { chunk_channels: Some(0), ..layout }, "channels in a chunk is 0");
        refused(Layout { codec: Codec::Zstd(23), ..layout }, "between 1 and 22");
        refused(Layout { codec: Codec::Blosc(10), ..layout }, "between 0 and 9");
    }
}
