//! The files that a store of Zarr would have.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use storage::{Coalesce, Entry, Expected, FileVersion, Piece, RequestCounts, Storage};

use crate::Error;
use crate::array::{ArrayNode, ChunkBytes};
use crate::chunks::StoredChunk;
use crate::layout::Stored;
use crate::node::Node;
use crate::objects::Objects;

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

/// The bytes of a file of the store.
enum Bytes {
    Inline(Arc<Vec<u8>>),
    /// A range of the HDF5 file, followed by zeros up to `padded` bytes.
    At {
        range: Range<u64>,
        padded: u64,
    },
    /// Made from a stored chunk of `stored_bytes` when it is read; its length, if known before.
    Made {
        node: Arc<Node>,
        place: Vec<u64>,
        n_bytes: Option<u64>,
        stored_bytes: u64,
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
        let objects = Objects::open(Arc::clone(&storage), name)?;
        Ok(Self { storage, objects: Arc::new(objects) })
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
        self.chunk(path, &node, place)?.ok_or_else(absent)
    }

    fn metadata(&self, path: &str) -> Option<io::Result<Bytes>> {
        let node = self.objects.node(path).transpose()?;
        Some(node.map(|node| Bytes::Inline(Arc::new(node.metadata().to_vec()))))
    }

    fn chunk(&self, path: &str, node: &Arc<Node>, place: Vec<u64>) -> io::Result<Option<Bytes>> {
        let (Node::Array(array), objects) = (&**node, &self.objects) else { return Ok(None) };
        let chunk = array.chunk(&objects.file, &place).map_err(|e| objects.failed(path, e))?;
        Ok(Some(match chunk {
            None => return Ok(None),
            Some(ChunkBytes::Inline(bytes)) => Bytes::Inline(Arc::new(bytes.to_vec())),
            Some(ChunkBytes::At { address, n_bytes, padded }) => {
                let range = objects.range(path, address, n_bytes)?;
                Bytes::At { range, padded }
            }
            Some(ChunkBytes::Made { n_bytes, stored })
                if n_bytes.is_some() || array.has_strings() =>
            {
                let (node, stored_bytes) = (Arc::clone(node), stored.n_bytes());
                Bytes::Made { node, place, n_bytes, stored_bytes }
            }
            Some(ChunkBytes::Made { .. }) => Bytes::Inline(self.made(path, array, &place)?),
        }))
    }

    /// Makes the chunk that has this file's name.
    fn made_file(&self, file: &str, node: &Node, place: &[u64]) -> io::Result<Arc<Vec<u8>>> {
        match (node, chunk_place(file)) {
            (Node::Array(array), Some((path, _))) => self.made(path, array, place),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, format!("{file} is no chunk"))),
        }
    }

    /// Makes a chunk from the stored one, or takes it from the last ones that were made.
    fn made(&self, path: &str, array: &ArrayNode, place: &[u64]) -> io::Result<Arc<Vec<u8>>> {
        let objects = &self.objects;
        if let Some(made) = objects.made.find(path, place) {
            return Ok(made);
        }
        let failed = |error| objects.failed(path, error);
        let (stored, skipped) = match array.chunk(&objects.file, place).map_err(failed)? {
            Some(ChunkBytes::Made { stored: Stored::At(chunk), .. }) => {
                let StoredChunk { address, n_bytes, skipped } = chunk;
                let range = objects.range(path, address, n_bytes)?;
                let mut bytes = zeroed(n_bytes)?;
                self.storage.read(&[Piece { file: &objects.name, range }], &mut bytes)?;
                (bytes, skipped)
            }
            Some(ChunkBytes::Made { stored: Stored::Inline(bytes), .. }) => (bytes.to_vec(), 0),
            _ => return Err(objects.damaged(path, format!("chunk {place:?} is not as it was"))),
        };
        let made = array.made(&objects.file, place, stored, skipped).map_err(failed)?;
        Ok(objects.made.keep(path, place, made))
    }

    /// Reads a piece of a file of the store. `last` is the file that was made last.
    fn read_piece<'p>(
        &self,
        piece: &Piece<'p>,
        bytes: &Bytes,
        into: &mut [u8],
        last: &mut Option<(&'p str, Arc<Vec<u8>>)>,
    ) -> io::Result<()> {
        let Piece { file, range: wanted } = piece;
        let beyond = || {
            let what = format!("{file} has not the bytes {wanted:?}, which are wanted");
            io::Error::new(io::ErrorKind::UnexpectedEof, what)
        };
        if wanted.end < wanted.start || bytes.len().is_some_and(|len| len < wanted.end) {
            return Err(beyond());
        }
        match bytes {
            Bytes::Inline(bytes) => copy(bytes, wanted, into).ok_or_else(beyond),
            Bytes::Made { node, place, .. } => {
                let made = match last.take() {
                    Some((name, made)) if name == *file => made,
                    _ => self.made_file(file, node, place)?,
                };
                let copied = copy(&made, wanted, into).ok_or_else(beyond);
                *last = Some((file, made));
                copied
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
            Node::Group { links, .. } => {
                links.iter().map(|link| folder(&link.name)).chain([metadata]).collect()
            }
            // The chunks are not listed: nobody who reads arrays asks for them.
            Node::Array(_) | Node::Unreadable { .. } => vec![folder(&"c".to_owned()), metadata],
        })
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        let bytes = self.find(file)?;
        match (&bytes, bytes.len()) {
            (_, Some(len)) => Ok(len),
            (Bytes::Made { node, place, .. }, None) => {
                Ok(self.made_file(file, node, place)?.len() as u64)
            }
            _ => Ok(0),
        }
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        let of_file = self.storage.versions(&[&self.objects.name]).pop();
        let tag = match of_file {
            Some(Ok(version)) => Ok(version.tag),
            Some(Err(error)) => Err(error),
            None => Ok(None),
        };
        let version = |file: &&str| {
            // Strings are not read to learn how long they are.
            let size = match self.find(file)? {
                Bytes::Made { n_bytes: None, stored_bytes, .. } => stored_bytes,
                bytes => bytes.len().unwrap_or(0),
            };
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
        let (mut rest, mut last) = (into, None);
        for (piece, bytes) in pieces.iter().zip(&bytes) {
            let n_bytes = piece.range.end.saturating_sub(piece.range.start);
            let n_bytes = usize::try_from(n_bytes).unwrap_or(usize::MAX);
            if rest.len() < n_bytes {
                let what = format!("{n_bytes} bytes do not fit into {}", rest.len());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            let (part, after) = rest.split_at_mut(n_bytes);
            self.read_piece(piece, bytes, part, &mut last)?;
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

impl Bytes {
    /// Their number, if it is known before they are made.
    fn len(&self) -> Option<u64> {
        match self {
            Self::Inline(bytes) => Some(bytes.len() as u64),
            Self::At { padded, .. } => Some(*padded),
            Self::Made { n_bytes, .. } => *n_bytes,
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

/// Copies a range of bytes; `None` if it is not within them.
fn copy(bytes: &[u8], range: &Range<u64>, into: &mut [u8]) -> Option<()> {
    let part = bytes.get(range.start as usize..range.end as usize);
    into.copy_from_slice(part.filter(|part| part.len() == into.len())?);
    Some(())
}

fn zeroed(n_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let len = usize::try_from(n_bytes).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    bytes.resize(len, 0);
    Ok(bytes)
}
