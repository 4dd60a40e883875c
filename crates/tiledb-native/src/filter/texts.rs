//! Texts of variable size that were encoded whole: by a dictionary, or as run lengths.
//!
//! Specification: `format_spec/filters/dictionary_encoding.md`; run lengths, the lengths in the
//! metadata and the versions are in `filter/compression_filter.cc` and `filter/filter_pipeline.cc`.
//! As the first filter of texts, either replaces their offsets, too: tiles of offsets have no
//! chunks, and a tile of texts is one chunk.
//!
//! Metadata: the number of metadata parts (0) and of data parts (1); the bytes of the texts, of the
//! encoded data and of the offsets (u32 each); for run lengths, the bytes of a run's length and of
//! a text's length (u8 each); for a dictionary, the bytes of a code and of a text's length (u8
//! each), the dictionary's length (u32), and the dictionary, each text after its length.
//!
//! Data: for each run its length, the text's length, the text; or one code for each text, which is
//! its index in the dictionary. Numbers in the data and in the dictionary are big-endian.

use super::filtered::Filtered;
use super::pipeline::{Decoder, Pipeline};
use super::{Codec, Filter};
use crate::cursor::Cursor;
use crate::datatype::Datatype;
use crate::error::Fault;
use crate::memory::reserve;

/// The first format versions of schemas whose texts are encoded whole: ASCII as run lengths, ASCII
/// by a dictionary, UTF-8 by either.
const ASCII_RUN_LENGTHS: u32 = 12;
const ASCII_DICTIONARY: u32 = 13;
const UTF8: u32 = 17;
/// The most bytes that the encoding adds for one text: a code, or the lengths of a run and of its
/// text, or the length of a text in the dictionary.
const BYTES_PER_TEXT: usize = 16;
/// Room for metadata besides the dictionary.
const METADATA_BYTES: usize = 1 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    RunLengths,
    Dictionary,
}

/// The filters of texts that are encoded whole.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextPipeline {
    coding: Coding,
    /// The filters after the encoding.
    rest: Pipeline,
}

/// The texts of a tile.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) bytes: Vec<u8>,
    /// The beginning of each text in `bytes`, and the end of the last.
    pub(crate) offsets: Vec<usize>,
}

/// Binds the filters of texts of variable size, in arrays whose schema has format `version`; `None`
/// if none of the filters encodes texts whole.
///
/// # Errors
/// The name of a filter that this crate does not decode here.
pub(crate) fn bind_texts(
    filters: &[Filter],
    datatype: Datatype,
    version: u32,
) -> Result<Option<TextPipeline>, String> {
    let found = filters.iter().enumerate().find_map(|(idx, one)| Some((idx, coding(one)?)));
    let Some((idx, coding)) = found.filter(|_| datatype.is_text()) else { return Ok(None) };
    let (name, first_version) = match coding {
        Coding::RunLengths if datatype == Datatype::ASCII => {
            ("run lengths of texts", ASCII_RUN_LENGTHS)
        }
        Coding::RunLengths => ("run lengths of texts", UTF8),
        Coding::Dictionary if datatype == Datatype::ASCII => ("a dictionary", ASCII_DICTIONARY),
        Coding::Dictionary => ("a dictionary", UTF8),
    };
    if version < first_version {
        return Err(format!("{name} in format {version}"));
    }
    if idx > 0 {
        return Err(format!("{name} after another filter"));
    }
    let rest = &filters[1..];
    if !rest.iter().all(works_on_bytes) {
        return Err(format!("{name} before a filter of numbers"));
    }
    let rest = super::bind(rest, Datatype::UINT8, version)?;
    Ok(Some(TextPipeline { coding, rest }))
}

fn coding(filter: &Filter) -> Option<Coding> {
    match filter {
        Filter::Compress(Codec::Rle, _) => Some(Coding::RunLengths),
        Filter::Dictionary => Some(Coding::Dictionary),
        _ => None,
    }
}

/// Whether a filter does the same to bytes of any type.
fn works_on_bytes(filter: &Filter) -> bool {
    match filter {
        Filter::Compress(codec, _) => *codec != Codec::Rle,
        Filter::None | Filter::Bitshuffle | Filter::Byteshuffle | Filter::Md5 | Filter::Sha256 => {
            true
        }
        _ => false,
    }
}

impl TextPipeline {
    /// Decodes `chunk`, which has the `n_texts` texts of a tile.
    pub(crate) fn decode(&self, chunk: Filtered<'_>, n_texts: usize) -> Result<Texts, Fault> {
        let limit = n_texts
            .saturating_mul(BYTES_PER_TEXT)
            .saturating_add(chunk.original_len)
            .saturating_add(METADATA_BYTES);
        let len = chunk.original_len;
        let mut decoder = Decoder::default();
        let (metadata, data) = self.rest.undo_all(chunk, limit, &mut decoder)?;
        let mut metadata = Cursor::new(metadata);
        let data = encoded(&mut metadata, data, (len, n_texts))?;
        let texts = Encoded { data, len, n_texts };
        match self.coding {
            Coding::RunLengths => texts.of_runs(&mut metadata),
            Coding::Dictionary => texts.of_codes(&mut metadata),
        }
    }
}

/// Reads the part of the metadata that both encodings have, and returns the encoded data.
fn encoded<'a>(
    metadata: &mut Cursor<'_>,
    data: &'a [u8],
    (len, n_texts): (usize, usize),
) -> Result<&'a [u8], Fault> {
    let n_parts = (metadata.u32("metadata parts")?, metadata.u32("data parts")?);
    if n_parts != (0, 1) {
        return Err(Fault::new(format!("texts in {n_parts:?} parts, not in (0, 1)")));
    }
    let found = metadata.u32("the length of texts")? as usize;
    let data_len = metadata.u32("the length of encoded texts")? as usize;
    let offsets_bytes = metadata.u32("the length of the offsets of texts")? as usize;
    if found != len || offsets_bytes != n_texts.saturating_mul(size_of::<u64>()) {
        return Err(Fault::new(format!(
            "{found} bytes of texts with {offsets_bytes} of offsets, for {n_texts} texts of {len} bytes"
        )));
    }
    Cursor::new(data).take(data_len, "encoded texts")
}

/// Encoded texts.
struct Encoded<'a> {
    data: &'a [u8],
    /// Bytes of all texts.
    len: usize,
    n_texts: usize,
}

impl Encoded<'_> {
    fn of_runs(&self, metadata: &mut Cursor<'_>) -> Result<Texts, Fault> {
        let run_width = width(metadata, "the bytes of a run's length")?;
        let text_width = width(metadata, "the bytes of a text's length")?;
        // Runs may claim any length: all are checked before memory is requested.
        let (mut n_texts, mut len) = (0_usize, 0_usize);
        let mut runs = Runs { cursor: Cursor::new(self.data), run_width, text_width };
        while let Some((n, text)) = runs.next()? {
            n_texts = n_texts.saturating_add(n);
            len = len.saturating_add(n.saturating_mul(text.len()));
        }
        self.check(n_texts, len)?;
        let mut out = self.empty()?;
        let mut runs = Runs { cursor: Cursor::new(self.data), run_width, text_width };
        while let Some((n, text)) = runs.next()? {
            (0..n).for_each(|_| out.push(text));
        }
        Ok(out)
    }

    fn of_codes(&self, metadata: &mut Cursor<'_>) -> Result<Texts, Fault> {
        let code_width = width(metadata, "the bytes of a code")?;
        let text_width = width(metadata, "the bytes of a text's length")?;
        let dictionary_len = metadata.u32("the length of a dictionary")? as usize;
        let dictionary = metadata.take(dictionary_len, "a dictionary")?;
        let words = words(dictionary, text_width, self.n_texts)?;
        let word = |code: &[u8]| {
            let code = big_endian(code);
            words.get(code).ok_or_else(|| {
                Fault::new(format!("code {code} in a dictionary of {} texts", words.len()))
            })
        };
        let codes = self.data.chunks_exact(code_width);
        if !codes.remainder().is_empty() {
            return Err(Fault::new(format!("codes of {code_width} bytes are not whole")));
        }
        let mut len = 0_usize;
        for code in codes.clone() {
            len = len.saturating_add(word(code)?.len());
        }
        self.check(codes.len(), len)?;
        let mut out = self.empty()?;
        for code in codes {
            out.push(word(code)?);
        }
        Ok(out)
    }

    fn check(&self, n_texts: usize, len: usize) -> Result<(), Fault> {
        if (n_texts, len) == (self.n_texts, self.len) {
            return Ok(());
        }
        let (n_claimed, claimed) = (self.n_texts, self.len);
        Err(Fault::new(format!(
            "{n_texts} texts of {len} bytes instead of {n_claimed} of {claimed}"
        )))
    }

    /// Room for the texts.
    fn empty(&self) -> Result<Texts, Fault> {
        let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
        reserve(&mut bytes, self.len)?;
        reserve(&mut offsets, self.n_texts.saturating_add(1))?;
        offsets.push(0);
        Ok(Texts { bytes, offsets })
    }
}

impl Texts {
    fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.offsets.push(self.bytes.len());
    }
}

/// Runs of equal texts.
struct Runs<'a> {
    cursor: Cursor<'a>,
    run_width: usize,
    text_width: usize,
}

impl<'a> Runs<'a> {
    /// The next run: how many texts, and the text.
    fn next(&mut self) -> Result<Option<(usize, &'a [u8])>, Fault> {
        if self.cursor.remaining().is_empty() {
            return Ok(None);
        }
        let n = big_endian(self.cursor.take(self.run_width, "a run's length")?);
        let len = big_endian(self.cursor.take(self.text_width, "a text's length")?);
        Ok(Some((n, self.cursor.take(len, "a text")?)))
    }
}

/// Splits a dictionary, which has at most `most` texts.
fn words(dictionary: &[u8], text_width: usize, most: usize) -> Result<Vec<&[u8]>, Fault> {
    let mut cursor = Cursor::new(dictionary);
    let mut words = Vec::new();
    while !cursor.remaining().is_empty() {
        if words.len() == most {
            return Err(Fault::new(format!("a dictionary of more texts than the {most} encoded")));
        }
        let len = big_endian(cursor.take(text_width, "a text's length")?);
        reserve(&mut words, 1)?;
        words.push(cursor.take(len, "a text of a dictionary")?);
    }
    Ok(words)
}

fn width(metadata: &mut Cursor<'_>, what: &str) -> Result<usize, Fault> {
    match metadata.u8(what)? {
        width @ (1 | 2 | 4 | 8) => Ok(width.into()),
        other => Err(Fault::new(format!("{what} are {other}"))),
    }
}

/// A number of at most 8 bytes; `usize::MAX` if it is larger.
fn big_endian(bytes: &[u8]) -> usize {
    let number = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
