//! The files that a store of Zarr would have.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write as _};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use hdf5_reader::Hdf5File;
use storage::{Coalesce, Entry, Expected, FileVersion, Piece, RequestCounts, Storage};

use crate::Error;
use crate::file;
use crate::node::{ArrayNode, ChunkBytes, Node};

const METADATA: &str = "zarr.json";

/// The groups and datasets of an HDF5 file as the files of a Zarr v3 store.
///
/// A group or dataset is parsed when it is first asked for, and the index of a dataset's chunks
/// when the first of them is. Clones share what is known.
#[derive(Clone)]
pub struct Hdf5Storage {
    storage: Arc<dyn Storage>,
    objects: Arc<Objects>,
}

/// What is known of the objects in a file.
struct Objects {
    hdf5: Hdf5File,
    /// The name of the file within its storage.
    name: String,
    place: String,
    /// Where the file's addresses begin.
    base: u64,
    /// By path; `None` for one that does not exist.
    nodes: Mutex<HashMap<String, Option<Arc<Node>>>>,
}

/// The bytes of a file of the store.
enum Bytes {
    Inline(Vec<u8>),
    /// A range of the HDF5 file, followed by zeros up to `padded` bytes.
    At {
        range: Range<u64>,
        padded: u64,
    },
}

impl fmt::Debug for Hdf5Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, name) = (&self.storage, &self.objects.name);
        f.debug_struct("Hdf5Storage").field("storage", place).field("name", name).finish()
    }
}

impl Hdf5Storage {
    /// Opens the HDF5 file `name` of a storage. Reads its superblock.
    ///
    /// # Errors
    /// [`Error::Read`]: the file cannot be read or is no HDF5 file.
    pub fn open(storage: Arc<dyn Storage>, name: &str) -> Result<Self, Error> {
        let place = format!("{}/{name}", storage.place().trim_end_matches('/'));
        let (hdf5, base) =
            file::open(Arc::clone(&storage), name).map_err(|source| Error::Read {
                place: place.clone(),
                object: "the file".to_owned(),
                source: Box::new(source),
            })?;
        let (name, nodes) = (name.to_owned(), Mutex::default());
        Ok(Self { storage, objects: Arc::new(Objects { hdf5, name, place, base, nodes }) })
    }

    /// The same file, whose chunks are read from another storage, which has it by the same name.
    #[must_use]
    pub fn reading(&self, storage: Arc<dyn Storage>) -> Self {
        Self { storage, objects: Arc::clone(&self.objects) }
    }

    /// The bytes of a file of the store.
    fn find(&self, file: &str) -> io::Result<Bytes> {
        let absent = || io::Error::new(io::ErrorKind::NotFound, format!("there is no {file}"));
        if file == METADATA {
            return self.metadata("").ok_or_else(absent)?;
        }
        if let Some(path) = file.strip_suffix("/zarr.json") {
            return self.metadata(path).ok_or_else(absent)?;
        }
        let (path, place) = chunk_place(file).ok_or_else(absent)?;
        let node = self.objects.node(path)?.ok_or_else(absent)?;
        let Node::Array(array) = &*node else { return Err(absent()) };
        self.chunk(path, array, &place)?.ok_or_else(absent)
    }

    fn metadata(&self, path: &str) -> Option<io::Result<Bytes>> {
        let node = self.objects.node(path).transpose()?;
        Some(node.map(|node| Bytes::Inline(node.metadata().to_vec())))
    }

    fn chunk(&self, path: &str, array: &ArrayNode, place: &[u64]) -> io::Result<Option<Bytes>> {
        let objects = &self.objects;
        let chunk = array.chunk(&objects.hdf5, place).map_err(|e| objects.failed(path, e))?;
        let Some(chunk) = chunk else { return Ok(None) };
        let range = |address: u64, n_bytes: u64| {
            let start = address.checked_add(objects.base);
            let range = start.and_then(|start| Some(start..start.checked_add(n_bytes)?));
            range.ok_or_else(|| objects.damaged(path, format!("a chunk is at {address:#x}")))
        };
        Ok(Some(match chunk {
            ChunkBytes::Inline(bytes) => Bytes::Inline(bytes.to_vec()),
            ChunkBytes::At { address, n_bytes, padded } => {
                Bytes::At { range: range(address, n_bytes)?, padded }
            }
            ChunkBytes::NotDeflated { address, n_bytes } => {
                let range = range(address, n_bytes)?;
                let mut bytes = zeroed(n_bytes)?;
                let piece = Piece { file: &objects.name, range };
                self.storage.read(&[piece], &mut bytes)?;
                let mut stream = ZlibEncoder::new(Vec::new(), Compression::none());
                stream.write_all(&bytes)?;
                Bytes::Inline(stream.finish()?)
            }
        }))
    }

    /// Reads a piece of a file of the store.
    fn read_piece(&self, piece: &Piece<'_>, bytes: &Bytes, into: &mut [u8]) -> io::Result<()> {
        let Piece { file, range: wanted } = piece;
        let beyond = || {
            let what = format!("{file} has {} bytes, {wanted:?} are wanted", bytes.len());
            io::Error::new(io::ErrorKind::UnexpectedEof, what)
        };
        if wanted.end < wanted.start || bytes.len() < wanted.end {
            return Err(beyond());
        }
        match bytes {
            Bytes::Inline(bytes) => {
                let part = bytes.get(wanted.start as usize..wanted.end as usize);
                into.copy_from_slice(part.ok_or_else(beyond)?);
                Ok(())
            }
            Bytes::At { range, .. } => {
                let start = (range.start + wanted.start).min(range.end);
                let end = (range.start + wanted.end).min(range.end);
                let (stored, zeros) = into.split_at_mut((end - start) as usize);
                zeros.fill(0);
                if stored.is_empty() {
                    return Ok(());
                }
                self.storage.read(&[Piece { file: &self.objects.name, range: start..end }], stored)
            }
        }
    }

    /// The pieces of the HDF5 file that pieces of the store are, if all lie there.
    fn in_file(&self, pieces: &[Piece<'_>], bytes: &[Bytes]) -> Option<Vec<Piece<'_>>> {
        let in_file = |(piece, bytes): (&Piece<'_>, &Bytes)| match bytes {
            Bytes::At { range, .. } if piece.range.start <= piece.range.end => {
                let start = range.start.checked_add(piece.range.start)?;
                let end = range.start.checked_add(piece.range.end)?;
                let within = end <= range.end;
                within.then_some(Piece { file: &self.objects.name, range: start..end })
            }
            _ => None,
        };
        pieces.iter().zip(bytes).map(in_file).collect()
    }
}

impl Storage for Hdf5Storage {
    fn place(&self) -> String {
        self.objects.place.clone()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let Some(node) = self.objects.node(folder.trim_matches('/'))? else {
            return Ok(Vec::new());
        };
        let metadata = Entry {
            name: METADATA.to_owned(),
            is_folder: false,
            bytes: Some(node.metadata().len() as u64),
        };
        let folder = |name: &String| Entry { name: name.clone(), is_folder: true, bytes: None };
        Ok(match &*node {
            Node::Group { children, .. } => children.iter().map(folder).chain([metadata]).collect(),
            // The chunks are not listed: nobody who reads arrays asks for them.
            Node::Array(_) => vec![folder(&"c".to_owned()), metadata],
        })
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        Ok(self.find(file)?.len())
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        let of_file = self.storage.versions(&[&self.objects.name]).pop();
        let tag = match of_file {
            Some(Ok(version)) => Ok(version.tag),
            Some(Err(error)) => Err(error),
            None => Ok(None),
        };
        let version = |file: &&str| {
            let size = self.size(file)?;
            let tag = tag.as_ref().map_err(|e| io::Error::new(e.kind(), e.to_string()))?;
            Ok(FileVersion { size, tag: tag.clone() })
        };
        files.iter().map(version).collect()
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        let bytes: Vec<Bytes> =
            pieces.iter().map(|piece| self.find(piece.file)).collect::<io::Result<_>>()?;
        if let Some(in_file) = self.in_file(pieces, &bytes) {
            return self.storage.read(&in_file, into);
        }
        let mut rest = into;
        for (piece, bytes) in pieces.iter().zip(&bytes) {
            let n_bytes = piece.range.end.saturating_sub(piece.range.start);
            let n_bytes = usize::try_from(n_bytes).unwrap_or(usize::MAX);
            if rest.len() < n_bytes {
                let what = format!("{n_bytes} bytes do not fit into {}", rest.len());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            let (part, after) = rest.split_at_mut(n_bytes);
            self.read_piece(piece, bytes, part)?;
            rest = after;
        }
        Ok(())
    }

    fn prefetch(&self, pieces: &[Piece<'_>], read: Expected) {
        let found = pieces.iter().filter_map(|piece| Some((piece, self.find(piece.file).ok()?)));
        let in_file: Vec<Piece<'_>> = found
            .filter_map(|(piece, bytes)| self.in_file(std::slice::from_ref(piece), &[bytes])?.pop())
            .collect();
        self.storage.prefetch(&in_file, read);
    }

    fn coalesce(&self) -> Coalesce {
        self.storage.coalesce()
    }

    fn keeps_versions(&self) -> bool {
        self.storage.keeps_versions()
    }

    fn request_counts(&self) -> Option<RequestCounts> {
        self.storage.request_counts()
    }
}

impl Objects {
    /// The group or dataset at a path; `None` if there is none.
    fn node(&self, path: &str) -> io::Result<Option<Arc<Node>>> {
        let known = self.nodes.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let node = self.parse(path)?.map(Arc::new);
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(nodes.entry(path.to_owned()).or_insert(node).clone())
    }

    fn parse(&self, path: &str) -> io::Result<Option<Node>> {
        let failed = |error| self.failed(path, error);
        if path.is_empty() {
            return Node::group(&self.hdf5, path).map(Some).map_err(failed);
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(parent) = self.node(parent)? else { return Ok(None) };
        let Node::Group { children, .. } = &*parent else { return Ok(None) };
        if !children.iter().any(|child| child == name) {
            return Ok(None);
        }
        match Node::array(&self.hdf5, path) {
            Ok(node) => Ok(Some(node)),
            Err(error) if is_no_dataset(&error) => {
                Node::group(&self.hdf5, path).map(Some).map_err(failed)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn failed(&self, path: &str, source: hdf5_reader::error::Error) -> io::Error {
        let object = if path.is_empty() { "the root group" } else { path };
        let source = Box::new(source);
        Error::Read { place: self.place.clone(), object: object.to_owned(), source }.into()
    }

    fn damaged(&self, path: &str, what: String) -> io::Error {
        Error::Damaged { place: self.place.clone(), object: path.to_owned(), what }.into()
    }
}

impl Bytes {
    fn len(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::At { padded, .. } => *padded,
        }
    }
}

/// Splits the name of a chunk's file into the path of the array and the place in its grid:
/// `a/b/c/0/2` is chunk (0, 2) of `a/b`.
fn chunk_place(file: &str) -> Option<(&str, Vec<u64>)> {
    if let Some(scalar) = file.strip_suffix("/c") {
        return Some((scalar, Vec::new()));
    }
    let (path, place) = file.rsplit_once("/c/")?;
    let place = place.split('/').map(|index| index.parse().ok()).collect::<Option<_>>()?;
    Some((path, place))
}

fn is_no_dataset(error: &hdf5_reader::error::Error) -> bool {
    match error {
        hdf5_reader::error::Error::DatasetNotFound(_) => true,
        hdf5_reader::error::Error::Context { source, .. } => is_no_dataset(source),
        _ => false,
    }
}

fn zeroed(n_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let len = usize::try_from(n_bytes).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    bytes.resize(len, 0);
    Ok(bytes)
}
