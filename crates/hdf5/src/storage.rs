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
/// Bytes of the HDF5 file that are in memory at once while chunks are made, if each chunk is made
/// of fewer.
const MOST_FETCHED: u64 = 64 << 20;

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
            Some(ChunkBytes::Made { n_bytes, stored }) => {
                let (node, stored_bytes) = (Arc::clone(node), stored.n_bytes());
                Bytes::Made { node, place, n_bytes, stored_bytes }
            }
        }))
    }

    /// What a chunk is made from.
    fn stored<'a>(
        &self,
        path: &str,
        array: &'a ArrayNode,
        place: &[u64],
    ) -> io::Result<Stored<'a>> {
        let objects = &self.objects;
        let chunk = array.chunk(&objects.file, place).map_err(|e| objects.failed(path, e))?;
        match chunk {
            Some(ChunkBytes::Made { stored, .. }) => Ok(stored),
            _ => Err(objects.damaged(path, format!("chunk {place:?} is not as it was"))),
        }
    }

    /// Makes the chunk that has this file's name, or takes it from the last ones that were made.
    /// `fetched` are the bytes that it is made from, if they were read already.
    fn made(
        &self,
        file: &str,
        (node, place): (&Node, &[u64]),
        fetched: Option<&[u8]>,
    ) -> io::Result<Arc<Vec<u8>>> {
        let ((path, array), objects) = (array_of(file, node)?, &self.objects);
        if let Some(made) = objects.made.find(path, place) {
            return Ok(made);
        }
        let (stored, skipped) = match (self.stored(path, array, place)?, fetched) {
            (Stored::At(chunk), Some(fetched)) => (fetched.to_vec(), chunk.skipped),
            (Stored::At(StoredChunk { address, n_bytes, skipped }), None) => {
                let range = objects.range(path, address, n_bytes)?;
                let mut bytes = zeroed(n_bytes)?;
                self.storage.read(&[Piece { file: &objects.name, range }], &mut bytes)?;
                (bytes, skipped)
            }
            (Stored::Inline(bytes), _) => (bytes.to_vec(), 0),
        };
        let made = array.made(&objects.file, place, stored, skipped);
        Ok(objects.made.keep(path, place, made.map_err(|e| objects.failed(path, e))?))
    }

    /// The range of the HDF5 file that a piece needs; `None` if it needs nothing of it.
    fn needed(&self, piece: &Piece<'_>, bytes: &Bytes) -> io::Result<Option<Range<u64>>> {
        match bytes {
            Bytes::Inline(_) => Ok(None),
            Bytes::At { range, .. } => {
                let at = |place: u64| range.start.saturating_add(place).min(range.end);
                let needed = at(piece.range.start)..at(piece.range.end);
                Ok(Some(needed).filter(|needed| needed.start < needed.end))
            }
            Bytes::Made { node, place, .. } => {
                let (path, array) = array_of(piece.file, node)?;
                if self.objects.made.find(path, place).is_some() {
                    return Ok(None);
                }
                match self.stored(path, array, place)? {
                    Stored::At(StoredChunk { address, n_bytes, .. }) => {
                        self.objects.range(path, address, n_bytes).map(Some)
                    }
                    Stored::Inline(_) => Ok(None),
                }
            }
        }
    }

    /// Copies a piece of a file of the store. `fetched` is what it [needs](Self::needed), and
    /// `last` the file that was made last.
    fn copy_piece<'p>(
        &self,
        (piece, bytes): (&Piece<'p>, &Bytes),
        fetched: Option<&[u8]>,
        into: &mut [u8],
        last: &mut Option<(&'p str, Arc<Vec<u8>>)>,
    ) -> io::Result<()> {
        let Piece { file, range: wanted } = piece;
        match bytes {
            Bytes::Inline(bytes) => copy(bytes, wanted, into).ok_or_else(|| beyond(piece)),
            Bytes::Made { node, place, .. } => {
                let made = match last.take() {
                    Some((name, made)) if name == *file => made,
                    _ => self.made(file, (node, place), fetched)?,
                };
                let copied = copy(&made, wanted, into).ok_or_else(|| beyond(piece));
                *last = Some((file, made));
                copied
            }
            Bytes::At { .. } => {
                let fetched = fetched.unwrap_or_default();
                let (stored, zeros) = into.split_at_mut(fetched.len());
                stored.copy_from_slice(fetched);
                zeros.fill(0);
                Ok(())
            }
        }
    }

    /// Reads what pieces need of the HDF5 file, in one call; of the first pieces alone if it is
    /// more than [`MOST_FETCHED`]. Returns the bytes, and how many of them each of these has.
    fn fetch(&self, pieces: &[Piece<'_>], bytes: &[Bytes]) -> io::Result<(Vec<u8>, Vec<usize>)> {
        let (mut ranges, mut lens) = (Vec::new(), Vec::with_capacity(pieces.len()));
        let mut total = 0_u64;
        for (at, (piece, bytes)) in pieces.iter().zip(bytes).enumerate() {
            let before = at.checked_sub(1).and_then(|before| pieces.get(before));
            // A file is made once for pieces that follow each other.
            let is_made = matches!(bytes, Bytes::Made { .. })
                && before.is_some_and(|before| before.file == piece.file);
            let needed = if is_made { None } else { self.needed(piece, bytes)? };
            let len = needed.as_ref().map_or(0, |range| range.end - range.start);
            if 0 < at && MOST_FETCHED < total.saturating_add(len) {
                break;
            }
            lens.push(usize::try_from(len).unwrap_or(usize::MAX));
            total = total.saturating_add(len);
            ranges.extend(needed.map(|range| Piece { file: &self.objects.name, range }));
        }
        let mut fetched = zeroed(total)?;
        if !ranges.is_empty() {
            self.storage.read(&ranges, &mut fetched)?;
        }
        Ok((fetched, lens))
    }

    /// Fails unless all pieces lie in their files and fit into `n_bytes` of memory.
    fn check(pieces: &[Piece<'_>], bytes: &[Bytes], n_bytes: usize) -> io::Result<()> {
        let mut total = 0_u64;
        for (piece, bytes) in pieces.iter().zip(bytes) {
            let Range { start, end } = piece.range;
            if end < start || bytes.len().is_some_and(|len| len < end) {
                return Err(beyond(piece));
            }
            total = total.saturating_add(end - start);
        }
        if n_bytes as u64 >= total {
            return Ok(());
        }
        let what = format!("{total} bytes do not fit into {n_bytes}");
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
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
                Ok(self.made(file, (node, place), None)?.len() as u64)
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
        // Chunks whose length is known only once they are made are read together.
        let is_unknown = |file: &&&str| match self.find(file) {
            Ok(Bytes::Made { n_bytes: None, node, .. }) => !node.has_strings(),
            _ => false,
        };
        let unknown = files.iter().filter(is_unknown).map(|file| Piece { file, range: 0..0 });
        // What fails here is found again below.
        drop(self.read(&unknown.collect::<Vec<_>>(), &mut []));
        let version = |file: &&str| {
            let size = match self.find(file)? {
                // Strings are not read to learn how long they are.
                Bytes::Made { n_bytes: None, stored_bytes, node, .. } if node.has_strings() => {
                    stored_bytes
                }
                bytes => match bytes.len() {
                    Some(len) => len,
                    None => self.size(file)?,
                },
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
        Self::check(pieces, &bytes, into.len())?;
        let (mut rest, mut last, mut at) = (into, None, 0);
        while at < pieces.len() {
            let (fetched, lens) = self.fetch(&pieces[at..], &bytes[at..])?;
            let mut fetched = &fetched[..];
            for len in lens {
                let (of_piece, after) = fetched.split_at(len);
                fetched = after;
                let piece = &pieces[at];
                let n_bytes = (piece.range.end - piece.range.start) as usize;
                let (part, after) = rest.split_at_mut(n_bytes);
                rest = after;
                let of_piece = Some(of_piece).filter(|of_piece| !of_piece.is_empty());
                self.copy_piece((piece, &bytes[at]), of_piece, part, &mut last)?;
                at += 1;
            }
        }
        Ok(())
    }

    fn prefetch(&self, pieces: &[Piece<'_>], read: Expected) {
        // What fails here is an error when it is read.
        let needed = pieces.iter().filter_map(|piece| {
            let bytes = self.find(piece.file).ok()?;
            self.needed(piece, &bytes).ok().flatten()
        });
        let name = &self.objects.name;
        let needed: Vec<Piece<'_>> = needed.map(|range| Piece { file: name, range }).collect();
        self.storage.prefetch(&needed, read);
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

fn beyond(piece: &Piece<'_>) -> io::Error {
    let what = format!("{} has not the bytes {:?}, which are wanted", piece.file, piece.range);
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
}

/// The path of the array that has a chunk of this name, and the array.
fn array_of<'a>(file: &'a str, node: &'a Node) -> io::Result<(&'a str, &'a ArrayNode)> {
    match (node, chunk_place(file)) {
        (Node::Array(array), Some((path, _))) => Ok((path, array)),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, format!("{file} is no chunk"))),
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
