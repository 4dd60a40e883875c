//! The arrays of the source that are copied, and the part of each dimension.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrays::{ChunkedArray, ElementType, Group, Indices, Label};
use half::{bf16, f16};
use serde_json::{Map, Value};
use storage::Storage;

use super::spec::RelayoutSpec;
use crate::Error;

/// Attributes whose words are names of arrays that belong to the array or the group.
const NAMING: [&str; 5] =
    ["coordinates", "bounds", "grid_mapping", "ancillary_variables", "cell_measures"];

/// The source, with all that is known before the first chunk is read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) attributes: Map<String, Value>,
    pub(crate) arrays: Vec<SourceArray>,
    /// The names of groups, which are not copied.
    pub(crate) groups: Vec<String>,
    /// Whether all arrays are copied as a whole.
    pub(crate) is_whole: bool,
}

/// An array that is copied.
#[derive(Debug)]
pub(crate) struct SourceArray {
    pub(crate) name: String,
    pub(crate) array: ChunkedArray,
    pub(crate) dimensions: Vec<String>,
    /// The selected indices of each dimension.
    pub(crate) selected: Vec<Indices>,
    /// Whether other arrays name it: coordinates, their bounds, the mapping of a grid.
    pub(crate) belongs_to_others: bool,
}

impl Source {
    /// Opens the arrays that `spec` selects.
    pub(crate) fn open(storage: &Arc<dyn Storage>, spec: &RelayoutSpec) -> Result<Self, Error> {
        let Group { attributes, arrays, groups } =
            Group::open(storage).map_err(|error| read_error(&**storage, error))?;
        if arrays.is_empty() {
            let text = match groups.first() {
                None => "there are no arrays".to_owned(),
                Some(group) => {
                    format!("there are no arrays, but groups: name one, such as {group}")
                }
            };
            return Err(read_error(&**storage, text));
        }
        let n_all = arrays.len();
        let wanted = wanted(&attributes, &arrays, spec)?;
        let mut copied: Vec<SourceArray> = Vec::new();
        for (name, array) in arrays {
            if !wanted.contains(&name) {
                continue;
            }
            let array = array.map_err(|error| read_error(&**storage, error))?;
            let dimensions = array.dimension_names();
            let selected = array.shape().iter().map(|len| Indices::Range(0..*len)).collect();
            copied.push(SourceArray {
                name,
                array,
                dimensions,
                selected,
                belongs_to_others: false,
            });
        }
        let named: BTreeSet<String> = copied
            .iter()
            .map(|of| of.array.attributes())
            .chain([attributes.clone()])
            .flat_map(|attributes| names_in(&attributes))
            .collect();
        for of in &mut copied {
            of.belongs_to_others = named.contains(&of.name) || of.dimensions.contains(&of.name);
        }
        let is_whole = copied.len() == n_all && spec.isel.is_empty() && spec.sel.is_empty();
        let mut source = Self { attributes, arrays: copied, groups, is_whole };
        source.check_dimensions(spec)?;
        source.select(storage, spec)?;
        Ok(source)
    }

    /// Fails if a setting names a dimension or a variable that is not there.
    fn check_dimensions(&self, spec: &RelayoutSpec) -> Result<(), Error> {
        let known: BTreeSet<&str> =
            self.arrays.iter().flat_map(|of| &of.dimensions).map(String::as_str).collect();
        let listed = || known.iter().copied().collect::<Vec<_>>().join(", ");
        let isel = spec.isel.iter().map(|(name, _)| ("--isel", name));
        let sel = spec.sel.iter().map(|(name, _)| ("--sel", name));
        let chunks = spec.chunks.iter().map(|(name, _)| ("--chunks", name));
        let shards = spec.shards.iter().map(|(name, _)| ("--shards", name));
        let mut seen = BTreeSet::new();
        for (flag, name) in isel.chain(sel).chain(chunks).chain(shards) {
            if !known.contains(name.as_str()) {
                let text = format!("{flag}: there is no dimension {name}; there are {}", listed());
                return Err(Error::settings(text));
            }
            let kind = if flag == "--sel" { "--isel" } else { flag };
            if !seen.insert((kind, name)) {
                return Err(Error::settings(format!("{flag}: dimension {name} is given twice")));
            }
        }
        for name in spec.dtype.iter().filter_map(|(name, _)| name.as_ref()) {
            if !self.arrays.iter().any(|of| of.name == *name) {
                return Err(Error::settings(format!("--dtype: no variable {name} is copied")));
            }
        }
        Ok(())
    }

    /// Applies the selections of dimensions to all arrays.
    fn select(&mut self, storage: &Arc<dyn Storage>, spec: &RelayoutSpec) -> Result<(), Error> {
        let mut chosen: BTreeMap<&str, Indices> = BTreeMap::new();
        for (name, indices) in &spec.isel {
            chosen.insert(name, indices.clone());
        }
        for (name, labels) in &spec.sel {
            chosen.insert(name, self.indices_of(&**storage, name, labels)?);
        }
        for of in &mut self.arrays {
            for ((name, selected), len) in
                of.dimensions.iter().zip(&mut of.selected).zip(of.array.shape())
            {
                let Some(indices) = chosen.get(name.as_str()) else { continue };
                // A range without an end has all up to the last.
                let indices = match indices {
                    Indices::Range(range) if range.end == u64::MAX => {
                        Indices::Range(range.start.min(*len)..*len)
                    }
                    indices => indices.clone(),
                };
                let last = match &indices {
                    Indices::Range(range) => range.end.max(range.start),
                    Indices::List(list) => {
                        list.iter().max().map_or(0, |last| last.saturating_add(1))
                    }
                    _ => 0,
                };
                if *len < last {
                    return Err(Error::settings(format!(
                        "--isel: dimension {name} of {} has {len} indices, and {} is wanted",
                        of.name,
                        last - 1
                    )));
                }
                *selected = indices;
            }
        }
        Ok(())
    }

    /// The indices whose coordinates are `labels`.
    fn indices_of(
        &self,
        storage: &dyn Storage,
        dimension: &str,
        labels: &[Label],
    ) -> Result<Indices, Error> {
        let refused = |problem: String| Error::settings(format!("--sel: {problem}"));
        let found =
            self.arrays.iter().find(|of| of.name == dimension && of.dimensions == [dimension]);
        let coordinates = found.ok_or_else(|| {
            refused(format!("dimension {dimension} has no coordinates; use --isel"))
        })?;
        let known = labels_of(&coordinates.array).map_err(|error| read_error(storage, error))?;
        let known = known.ok_or_else(|| {
            refused(format!("the coordinates of {dimension} are neither numbers nor texts"))
        })?;
        let index = |label: &Label| {
            let is_it = |other: &Label| match (label, other) {
                // `--sel` cannot tell a number from the text of one.
                (Label::Number(number), Label::Text(text)) => text.parse() == Ok(*number),
                _ => label == other,
            };
            let at = known.iter().position(is_it);
            at.map(|at| at as u64)
                .ok_or_else(|| refused(format!("dimension {dimension} has no coordinate {label}")))
        };
        Ok(Indices::List(labels.iter().map(index).collect::<Result<_, _>>()?))
    }
}

/// The names of the arrays to copy.
fn wanted(
    attributes: &Map<String, Value>,
    arrays: &[(String, Result<ChunkedArray, arrays::Error>)],
    spec: &RelayoutSpec,
) -> Result<BTreeSet<String>, Error> {
    let all: BTreeSet<String> = arrays.iter().map(|(name, _)| name.clone()).collect();
    let Some(variables) = &spec.variables else { return Ok(all) };
    if let Some(unknown) = variables.iter().find(|name| !all.contains(*name)) {
        let listed = all.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let text = format!("--variables: there is no {unknown}; there are {listed}");
        return Err(Error::settings(text));
    }
    let opened = |name: &str| {
        arrays.iter().find(|(known, _)| known == name).and_then(|(_, array)| array.as_ref().ok())
    };
    let mut wanted: BTreeSet<String> = variables.iter().cloned().collect();
    let mut left: Vec<String> = variables.clone();
    let mut dimensions: BTreeSet<String> = BTreeSet::new();
    while let Some(name) = left.pop() {
        let Some(array) = opened(&name) else { continue };
        dimensions.extend(array.dimension_names());
        let others = array.dimension_names().into_iter().chain(names_in(&array.attributes()));
        let others = others.filter(|other| all.contains(other));
        left.extend(others.filter(|other| wanted.insert(other.clone())));
    }
    // Coordinates that only the group names.
    for name in names_in(attributes).filter(|name| all.contains(name)) {
        let of = opened(&name).map(ChunkedArray::dimension_names).unwrap_or_default();
        if of.iter().all(|dimension| dimensions.contains(dimension)) {
            wanted.insert(name);
        }
    }
    Ok(wanted)
}

/// The words of attributes that name other arrays.
fn names_in(attributes: &Map<String, Value>) -> impl Iterator<Item = String> + use<> {
    let texts: Vec<String> = NAMING
        .iter()
        .filter_map(|name| attributes.get(*name).and_then(Value::as_str))
        .flat_map(str::split_whitespace)
        .map(|word| word.trim_end_matches(':').to_owned())
        .collect();
    texts.into_iter()
}

/// The coordinates in a one-dimensional array; `None` if they are neither numbers nor texts.
fn labels_of(array: &ChunkedArray) -> Result<Option<Vec<Label>>, arrays::Error> {
    let len = array.shape().first().copied().unwrap_or(0);
    let chunk_len = array.chunk_shape().first().copied().unwrap_or(1);
    let mut labels = Vec::new();
    for chunk in 0..len.div_ceil(chunk_len) {
        if array.is_strings() {
            labels.extend(array.read_strings(&[chunk])?.into_iter().map(Label::Text));
            continue;
        }
        let (Some(element), Some(n_bytes)) = (array.element(), array.chunk_bytes()) else {
            return Ok(None);
        };
        let mut bytes = vec![0; n_bytes];
        super::copy::fill(&mut bytes, array.fill_bytes());
        array.read_chunk(&[chunk], &mut bytes)?;
        let numbers = bytes.chunks_exact(element.n_bytes()).map(|bytes| number(element, bytes));
        labels.extend(numbers.map(Label::Number));
    }
    labels.truncate(len as usize);
    Ok(Some(labels))
}

/// An element in the machine's order of bytes as a number.
pub(crate) fn number(element: ElementType, bytes: &[u8]) -> f64 {
    macro_rules! read {
        ($type:ty, $number:ident => $to:expr) => {
            bytes.try_into().map_or(f64::NAN, |bytes| {
                let $number = <$type>::from_ne_bytes(bytes);
                $to
            })
        };
    }
    match element {
        ElementType::I8 => read!(i8, n => n.into()),
        ElementType::I16 => read!(i16, n => n.into()),
        ElementType::I32 => read!(i32, n => n.into()),
        ElementType::I64 => read!(i64, n => n as f64),
        ElementType::Bool | ElementType::U8 => read!(u8, n => n.into()),
        ElementType::U16 => read!(u16, n => n.into()),
        ElementType::U32 => read!(u32, n => n.into()),
        ElementType::U64 => read!(u64, n => n as f64),
        ElementType::F16 => read!(f16, n => n.into()),
        ElementType::BF16 => read!(bf16, n => n.into()),
        ElementType::F32 => read!(f32, n => n.into()),
        ElementType::F64 => read!(f64, n => n),
        _ => f64::NAN,
    }
}

/// The error of a source.
pub(crate) fn read_error(storage: &dyn Storage, source: impl Into<bench_run::Cause>) -> Error {
    Error::Source { what: "fields", path: storage.place().into(), source: source.into() }
}
