//! Compression of generated files, part by part.

use std::io::Write as _;

use flate2::write::GzEncoder;

use crate::Error;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// [Gzip](https://www.rfc-editor.org/rfc/rfc1952), a member for each part.
    Gzip,
    /// Blocked gzip ([SAM's specification], section 4.1), as bgzip writes it.
    ///
    /// [SAM's specification]: https://samtools.github.io/hts-specs/SAMv1.pdf
    Bgzip,
}

/// Bytes of the empty block at the end of a file of blocked gzip.
const END_BYTES: usize = 28;

impl Compression {
    /// Compresses a part by itself. Parts one after another, and what [`end`](Self::end) returns,
    /// are the compressed file.
    pub(super) fn part(self, part: Vec<u8>) -> Result<Vec<u8>, Error> {
        let compressed = match self {
            Self::None => Ok(part),
            Self::Gzip => {
                let mut into = GzEncoder::new(Vec::new(), flate2::Compression::default());
                into.write_all(&part).and_then(|()| into.finish())
            }
            Self::Bgzip => blocked(&part).map(|mut blocks| {
                blocks.truncate(blocks.len().saturating_sub(END_BYTES));
                blocks
            }),
        };
        compressed.map_err(compress_error)
    }

    /// What comes after the last part.
    pub(super) fn end(self) -> Result<Vec<u8>, Error> {
        match self {
            Self::None | Self::Gzip => Ok(Vec::new()),
            Self::Bgzip => blocked(&[]).map_err(compress_error),
        }
    }
}

fn compress_error(error: std::io::Error) -> Error {
    Error::Write { what: "compressed sequences".to_owned(), source: error.into() }
}

/// A whole file of blocked gzip.
fn blocked(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut into = noodles_bgzf::io::Writer::new(Vec::new());
    into.write_all(bytes)?;
    into.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn parts_together_are_a_file() {
        let parts = [b"ACGT".repeat(40_000), Vec::new(), b"G".to_vec()];
        for compression in [Compression::None, Compression::Gzip, Compression::Bgzip] {
            let mut file: Vec<u8> =
                parts.iter().flat_map(|part| compression.part(part.clone()).unwrap()).collect();
            file.extend(compression.end().unwrap());
            let mut read = Vec::new();
            match compression {
                Compression::None => read.clone_from(&file),
                Compression::Gzip => {
                    flate2::read::MultiGzDecoder::new(&*file).read_to_end(&mut read).unwrap();
                }
                Compression::Bgzip => {
                    noodles_bgzf::io::Reader::new(&*file).read_to_end(&mut read).unwrap();
                    assert_eq!(blocked(&[]).unwrap().len(), END_BYTES);
                    assert!(file.ends_with(&blocked(&[]).unwrap()));
                }
            }
            assert!(read == parts.concat(), "{compression:?}");
        }
    }
}
