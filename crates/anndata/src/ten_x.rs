//! Matrices of 10x Genomics in HDF5, `.h5`, seen as an AnnData.
//!
//! Cell Ranger writes a matrix of features by barcodes in compressed columns, which are the rows
//! of cells by genes. So nothing is converted: a file of the AnnData is a file of the matrix by
//! another name.
//!
//! Elements and names are those of
//! [`scanpy.read_10x_h5`](https://github.com/scverse/scanpy/blob/main/src/scanpy/readwrite.py) with
//! `gex_only=False`.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use rayon::ThreadPool;
use serde_json::{Map, Value, json};
use storage::{Coalesce, Entry, Expected, FileVersion, Piece, RequestCounts, Storage};

use crate::elements::{Elements, joined};
use crate::error::Error;

/// The file with the metadata of all elements.
const METADATA: &str = "zarr.json";
/// The group of the matrix since version 3 of Cell Ranger; before, it had the genome's name.
const MATRIX: &str = "matrix";
/// The arrays of the matrix.
const PARTS: [&str; 3] = ["data", "indices", "indptr"];
/// Names of a feature's data that are columns by other names, or none.
const RENAMED: [&str; 5] = ["_all_tag_keys", "feature_type", "gene_id", "id", "name"];
/// The name of an index that has none in Python.
const INDEX: &str = "_index";

/// Where the elements of an AnnData lie in a file of 10x Genomics.
#[derive(Debug)]
pub struct TenX {
    /// Paths of arrays by those of the AnnData.
    arrays: BTreeMap<String, String>,
    /// The `zarr.json` of the root, with the metadata of all elements.
    metadata: Vec<u8>,
}

impl TenX {
    /// Looks for a matrix of 10x Genomics at the root of `storage`, the groups and arrays of an
    /// HDF5 file. `genome` chooses one of several of a file that Cell Ranger wrote before version
    /// 3. `None` if there is no such matrix.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there are several genomes and none is chosen, or one that is not
    /// there; [`Error::Damaged`] if parts of the matrix are missing; those of reading.
    pub fn find(
        storage: Arc<dyn Storage>,
        pool: Arc<ThreadPool>,
        genome: Option<&str>,
    ) -> Result<Option<Self>, Error> {
        let Some(elements) = Elements::open(storage, pool)? else { return Ok(None) };
        if elements.find("matrix/barcodes")?.is_some() {
            if let Some(genome) = genome {
                let reason = format!(
                    "it has one matrix for all genomes, so soma.genome={genome} chooses nothing: \
                     select genes by the column `genome` of var"
                );
                return Err(elements.unsupported(MATRIX, reason));
            }
            return Layout::of_features(&elements)?.described(&elements).map(Some);
        }
        let mut genomes = elements.children("")?;
        let paths = |name: &String| ["barcodes", "gene_names"].map(|of| joined(name, of));
        elements.gather(&genomes.iter().flat_map(paths).collect::<Vec<_>>())?;
        genomes.retain(|name| {
            paths(name).iter().all(|path| elements.find(path).is_ok_and(|of| of.is_some()))
        });
        let choice = match (genomes.as_slice(), genome) {
            ([], _) => return Ok(None),
            ([only], None) => only,
            (all, Some(chosen)) if all.iter().any(|name| name == chosen) => chosen,
            (all, _) => {
                let reason = format!(
                    "choose one of its genomes by the setting soma.genome: {}",
                    all.join(", ")
                );
                return Err(elements.unsupported("the matrix", reason));
            }
        };
        Layout::of_genes(choice).described(&elements).map(Some)
    }

    /// The file as an AnnData in Zarr. `file` has the groups and arrays of the file in which the
    /// matrix was [found](Self::find).
    pub fn anndata(self: &Arc<Self>, file: Arc<dyn Storage>) -> Arc<dyn Storage> {
        Arc::new(TenXStorage { file, ten_x: Arc::clone(self) })
    }
}

/// The names of what the AnnData has.
struct Layout {
    /// The group of the matrix.
    group: String,
    /// Columns of obs and of var, each with its path in the group; the index is the first.
    obs: Vec<(String, String)>,
    var: Vec<(String, String)>,
}

impl Layout {
    /// The columns of a file that Cell Ranger wrote before version 3.
    fn of_genes(genome: &str) -> Self {
        let column = |name: &str, of: &str| (name.to_owned(), of.to_owned());
        Self {
            group: genome.to_owned(),
            obs: vec![column(INDEX, "barcodes")],
            var: vec![column(INDEX, "gene_names"), column("gene_ids", "genes")],
        }
    }

    /// The columns of a newer file, which may have further ones.
    fn of_features(elements: &Elements) -> Result<Self, Error> {
        let column = |name: &str, of: &str| (name.to_owned(), of.to_owned());
        let mut obs = vec![column(INDEX, "barcodes")];
        if elements.find("matrix/filtered_barcodes")?.is_some() {
            obs.push(column("filtered_barcodes", "filtered_barcodes"));
        }
        let mut var = vec![column(INDEX, "features/name")];
        // Rows of a matrix of probes are probes, each of a gene.
        if elements.find("matrix/features/gene_id")?.is_some() {
            var.push(column("gene_ids", "features/gene_id"));
            var.push(column("probe_ids", "features/id"));
        } else {
            var.push(column("gene_ids", "features/id"));
        }
        var.push(column("feature_types", "features/feature_type"));
        for name in elements.children("matrix/features")? {
            let is_array = || {
                let node = elements.find(&joined("matrix/features", &name));
                node.is_ok_and(|node| node.is_some_and(|node| node.array.is_some()))
            };
            let is_new = !RENAMED.contains(&&*name) && var.iter().all(|(of, _)| *of != name);
            if is_new && is_array() {
                var.push(column(&name, &format!("features/{name}")));
            }
        }
        Ok(Self { group: MATRIX.to_owned(), obs, var })
    }

    /// The arrays with their metadata, and that of the groups around them.
    fn described(self, elements: &Elements) -> Result<TenX, Error> {
        let matrix = PARTS.iter().map(|part| (format!("X/{part}"), (*part).to_owned()));
        let columns = [("obs", &self.obs), ("var", &self.var)];
        let columns = columns.into_iter().flat_map(|(frame, columns)| {
            columns.iter().map(move |(name, of)| (format!("{frame}/{name}"), of.clone()))
        });
        let arrays: BTreeMap<String, String> =
            matrix.chain(columns).map(|(path, of)| (path, joined(&self.group, &of))).collect();
        elements.gather(&arrays.values().cloned().collect::<Vec<_>>())?;
        let mut nodes = Map::new();
        for (path, of) in &arrays {
            let node = elements.get(of)?;
            let Some(metadata) = &node.array else {
                return Err(elements.damaged(of, "it is a group, an array is expected"));
            };
            nodes.insert(path.clone(), Value::Object(metadata.clone()));
        }
        let [n_genes, n_cells] = shape(elements, &joined(&self.group, "shape"))?;
        let attributes = json!({
            "encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [n_cells, n_genes],
        });
        nodes.insert("X".to_owned(), group(&attributes));
        nodes.insert("obs".to_owned(), frame(&self.obs));
        nodes.insert("var".to_owned(), frame(&self.var));
        let mut root = group(&json!({ "encoding-type": "anndata", "encoding-version": "0.1.0" }));
        root["consolidated_metadata"] =
            json!({ "kind": "inline", "must_understand": false, "metadata": nodes });
        Ok(TenX { arrays, metadata: root.to_string().into_bytes() })
    }
}

/// The two numbers of a matrix's shape: features, barcodes.
fn shape(elements: &Elements, path: &str) -> Result<[u64; 2], Error> {
    let array = elements.array(path)?;
    if array.shape() != [2] {
        return Err(elements.damaged(path, "it is not two lengths"));
    }
    let mut lens = [0_u64; 2];
    let whole = 0..2;
    elements.read(vec![array.request(std::slice::from_ref(&whole), &mut lens)?])?;
    Ok(lens)
}

/// The metadata of a group.
fn group(attributes: &Value) -> Value {
    json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes })
}

/// The metadata of a table.
fn frame(columns: &[(String, String)]) -> Value {
    let names: Vec<&str> = columns.iter().skip(1).map(|(name, _)| name.as_str()).collect();
    group(&json!({
        "encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": INDEX,
        "column-order": names,
    }))
}

/// The files of the AnnData.
#[derive(Debug)]
struct TenXStorage {
    file: Arc<dyn Storage>,
    ten_x: Arc<TenX>,
}

impl TenXStorage {
    /// The name that a file of an array has in the file of 10x Genomics.
    fn original(&self, name: &str) -> io::Result<String> {
        let places = name.match_indices('/').map(|(at, _)| at);
        let mut parts = places.map(|at| name.split_at(at));
        let found = parts.find_map(|(path, rest)| Some((self.ten_x.arrays.get(path)?, rest)));
        let (array, rest) = found.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no {name}"))
        })?;
        Ok(format!("{array}{rest}"))
    }

    fn originals(&self, pieces: &[Piece<'_>]) -> io::Result<Vec<String>> {
        pieces.iter().map(|piece| self.original(piece.file)).collect()
    }
}

impl Storage for TenXStorage {
    storage::forward! { file:
        fn place() -> String;
        fn coalesce() -> Coalesce;
        fn keeps_versions() -> bool;
        fn request_counts() -> Option<RequestCounts>;
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let arrays = self.ten_x.arrays.keys();
        let below = arrays.filter_map(|path| match folder {
            "" => Some(path.as_str()),
            folder => path.strip_prefix(folder)?.strip_prefix('/'),
        });
        let mut names: Vec<&str> = below.filter_map(|path| path.split('/').next()).collect();
        names.dedup();
        let entry = |name: &str| Entry { name: name.to_owned(), is_folder: true, bytes: None };
        Ok(names.into_iter().map(entry).collect())
    }

    fn size(&self, file: &str) -> io::Result<u64> {
        match file {
            METADATA => Ok(self.ten_x.metadata.len() as u64),
            file => self.file.size(&self.original(file)?),
        }
    }

    fn versions(&self, files: &[&str]) -> Vec<io::Result<FileVersion>> {
        let version = |file: &&str| {
            if *file == METADATA {
                // Another genome of the same shape has the same bytes, of other arrays.
                let (size, arrays) = (self.ten_x.metadata.len() as u64, &self.ten_x.arrays);
                return Ok(FileVersion { size, tag: arrays.get("X/data").cloned() });
            }
            let original = self.original(file)?;
            let version = self.file.versions(&[&original]).pop();
            version.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
        };
        files.iter().map(version).collect()
    }

    fn read(&self, pieces: &[Piece<'_>], into: &mut [u8]) -> io::Result<()> {
        if let [Piece { file: METADATA, range }] = pieces {
            let bytes = self.ten_x.metadata.get(range.start as usize..range.end as usize);
            let bytes = bytes.filter(|bytes| bytes.len() == into.len());
            into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            return Ok(());
        }
        self.file.read(&moved(pieces, &self.originals(pieces)?), into)
    }

    fn prefetch(&self, pieces: &[Piece<'_>], read: Expected) {
        if let Ok(originals) = self.originals(pieces) {
            self.file.prefetch(&moved(pieces, &originals), read);
        }
    }
}

/// The same ranges, of files with these names.
fn moved<'a>(pieces: &[Piece<'_>], names: &'a [String]) -> Vec<Piece<'a>> {
    let moved = pieces.iter().zip(names);
    moved.map(|(piece, file)| Piece { file, range: piece.range.clone() }).collect()
}
