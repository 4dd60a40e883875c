//! Texts of an array, stored with any length or all with the same.

use std::panic::{AssertUnwindSafe, catch_unwind};

use zarrs::array::{Array, ArrayBytes, ArrayError, ArraySubset, CodecOptions};

use crate::decoder::panic_message;
use crate::error::Cause;
use crate::metadata::Texts;
use crate::store::Store;

/// Reads the texts of a part of an array, in C order, on this thread alone.
pub(crate) fn read(
    array: &Array<Store>,
    texts: Texts,
    part: &ArraySubset,
) -> Result<Vec<String>, Cause> {
    let n_texts = part.num_elements();
    // zarrs panics on some damaged chunks.
    let decoded = catch_unwind(AssertUnwindSafe(|| decode(array, texts, part)));
    let decoded = decoded.map_err(|panic| panic_message(panic.as_ref()))??;
    if decoded.len() as u64 != n_texts {
        return Err(format!("{} texts are stored, {n_texts} are expected", decoded.len()).into());
    }
    Ok(decoded)
}

fn decode(array: &Array<Store>, texts: Texts, part: &ArraySubset) -> Result<Vec<String>, Cause> {
    let alone = CodecOptions::default().with_concurrent_target(1);
    match texts {
        Texts::AnyLength => Ok(array.retrieve_array_subset_opt(part, &alone)?),
        Texts::CodePoints => {
            let texts: Vec<Vec<char>> = array.retrieve_array_subset_opt(part, &alone)?;
            Ok(texts.into_iter().map(|text| text.into_iter().collect()).collect())
        }
        Texts::Bytes => {
            let bytes: Result<ArrayBytes<'static>, ArrayError> =
                array.retrieve_array_subset_opt(part, &alone);
            let bytes = bytes?.into_fixed()?;
            let n_bytes = array.data_type().fixed_size().unwrap_or(1).max(1);
            bytes.chunks_exact(n_bytes).map(of_bytes).collect()
        }
    }
}

/// The text in bytes that zeros follow.
fn of_bytes(bytes: &[u8]) -> Result<String, Cause> {
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = std::str::from_utf8(bytes.get(..len).unwrap_or_default());
    Ok(text.map_err(|error| format!("a text is not in UTF-8: {error}"))?.to_owned())
}
