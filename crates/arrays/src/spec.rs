//! What a sample consists of, and how it is read: plain data.

use crate::labels::Selection;
use crate::missing::{Missing, MissingPolicy};
use crate::times::TimeSpan;

/// How the samples of one or several arrays are made and read.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleSpec {
    /// The arrays of a sample. Those that have steps have as many, unless steps are found by their
    /// time ([`is_timed`](Self::is_timed)).
    pub variables: Vec<Variable>,
    /// The dimension of the steps in each array, by its name or position; `None` is the first. An
    /// array without a dimension of this name is static: a batch has it once, for all its samples.
    pub along: Option<Dimension>,
    /// The name of the dimension of lead times. Variables that have it are forecasts: their steps
    /// are the lead times that they select, from one initial time of the dimension
    /// [`along`](Self::along). A sample is then an initial time and a lead time of the first of
    /// them, its time is the sum of both, and other variables are found at that time
    /// ([`is_timed`](Self::is_timed)). `start`, `end`, `stride`, `periods` and `frequency` are about
    /// initial times, of which each has all its lead times, one after another.
    pub lead: Option<String>,
    /// The step that the first sample is about. `None` is the first step before which there are as
    /// many as the variables look back.
    pub start: Option<u64>,
    /// Samples are about steps before this one; `None` is the number of steps. The last samples
    /// look beyond it if their variables look ahead.
    pub end: Option<u64>,
    /// Steps from one sample to the next.
    pub stride: u64,
    /// Samples are about times within one of these periods; empty means all times.
    pub periods: Vec<Period>,
    /// Samples are about the first time, and times that are a multiple of this after it. `None` is
    /// every step of the `stride`.
    pub frequency: Option<TimeSpan>,
    /// Patches of the grid, each of which is a sample with its step; `None` is the whole grid.
    pub patches: Option<Patches>,
    /// The order in which dimensions are delivered, by their names: for each variable that has no
    /// [order](Variable::order) of its own, of those of these dimensions that it has. Others come
    /// before them, as they are stored.
    pub order: Vec<String>,
    /// Dimensions that are delivered in this direction of their coordinates, by their names, in all
    /// variables that have them, whichever way each is stored. The selected coordinates must ascend
    /// or descend.
    pub directions: Vec<(String, Direction)>,
    /// What is done with samples that have missing numbers. They are counted when samples are
    /// opened, unless all are kept.
    pub missing: MissingPolicy,
    /// What was counted before, by [`ArraySamples::missing`](crate::ArraySamples::missing) or
    /// [`counted`](crate::ArraySamples::counted), in place of counting again.
    pub counted: Option<Missing>,
    /// What one read comprises.
    pub read: ReadStrategy,
    /// Threads that read and decode one block, including the calling one. More than the block has
    /// chunks (in one step and one range of the outermost other dimension) gain nothing.
    pub threads: usize,
    /// Whether the coordinates of all dimensions are looked for. Without them, opening takes fewer
    /// requests.
    pub coordinates: bool,
    /// Whether a batch that is a part of its block shares the block's memory. Otherwise it is
    /// copied while it is made, and every batch has memory that its user may write into.
    pub shares_blocks: bool,
}

impl SampleSpec {
    /// Samples of `variables` with their coordinates, one for each step, read by stacked reads on
    /// one thread.
    pub fn new(variables: impl IntoIterator<Item = Variable>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            along: None,
            lead: None,
            start: None,
            end: None,
            stride: 1,
            periods: Vec::new(),
            frequency: None,
            patches: None,
            order: Vec::new(),
            directions: Vec::new(),
            missing: MissingPolicy::default(),
            counted: None,
            read: ReadStrategy::Stacked,
            threads: 1,
            coordinates: true,
            shares_blocks: true,
        }
    }
}

impl SampleSpec {
    /// Whether samples depend on the times of steps: by periods, a frequency, lead times or steps
    /// that are a time away. Then variables may have other times, and a sample whose steps are not all there is left out
    /// ([`ArraySamples::left_out`](crate::ArraySamples::left_out)).
    pub fn is_timed(&self) -> bool {
        let has_spans = |variable: &Variable| !variable.spans.is_empty();
        !self.periods.is_empty()
            || self.frequency.is_some()
            || self.lead.is_some()
            || self.variables.iter().any(has_spans)
    }
}

/// A period of time, with both of its ends.
///
/// Dates are texts: `2020`, `2020-03`, `2020-03-01`, `2020-03-01 06:00`, in the calendar of the
/// times. A period begins with the beginning of its first date, and ends with the end of its last:
/// `2020` is all of the year. A date with a time of the day is that moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Period {
    /// Its first date; `None` is that of the first step.
    pub start: Option<String>,
    /// Its last date; `None` is that of the last step.
    pub end: Option<String>,
}

/// Patches of the selected part of the grid. A sample is a step and a patch: all patches of the
/// first step that samples are about come first, in C order, then those of the second.
///
/// ```
/// use arrays::{Padding, PatchDimension, Patches};
///
/// let lat = PatchDimension::new("lat", 64).overlapping(16);
/// let lon = PatchDimension::new("lon", 64).padded(Padding::Periodic { before: 0 });
/// let tiles = Patches::grid([lat.clone(), lon.clone()]);
/// let boxes = Patches::random([lat, lon], 4, 42); // 4 of each step, others in each epoch
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patches {
    /// The dimensions that are cut. All variables that have one are cut alike, also those without
    /// steps, and have equally many selected indices of it; those that have none are not cut.
    pub dimensions: Vec<PatchDimension>,
    /// Boxes at random places; `None` is a grid of patches.
    pub random: Option<RandomPatches>,
}

impl Patches {
    /// A grid of patches.
    pub fn grid(dimensions: impl IntoIterator<Item = PatchDimension>) -> Self {
        Self { dimensions: dimensions.into_iter().collect(), random: None }
    }

    /// `n` boxes of each step, at places drawn from `seed`.
    pub fn random(dimensions: impl IntoIterator<Item = PatchDimension>, n: u64, seed: u64) -> Self {
        Self { random: Some(RandomPatches { n, seed }), ..Self::grid(dimensions) }
    }
}

/// Boxes at random places, all of which are equally likely.
///
/// A place depends on the seed, the epoch and the number of the sample alone: it is the same for
/// any number of ranks and threads, and after resuming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomPatches {
    /// Boxes of each step.
    pub n: u64,
    /// The seed of the places.
    pub seed: u64,
}

/// A dimension that is cut into patches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchDimension {
    /// The dimension. By position only if no variable is stacked or without steps.
    pub dimension: Dimension,
    /// Indices of a patch.
    pub size: u64,
    /// Indices from a patch of the grid to the next; less than `size` if patches overlap.
    pub step: u64,
    /// What lies beyond the ends of the selected indices.
    pub padding: Padding,
}

impl PatchDimension {
    /// Patches of `size` indices side by side, within the selected ones.
    pub fn new(dimension: impl Into<Dimension>, size: u64) -> Self {
        Self { dimension: dimension.into(), size, step: size, padding: Padding::None }
    }

    /// The same with neighbours that share `n` indices.
    #[must_use]
    pub fn overlapping(self, n: u64) -> Self {
        Self { step: self.size.saturating_sub(n), ..self }
    }

    /// The same with indices beyond the ends.
    #[must_use]
    pub fn padded(self, padding: Padding) -> Self {
        Self { padding, ..self }
    }
}

/// What patches have beyond the ends of a dimension's selected indices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Padding {
    /// Nothing: patches lie within. Indices after the last patch that are too few for another are
    /// left out, and counted ([`ArraySamples::patches`](crate::ArraySamples::patches)).
    #[default]
    None,
    /// The indices again, in the other direction from the end on, which does not come twice: like
    /// `numpy.pad` with `mode="reflect"`.
    Reflect {
        /// Indices before the first one; fewer than are selected.
        before: u64,
        /// Indices after the last one; fewer than are selected. `None` is as many as the last patch
        /// of the grid lacks.
        after: Option<u64>,
    },
    /// The dimension is a circle, like longitudes: after the last index comes the first. As many
    /// patches begin on it as steps fit, and a random box begins anywhere.
    Periodic {
        /// The first patch of the grid begins this many indices before the first one; fewer than
        /// are selected.
        before: u64,
    },
}

/// The direction in which coordinates go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the least to the greatest.
    Ascending,
    /// From the greatest to the least.
    Descending,
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
    /// The dimension of its steps, if it is another one than [`SampleSpec::along`].
    pub along: Option<Dimension>,
    /// The stores that it is read from, by their numbers; empty is every store that has it.
    pub stores: Vec<usize>,
    /// Steps relative to the sample's own, in the order of the batch: `[0]`, or `[-1, 0]` for the
    /// step before and its own.
    pub steps: Vec<i64>,
    /// Steps by the time from the sample's own to theirs, in place of `steps`, if there are any.
    /// The samples' own times are those of the first variable that has steps.
    pub spans: Vec<TimeSpan>,
    /// How many of the steps a sample has, the first ones, from which epoch on: `[(0, 1), (5, 2)]`
    /// for one step in epochs 0 to 4 and two in later ones. Empty is all of them. Samples are those
    /// that have all steps, so each epoch has as many, and memory is counted for all steps.
    pub rollout: Vec<(u64, usize)>,
    /// Chosen parts of dimensions, by name or position; all of those that are not named.
    pub select: Vec<(Dimension, Selection)>,
    /// The order in which its dimensions are delivered, by name or position in the array, without
    /// that of the steps. Those that are not named come before them, as they are stored; so do
    /// those of all where it is empty. Channels of a stack come first.
    pub order: Vec<Dimension>,
    /// Whether elements are converted to `f32`.
    pub as_f32: bool,
    /// Whether the attributes are ignored by which stored numbers stand for others.
    pub as_stored: bool,
    /// Means and deviations by which elements are normalised: those are subtracted, and by these
    /// the rest is divided, in double precision. One pair for all, or one for each selected index
    /// of the outermost dimension that is delivered, but that of the steps, a level for example, or
    /// for each channel of a stack.
    pub normalize: Vec<(f64, f64)>,
    /// Variables that are stacked in this one, which then has no array of its own: each has as many
    /// channels as indices in all dimensions before the last two, one after another.
    pub stack: Vec<Self>,
    /// The name of the dimension along which those of the `stack` lie, if they are members of an
    /// ensemble, all of one shape, rather than channels.
    pub ensemble: Option<String>,
}

impl Variable {
    /// The whole array at `path`, at the sample's own step, with the path's last name.
    pub fn new(path: impl Into<String>) -> Self {
        let path: String = path.into();
        let path = path.trim_matches('/').to_owned();
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        Self {
            name,
            path,
            along: None,
            stores: Vec::new(),
            steps: vec![0],
            spans: Vec::new(),
            rollout: Vec::new(),
            select: Vec::new(),
            order: Vec::new(),
            as_f32: false,
            as_stored: false,
            normalize: Vec::new(),
            stack: Vec::new(),
            ensemble: None,
        }
    }

    /// Several variables as the channels of one, in this order: of shape `[channels, .., ..]`, with
    /// the last two dimensions of all of them. Their names, with the coordinate of a level, are
    /// those of the channels.
    pub fn stacked(name: impl Into<String>, variables: impl IntoIterator<Item = Self>) -> Self {
        Self { stack: variables.into_iter().collect(), ..Self::new("").named(name) }
    }

    /// Several variables of one shape as the members of an ensemble, along a new dimension of this
    /// name, which comes first: arrays of one store, or one array in
    /// [several](Self::stores). Their names are its coordinates, as integers if all are such.
    /// It is normalised, if at all, as each member alone.
    pub fn ensemble(
        name: impl Into<String>,
        dimension: impl Into<String>,
        members: impl IntoIterator<Item = Self>,
    ) -> Self {
        Self { ensemble: Some(dimension.into()), ..Self::stacked(name, members) }
    }

    /// The same along another dimension than other variables: `along("time")` for an analysis
    /// beside forecasts along `init_time`.
    #[must_use]
    pub fn along(self, dimension: impl Into<Dimension>) -> Self {
        Self { along: Some(dimension.into()), ..self }
    }

    /// The same of these stores alone, by their numbers.
    #[must_use]
    pub fn of_stores(self, stores: impl IntoIterator<Item = usize>) -> Self {
        Self { stores: stores.into_iter().collect(), ..self }
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

    /// The same at other times: `[TimeSpan::hours(-6), TimeSpan::hours(0)]`.
    #[must_use]
    pub fn spans(self, spans: impl IntoIterator<Item = TimeSpan>) -> Self {
        Self { spans: spans.into_iter().collect(), ..self }
    }

    /// The same with as many of its steps, the first ones, from each of these epochs on:
    /// `steps([1, 2, 3, 4]).rollout([(0, 1), (5, 2), (10, 4)])`.
    #[must_use]
    pub fn rollout(self, by_epoch: impl IntoIterator<Item = (u64, usize)>) -> Self {
        Self { rollout: by_epoch.into_iter().collect(), ..self }
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

    /// Delivers dimensions in this order, after those that are not named:
    /// `ordered(["latitude", "longitude"])`. See [`order`](Self::order).
    #[must_use]
    pub fn ordered<D: Into<Dimension>>(self, order: impl IntoIterator<Item = D>) -> Self {
        Self { order: order.into_iter().map(Into::into).collect(), ..self }
    }

    /// The same normalised: see [`normalize`](Self::normalize).
    #[must_use]
    pub fn normalized(self, by: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { normalize: by.into_iter().collect(), ..self }
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
