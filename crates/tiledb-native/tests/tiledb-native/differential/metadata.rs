//! Parses fragment metadata field by field, following the specification.

use std::io::Read as _;
use std::path::Path;

/// The sections of a metadata file, each for one of the fields: attributes, obsolete coordinates,
/// dimensions.
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
    domain: Vec<u64>,
    n_tiles: u64,
    last_tile_cells: u64,
    has_timestamps: u8,
    has_delete_metadata: u8,
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

    fn u64s(&mut self, n: usize) -> Vec<u64> {
        (0..n).map(|_| self.u64()).collect()
    }
}

impl Metadata {
    /// Parses the metadata of the fragment in `folder`, of an array with these numbers of
    /// attributes and dimensions. Its schema and its files must match it.
    pub(crate) fn parse(
        bytes: &[u8],
        folder: &Path,
        (n_attributes, n_dimensions): (usize, usize),
    ) -> Self {
        let n_fields = n_attributes + 1 + n_dimensions;
        let (rest, len) = bytes.split_at(bytes.len() - 8);
        let len = Bytes(len).u64() as usize;
        let mut footer = Bytes(&rest[rest.len() - len..]);
        let version = footer.u32();
        let schema_len = footer.u64() as usize;
        let schema = std::str::from_utf8(footer.take(schema_len)).unwrap();
        let array = folder.parent().unwrap().parent().unwrap();
        assert!(array.join("__schema").join(schema).is_file(), "{schema}");
        let (is_dense, has_no_domain) = (footer.u8(), footer.u8());
        let domain = footer.u64s(2 * n_dimensions);
        let (n_tiles, last_tile_cells) = (footer.u64(), footer.u64());
        let (has_timestamps, has_delete_metadata) = (footer.u8(), footer.u8());
        let attributes = (0..n_attributes).map(|idx| format!("a{idx}"));
        let dimensions = (0..n_dimensions).map(|idx| format!("d{idx}"));
        let names: Vec<_> = attributes.chain(["none".to_owned()]).chain(dimensions).collect();
        for end in ["", "_var", "_validity"] {
            let len = |name: &String| {
                std::fs::metadata(folder.join(format!("{name}{end}.tdb")))
                    .map_or(0, |file| file.len())
            };
            let lengths: Vec<u64> = names.iter().map(len).collect();
            assert_eq!(footer.u64s(n_fields), lengths, "{end}");
        }
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
            places.extend(
                footer.u64s(n_fields).into_iter().enumerate().map(|(idx, at)| (section(idx), at)),
            );
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
        };
        Self { footer, sections }
    }
}

/// The metadata file of the only fragment of an array with these numbers of attributes and
/// dimensions.
pub(crate) fn metadata(array: &Path, shape: (usize, usize)) -> Metadata {
    let mut folders = std::fs::read_dir(array.join("__fragments")).unwrap();
    let fragment = folders.next().unwrap().unwrap().path();
    assert!(folders.next().is_none());
    let bytes = std::fs::read(fragment.join("__fragment_metadata.tdb")).unwrap();
    Metadata::parse(&bytes, &fragment, shape)
}

/// Compares the metadata of the same cells, field by field except for places and lengths. A sum
/// of one of the fields `floats` that is NaN may be any NaN: which of several summands gives its
/// bits depends on the compiler.
pub(crate) fn compare(ours: &Metadata, theirs: &Metadata, floats: &[usize]) {
    assert_eq!(ours.footer, theirs.footer);
    assert_eq!(ours.sections.len(), theirs.sections.len());
    for ((section, ours), (other, theirs)) in ours.sections.iter().zip(&theirs.sections) {
        assert_eq!(section, other);
        match section {
            Section::TileOffsets(_) | Section::VariableOffsets(_) | Section::ValidityOffsets(_) => {
                assert_eq!(ours.len(), theirs.len(), "{section:?}");
            }
            Section::Sums(field) if floats.contains(field) => {
                assert_eq!(with_one_nan(ours), with_one_nan(theirs), "{section:?}");
            }
            Section::Whole => {
                let [ours, theirs] = [ours, theirs].map(|of| whole_with_one_nan(of, floats));
                assert_eq!(ours, theirs, "{section:?}");
            }
            _ => assert_eq!(ours, theirs, "{section:?}"),
        }
    }
}

/// The words, in which each float that is no number has the same bits.
fn with_one_nan(words: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8; 8]| {
        let number = f64::from_le_bytes(*bytes);
        if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() }
    };
    words.as_chunks().0.iter().map(word).collect()
}

/// What a fragment has of all its cells, for each field: the least and the greatest value, the sum,
/// and the number of nulls.
fn whole_with_one_nan(content: &[u8], floats: &[usize]) -> Vec<(Vec<u8>, Vec<u8>, u64, u64)> {
    let mut bytes = Bytes(content);
    let mut fields = Vec::new();
    while !bytes.0.is_empty() {
        let [least, greatest] = [0, 1].map(|_| {
            let len = bytes.u64() as usize;
            bytes.take(len).to_vec()
        });
        let sum = bytes.take(8).to_vec();
        let is_float = floats.contains(&fields.len());
        let sum = if is_float { with_one_nan(&sum)[0] } else { Bytes(&sum).u64() };
        fields.push((least, greatest, sum, bytes.u64()));
    }
    fields
}

/// The content of a file that is one generic tile.
pub(crate) fn generic_file(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    let (content, len) = generic_tile(&bytes, 22);
    assert_eq!(len, bytes.len() as u64);
    content
}

/// The content of a generic tile, and its length.
pub(crate) fn generic_tile(bytes: &[u8], version: u32) -> (Vec<u8>, u64) {
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
