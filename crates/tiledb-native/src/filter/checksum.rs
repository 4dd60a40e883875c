//! Verifies checksums.
//!
//! Metadata: number of metadata parts, number of data parts, then the length and digest of each;
//! after them the unchanged metadata of the earlier filters.

use md5::Digest;

use crate::cursor::Cursor;
use crate::error::Fault;

pub(super) fn verify<D: Digest>(
    metadata: &mut Cursor<'_>,
    data: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let n_metadata_parts = metadata.u32("the number of metadata checksums")?;
    let n_data_parts = metadata.u32("the number of data checksums")?;
    let mut expected = Vec::new();
    for _ in 0..u64::from(n_metadata_parts) + u64::from(n_data_parts) {
        let len = metadata.u64("the length under a checksum")?;
        expected.push((len, metadata.take(<D as Digest>::output_size(), "a checksum")?));
    }
    let (of_metadata, of_data) = expected.split_at(n_metadata_parts as usize);
    compare::<D>(of_metadata, metadata.remaining(), "metadata")?;
    compare::<D>(of_data, data, "data")?;
    out.extend_from_slice(data);
    Ok(())
}

fn compare<D: Digest>(expected: &[(u64, &[u8])], bytes: &[u8], what: &str) -> Result<(), Fault> {
    let mut bytes = Cursor::new(bytes);
    for (len, digest) in expected {
        let part =
            bytes.take(usize::try_from(*len).unwrap_or(usize::MAX), "a part under a checksum")?;
        if D::digest(part).as_slice() != *digest {
            return Err(Fault::new(format!(
                "the checksum of {len} bytes of {what} does not match"
            )));
        }
    }
    Ok(())
}
