//! Strings: read from the elements of a dataset, and encoded as chunks of Zarr's codec `vlen-utf8`.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hdf5_reader::error::Error;
use hdf5_reader::global_heap::GlobalHeapCollection;
use hdf5_reader::io::Cursor;

use crate::datatype::{Datatype, Element, Padding};
use crate::file::{Allowance, File, Widths};
use crate::header::invalid;

/// Bytes of heaps that are kept while strings are read.
const MAX_KEPT_BYTES: usize = 64 << 20;
/// Strings that any file may declare, and those for each of its bytes. Few bytes may stand for
/// more strings if these are equal or empty, but nobody needs so many.
const ANY_STRINGS: u64 = 1 << 20;
const STRINGS_PER_BYTE: u64 = 8;
/// The same of the bytes of strings of fixed length.
const ANY_TEXT_BYTES: u64 = 1 << 28;
const TEXT_BYTES_PER_BYTE: u64 = 64;

/// Whether a file of `n_bytes` may have `n_strings` of a datatype. The bytes of strings in heaps
/// are counted when they are read.
pub(crate) fn may_have(n_bytes: u64, n_strings: u64, datatype: &Datatype) -> bool {
    let text_bytes = match datatype.element {
        Element::FixedText(_) => n_strings.saturating_mul(datatype.n_bytes as u64),
        _ => 0,
    };
    let most = |any: u64, per_byte: u64| n_bytes.saturating_mul(per_byte).saturating_add(any);
    n_strings <= most(ANY_STRINGS, STRINGS_PER_BYTE)
        && text_bytes <= most(ANY_TEXT_BYTES, TEXT_BYTES_PER_BYTE)
}

/// Reads strings, which may lie in heaps of the file.
pub(crate) struct Strings<'a> {
    file: &'a File,
    heaps: HashMap<u64, GlobalHeapCollection>,
    kept_bytes: usize,
    allowance: Allowance,
}

impl<'a> Strings<'a> {
    pub(crate) fn new(file: &'a File) -> Self {
        let (heaps, allowance) = (HashMap::new(), Allowance::for_file(file));
        Self { file, heaps, kept_bytes: 0, allowance }
    }

    /// Reads the strings that `bytes` are; `None` if they are none.
    pub(crate) fn read(
        &mut self,
        datatype: &Datatype,
        bytes: &[u8],
    ) -> Result<Option<Vec<String>>, Error> {
        let elements = bytes.chunks_exact(datatype.n_bytes);
        match datatype.element {
            Element::FixedText(padding) => elements
                .map(|bytes| text(fixed(bytes, padding)))
                .collect::<Result<_, _>>()
                .map(Some),
            Element::Text => {
                elements.map(|bytes| self.in_heap(bytes)).collect::<Result<_, _>>().map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The string of an element that says where it lies.
    fn in_heap(&mut self, element: &[u8]) -> Result<String, Error> {
        let mut cursor = Cursor::new(element);
        let n_bytes = cursor.read_u32_le()? as usize;
        let (heap, number) =
            (cursor.read_offset(self.file.widths().offsets)?, cursor.read_u32_le()?);
        if n_bytes == 0 || heap == 0 || number == 0 || !self.file.is_address(heap) {
            return Ok(String::new());
        }
        self.allowance.take(n_bytes)?;
        let objects = self.heap(heap)?;
        let object = u16::try_from(number).ok().and_then(|number| objects.get_object(number));
        let bytes = object.and_then(|object| object.data.get(..n_bytes));
        let bytes = bytes.ok_or_else(|| {
            invalid(&format!("string {number} is not in the heap at {heap:#x}, as declared"))
        })?;
        text(fixed(bytes, Padding::Terminated))
    }

    fn heap(&mut self, address: u64) -> Result<&GlobalHeapCollection, Error> {
        if !self.heaps.contains_key(&address) {
            let Widths { offsets, lengths } = self.file.widths();
            let storage = self.file.storage();
            let heap = GlobalHeapCollection::parse_at_storage(storage, address, offsets, lengths)?;
            let n_bytes = heap.objects.iter().map(|object| 64 + object.data.len()).sum::<usize>();
            if MAX_KEPT_BYTES < self.kept_bytes + n_bytes {
                self.heaps.clear();
                self.kept_bytes = 0;
            }
            self.kept_bytes += n_bytes;
            self.heaps.insert(address, heap);
        }
        self.heaps.get(&address).ok_or_else(|| invalid("there is no such heap"))
    }
}

/// The string in a field of fixed length.
fn fixed(bytes: &[u8], padding: Padding) -> &[u8] {
    let end = match padding {
        Padding::Terminated => bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()),
        Padding::Zeros => bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1),
        Padding::Spaces => bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1),
    };
    &bytes[..end]
}

fn text(bytes: &[u8]) -> Result<String, Error> {
    let text = std::str::from_utf8(bytes);
    text.map(str::to_owned).map_err(|error| {
        let shown = String::from_utf8_lossy(bytes);
        let what = format!("a string is not UTF-8 ({error}): `{shown:.40}`");
        Error::InvalidData(what)
    })
}

/// Bytes of the strings in each chunk of a dataset that was read.
///
/// Their sum may not exceed the file: chunks whose strings are the same bytes of a heap would need
/// memory out of proportion.
#[derive(Debug, Default)]
pub(crate) struct ReadStrings(Mutex<(HashMap<Vec<u64>, u64>, u64)>);

impl ReadStrings {
    /// Counts a chunk, anew if it was counted before.
    pub(crate) fn count(&self, file: &File, chunk: &[u64], n_bytes: u64) -> Result<(), Error> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (chunks, total) = &mut *counted;
        let before = chunks.insert(chunk.to_vec(), n_bytes).unwrap_or(0);
        *total = (*total - before).saturating_add(n_bytes);
        Allowance::for_file(file).take(usize::try_from(*total).unwrap_or(usize::MAX))
    }
}

/// Encodes the strings of a chunk: their number, then each one's length and its bytes, numbers as
/// 32 bits, little-endian
/// (<https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8>). `None` if one
/// is too long.
pub(crate) fn encoded(strings: &[String]) -> Option<Vec<u8>> {
    let n_bytes: usize = strings.iter().map(String::len).sum();
    let mut bytes = Vec::with_capacity(n_bytes + strings.len() * 4 + 4);
    bytes.extend(u32::try_from(strings.len()).ok()?.to_le_bytes());
    for text in strings {
        bytes.extend(u32::try_from(text.len()).ok()?.to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    Some(bytes)
}
