//! The groups and arrays of a store by path, from consolidated metadata or their own files.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrays::{DecodeMemory, Request, Scalar, StoredArray};
use rayon::ThreadPool;
use serde_json::{Map, Value};
use storage::{FileVersion, Storage};
use worktime::ReadStats;

use crate::error::Error;
use crate::walk;

/// What the root of a collection that annbatch wrote has as its encoding.
const COLLECTION: &str = "annbatch-preshuffled";
/// What the names of its data sets begin with; a number follows.
const DATASET: &str = "dataset_";
/// The attribute by which crate `hdf5` says why an object of a file is not read.
const UNREADABLE: &str = "hdf5.unreadable";
/// The most groups in which names with slashes are looked for: links may lead back to a group.
const MOST_NESTED: usize = 1 << 8;

/// Files with metadata, by the version of Zarr.
const V3_FILE: &str = "zarr.json";
const V2_FILES: [&str; 3] = [".zarray", ".zgroup", ".zattrs"];

/// A group or an array.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// The metadata of an array; `None` for a group.
    pub(crate) array: Option<Map<String, Value>>,
    pub(crate) attributes: Map<String, Value>,
}

impl Node {
    /// A text among its attributes.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).and_then(Value::as_str)
    }

    /// The attribute `encoding-type`; empty if there is none.
    pub(crate) fn encoding(&self) -> &str {
        self.text("encoding-type").unwrap_or_default()
    }

    /// Whether it is only a part of its members' names: h5py makes such a group for each slash.
    fn is_part_of_names(&self) -> bool {
        self.array.is_none() && (self.encoding() == "dict" || self.attributes.is_empty())
    }
}

/// The elements of one store.
#[derive(Debug)]
pub(crate) struct Elements {
    storage: Arc<dyn Storage>,
    pool: Arc<ThreadPool>,
    memory: DecodeMemory,
    is_v3: bool,
    is_consolidated: bool,
    /// The groups that have obs, var and X: the root alone, or the data sets of a collection.
    roots: Vec<String>,
    /// By path; `None` for one that does not exist.
    known: Mutex<HashMap<String, Option<Arc<Node>>>>,
}

impl Elements {
    /// Reads the metadata of the root; `None` if there is no Zarr group.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        pool: Arc<ThreadPool>,
    ) -> Result<Option<Self>, Error> {
        let files = [V3_FILE, ".zmetadata", ".zgroup", ".zattrs"];
        let read = read_json(&*storage, &files).into_iter().collect::<Result<Vec<_>, _>>()?;
        let [v3, consolidated, v2, attributes] = &read[..] else { return Ok(None) };
        let mut known = HashMap::new();
        let mut is_consolidated = false;
        if let Some(root) = v3 {
            if let Some(Value::Object(all)) =
                root.get("consolidated_metadata").and_then(|all| all.get("metadata"))
            {
                is_consolidated = true;
                let nodes = all.iter().filter_map(|(path, node)| Some((path, node.as_object()?)));
                known.extend(nodes.map(|(path, node)| (path.clone(), Some(Arc::new(of_v3(node))))));
            }
            known.insert(String::new(), Some(Arc::new(of_v3(root))));
        } else if v2.is_some() {
            if let Some(Value::Object(all)) =
                consolidated.as_ref().and_then(|of| of.get("metadata"))
            {
                is_consolidated = true;
                known.extend(of_consolidated_v2(all));
            }
            let attributes = attributes.clone().unwrap_or_default();
            known.insert(String::new(), Some(Arc::new(Node { array: None, attributes })));
        } else {
            return Ok(None);
        }
        let (is_v3, memory) = (v3.is_some(), DecodeMemory::default());
        let (known, roots) = (Mutex::new(known), vec![String::new()]);
        let mut elements = Self { storage, pool, memory, is_v3, is_consolidated, roots, known };
        if elements.get("")?.encoding() == COLLECTION {
            elements.roots = elements.datasets()?;
        }
        Ok(Some(elements))
    }

    /// The data sets of a collection, `dataset_0` and so on, in the order of their numbers. Numbers
    /// may be missing, as annbatch allows.
    fn datasets(&self) -> Result<Vec<String>, Error> {
        let number = |name: &String| name.strip_prefix(DATASET)?.parse::<u64>().ok();
        let mut found: Vec<String> = self.children("")?;
        found.retain(|name| number(name).is_some());
        found.sort_by_key(number);
        if found.is_empty() {
            return Err(self.damaged("its root", "it is a collection without data sets"));
        }
        Ok(found)
    }

    /// The paths of an element in all data sets.
    pub(crate) fn paths(&self, name: &str) -> Vec<String> {
        self.roots.iter().map(|root| joined(root, name)).collect()
    }

    /// The path of an element in the first data set.
    pub(crate) fn first(&self, name: &str) -> String {
        self.paths(name).swap_remove(0)
    }

    /// Whether it is a collection of data sets.
    pub(crate) fn is_collection(&self) -> bool {
        self.roots.iter().any(|root| !root.is_empty())
    }

    pub(crate) fn place(&self) -> String {
        self.storage.place()
    }

    pub(crate) fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    /// Learns the metadata of those of `paths` that are not known, all together.
    ///
    /// # Errors
    /// The first that cannot be read; the others are known then.
    pub(crate) fn gather(&self, paths: &[String]) -> Result<(), Error> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing: Vec<&String> =
            paths.iter().filter(|path| !known.contains_key(*path)).collect();
        drop(known);
        missing.sort_unstable();
        missing.dedup();
        let names = self.metadata_files();
        let files: Vec<String> =
            missing.iter().flat_map(|path| names.iter().map(|name| joined(path, name))).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let mut read = read_json(&*self.storage, &files).into_iter();
        let mut failure = None;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for path in missing {
            // All of them are taken, also after an error.
            let of_path: Vec<_> = read.by_ref().take(names.len()).collect();
            match of_path.into_iter().collect::<Result<Vec<_>, Error>>() {
                Ok(of_path) => drop(known.insert(path.clone(), node_of(of_path).map(Arc::new))),
                Err(error) => drop(failure.get_or_insert(error)),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// The group or array at `path`; `None` if there is none.
    pub(crate) fn find(&self, path: &str) -> Result<Option<Arc<Node>>, Error> {
        self.gather(&[path.to_owned()])?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(known.get(path).cloned().flatten())
    }

    /// The group or array at `path`.
    pub(crate) fn get(&self, path: &str) -> Result<Arc<Node>, Error> {
        self.find(path)?
            .ok_or_else(|| Error::Missing { place: self.place(), element: path.to_owned() })
    }

    /// The group or array at `path`, unless its storage says why it is not read.
    pub(crate) fn readable(&self, path: &str) -> Result<Arc<Node>, Error> {
        let node = self.get(path)?;
        match node.text(UNREADABLE) {
            Some(reason) => Err(self.unsupported(path, reason)),
            None => Ok(node),
        }
    }

    /// Opens the array at `path`.
    pub(crate) fn array(&self, path: &str) -> Result<StoredArray, Error> {
        let node = self.readable(path)?;
        let Some(metadata) = &node.array else {
            return Err(self.damaged(path, "it is a group, an array is expected"));
        };
        Ok(StoredArray::from_metadata(&self.storage, path, metadata)?)
    }

    /// Reads the value at `path`; `None` if it is an array with dimensions.
    pub(crate) fn scalar(&self, path: &str) -> Result<Option<Scalar>, Error> {
        let node = self.readable(path)?;
        let shape = node.array.as_ref().and_then(|metadata| metadata.get("shape")?.as_array());
        match &node.array {
            Some(metadata) if shape.is_some_and(Vec::is_empty) => {
                Ok(Some(Scalar::read(&self.storage, path, metadata)?))
            }
            _ => Ok(None),
        }
    }

    /// The names of the elements in the group at `path`, sorted; none if there is no such group.
    /// Those whose metadata cannot be read are among them.
    pub(crate) fn children(&self, path: &str) -> Result<Vec<String>, Error> {
        let mut names: Vec<String> = if self.is_consolidated {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let below = known.iter().filter(|(_, node)| node.is_some());
            let names = below.filter_map(|(of, _)| match path {
                "" => Some(of.as_str()),
                path => of.strip_prefix(path)?.strip_prefix('/'),
            });
            let names = names.filter(|name| !name.is_empty() && !name.contains('/'));
            names.map(str::to_owned).collect()
        } else {
            self.listed(path)?
        };
        names.sort_unstable();
        Ok(names)
    }

    /// The names of the elements in the group at `path`, sorted. A name has slashes if the element
    /// lies in groups that only its name made, as h5py does for a layer `a/b`.
    pub(crate) fn nested_children(&self, path: &str) -> Result<Vec<String>, Error> {
        let (mut names, mut n_groups) = (Vec::new(), 0);
        let mut level = self.children(path)?;
        while !level.is_empty() {
            let paths: Vec<String> = level.iter().map(|name| joined(path, name)).collect();
            // What fails here is an error when it is opened.
            drop(self.gather(&paths));
            let mut next = Vec::new();
            for (name, path) in level.into_iter().zip(paths) {
                let node = self.find(&path).ok().flatten();
                let is_part = node.is_some_and(|node| node.is_part_of_names());
                n_groups += usize::from(is_part);
                let within = if is_part && n_groups <= MOST_NESTED {
                    self.children(&path).unwrap_or_default()
                } else {
                    Vec::new()
                };
                if within.is_empty() {
                    names.push(name);
                } else {
                    next.extend(within.iter().map(|child| joined(&name, child)));
                }
            }
            level = next;
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The folders in the group at `path` that are groups or arrays, or whose metadata cannot be
    /// read.
    fn listed(&self, path: &str) -> Result<Vec<String>, Error> {
        let listed = self.storage.list(path).map_err(|source| Error::Metadata {
            place: self.place(),
            file: path.to_owned(),
            source,
        })?;
        let folders = listed.into_iter().filter(|entry| entry.is_folder);
        let mut names: Vec<String> = folders.map(|entry| entry.name).collect();
        let paths: Vec<String> = names.iter().map(|name| joined(path, name)).collect();
        // What fails here is an error when it is opened.
        drop(self.gather(&paths));
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        names.retain(|name| !matches!(known.get(&joined(path, name)), Some(None)));
        Ok(names)
    }

    /// The names of the elements in the groups `name` of all data sets, sorted, each with whether
    /// all data sets have it.
    pub(crate) fn members(&self, name: &str) -> Result<Vec<(String, bool)>, Error> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for path in self.paths(name) {
            for child in self.nested_children(&path)? {
                *counts.entry(child).or_default() += 1;
            }
        }
        let n_datasets = self.roots.len();
        Ok(counts.into_iter().map(|(name, n)| (name, n == n_datasets)).collect())
    }

    /// The versions of the files with the metadata of all elements that are read, and of the first
    /// chunk of each array.
    pub(crate) fn version(&self) -> Result<String, Error> {
        let mut files = Vec::new();
        for (path, node) in walk::read_elements(self)? {
            let chunks = node.array.as_ref().map(|array| self.first_chunks(array));
            let metadata = self.metadata_files().iter().map(|name| (*name).to_owned());
            let names = metadata.chain(chunks.unwrap_or_default());
            files.extend(names.map(|name| joined(&path, &name)));
        }
        files.sort_unstable();
        let names: Vec<&str> = files.iter().map(String::as_str).collect();
        let line = |(file, version): (&String, io::Result<FileVersion>)| match version {
            Ok(FileVersion { size, tag }) => {
                Some(Ok(format!("{file}: {size} bytes {}\n", tag.unwrap_or_default())))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => {
                Some(Err(Error::Metadata { place: self.place(), file: file.clone(), source }))
            }
        };
        files.iter().zip(self.storage.versions(&names)).filter_map(line).collect()
    }

    /// Names of the files with an element's metadata.
    fn metadata_files(&self) -> &'static [&'static str] {
        if self.is_v3 { &[V3_FILE] } else { &V2_FILES }
    }

    /// Names that the first chunk of an array may have.
    fn first_chunks(&self, array: &Map<String, Value>) -> Vec<String> {
        let n_dims = array.get("shape").and_then(Value::as_array).map_or(0, Vec::len);
        let zeros = vec!["0"; n_dims.max(1)];
        match (self.is_v3, n_dims) {
            (true, 0) => vec!["c".to_owned()],
            (true, _) => vec![format!("c/{}", zeros.join("/")), zeros.join(".")],
            (false, 0 | 1) => vec!["0".to_owned()],
            (false, _) => vec![zeros.join("."), zeros.join("/")],
        }
    }

    /// Reads requests together, on the pool.
    pub(crate) fn read(&self, requests: Vec<Request<'_>>) -> Result<ReadStats, Error> {
        let read = || arrays::read_requests(&*self.storage, &self.memory, requests);
        Ok(self.pool.install(read)?)
    }

    /// Bytes of memory of a read by all threads, each of which needs `of_thread`.
    pub(crate) fn working_bytes(&self, of_thread: u64) -> u64 {
        let n_threads = self.pool.current_num_threads() as u64;
        n_threads.saturating_mul(of_thread).saturating_add(self.storage.coalesce().prefetch_bytes)
    }

    pub(crate) fn damaged(&self, element: &str, what: impl Into<String>) -> Error {
        Error::Damaged { place: self.place(), element: element.to_owned(), what: what.into() }
    }

    pub(crate) fn unsupported(&self, element: &str, reason: impl Into<String>) -> Error {
        let reason = reason.into();
        Error::Unsupported { place: self.place(), element: element.to_owned(), reason }
    }

    /// Fails unless `rows` ascend, do not overlap, and end within `n_rows`.
    pub(crate) fn check_rows(
        &self,
        element: &str,
        rows: &[Range<u64>],
        n_rows: u64,
    ) -> Result<(), Error> {
        let mut at = 0;
        for range in rows {
            if range.start < at || range.end < range.start || n_rows < range.end {
                let (place, element) = (self.place(), element.to_owned());
                return Err(Error::Rows { place, element, rows: range.clone(), n_rows });
            }
            at = range.end;
        }
        Ok(())
    }
}

/// Whether the root of a storage is an AnnData in Zarr.
pub(crate) fn is_anndata(storage: &dyn Storage) -> io::Result<bool> {
    let read = storage.read_files(&[V3_FILE, ".zattrs"]);
    let mut failure = None;
    for bytes in read {
        match bytes {
            Ok(bytes) => {
                let json = arrays::parse_metadata(&bytes).unwrap_or_default();
                let attributes = json.get("attributes").unwrap_or(&json);
                let encoding = attributes.get("encoding-type").and_then(Value::as_str);
                if [Some("anndata"), Some(COLLECTION)].contains(&encoding) {
                    return Ok(true);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(false), Err)
}

/// The node of a `zarr.json`.
fn of_v3(json: &Map<String, Value>) -> Node {
    let attributes = json.get("attributes").and_then(Value::as_object).cloned();
    let is_array = json.get("node_type").and_then(Value::as_str) == Some("array");
    Node { array: is_array.then(|| json.clone()), attributes: attributes.unwrap_or_default() }
}

/// The nodes of a `.zmetadata`.
fn of_consolidated_v2(all: &Map<String, Value>) -> HashMap<String, Option<Arc<Node>>> {
    let mut nodes: HashMap<String, Node> = HashMap::new();
    for (file, json) in all {
        let (path, name) = file.rsplit_once('/').unwrap_or(("", file));
        let Some(json) = json.as_object() else { continue };
        let node = nodes.entry(path.to_owned()).or_default();
        match name {
            ".zarray" => node.array = Some(json.clone()),
            ".zattrs" => node.attributes.clone_from(json),
            _ => {}
        }
    }
    nodes.into_iter().map(|(path, node)| (path, Some(Arc::new(node)))).collect()
}

/// The node whose files with metadata were read; `None` if there is none.
fn node_of(files: Vec<Option<Map<String, Value>>>) -> Option<Node> {
    match <[_; 3]>::try_from(files) {
        Ok([array, group, attributes]) => (array.is_some() || group.is_some())
            .then(|| Node { array, attributes: attributes.unwrap_or_default() }),
        Err(v3) => v3.into_iter().next().flatten().as_ref().map(of_v3),
    }
}

/// The JSON objects in files; `None` for files that do not exist.
fn read_json(
    storage: &dyn Storage,
    files: &[&str],
) -> Vec<Result<Option<Map<String, Value>>, Error>> {
    let parse = |(file, bytes): (&&str, io::Result<Vec<u8>>)| {
        let failed = |source: io::Error| Error::Metadata {
            place: storage.place(),
            file: (*file).to_owned(),
            source,
        };
        match bytes {
            Ok(bytes) => arrays::parse_metadata(&bytes)
                .and_then(serde_json::from_value)
                .map(Some)
                .map_err(|e| failed(e.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    };
    if files.is_empty() {
        return Vec::new();
    }
    files.iter().zip(storage.read_files(files)).map(parse).collect()
}

/// The path of a child.
pub(crate) fn joined(path: &str, name: &str) -> String {
    match (path, name) {
        ("", path) | (path, "") => path.to_owned(),
        _ => format!("{path}/{name}"),
    }
}
