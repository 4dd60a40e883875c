//! Methods of storages that ask another one.

/// Methods of [`Storage`](crate::Storage) that only ask the storage in the named field: within the
/// `impl` of a storage over another one.
///
/// ```
/// use std::io;
/// use storage::{Coalesce, LocalStorage, Piece, Storage, forward_storage};
///
/// /// A folder whose reads are printed.
/// #[derive(Debug)]
/// struct Printed {
///     files: LocalStorage,
/// }
///
/// impl Storage for Printed {
///     forward_storage!(files: place list size coalesce);
///
///     fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
///         println!("{} pieces", pieces.len());
///         self.files.read(pieces, into)
///     }
/// }
/// # assert!(Printed { files: LocalStorage::new("/nowhere") }.size("a").is_err());
/// ```
#[macro_export]
macro_rules! forward_storage {
    ($field:ident: $($method:ident)+) => { $($crate::forward_storage!(@$method $field);)+ };
    (@place $field:ident) => {
        fn place(&self) -> String {
            self.$field.place()
        }
    };
    (@list $field:ident) => {
        fn list(&self, folder: &str) -> ::std::io::Result<Vec<$crate::Entry>> {
            self.$field.list(folder)
        }
    };
    (@list_each $field:ident) => {
        fn list_each(&self, folders: &[&str]) -> Vec<::std::io::Result<Vec<$crate::Entry>>> {
            self.$field.list_each(folders)
        }
    };
    (@list_all $field:ident) => {
        fn list_all(&self, most: usize) -> ::std::io::Result<Option<Vec<$crate::ListedFile>>> {
            self.$field.list_all(most)
        }
    };
    (@size $field:ident) => {
        fn size(&self, file: &str) -> ::std::io::Result<u64> {
            self.$field.size(file)
        }
    };
    (@sizes $field:ident) => {
        fn sizes(&self, files: &[&str]) -> Vec<::std::io::Result<u64>> {
            self.$field.sizes(files)
        }
    };
    (@versions $field:ident) => {
        fn versions(&self, files: &[&str]) -> Vec<::std::io::Result<$crate::FileVersion>> {
            self.$field.versions(files)
        }
    };
    (@read $field:ident) => {
        fn read(&self, pieces: &[$crate::Piece<'_>], into: &mut [u8]) -> ::std::io::Result<()> {
            self.$field.read(pieces, into)
        }
    };
    (@prefetch $field:ident) => {
        fn prefetch(&self, pieces: &[$crate::Piece<'_>], read: $crate::Expected) {
            self.$field.prefetch(pieces, read);
        }
    };
    (@coalesce $field:ident) => {
        fn coalesce(&self) -> $crate::Coalesce {
            self.$field.coalesce()
        }
    };
    (@keeps_versions $field:ident) => {
        fn keeps_versions(&self) -> bool {
            self.$field.keeps_versions()
        }
    };
    (@request_counts $field:ident) => {
        fn request_counts(&self) -> Option<$crate::RequestCounts> {
            self.$field.request_counts()
        }
    };
}
