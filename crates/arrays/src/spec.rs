//! What a sample consists of, and how it is read: plain data.

mod forcing;
mod patches;

use crate::element::ElementType;
use crate::labels::Selection;
use crate::missing::{Missing, MissingPolicy};
use crate::times::TimeSpan;

pub use forcing::Forcing;
pub use patches::{Padding, PatchDimension, Patches, RandomPatches};

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
    /// ([`is_timed`](Self::is_timed)). `start`, `end`, `stride`, `periods` and `frequency` are
    /// about initial times, of which each has all its lead times, one after another.
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
    /// that are a time away. Then variables may have other times, and a sample whose steps are not
    /// all there is left out ([`ArraySamples::left_out`](crate::ArraySamples::left_out)).
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
    /// The floating point type in which elements are delivered, rounded once from double precision;
    /// numbers beyond its range become infinite. `None` leaves their type, or is the smallest that
    /// holds what they become on the way.
    pub element: Option<ElementType>,
    /// Whether the attributes are ignored by which stored numbers stand for others.
    pub as_stored: bool,
    /// The least and the greatest number: others become these. NaN stays NaN.
    pub clip: Option<(f64, f64)>,
    /// The logarithm (base e) of the number plus this is taken, after clipping: 0 for the logarithm
    /// itself, 1 for `ln_1p`. That of 0 is `-inf`, and that of a negative number NaN.
    pub log: Option<f64>,
    /// Steps, counted from the sample's own, whose numbers are subtracted, after `clip` and `log`
    /// of both and before normalising: one for all steps, or one for each.
    /// `steps([1, 2]).minus([0])` is the change since the sample's own step,
    /// `steps([1, 2]).minus([0, 1])` that from each step to the next.
    pub minus: Vec<i64>,
    /// The same by their times, for steps that are `spans`.
    pub minus_spans: Vec<TimeSpan>,
    /// Means and deviations by which elements are normalised at last: those are subtracted, and by
    /// these the rest is divided, in double precision. One pair for all, or one for each selected
    /// index of the outermost dimension that is delivered, but that of the steps, a level for
    /// example, or for each channel of a stack.
    pub normalize: Vec<(f64, f64)>,
    /// Variables that are stacked in this one, which then has no array of its own: each has as many
    /// channels as indices in all dimensions before the last two, one after another.
    pub stack: Vec<Self>,
    /// What is computed in place of an array, at the times of the steps. A variable of a stack
    /// takes the grid and the steps of the others there, any other those of the first variable that
    /// has latitudes and longitudes.
    pub forcing: Option<Forcing>,
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
            element: None,
            as_stored: false,
            clip: None,
            log: None,
            minus: Vec::new(),
            minus_spans: Vec::new(),
            normalize: Vec::new(),
            stack: Vec::new(),
            forcing: None,
            ensemble: None,
        }
    }

    /// What is computed from the times of steps:
    /// `Variable::computed("sun", Forcing::CosineZenith)`.
    pub fn computed(name: impl Into<String>, forcing: Forcing) -> Self {
        Self { forcing: Some(forcing), ..Self::new("").named(name) }
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

    /// The same, less the numbers at another step, or at one for each: see [`minus`](Self::minus).
    #[must_use]
    pub fn minus(self, steps: impl IntoIterator<Item = i64>) -> Self {
        Self { minus: steps.into_iter().collect(), ..self }
    }

    /// The same with numbers below `low` and above `high` taken for these; either may be infinite.
    #[must_use]
    pub fn clipped(self, low: f64, high: f64) -> Self {
        Self { clip: Some((low, high)), ..self }
    }

    /// The logarithm of numbers plus `offset`: see [`log`](Self::log).
    #[must_use]
    pub fn log(self, offset: f64) -> Self {
        Self { log: Some(offset), ..self }
    }

    /// Converts elements to `f32`.
    #[must_use]
    pub fn as_f32(self) -> Self {
        self.delivered_as(ElementType::F32)
    }

    /// Converts elements to a floating point type: see [`element`](Self::element).
    #[must_use]
    pub fn delivered_as(self, element: ElementType) -> Self {
        Self { element: Some(element), ..self }
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
