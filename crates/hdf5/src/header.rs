//! The messages in an object's header, as bytes.
//!
//! Each message is parsed by who needs it, so that one which cannot be read does not hide the
//! others.

use std::collections::HashSet;

use hdf5_reader::checksum::jenkins_lookup3;
use hdf5_reader::error::Error;
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::shared::{self, SharedMessage};
use hdf5_reader::messages::{
    MSG_ATTRIBUTE, MSG_CONTINUATION, MSG_DATASPACE, MSG_DATATYPE, MSG_FILL_VALUE,
    MSG_FILL_VALUE_OLD, MSG_FILTER_PIPELINE, MSG_SHARED_TABLE,
};

use crate::file::{File, Widths};
use crate::heap::Heap;

/// Most bytes of a header, and blocks that it lies in.
const MAX_HEADER_BYTES: u64 = 64 << 20;
const MAX_BLOCKS: usize = 1024;
/// A message's flag: the bytes say where it lies.
const IS_SHARED: u8 = 2;

/// A message.
#[derive(Debug)]
struct Message {
    kind: u16,
    is_shared: bool,
    bytes: Vec<u8>,
}

/// The messages of an object.
#[derive(Debug)]
pub(crate) struct Header {
    messages: Vec<Message>,
}

/// How messages follow each other in a block.
#[derive(Debug, Clone, Copy)]
enum Format {
    V1,
    V2 { with_order: bool },
}

impl Header {
    /// Reads the header at an address.
    pub(crate) fn read(file: &File, address: u64) -> Result<Self, Error> {
        let is_v2 = *file.read(address, 4)? == *b"OHDR";
        let (format, first) =
            if is_v2 { first_v2(file, address)? } else { first_v1(file, address)? };
        let (mut messages, mut visited) = (Vec::new(), HashSet::new());
        let mut n_bytes = first.len() as u64;
        let mut blocks = vec![first];
        while let Some(block) = blocks.pop() {
            for message in split(&block, format)? {
                if message.kind != MSG_CONTINUATION {
                    messages.push(message);
                    continue;
                }
                let (at, len) = continuation(file, &message.bytes)?;
                n_bytes = n_bytes.saturating_add(len);
                let is_new = visited.insert(at) && visited.len() < MAX_BLOCKS;
                if !is_new || MAX_HEADER_BYTES < n_bytes {
                    return Err(invalid("its header continues too often"));
                }
                blocks.push(continued(file, at, len, format)?);
            }
        }
        Ok(Self { messages })
    }

    /// The bytes of the first message of a kind.
    pub(crate) fn first(&self, file: &File, kind: u16) -> Result<Option<Vec<u8>>, Error> {
        self.all(file, kind).next().transpose()
    }

    /// The bytes of all messages of a kind.
    pub(crate) fn all(
        &self,
        file: &File,
        kind: u16,
    ) -> impl Iterator<Item = Result<Vec<u8>, Error>> {
        let messages = self.messages.iter().filter(move |message| message.kind == kind);
        messages.map(move |message| {
            if message.is_shared {
                return shared_message(file, kind, &message.bytes);
            }
            Ok(message.bytes.clone())
        })
    }

    /// Whether it has a message of a kind.
    pub(crate) fn has(&self, kind: u16) -> bool {
        self.messages.iter().any(|message| message.kind == kind)
    }
}

/// The bytes of a message that lies elsewhere: in the header of a committed datatype, or among the
/// messages that a file shares. `bytes` say where.
pub(crate) fn shared_message(file: &File, kind: u16, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let Widths { offsets, lengths } = file.widths();
    let place = shared::parse(&mut Cursor::new(bytes), kind, offsets, lengths, bytes.len())?;
    match place {
        SharedMessage::SharedInOhdr { address, .. } => {
            let header = Header::read(file, address)?;
            let mut own = header.messages.into_iter();
            let found = own.find(|message| message.kind == kind && !message.is_shared);
            found.map(|message| message.bytes).ok_or_else(|| {
                invalid(&format!("a message of type {kind} is not at {address:#x}, as declared"))
            })
        }
        SharedMessage::SharedInSohm { heap_id, .. } => in_shared_table(file, kind, &heap_id),
    }
}

/// The bytes of a message in the file's table of shared messages.
fn in_shared_table(file: &File, kind: u16, heap_id: &[u8]) -> Result<Vec<u8>, Error> {
    let absent = || invalid("a message is not in the file's table of shared messages");
    let extension = Header::read(file, file.extension().ok_or_else(absent)?)?;
    let table = extension.messages.iter().find(|message| message.kind == MSG_SHARED_TABLE);
    let offsets = file.widths().offsets;
    let mut cursor = Cursor::new(&table.ok_or_else(absent)?.bytes);
    cursor.skip(1)?;
    let (address, n_indices) = (cursor.read_offset(offsets)?, cursor.read_u8()?);
    let entry_bytes = 16 + 2 * u64::from(offsets);
    let table = file.read(address, 4 + u64::from(n_indices) * entry_bytes)?;
    let mut cursor = Cursor::new(&table);
    if cursor.read_bytes(4)? != b"SMTB" {
        return Err(absent());
    }
    for _ in 0..n_indices {
        cursor.skip(2)?;
        let kinds = cursor.read_u16_le()?;
        cursor.skip(12)?;
        let (_index, heap) = (cursor.read_offset(offsets)?, cursor.read_offset(offsets)?);
        if kinds & bit_of(kind) != 0 {
            return Heap::open(file, heap)?.object(heap_id);
        }
    }
    Err(absent())
}

/// The bit of a kind of messages in the table of shared messages.
fn bit_of(kind: u16) -> u16 {
    match kind {
        MSG_DATASPACE => 1,
        MSG_DATATYPE => 2,
        MSG_FILL_VALUE | MSG_FILL_VALUE_OLD => 4,
        MSG_FILTER_PIPELINE => 8,
        MSG_ATTRIBUTE => 16,
        _ => 0,
    }
}

/// The messages in the first block of a header of version 1.
fn first_v1(file: &File, address: u64) -> Result<(Format, Vec<u8>), Error> {
    let prefix = file.read(address, 16)?;
    let mut cursor = Cursor::new(&prefix);
    let version = cursor.read_u8()?;
    if version != 1 {
        return Err(Error::UnsupportedObjectHeaderVersion(version));
    }
    cursor.skip(7)?;
    let n_bytes = u64::from(cursor.read_u32_le()?);
    let start = address.checked_add(16).ok_or(Error::OffsetOutOfBounds(address))?;
    Ok((Format::V1, file.read(start, n_bytes)?.to_vec()))
}

/// The messages in the first block of a header of version 2.
fn first_v2(file: &File, address: u64) -> Result<(Format, Vec<u8>), Error> {
    let fixed = file.read(address, 6)?;
    let mut cursor = Cursor::new(&fixed);
    cursor.skip(4)?;
    let (version, flags) = (cursor.read_u8()?, cursor.read_u8()?);
    if version != 2 {
        return Err(Error::UnsupportedObjectHeaderVersion(version));
    }
    let times = if flags & 0x20 == 0 { 0 } else { 16 };
    let limits = if flags & 0x10 == 0 { 0 } else { 4 };
    let width = 1 << (flags & 3);
    let prefix_bytes = 6 + times + limits + width as u64;
    let prefix = file.read(address, prefix_bytes)?;
    let mut cursor = Cursor::new(&prefix);
    cursor.set_position(prefix_bytes - width as u64);
    let n_bytes = cursor.read_uvar(width)?.saturating_add(prefix_bytes);
    let block = checked(file, address, n_bytes)?;
    let messages = block.get(prefix_bytes as usize..).unwrap_or_default().to_vec();
    Ok((Format::V2 { with_order: flags & 4 != 0 }, messages))
}

/// The messages in a further block.
fn continued(file: &File, address: u64, n_bytes: u64, format: Format) -> Result<Vec<u8>, Error> {
    if let Format::V1 = format {
        return Ok(file.read(address, n_bytes)?.to_vec());
    }
    let block = checked(file, address, n_bytes.saturating_sub(4))?;
    let messages = block.strip_prefix(b"OCHK").ok_or(Error::InvalidObjectHeaderSignature)?;
    Ok(messages.to_vec())
}

/// Reads a block and compares the checksum that follows it.
fn checked(file: &File, address: u64, n_bytes: u64) -> Result<Vec<u8>, Error> {
    let block = file.read(address, n_bytes.saturating_add(4))?;
    let (block, checksum) = block.split_at(block.len() - 4);
    let expected = Cursor::new(checksum).read_u32_le()?;
    let actual = jenkins_lookup3(block);
    if expected != actual {
        return Err(Error::ChecksumMismatch { expected, actual });
    }
    Ok(block.to_vec())
}

/// Where a header goes on, and for how many bytes.
fn continuation(file: &File, bytes: &[u8]) -> Result<(u64, u64), Error> {
    let Widths { offsets, lengths } = file.widths();
    let mut cursor = Cursor::new(bytes);
    Ok((cursor.read_offset(offsets)?, cursor.read_length(lengths)?))
}

/// Splits a block into messages.
fn split(block: &[u8], format: Format) -> Result<Vec<Message>, Error> {
    let mut cursor = Cursor::new(block);
    let mut messages = Vec::new();
    let envelope_bytes = match format {
        Format::V1 => 8,
        Format::V2 { with_order } => 4 + if with_order { 2 } else { 0 },
    };
    // A shorter rest is a gap.
    while envelope_bytes <= cursor.remaining() {
        let kind = match format {
            Format::V1 => cursor.read_u16_le()?,
            Format::V2 { .. } => cursor.read_u8()?.into(),
        };
        let (n_bytes, flags) = (cursor.read_u16_le()?, cursor.read_u8()?);
        cursor.skip(match format {
            Format::V1 => 3,
            Format::V2 { with_order } => {
                if with_order {
                    2
                } else {
                    0
                }
            }
        })?;
        let bytes = cursor.read_bytes(n_bytes.into())?.to_vec();
        messages.push(Message { kind, is_shared: flags & IS_SHARED != 0, bytes });
    }
    Ok(messages)
}

pub(crate) fn invalid(what: &str) -> Error {
    Error::InvalidData(what.to_owned())
}
