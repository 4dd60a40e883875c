//! What a sample consists of, and how it is read: plain data.

use crate::labels::Selection;

/// How the samples of one or several arrays are made and read.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleSpec {
    /// The arrays of a sample. All have as many steps.
    pub variables: Vec<Variable>,
    /// The dimension of the steps in each array, by its name or position; `None` is the first.
    pub along: Option<Dimension>,
    /// The step that the first sample is about. `None` is the first step before which there are as
    /// many as the variables look back.
    pub start: Option<u64>,
    /// Samples are about steps before this one; `None` is the number of steps. The last samples
    /// look beyond it if their variables look ahead.
    pub end: Option<u64>,
    /// Steps from one sample to the next.
    pub stride: u64,
    /// What one read comprises.
    pub read: ReadStrategy,
    /// Threads that read and decode one block, including the calling one. More than the block has
    /// chunks (in one step and one range of the outermost other dimension) gain nothing.
    pub threads: usize,
    /// Whether the coordinates of all dimensions are looked for. Without them, opening takes fewer
    /// requests.
    pub coordinates: bool,
}

impl SampleSpec {
    /// Samples of `variables` with their coordinates, one for each step, read by stacked reads on
    /// one thread.
    pub fn new(variables: impl IntoIterator<Item = Variable>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            along: None,
            start: None,
            end: None,
            stride: 1,
            read: ReadStrategy::Stacked,
            threads: 1,
            coordinates: true,
        }
    }
}

/// What one read comprises.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReadStrategy {
    /// All samples of a block: every chunk is fetched and decoded on its own, wherever it belongs.
    #[default]
    Stacked,
    /// One sample after another, each with all threads.
    PerSample,
}

/// One array of a sample: which part of it, and which steps around the sample's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name in batches.
    pub name: String,
    /// Path of the array within the storage, with names separated by `/`.
    pub path: String,
    /// Steps relative to the sample's own, in the order of the batch: `[0]`, or `[-1, 0]` for the
    /// step before and its own.
    pub steps: Vec<i64>,
    /// Chosen parts of dimensions, by name or position; all of those that are not named.
    pub select: Vec<(Dimension, Selection)>,
    /// Whether elements are converted to `f32`.
    pub as_f32: bool,
    /// Whether the attributes are ignored by which stored numbers stand for others.
    pub as_stored: bool,
}

impl Variable {
    /// The whole array at `path`, at the sample's own step, with the path's last name.
    pub fn new(path: impl Into<String>) -> Self {
        let path: String = path.into();
        let path = path.trim_matches('/').to_owned();
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        Self { name, path, steps: vec![0], select: Vec::new(), as_f32: false, as_stored: false }
    }

    /// The same under another name, for two parts of one array in a sample.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The same at other steps.
    #[must_use]
    pub fn steps(self, steps: impl IntoIterator<Item = i64>) -> Self {
        Self { steps: steps.into_iter().collect(), ..self }
    }

    /// Chooses indices of a dimension, or coordinates: `select("lat", Indices::Range(8..184))`,
    /// `select("channel", ["t2m", "u10"])`, `select("level", Selection::labels([500, 850]))`.
    #[must_use]
    pub fn select(
        mut self,
        dimension: impl Into<Dimension>,
        selection: impl Into<Selection>,
    ) -> Self {
        self.select.push((dimension.into(), selection.into()));
        self
    }

    /// Converts elements to `f32`.
    #[must_use]
    pub fn as_f32(self) -> Self {
        Self { as_f32: true, ..self }
    }

    /// Delivers numbers as they are stored, whatever the attributes `scale_factor`, `add_offset`,
    /// `_FillValue`, `missing_value` and `_Unsigned` say.
    #[must_use]
    pub fn as_stored(self) -> Self {
        Self { as_stored: true, ..self }
    }
}

/// A dimension of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dimension {
    /// By its name (`dimension_names` of Zarr v3, the attribute `_ARRAY_DIMENSIONS` of v2).
    Name(String),
    /// By its position, counted from 0.
    Position(usize),
}

impl From<&str> for Dimension {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<usize> for Dimension {
    fn from(position: usize) -> Self {
        Self::Position(position)
    }
}

impl std::fmt::Display for Dimension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Position(position) => write!(f, "{position}"),
        }
    }
}
