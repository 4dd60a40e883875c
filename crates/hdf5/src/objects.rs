//! What is known of the objects in a file.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use hdf5_reader::error::Error as Cause;
use storage::Storage;

use crate::Error;
use crate::file::File;
use crate::header::Header;
use crate::links::{Links, Target};
use crate::node::Node;
use crate::unreadable::Unreadable;

/// The group in which versions of Python's anndata before 0.8 keep categories, which columns beside
/// it refer to.
const CATEGORIES: &str = "__categories";
/// Soft links that are followed to an object.
const MAX_SOFT_LINKS: usize = 64;
/// Bytes of a file for each of its objects: no header is shorter. Links can lead to an object by
/// many paths, so paths are limited by it.
const OBJECT_BYTES: u64 = 16;
const ANY_OBJECTS: u64 = 1 << 10;
/// Bytes of chunks that were made last and are kept.
const MADE_BYTES: usize = 8 << 20;

/// What is known of the objects in a file.
pub(crate) struct Objects {
    pub(crate) file: File,
    /// The name of the file within its storage.
    pub(crate) name: String,
    pub(crate) place: String,
    pub(crate) made: MadeChunks,
    /// By path.
    nodes: Mutex<HashMap<String, Arc<Node>>>,
    /// The links of groups, by the address of the group.
    links: Mutex<HashMap<u64, Arc<Links>>>,
}

/// Chunks that were made last, by the path of the array and the place in its grid.
#[derive(Debug, Default)]
pub(crate) struct MadeChunks(Mutex<VecDeque<MadeChunk>>);

#[derive(Debug)]
struct MadeChunk {
    path: String,
    place: Vec<u64>,
    bytes: Arc<Vec<u8>>,
}

impl MadeChunks {
    pub(crate) fn find(&self, path: &str, place: &[u64]) -> Option<Arc<Vec<u8>>> {
        let chunks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = chunks.iter().find(|chunk| chunk.path == path && chunk.place == place);
        found.map(|chunk| Arc::clone(&chunk.bytes))
    }

    /// Keeps a chunk, in place of the oldest ones.
    pub(crate) fn keep(&self, path: &str, place: &[u64], bytes: Vec<u8>) -> Arc<Vec<u8>> {
        let bytes = Arc::new(bytes);
        let chunk =
            MadeChunk { path: path.to_owned(), place: place.to_vec(), bytes: Arc::clone(&bytes) };
        let mut chunks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.push_back(chunk);
        while 1 < chunks.len() && MADE_BYTES < chunks.iter().map(|chunk| chunk.bytes.len()).sum() {
            chunks.pop_front();
        }
        bytes
    }
}

impl Objects {
    /// Opens the HDF5 file `name` of a storage.
    pub(crate) fn open(storage: Arc<dyn Storage>, name: &str) -> Result<Self, Error> {
        let place = format!("{}/{name}", storage.place().trim_end_matches('/'));
        let file = File::open(storage, name).map_err(|source| match source {
            Cause::InvalidMagic => Error::OtherKind { place: place.clone() },
            source => Error::Read {
                place: place.clone(),
                object: "the file".to_owned(),
                source: Box::new(source),
            },
        })?;
        let (nodes, links, made) = (Mutex::default(), Mutex::default(), MadeChunks::default());
        Ok(Self { file, name: name.to_owned(), place, made, nodes, links })
    }

    /// The group or dataset at a path; `None` if there is none.
    pub(crate) fn node(&self, path: &str) -> io::Result<Option<Arc<Node>>> {
        let known = self.nodes.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let Some(node) = self.parse(path)?.map(Arc::new) else { return Ok(None) };
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let most = ANY_OBJECTS.saturating_add(self.file.n_bytes() / OBJECT_BYTES);
        if most < nodes.len() as u64 {
            let what = "links lead to its objects by more paths than it has room for objects";
            return Err(self.damaged(path, what.to_owned()));
        }
        Ok(Some(Arc::clone(nodes.entry(path.to_owned()).or_insert(node))))
    }

    fn parse(&self, path: &str) -> io::Result<Option<Node>> {
        let failed = |error| self.failed(path, error);
        if path.is_empty() {
            let root = self.file.root().map_err(failed)?;
            return self.read(path, vec![root]).map(Some).map_err(failed);
        }
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(parent) = self.node(above)? else { return Ok(None) };
        let Node::Group { addresses, links, .. } = &*parent else { return Ok(None) };
        let Some(target) = links.find(name) else { return Ok(None) };
        let group = addresses.last().copied().unwrap_or_default();
        let address = match self.address(group, target).map_err(failed)? {
            Ok(address) => address,
            Err(unreadable) => return Ok(Some(Node::unreadable(&unreadable))),
        };
        if addresses.contains(&address) {
            let what = "it is a link to a group that it lies in";
            return Ok(Some(Node::unreadable(&Unreadable::new("circular link", what))));
        }
        let addresses = addresses.iter().copied().chain([address]).collect();
        match self.read(path, addresses) {
            Ok(node) => Ok(Some(node)),
            Err(error @ Cause::Io(_)) => Err(failed(error)),
            Err(error) => {
                let what = format!("it cannot be read: {error}");
                Ok(Some(Node::unreadable(&Unreadable::new("damaged object", &what))))
            }
        }
    }

    fn read(&self, path: &str, addresses: Vec<u64>) -> Result<Node, Cause> {
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        let parent = addresses.iter().rev().nth(1).copied();
        let path_of = |address| match parent {
            Some(parent) => self.path_of((above, parent), address),
            None => Ok(None),
        };
        let links = |address, header: &Header| self.links(address, header);
        Node::read(&self.file, addresses, &links, &path_of)
    }

    /// The links of the group at an address.
    fn links(&self, address: u64, header: &Header) -> Result<Arc<Links>, Cause> {
        let known =
            self.links.lock().unwrap_or_else(PoisonError::into_inner).get(&address).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let read = Arc::new(Links::read(&self.file, header)?);
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(links.entry(address).or_insert(read)))
    }

    /// The address of the object that a link in the group at `group` leads to, or why it leads to
    /// none.
    fn address(&self, group: u64, target: &Target) -> Result<Result<u64, Unreadable>, Cause> {
        let (mut at, mut target) = (group, target.clone());
        let mut rest: Vec<String> = Vec::new();
        let mut n_followed = 0;
        loop {
            match target {
                Target::Object(address) => at = address,
                Target::Soft(ref path) if n_followed < MAX_SOFT_LINKS => {
                    n_followed += 1;
                    if path.starts_with('/') {
                        at = self.file.root()?;
                    }
                    let names = path.split('/').filter(|name| !["", "."].contains(name));
                    rest.extend(names.rev().map(str::to_owned));
                }
                Target::Soft(path) => return Ok(Err(broken("too many soft links lead to", &path))),
                Target::External { file, path } => {
                    let what = format!("it is an external link, to {path} of the file {file}");
                    return Ok(Err(Unreadable::new("external link", &what)));
                }
            }
            let Some(name) = rest.pop() else { return Ok(Ok(at)) };
            let links = self.links(at, &Header::read(&self.file, at)?)?;
            let Some(found) = links.find(&name) else {
                return Ok(Err(broken("it is a soft link, and there is no", &name)));
            };
            target = found.clone();
        }
    }

    /// Returns the path of the object at an address, if it lies in the group with this path and
    /// address or in the group of categories there.
    fn path_of(&self, (above, group): (&str, u64), address: u64) -> Result<Option<String>, Cause> {
        let joined = |name: &str| match above {
            "" => name.to_owned(),
            above => format!("{above}/{name}"),
        };
        let links = |group| self.links(group, &Header::read(&self.file, group)?);
        let beside = links(group)?;
        if let Some(Target::Object(categories)) = beside.find(CATEGORIES)
            && let Some(name) = links(*categories)?.name_of(address)
        {
            return Ok(Some(joined(&format!("{CATEGORIES}/{name}"))));
        }
        Ok(beside.name_of(address).map(joined))
    }

    /// The range of the file with bytes at an address.
    pub(crate) fn range(&self, path: &str, address: u64, n_bytes: u64) -> io::Result<Range<u64>> {
        let start = address.checked_add(self.file.base());
        let range = start.and_then(|start| Some(start..start.checked_add(n_bytes)?));
        let end = self.file.base().saturating_add(self.file.n_bytes());
        let range = range.filter(|range| range.end <= end);
        range.ok_or_else(|| {
            let what = format!("a chunk of {n_bytes} bytes is at {address:#x}, beyond the file");
            self.damaged(path, what)
        })
    }

    pub(crate) fn failed(&self, path: &str, source: Cause) -> io::Error {
        let object = if path.is_empty() { "the root group" } else { path };
        let source = Box::new(source);
        Error::Read { place: self.place.clone(), object: object.to_owned(), source }.into()
    }

    pub(crate) fn damaged(&self, path: &str, what: String) -> io::Error {
        Error::Damaged { place: self.place.clone(), object: path.to_owned(), what }.into()
    }
}

fn broken(what: &str, path: &str) -> Unreadable {
    Unreadable::new("soft link", &format!("{what} {path}"))
}
