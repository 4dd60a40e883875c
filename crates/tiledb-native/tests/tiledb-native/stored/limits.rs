//! Sizes that nothing written has are errors before memory is requested for them.

use std::io;
use std::sync::Arc;

use storage::{Coalesce, Entry, Piece, Storage};
use tiledb::{ArrayType, Attribute, CellOrder, Datatype, Dimension, Schema};
use tiledb_native::{
    ColumnCells, Error, Group, OpenOptions, Table, TableWriter, Threads, Unsupported, WriteOptions,
    create_array,
};

use super::packed::MemoryStorage;
use super::stored;
use crate::differential::metadata::generic_file;

/// More than any memory has.
const HUGE: u64 = 1 << 50;

/// A storage that claims a huge size for the files of a folder.
#[derive(Debug)]
struct Claimed {
    files: MemoryStorage,
    folder: &'static str,
}

impl Storage for Claimed {
    fn place(&self) -> String {
        self.files.place()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        self.files.list(folder)
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        let size = self.files.size(file)?;
        Ok(if file.starts_with(self.folder) { HUGE } else { size })
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        self.files.read(pieces, into)
    }

    fn coalesce(&self) -> Coalesce {
        self.files.coalesce()
    }
}

#[test]
fn huge_files_of_a_group_are_not_read() {
    for folder in ["__meta", "__group"] {
        let files = Claimed { files: stored("group"), folder };
        let error = Group::open(Arc::new(files), None).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{folder}: {error}");
        assert!(error.to_string().contains(folder), "{error}");
    }
}

#[test]
fn huge_tiles_of_huge_files_are_not_read() {
    let mut files = stored("table");
    for (path, bytes) in &mut files.files {
        if path.starts_with("__schema/__") && !path.contains("__enumerations") {
            // The filtered length in the header of a generic tile.
            bytes[4..12].copy_from_slice(&(HUGE / 2).to_le_bytes());
        }
    }
    let claimed = Claimed { files, folder: "__schema" };
    let error = Table::open(Arc::new(claimed), &OpenOptions::new(1)).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("the largest tile"), "{error}");
}

/// A generic tile without filters.
pub(super) fn unfiltered(content: &[u8]) -> Vec<u8> {
    let len = content.len() as u64;
    let mut out = 22_u32.to_le_bytes().to_vec();
    // The number of chunks and the chunk's lengths before the content.
    for number in [8 + 12 + len, len] {
        out.extend(number.to_le_bytes());
    }
    out.push(4);
    out.extend(1_u64.to_le_bytes());
    out.push(0);
    let pipeline = [65_536_u32, 0].map(u32::to_le_bytes).concat();
    out.extend((pipeline.len() as u32).to_le_bytes());
    out.extend(pipeline);
    out.extend(1_u64.to_le_bytes());
    for number in [len as u32, len as u32, 0] {
        out.extend(number.to_le_bytes());
    }
    out.extend(content);
    out
}

fn schema(attributes: Vec<Attribute>) -> Schema {
    Schema {
        array_type: ArrayType::Sparse,
        dimensions: vec![Dimension {
            name: "row".to_owned(),
            datatype: Datatype::Int64,
            domain: Some((0, 99)),
            tile_extent: Some(100),
            filters: Vec::new(),
        }],
        attributes,
        tile_order: CellOrder::RowMajor,
        cell_order: CellOrder::RowMajor,
        capacity: 10,
        allows_duplicates: false,
        offsets_filters: Vec::new(),
        coords_filters: Vec::new(),
        validity_filters: Vec::new(),
        current_domain: None,
        enumerations: Vec::new(),
    }
}

/// Rows of a column that was added later have its fill value, if that is not long.
#[test]
fn a_long_fill_value_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let [at, other] = ["table", "other"].map(|name| folder.path().join(name));
    let number = Attribute::new("number", Datatype::Int8);
    create_array(&at, &schema(vec![number.clone()]), 1).unwrap();
    let mut writer = TableWriter::create(&at, &WriteOptions::new(Threads::Own(1), 2)).unwrap();
    let numbers = ColumnCells::fixed("number", Datatype::Int8, &[4, 5, 6]);
    writer.write(&[1, 2, 3], &[numbers]).unwrap();
    writer.finish().unwrap();
    let text = Attribute::new("text", Datatype::StringUtf8);
    create_array(&other, &schema(vec![number, text]), 3).unwrap();
    let file = std::fs::read_dir(other.join("__schema")).unwrap();
    let file = file.map(|entry| entry.unwrap().path()).find(|path| path.is_file()).unwrap();
    let content = generic_file(&file);
    // After the name: type, values per cell, a pipeline without filters, the fill value's length.
    let name = b"\x04\0\0\0text";
    let found = content.windows(name.len()).position(|bytes| bytes == name).unwrap();
    let fill_at = found + name.len() + 1 + 4 + 8;
    assert_eq!(content[fill_at..fill_at + 9], [1, 0, 0, 0, 0, 0, 0, 0, 0]);
    for (len, is_read) in [(1, true), (3, true), (1 << 16, true), ((1 << 16) + 1, false)] {
        let fill = [&(len as u64).to_le_bytes()[..], &vec![b'-'; len]].concat();
        let content = [&content[..fill_at], &fill, &content[fill_at + 9..]].concat();
        let to = at.join("__schema").join(file.file_name().unwrap());
        std::fs::write(to, unfiltered(&content)).unwrap();
        let storage = Arc::new(storage::LocalStorage::new(&at));
        let read = Table::open(storage, &OpenOptions::new(1))
            .and_then(|table| table.read(&["number", "text"], None));
        match read {
            Ok(columns) => {
                assert!(is_read, "{len}");
                assert_eq!(columns[0].bytes, [4, 5, 6]);
                assert!(columns[1].bytes == vec![b'-'; 3 * len], "{len}");
            }
            Err(error) => {
                assert!(!is_read, "{len}: {error}");
                let Error::Unsupported { reason, .. } = error else { panic!("{error}") };
                let name = "text".to_owned();
                assert_eq!(reason, Unsupported::FillTooLong { name, n_bytes: len });
            }
        }
    }
}
