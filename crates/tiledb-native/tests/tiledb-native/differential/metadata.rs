//! Parses fragment metadata field by field, following the specification.

use std::io::Read as _;
use std::path::Path;

/// The sections of a metadata file, each for one of the fields: attribute, obsolete coordinates,
/// rows, columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Tree,
    TileOffsets(usize),
    VariableOffsets(usize),
    VariableSizes(usize),
    ValidityOffsets(usize),
    Least(usize),
    Greatest(usize),
    Sums(usize),
    NullCounts(usize),
    Whole,
    Conditions,
}

/// The footer except for the schema's name, the lengths of files and the places of sections.
#[derive(Debug, PartialEq)]
pub(crate) struct Footer {
    version: u32,
    is_dense: u8,
    has_no_domain: u8,
    domain: [u64; 4],
    n_tiles: u64,
    last_tile_cells: u64,
    has_timestamps: u8,
    has_delete_metadata: u8,
    variable_bytes: [u64; 4],
    validity_bytes: [u64; 4],
}

#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) footer: Footer,
    /// Each with its content.
    pub(crate) sections: Vec<(Section, Vec<u8>)>,
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take(&mut self, n: usize) -> &[u8] {
        let (taken, rest) = self.0.split_at(n);
        self.0 = rest;
        taken
    }

    fn u8(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().unwrap())
    }

    fn four(&mut self) -> [u64; 4] {
        std::array::from_fn(|_| self.u64())
    }
}

impl Metadata {
    /// Parses the metadata of the fragment in `folder`, whose schema and files must match it.
    pub(crate) fn parse(bytes: &[u8], folder: &Path) -> Self {
        let (rest, len) = bytes.split_at(bytes.len() - 8);
        let len = Bytes(len).u64() as usize;
        let mut footer = Bytes(&rest[rest.len() - len..]);
        let version = footer.u32();
        let schema_len = footer.u64() as usize;
        let schema = std::str::from_utf8(footer.take(schema_len)).unwrap();
        let array = folder.parent().unwrap().parent().unwrap();
        assert!(array.join("__schema").join(schema).is_file(), "{schema}");
        let (is_dense, has_no_domain) = (footer.u8(), footer.u8());
        let domain = footer.four();
        let (n_tiles, last_tile_cells) = (footer.u64(), footer.u64());
        let (has_timestamps, has_delete_metadata) = (footer.u8(), footer.u8());
        let file_bytes = footer.four();
        let len = |name: &str| std::fs::metadata(folder.join(name)).unwrap().len();
        assert_eq!(file_bytes, [len("a0.tdb"), 0, len("d0.tdb"), len("d1.tdb")]);
        let (variable_bytes, validity_bytes) = (footer.four(), footer.four());
        let mut places = vec![(Section::Tree, footer.u64())];
        for section in [
            Section::TileOffsets as fn(usize) -> Section,
            Section::VariableOffsets,
            Section::VariableSizes,
            Section::ValidityOffsets,
            Section::Least,
            Section::Greatest,
            Section::Sums,
            Section::NullCounts,
        ] {
            places
                .extend(footer.four().into_iter().enumerate().map(|(idx, at)| (section(idx), at)));
        }
        places.push((Section::Whole, footer.u64()));
        places.push((Section::Conditions, footer.u64()));
        assert!(footer.0.is_empty(), "the footer goes on");
        // One after the other, without gaps.
        let mut end = 0;
        let mut sections = Vec::new();
        for (section, at) in places {
            assert_eq!(at, end, "{section:?}");
            let (content, len) = generic_tile(&bytes[at as usize..], version);
            end = at + len;
            sections.push((section, content));
        }
        assert_eq!(end as usize, rest.len() - (rest.len() - end as usize));
        let footer = Footer {
            version,
            is_dense,
            has_no_domain,
            domain,
            n_tiles,
            last_tile_cells,
            has_timestamps,
            has_delete_metadata,
            variable_bytes,
            validity_bytes,
        };
        Self { footer, sections }
    }
}

/// The content of a generic tile, and its length.
fn generic_tile(bytes: &[u8], version: u32) -> (Vec<u8>, u64) {
    let mut tile = Bytes(bytes);
    assert_eq!(tile.u32(), version);
    let (filtered_len, len) = (tile.u64(), tile.u64());
    assert_eq!((tile.u8(), tile.u64(), tile.u8()), (4, 1, 0), "chars, unencrypted");
    let pipeline_len = tile.u32() as usize;
    // 64 KiB, one filter: gzip, five bytes of options: gzip at level 1.
    assert_eq!(tile.take(pipeline_len), [0, 0, 1, 0, 1, 0, 0, 0, 1, 5, 0, 0, 0, 1, 1, 0, 0, 0]);
    let before = tile.0.len();
    let mut content = Vec::new();
    for _ in 0..tile.u64() {
        let (original_len, data_len, metadata_len) = (tile.u32(), tile.u32(), tile.u32());
        assert!(original_len <= 1 << 16 && metadata_len == 16);
        let lengths = [tile.u32(), tile.u32(), tile.u32(), tile.u32()];
        assert_eq!(lengths, [0, 1, original_len, data_len]);
        let start = content.len();
        let mut inflate = flate2::read::ZlibDecoder::new(tile.take(data_len as usize));
        inflate.read_to_end(&mut content).unwrap();
        assert_eq!(content.len() - start, original_len as usize);
    }
    assert_eq!(before - tile.0.len(), filtered_len as usize);
    assert_eq!(content.len() as u64, len);
    (content, (bytes.len() - tile.0.len()) as u64)
}
