//! The header of a packed file: shape, element and the index of the blocks.

use arrays::ElementType;

use super::super::{FileError, StoredArray};
use super::section::Unread;
use super::tile::PIXELS;

/// The first bytes of every file.
pub(super) const MAGIC: [u8; 8] = *b"\x89PKCB\r\n\x1a";
const VERSION: u16 = 1;
/// The most channels that are predicted from one another.
pub(super) const MAX_CHANNELS: usize = 1024;
/// The most values of a block, so that a small file cannot ask for much memory.
const MAX_BLOCK_VALUES: usize = 1 << 22;
/// Values of a block that is written, about: a cube has 30 blocks, and the weights of all channels
/// take 0.1 % of their bytes.
const BLOCK_VALUES: usize = 1 << 20;
/// The most dimensions.
pub(super) const MAX_DIMENSIONS: usize = 8;
/// Bytes of a block in the index: its length and its checksum.
const ENTRY_BYTES: usize = 8;

/// How an array is cut into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) element: ElementType,
    /// Bytes of a value.
    pub(super) value_bytes: usize,
    pub(super) n_pixels: usize,
    /// Values of a pixel.
    pub(super) n_channels: usize,
    /// Pixels of each block but the last.
    pub(super) block_pixels: usize,
}

impl Layout {
    /// The layout in which an array is written; `None` if it has too many values for one.
    pub(super) fn new(shape: &[usize], element: ElementType) -> Option<Self> {
        let last = shape.last().copied().unwrap_or(1);
        let n_channels = if (1..=MAX_CHANNELS).contains(&last) { last } else { 1 };
        let tiles = (BLOCK_VALUES / (n_channels * PIXELS)).max(1);
        Self::of(shape, element, n_channels, tiles * PIXELS)
    }

    fn of(
        shape: &[usize],
        element: ElementType,
        n_channels: usize,
        block_pixels: usize,
    ) -> Option<Self> {
        let value_bytes = element.n_bytes();
        let n_values = StoredArray::new("", shape, element)?.n_bytes()? / value_bytes;
        let is_valid = (1..=MAX_CHANNELS).contains(&n_channels)
            && n_values.is_multiple_of(n_channels)
            && block_pixels > 0
            && block_pixels.checked_mul(n_channels).is_some_and(|n| n <= MAX_BLOCK_VALUES);
        let n_pixels = n_values / n_channels.max(1);
        is_valid.then_some(Self { element, value_bytes, n_pixels, n_channels, block_pixels })
    }

    /// Number of blocks.
    pub(super) fn n_blocks(&self) -> usize {
        self.n_pixels.div_ceil(self.block_pixels)
    }

    /// Bytes of each decoded block but the last.
    pub(super) fn block_bytes(&self) -> usize {
        self.block_pixels * self.n_channels * self.value_bytes
    }
}

/// A block in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Where it starts in the file.
    pub(super) offset: usize,
    pub(super) length: usize,
    /// CRC-32 of its stored bytes.
    pub(super) checksum: u32,
}

/// Codes of elements.
const ELEMENTS: [(u8, ElementType); 2] = [(1, ElementType::F16), (2, ElementType::F32)];

/// The code of an element; `None` if it is not supported.
pub(super) fn code(element: ElementType) -> Option<u8> {
    ELEMENTS.iter().find(|(_, known)| *known == element).map(|(code, _)| *code)
}

/// Writes the header of a file whose blocks are `blocks`. Returns `None` if a length exceeds its
/// field.
pub(super) fn write(shape: &[usize], layout: &Layout, blocks: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut header = Vec::new();
    header.extend(MAGIC);
    header.extend(VERSION.to_le_bytes());
    header.push(code(layout.element)?);
    header.push(u8::try_from(shape.len()).ok().filter(|&n| usize::from(n) <= MAX_DIMENSIONS)?);
    for length in [layout.n_channels, layout.block_pixels] {
        header.extend(u32::try_from(length).ok()?.to_le_bytes());
    }
    for &length in shape {
        header.extend(u64::try_from(length).ok()?.to_le_bytes());
    }
    for block in blocks {
        header.extend(u32::try_from(block.len()).ok()?.to_le_bytes());
        header.extend(crc32fast::hash(block).to_le_bytes());
    }
    let checksum = crc32fast::hash(&header);
    header.extend(checksum.to_le_bytes());
    Some(header)
}

/// Parses the header: the array, how it is cut, and its blocks, which fill the rest of the file.
pub(super) fn parse(bytes: &[u8]) -> Result<(StoredArray, Layout, Vec<Entry>), FileError> {
    let mut unread = Unread { bytes, offset: 0 };
    let magic: [u8; 8] = unread.array("the first bytes")?;
    if magic != MAGIC {
        return Err(FileError::damaged(0, "the first bytes are not those of a packed file"));
    }
    let version = u16::from_le_bytes(unread.array("the version")?);
    if version != VERSION {
        let reason = format!("version {version} of the format; this program reads {VERSION}");
        return Err(FileError::unsupported(8, reason));
    }
    let [element, n_dimensions] = unread.array("the element and the number of dimensions")?;
    let Some((_, element)) = ELEMENTS.iter().find(|(code, _)| *code == element) else {
        return Err(FileError::unsupported(10, format!("element {element}: known are 1 and 2")));
    };
    if usize::from(n_dimensions) > MAX_DIMENSIONS {
        let reason = format!("{n_dimensions} dimensions: at most {MAX_DIMENSIONS}");
        return Err(FileError::unsupported(11, reason));
    }
    let n_channels = unread.length("the number of channels")?;
    let block_pixels = unread.length("the pixels of a block")?;
    let shape = (0..n_dimensions).map(|_| {
        let length = u64::from_le_bytes(unread.array("the shape")?);
        let too_long = |_| FileError::damaged(20, format!("a dimension of length {length}"));
        usize::try_from(length).map_err(too_long)
    });
    let shape: Vec<usize> = shape.collect::<Result<_, _>>()?;
    let impossible = || {
        let reason = format!(
            "shape {shape:?} with {n_channels} channels in blocks of {block_pixels} pixels"
        );
        FileError::damaged(12, reason)
    };
    let array = StoredArray::new("", &shape, *element).ok_or_else(impossible)?;
    let layout = Layout::of(&shape, *element, n_channels, block_pixels).ok_or_else(impossible)?;
    let entries = take_index(&mut unread, &layout, bytes)?;
    Ok((array, layout, entries))
}

fn take_index(
    unread: &mut Unread<'_>,
    layout: &Layout,
    bytes: &[u8],
) -> Result<Vec<Entry>, FileError> {
    let n_bytes = layout.n_blocks().saturating_mul(ENTRY_BYTES);
    let start = unread.offset;
    let index = unread.take(n_bytes, "the index of the blocks")?;
    let checked = &bytes[..unread.offset];
    let checksum = u32::from_le_bytes(unread.array("the checksum of the header")?);
    if crc32fast::hash(checked) != checksum {
        return Err(FileError::damaged(start, "the header has another checksum"));
    }
    let mut entries = Vec::with_capacity(layout.n_blocks());
    let mut end = unread.offset;
    for entry in index.as_chunks::<ENTRY_BYTES>().0 {
        let [l0, l1, l2, l3, c0, c1, c2, c3] = *entry;
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let checksum = u32::from_le_bytes([c0, c1, c2, c3]);
        entries.push(Entry { offset: end, length, checksum });
        end = end.saturating_add(length);
    }
    if bytes.len() < end {
        return Err(FileError::Truncated { part: "the last block", length: bytes.len(), end });
    }
    if bytes.len() > end {
        return Err(FileError::damaged(end, "bytes follow the last block"));
    }
    Ok(entries)
}
