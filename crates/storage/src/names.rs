//! The rule for names of files and folders: they lead down from the root, and nowhere else.
//!
//! Names come from files that others wrote, such as the columns of a table. One that has `..` in it
//! would lead to other data.

use std::io;

/// Fails if a name leads out of the root.
pub(crate) fn check(name: &str) -> io::Result<()> {
    if !name.starts_with('/') && name.split('/').all(|part| part != "..") {
        return Ok(());
    }
    let what = format!("the name {name:?} leads out of the data set, so it is not followed");
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::MemoryStorage;
    use crate::{
        Client, Config, GatheredStorage, LimitedStorage, LocalStorage, ObjectOptions,
        ObjectStorage, Piece, ReadLimit, Storage, Subfolder,
    };

    /// Storages of the folder `inside`, which has `secret` beside it.
    fn storages(root: &Path) -> Vec<Arc<dyn Storage>> {
        let inside = root.join("inside");
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("a"), b"0123").unwrap();
        fs::write(root.join("secret"), b"4567").unwrap();
        let local: Arc<dyn Storage> = Arc::new(LocalStorage::new(&inside));
        let limit = ReadLimit::new(std::num::NonZeroU64::new(1 << 30).unwrap());
        let objects = ObjectStorage::new(
            Arc::new(InMemory::new()),
            "inside".into(),
            "memory",
            ObjectOptions::default(),
        );
        let client = Client::open(root.to_str().unwrap(), &Config::new()).unwrap();
        let zip = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/small.zip");
        let zip = Client::open(zip, &Config::new()).unwrap();
        vec![
            zip.storage("", None, None).unwrap().storage,
            zip.storage("folder", None, None).unwrap().storage,
            Subfolder::open(Arc::new(LocalStorage::new(root)), "inside"),
            Arc::new(GatheredStorage::new(Arc::clone(&local))),
            Arc::new(LimitedStorage::new(Arc::clone(&local), Arc::new(limit))),
            Arc::new(objects.unwrap()),
            Arc::new(MemoryStorage::of_folder(&inside).unwrap()),
            client.storage("inside", None, None).unwrap().storage,
            local,
        ]
    }

    #[test]
    fn no_storage_follows_a_name_out_of_its_root() {
        let root = tempfile::tempdir().unwrap();
        let secret = root.path().join("secret").display().to_string();
        for storage in storages(root.path()) {
            for name in ["..", "../secret", "b/../../secret", "a/..", "..//secret", &secret] {
                let pieces = [Piece { file: name, range: 0..4 }];
                let mut into = [0; 4];
                let errors = [
                    storage.list(name).err(),
                    storage.list_each(&[name]).remove(0).err(),
                    storage.size(name).err(),
                    storage.sizes(&[name]).remove(0).err(),
                    storage.versions(&[name]).remove(0).err(),
                    storage.read(&pieces, &mut into).err(),
                    storage.read_files(&[name]).remove(0).err(),
                ];
                for error in errors {
                    let kind = error.map(|error| error.kind());
                    assert_eq!(kind, Some(io::ErrorKind::InvalidInput), "{storage:?}: {name}");
                }
                assert_eq!(into, [0; 4]);
            }
        }
    }

    #[test]
    fn no_client_opens_a_folder_outside() {
        let root = tempfile::tempdir().unwrap();
        let client = Client::open(root.path().to_str().unwrap(), &Config::new()).unwrap();
        let error = client.storage("../x", None, None).unwrap_err();
        assert!(error.to_string().contains("leads out"), "{error}");
    }

    #[test]
    fn names_may_have_any_points() {
        for name in ["", "a", ".zarray", "a/...", "..a/b..", "a/./b"] {
            check(name).unwrap();
        }
    }
}
