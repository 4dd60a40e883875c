//! The arrays of a group.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};
use storage::Storage;

use crate::chunked_array::ChunkedArray;
use crate::error::Error;
use crate::metadata::{self, Unopened};

/// The group at the root of a storage.
#[derive(Debug)]
pub struct Group {
    /// Its attributes.
    pub attributes: Map<String, Value>,
    /// Its arrays by name, each opened, or the reason why it was not.
    pub arrays: Vec<(String, Result<ChunkedArray, Error>)>,
    /// The names of groups in it.
    pub groups: Vec<String>,
}

impl Group {
    /// Opens all arrays of the group at the root of `storage`. Names come from a list of its
    /// folders, or, where nothing can be listed, from consolidated metadata.
    ///
    /// # Errors
    /// [`Error::Open`] if the root is an array, if its metadata cannot be read, or if the
    /// names are not known.
    pub fn open(storage: &Arc<dyn Storage>) -> Result<Self, Error> {
        match metadata::open(storage, "") {
            Err(Unopened::Missing | Unopened::IsGroup) => {}
            Err(unopened) => return Err(unopened.error("", &**storage)),
            Ok(_) => {
                let text = "it is an array, not a group of arrays: name the folder above it";
                return Err(Unopened::Unsupported(text.into()).error("", &**storage));
            }
        }
        let attributes = metadata::group_attributes(&**storage, "")
            .map_err(|unopened| unopened.error("", &**storage))?;
        let (mut arrays, mut groups) = (Vec::new(), Vec::new());
        for name in names(&**storage)? {
            match metadata::open(storage, &name) {
                Ok(opened) => {
                    let array = ChunkedArray::new(storage, &name, opened);
                    arrays.push((name, array));
                }
                // A folder that is nothing of Zarr's, or a group of v2.
                Err(Unopened::Missing) => {
                    if storage.size(&format!("{name}/.zgroup")).is_ok() {
                        groups.push(name);
                    }
                }
                Err(Unopened::IsGroup) => groups.push(name),
                Err(unopened) => {
                    let error = unopened.error(&name, &**storage);
                    arrays.push((name, Err(error)));
                }
            }
        }
        Ok(Self { attributes, arrays, groups })
    }
}

/// The names of folders that may be arrays or groups, in order.
fn names(storage: &dyn Storage) -> Result<BTreeSet<String>, Error> {
    let listed = storage.list("");
    if let Ok(entries) = &listed {
        let folders = entries.iter().filter(|entry| entry.is_folder);
        let names: BTreeSet<String> = folders.map(|entry| entry.name.clone()).collect();
        if !names.is_empty() {
            return Ok(names);
        }
    }
    let consolidated =
        metadata::consolidated_names(storage).map_err(|unopened| unopened.error("", storage))?;
    match (consolidated, listed) {
        (Some(names), _) => Ok(names),
        (None, Ok(_)) => Ok(BTreeSet::new()),
        (None, Err(error)) => {
            let text =
                format!("its arrays cannot be listed, and have no consolidated metadata: {error}");
            Err(Unopened::Unread(text.into()).error("", storage))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use serde_json::json;
    use storage::{Coalesce, Entry, MemoryStorage, Piece};

    use super::*;

    /// A server of files, which lists nothing.
    #[derive(Debug)]
    struct Unlisted(MemoryStorage);

    impl Storage for Unlisted {
        fn place(&self) -> String {
            self.0.place()
        }

        fn list(&self, _folder: &str) -> io::Result<Vec<Entry>> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn size(&self, file: &str) -> io::Result<u64> {
            self.0.size(file)
        }

        fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
            self.0.read(pieces, into)
        }

        fn coalesce(&self) -> Coalesce {
            self.0.coalesce()
        }
    }

    fn files(with_consolidated: bool) -> MemoryStorage {
        let array = json!({
            "zarr_format": 2, "shape": [2, 3], "chunks": [1, 3], "dtype": "<i2", "order": "C",
            "compressor": null, "filters": null, "fill_value": 7,
        });
        let group = json!({ "zarr_format": 2 });
        let consolidated = json!({
            "zarr_consolidated_format": 1,
            "metadata": { ".zgroup": group, "a/.zarray": array, "g/.zgroup": group },
        });
        let mut files = vec![
            ("a/.zarray", array.to_string().into_bytes()),
            ("a/.zattrs", json!({ "_ARRAY_DIMENSIONS": ["x", "y"] }).to_string().into_bytes()),
            ("a/1.0", vec![1, 0, 2, 0, 3, 0]),
            ("g/.zgroup", group.to_string().into_bytes()),
            ("broken/.zarray", b"{".to_vec()),
            (".zattrs", b"{\"title\": \"x\"}".to_vec()),
        ];
        if with_consolidated {
            files.push((".zmetadata", consolidated.to_string().into_bytes()));
        }
        let files = files.into_iter().map(|(name, bytes)| (name.to_owned(), Arc::new(bytes)));
        MemoryStorage { files: files.collect(), ..MemoryStorage::default() }
    }

    fn names(storage: impl Storage + 'static) -> Result<(Group, Vec<String>), Error> {
        let storage: Arc<dyn Storage> = Arc::new(storage);
        let group = Group::open(&storage)?;
        let names = group.arrays.iter().map(|(name, _)| name.clone()).collect();
        Ok((group, names))
    }

    #[test]
    fn arrays_are_found_by_listing_or_by_consolidated_metadata() {
        let (group, found) = names(files(false)).unwrap();
        assert_eq!((found, &group.groups), (vec!["a".into(), "broken".into()], &vec!["g".into()]));
        assert_eq!(group.attributes["title"], "x");
        assert!(group.arrays[1].1.is_err());
        let (group, found) = names(Unlisted(files(true))).unwrap();
        assert_eq!((found, group.groups), (vec!["a".to_owned()], vec!["g".to_owned()]));
        let error = names(Unlisted(files(false))).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("consolidated"), "{cause}");
    }

    #[test]
    fn chunks_are_read_as_stored() {
        let (group, _) = names(files(false)).unwrap();
        let array = group.arrays[0].1.as_ref().unwrap();
        assert_eq!(
            (array.dimension_names(), array.zarr_version()),
            (vec!["x".into(), "y".into()], 2)
        );
        assert!(array.attributes().is_empty() && array.fill_is_missing());
        assert_eq!(array.meaning().unwrap().missing, [7.0]);
        let mut into = [9; 6];
        // One that is not stored leaves the memory as it is.
        assert!(!array.read_chunk(&[0, 0], &mut into).unwrap());
        assert_eq!(into, [9; 6]);
        assert!(array.read_chunk(&[1, 0], &mut into).unwrap());
        assert_eq!(into, [1, 0, 2, 0, 3, 0]);
        let error = array.read_chunk(&[1, 0], &mut [0; 4]).unwrap_err();
        assert!(matches!(error, Error::ReadElements { .. }), "{error}");
        assert!(array.read_strings(&[0, 0]).is_err());
    }
}
