//! MuData: several AnnData over the same cells.
//!
//! A group of encoding `MuData` has obs and var of all modalities, the group `mod` with an AnnData
//! for each modality, and `obsmap` with the row of each cell in each modality.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::DataType;
use rayon::ThreadPool;
use serde_json::Value;
use storage::{Storage, Subfolder};

use crate::elements::Elements;
use crate::error::Error;
use crate::frame::Frame;
use crate::open::AnnData;

/// What the root of a MuData has as its encoding.
const MUDATA: &str = "MuData";
/// The group of the modalities.
const MODALITIES: &str = "mod";
/// The group of the rows of cells in the modalities.
const OBSMAP: &str = "obsmap";
/// The attribute of `mod` with the names of the modalities in order.
const ORDER: &str = "mod-order";
/// The attribute of the root that says which axis the modalities share.
const AXIS: &str = "axis";
/// Groups of the root that are not read.
const UNREAD: [&str; 6] = ["obsm", "obsp", "var", "varm", "varp", "uns"];

/// A MuData in Zarr, whose modalities share the cells.
#[derive(Debug, Clone)]
pub struct MuData {
    elements: Arc<Elements>,
    storage: Arc<dyn Storage>,
    pool: Arc<ThreadPool>,
}

impl MuData {
    /// Opens the MuData at the root of `storage`; `None` if its root is something else.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the modalities share features instead of cells;
    /// [`Error::Metadata`] if the storage cannot be read.
    pub fn find(storage: Arc<dyn Storage>, pool: Arc<ThreadPool>) -> Result<Option<Self>, Error> {
        let opened = Elements::open(Arc::clone(&storage), Arc::clone(&pool))?;
        let Some(elements) = opened else { return Ok(None) };
        let root = elements.get("")?;
        if root.encoding() != MUDATA {
            return Ok(None);
        }
        if root.attributes.get(AXIS).and_then(Value::as_i64) == Some(1) {
            let reason = "its modalities share features and have cells of their own (axis 1): open \
                          each modality at its address, or write it by write_h5ad, and concatenate";
            return Err(elements.unsupported("the MuData", reason));
        }
        Ok(Some(Self { elements: Arc::new(elements), storage, pool }))
    }

    /// Opens the table of all cells.
    pub fn obs(&self) -> Result<Frame, Error> {
        Frame::open(&self.elements, "obs")
    }

    /// The names of the modalities, in the order of `mod-order` if that lists exactly those that
    /// are stored, otherwise sorted.
    pub fn modalities(&self) -> Result<Vec<String>, Error> {
        let stored = self.elements.children(MODALITIES)?;
        let node = self.elements.find(MODALITIES)?.unwrap_or_default();
        let order = node.attributes.get(ORDER).and_then(Value::as_array);
        let order: Option<Vec<String>> = order
            .and_then(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect());
        let lists_all = |order: &Vec<String>| {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            sorted == stored
        };
        Ok(order.filter(lists_all).unwrap_or(stored))
    }

    /// The path of a modality.
    pub fn path_of(name: &str) -> String {
        format!("{MODALITIES}/{name}")
    }

    /// Opens a modality.
    pub fn modality(&self, name: &str) -> Result<AnnData, Error> {
        let files = Subfolder::open(Arc::clone(&self.storage), &Self::path_of(name));
        AnnData::open(files, Arc::clone(&self.pool))
    }

    /// The row of each cell in a modality, counted from 1; 0 for a cell that it lacks. Without
    /// `obsmap`, cells of the same name are the same.
    ///
    /// # Errors
    /// [`Error::Damaged`] if `obsmap` has another number of cells than obs; those of reading.
    pub fn rows_of(&self, name: &str) -> Result<Vec<u32>, Error> {
        let (obs, path) = (self.obs()?, format!("{OBSMAP}/{name}"));
        let n_cells = obs.n_rows();
        if self.elements.find(&path)?.is_none() {
            return rows_by_name(&obs, &self.modality(name)?.obs()?);
        }
        let array = self.elements.array(&path)?;
        // A column of shape (cells, 1) is one, too.
        if array.n_rows() != n_cells || array.shape().iter().skip(1).any(|n| *n != 1) {
            let what = format!("its shape is {:?}, and obs has {n_cells} cells", array.shape());
            return Err(self.elements.damaged(&path, what));
        }
        let mut rows = vec![0_u32; n_cells as usize];
        let whole = 0..n_cells;
        self.elements.read(vec![array.request(std::slice::from_ref(&whole), &mut rows)?])?;
        Ok(rows)
    }

    /// Identifies the state of its files, like [`AnnData::version`].
    ///
    /// # Errors
    /// Like [`AnnData::version`].
    pub fn version(&self) -> Result<String, Error> {
        let mut version = self.elements.version()?;
        for name in self.modalities()? {
            version.extend([&*name, "\n", &self.modality(&name)?.version()?]);
        }
        Ok(version)
    }

    /// The paths of the elements that are not read, each with the reason, like
    /// [`AnnData::unread`].
    ///
    /// # Errors
    /// Like [`AnnData::unread`].
    pub fn unread(&self) -> Result<Vec<(String, String)>, Error> {
        let mut unread = Vec::new();
        for group in UNREAD {
            let children = self.elements.children(group)?;
            let of_root = |name| (format!("{group}/{name}"), "only modalities have it".to_owned());
            unread.extend(children.into_iter().map(of_root));
        }
        for name in self.modalities()? {
            let of_modality = self.modality(&name)?.unread()?.into_iter();
            let path = Self::path_of(&name);
            unread.extend(of_modality.map(|(element, why)| (format!("{path}/{element}"), why)));
        }
        Ok(unread)
    }
}

/// The row of each cell of `obs` among those of `part` by its name, counted from 1; 0 for a cell
/// that is not there.
///
/// # Errors
/// Two cells of `part` have one name; those of reading.
pub fn rows_by_name(obs: &Frame, part: &Frame) -> Result<Vec<u32>, Error> {
    let (all, of_part) = (names(obs)?, names(part)?);
    let mut rows: HashMap<&str, u32> = HashMap::with_capacity(of_part.len());
    for (row, name) in (1..).zip(&of_part) {
        if rows.insert(name, row).is_some() {
            return Err(part.damaged(format!("two cells are called {name:?}")));
        }
    }
    Ok(all.iter().map(|name| rows.get(name.as_str()).copied().unwrap_or(0)).collect())
}

/// The index of a table as texts.
fn names(frame: &Frame) -> Result<Vec<String>, Error> {
    let read: RecordBatch = frame.read(&[frame.index_name()], 0..frame.n_rows())?;
    let texts = arrow_cast::cast(read.column(0), &DataType::LargeUtf8)
        .map_err(|error| frame.damaged(format!("its index cannot be read as texts: {error}")))?;
    let texts = texts.as_string::<i64>();
    let owned = |row| if texts.is_valid(row) { texts.value(row).to_owned() } else { String::new() };
    Ok((0..texts.len()).map(owned).collect())
}
