//! An open array of one store: its chunks, its elements, and the part of it that is selected.

use std::collections::HashMap;
use std::sync::Arc;

use pipeline::Stop;
use storage::Storage;
use zarrs::array::Array;
use zarrs::plugin::ExtensionName as _;

use crate::chunk_task::tasks;
use crate::chunks::Chunks;
use crate::convert::Convert;
use crate::element::ElementType;
use crate::error::{Cause, Error};
use crate::function::Function;
use crate::geometry::SelectedChunk;
use crate::kept::KeptChunks;
use crate::memory::{check_chunk, words};
use crate::metadata::{self, Opened};
use crate::packing::{Attributes, Packing};
use crate::patches::OpenPatches;
use crate::read;
use crate::selection::Indices;
use crate::store::Store;

/// An open array, and the part of each row that is selected.
#[derive(Debug)]
pub(crate) struct OpenArray {
    /// The number of its store.
    pub(crate) store: usize,
    pub(crate) chunks: Chunks,
    pub(crate) convert: Convert,
    /// Elements as delivered.
    pub(crate) element: ElementType,
    /// The selected indices of all dimensions but that of the steps.
    pub(crate) selected: Vec<Indices>,
    /// The first and the last valid date, if the store names them.
    pub(crate) valid: Option<ValidDates>,
    /// What samples have of a row, if that is a patch.
    pub(crate) patch: Option<PatchOfRow>,
    /// The dimension of lead times, by its number among those that are stored, if a step is one of
    /// them. It is delivered first.
    pub(crate) lead: Option<usize>,
}

/// A patch of the selected part of a row.
#[derive(Debug)]
pub(crate) struct PatchOfRow {
    /// The dimensions that are cut, by their numbers among those that are stored, each with its
    /// number among those of the patches.
    pub(crate) dims: Vec<(usize, usize)>,
    /// Elements of a patch.
    len: usize,
}

/// The first and the last date that are valid, each if it is named.
pub(crate) type ValidDates = (Option<String>, Option<String>);

/// The selected values of an array without steps, decoded.
#[derive(Debug)]
pub(crate) struct StaticValues {
    /// In words, so that elements are aligned.
    words: Vec<u64>,
    pub(crate) n_bytes: usize,
    /// Selected indices of the first dimension.
    pub(crate) n_outer: usize,
}

impl StaticValues {
    /// The values in C order.
    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.n_bytes]
    }
}

impl OpenArray {
    /// The array at `path` of the store with this number. Its rows are indices of dimension `axis`;
    /// `selected` has an entry for each other one.
    pub(crate) fn new(
        array: Array<Store>,
        path: &str,
        (storage, store): (&dyn Storage, usize),
        (axis, selected): (usize, Vec<Indices>),
    ) -> Result<Self, Error> {
        let mut chunks = Chunks::new(array, path, storage, (axis, &selected))?;
        if 0 < store {
            chunks.kept_as = format!("{store} {path}").into();
        }
        let (convert, element) = (Convert::Copy, chunks.stored);
        Ok(Self { store, convert, element, chunks, selected, valid: None, patch: None, lead: None })
    }

    /// The same with a step for each index of a selected dimension, which is delivered first.
    pub(crate) fn by_lead(self, lead: usize) -> Self {
        let array = Self { lead: Some(lead), ..self };
        let len = array.step_shape().iter().product();
        Self { patch: Some(PatchOfRow { dims: Vec::new(), len }), ..array }
    }

    /// The shape of a step: of the selected part of a row, or of a lead time of it.
    pub(crate) fn step_shape(&self) -> &[usize] {
        &self.chunks.geometry.row_shape[usize::from(self.lead.is_some())..]
    }

    /// The same with stored bytes taken for elements of type `stored`, and unpacked.
    pub(crate) fn unpacked(self, stored: ElementType, packing: Option<Packing>) -> Self {
        let chunks = Chunks { stored, ..self.chunks };
        let Some(packing) = packing else { return Self { chunks, element: stored, ..self } };
        let to = packing.delivered(stored);
        let convert = Convert::Floats { to, packing: Some(packing) };
        Self { chunks, convert, element: to, ..self }
    }

    /// The same with what a function makes of elements.
    pub(crate) fn with_function(self, function: Function) -> Self {
        let packing = match &self.convert {
            Convert::Floats { packing, .. } => packing.clone(),
            Convert::Copy | Convert::Planes { .. } | Convert::Numbers { .. } => None,
        };
        let packing = Packing::with_function(packing, function);
        let to = packing.delivered(self.element);
        Self { convert: Convert::Floats { to, packing: Some(packing) }, element: to, ..self }
    }

    /// Converts elements to a floating point type.
    pub(crate) fn deliver_as(&mut self, to: ElementType) {
        self.convert = match std::mem::replace(&mut self.convert, Convert::Copy) {
            Convert::Copy if self.element == to => Convert::Copy,
            Convert::Floats { packing, .. } => Convert::Floats { to, packing },
            Convert::Planes { plane_len, packings, .. } => {
                Convert::Planes { to, plane_len, packings }
            }
            Convert::Copy | Convert::Numbers { .. } => Convert::Floats { to, packing: None },
        };
        self.element = to;
    }

    /// Whether elements are delivered as they are stored, or as numbers that `f32` holds as well.
    pub(crate) fn is_exact_as_f32(&self) -> bool {
        let is_changed = match &self.convert {
            Convert::Copy => false,
            Convert::Floats { packing, .. } => packing.as_ref().is_some_and(Packing::is_scaled),
            Convert::Planes { .. } | Convert::Numbers { .. } => true,
        };
        !is_changed && self.chunks.stored.computed() == ElementType::F32
    }

    /// The same with elements less a mean and divided by a deviation: one pair for all, or one for
    /// each selected index of the outermost dimension of a row, or of several of them, which
    /// [`check_normalized`] has checked.
    pub(crate) fn normalized(self, by: &[(f64, f64)]) -> Result<Self, String> {
        let (to, packing) = match &self.convert {
            Convert::Floats { to, packing } => (*to, packing.as_ref()),
            Convert::Planes { .. } => {
                return Err("it is normalised by itself and in its stack".to_owned());
            }
            Convert::Copy | Convert::Numbers { .. } => (self.element, None),
        };
        let packings: Arc<[Packing]> =
            by.iter().map(|pair| Packing::normalized(packing, *pair)).collect();
        let to = packings.first().map_or(to, |packing| packing.delivered(to));
        let plane_len = (self.step_shape().iter().product::<usize>() / by.len()).max(1);
        Ok(Self { convert: Convert::Planes { to, plane_len, packings }, element: to, ..self })
    }

    /// Cuts steps into patches of this shape along some of their dimensions, each of which has a
    /// number among those of the patches.
    pub(crate) fn cut(
        &mut self,
        dims: Vec<(usize, usize)>,
        patch_shape: &[usize],
    ) -> Result<(), String> {
        let (_, n_planes) = self.convert.planes();
        check_planes(n_planes, self.step_shape(), &dims)?;
        let first = usize::from(self.lead.is_some());
        let stored = |(at, of)| Some((self.chunks.geometry.stored_dim(first + at)?, of));
        let dims = dims.into_iter().filter_map(stored).collect();
        let len = patch_shape.iter().product();
        self.convert = std::mem::replace(&mut self.convert, Convert::Copy).of_rows(len);
        self.patch = Some(PatchOfRow { dims, len });
        Ok(())
    }

    /// The chunks of a row in which a patch lies that begins at these places in the dimensions of
    /// the patches, at this one of the lead times if a step is one. Their places in it count from
    /// its first element.
    pub(crate) fn chunks_of(
        &self,
        patches: Option<&OpenPatches>,
        (starts, lead): (&[i64], u64),
    ) -> Vec<SelectedChunk> {
        let dims = self.patch.iter().flat_map(|patch| &patch.dims);
        let others = dims.filter_map(|(at, of)| {
            Some((*at, patches?.indices(*of, *starts.get(*of)?, self.selected.get(*at)?)))
        });
        let of_lead =
            self.lead.and_then(|at| Some((at, self.selected.get(at)?.slice(lead..lead + 1))));
        self.chunks.geometry.chunks_with(&others.chain(of_lead).collect::<Vec<_>>())
    }

    /// The chunk of a row in which a lead time lies; the first if a step is none.
    pub(crate) fn lead_chunk(&self, lead: u64) -> u64 {
        let found = self.lead.and_then(|at| self.chunks.geometry.selected(at));
        found.map_or(0, |(indices, len)| indices.get(lead).unwrap_or(0) / (*len as u64).max(1))
    }

    /// Whether all patches of a row lie in the same chunks.
    pub(crate) fn has_patches_in_one_chunk(&self) -> bool {
        let mut dims = self.patch.iter().flat_map(|patch| &patch.dims);
        dims.all(|(at, _)| {
            let selected = self.chunks.geometry.selected(*at);
            selected.is_none_or(|(indices, chunk)| indices.n_chunks(*chunk as u64) <= 1)
        })
    }

    /// Bytes of a sample's part of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        let row_len = self.patch.as_ref().map_or(self.chunks.geometry.row_len, |patch| patch.len);
        row_len * self.element.n_bytes()
    }

    /// Whether rows of `other` are rows of this one: the same part of the same array, delivered
    /// alike.
    pub(crate) fn has_rows_of(&self, other: &Self) -> bool {
        // Mostly they are one array: this is asked for each row.
        std::ptr::eq(self, other)
            || self.store == other.store
                && self.chunks.path == other.chunks.path
                && (&self.selected, self.lead) == (&other.selected, other.lead)
                && self.chunks.geometry.order() == other.chunks.geometry.order()
                && self.element == other.element
                && self.convert.is_like(&other.convert)
    }

    /// Bytes of the decoded chunks of the largest task.
    pub(crate) fn task_bytes(&self) -> u64 {
        if self.patch.is_some() {
            return self.chunks.chunk_bytes() as u64;
        }
        let segments = self.chunks.geometry.segments();
        let n_chunks = segments.iter().map(|segment| segment.chunks.len()).max();
        (n_chunks.unwrap_or(0) * self.chunks.chunk_bytes()) as u64
    }

    /// What distinguishes it from other arrays, and from other parts of it.
    pub(crate) fn fingerprint(&self) -> String {
        let Chunks { stored, geometry, .. } = &self.chunks;
        let along = match geometry.axis {
            0 => String::new(),
            axis => format!(" along {axis}"),
        };
        let by = match &self.convert {
            Convert::Planes { packings, .. } => format!(" by {packings:?}"),
            Convert::Floats { packing: Some(Packing { function: Some(function), .. }), .. } => {
                format!(" by {function:?}")
            }
            _ => String::new(),
        };
        let order = geometry.order().map_or_else(String::new, |order| format!(" as {order:?}"));
        let lead = self.lead.map_or_else(String::new, |at| format!(" by lead {at}"));
        format!("{stored} {} {:?}{along}{order}{lead}{by}", self.element, self.selected)
    }

    /// Decodes all rows that `outer` selects.
    pub(crate) fn read_rows(
        &self,
        storage: &dyn Storage,
        outer: &Indices,
        threads: usize,
    ) -> Result<StaticValues, Error> {
        let read = self.rows(storage, outer, threads);
        read.map_err(|source| Error::ReadElements {
            array: self.chunks.path.clone(),
            place: storage.place(),
            source,
        })
    }

    fn rows(
        &self,
        storage: &dyn Storage,
        outer: &Indices,
        threads: usize,
    ) -> Result<StaticValues, Cause> {
        let n_outer = usize::try_from(outer.len())?;
        let n_bytes = self.row_bytes().checked_mul(n_outer).ok_or("it is too large")?;
        check_chunk(n_bytes)?;
        let mut memory = Vec::new();
        let bytes = words(&mut memory, n_bytes)?;
        let rows = outer.iter().zip(bytes.chunks_exact_mut(self.row_bytes())).collect();
        let all = tasks((&self.chunks, &self.convert), rows);
        let with = (&mut Vec::new(), threads);
        read::run((storage, &KeptChunks::default()), all, with, &Stop::default())
            .map_err(|failure| failure.source)?;
        Ok(StaticValues { words: memory, n_bytes, n_outer })
    }
}

/// Fails if elements of rows of this shape cannot be normalised by these pairs.
pub(crate) fn check_normalized(by: &[(f64, f64)], row_shape: &[usize]) -> Result<(), String> {
    let is_right = |(mean, deviation): &(f64, f64)| {
        mean.is_finite() && deviation.is_finite() && *deviation != 0.0
    };
    if let Some((mean, deviation)) = by.iter().find(|pair| !is_right(pair)) {
        return Err(format!(
            "it cannot be normalised by the mean {mean} and the deviation {deviation}"
        ));
    }
    let mut planes = row_shape.iter().scan(1, |n, len| {
        *n *= len;
        Some(*n)
    });
    if by.len() != 1 && !planes.any(|n| n == by.len()) {
        return Err(format!(
            "it is normalised by {} pairs of a mean and a deviation: one is expected, or one for \
             each of {} indices of its outermost dimension",
            by.len(),
            row_shape.first().copied().unwrap_or(1)
        ));
    }
    Ok(())
}

/// Fails if one of these dimensions of a row is cut into patches that has several planes, which are
/// normalised each by its own pair.
pub(crate) fn check_planes(
    n_planes: usize,
    row_shape: &[usize],
    cut: &[(usize, usize)],
) -> Result<(), String> {
    let has_planes = |n_outer: &usize| row_shape[..*n_outer].iter().product::<usize>() == n_planes;
    let n_outer = (0..=row_shape.len()).find(has_planes).unwrap_or(0);
    match cut.iter().find(|(at, _)| *at < n_outer) {
        Some((at, _)) => Err(format!(
            "it is normalised by {n_planes} pairs, one for each index of a dimension that is cut \
             into patches, of {} indices",
            row_shape[*at]
        )),
        None => Ok(()),
    }
}

pub(crate) fn element_type(array: &Array<Store>, path: &str) -> Result<ElementType, Error> {
    let name = array.data_type().name_v3();
    let known = name.as_deref().and_then(ElementType::from_zarr_name);
    known.ok_or_else(|| Error::Element {
        array: path.to_owned(),
        stored: name.map_or_else(|| format!("{:?}", array.data_type()), Into::into),
    })
}

/// The type that an array's stored bytes are to be taken for, and what its numbers stand for.
pub(crate) fn packing(
    opened: &Opened,
    path: &str,
) -> Result<(ElementType, Option<Packing>), Error> {
    let Opened { array, version, .. } = opened;
    let element = element_type(array, path)?;
    let attributes = Attributes {
        all: array.attributes(),
        version: *version,
        fill: array.fill_value().as_ne_bytes(),
        element,
    };
    attributes
        .packing()
        .map_err(|source| Error::Attribute { array: path.to_owned(), source: source.into() })
}

/// The first and the last date that the group of an array names as valid, both inclusive: the
/// attributes `valid_time_start` and `valid_time_stop` of ARCO-ERA5. Each group is read once.
pub(crate) fn valid_dates(
    storage: &dyn Storage,
    path: &str,
    known: &mut HashMap<String, Option<ValidDates>>,
) -> Result<Option<ValidDates>, Error> {
    let group = path.rsplit_once('/').map_or("", |(group, _)| group);
    if let Some(dates) = known.get(group) {
        return Ok(dates.clone());
    }
    let attributes = metadata::group_attributes(storage, group)
        .map_err(|unopened| unopened.error(group, storage))?;
    let date = |name: &str| attributes.get(name)?.as_str().map(str::to_owned);
    let (start, stop) = (date("valid_time_start"), date("valid_time_stop"));
    let dates = (start.is_some() || stop.is_some()).then_some((start, stop));
    known.insert(group.to_owned(), dates.clone());
    Ok(dates)
}
