//! Which steps of the arrays belong to a sample.

mod timed;

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::leads::first_with_steps;
use crate::patches::OpenPatches;
use crate::spec::SampleSpec;
use crate::times::NotFound;
use crate::variable::OpenVariable;

use timed::Timed;

/// The steps that samples are about.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    anchors: Anchors,
    n_anchors: u64,
    /// The patches of each step, if samples are patches.
    pub(crate) patches: Option<Arc<OpenPatches>>,
    pub(crate) n_samples: u64,
    pub(crate) left_out: LeftOut,
}

/// The steps that samples are about, in the variable whose steps they are. Steps of a variable with
/// lead times count these fastest.
#[derive(Debug, Clone)]
pub(crate) enum Anchors {
    /// As many steps from each to the next.
    Regular {
        start: u64,
        stride: u64,
    },
    Listed(Arc<[u64]>),
}

/// Samples that were left out since a step that belongs to them is not there or has missing
/// numbers, by the reason. Those that several steps concern count once, for the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// A step is before the first time or after the last.
    pub ends: u64,
    /// A step is in a gap between times.
    pub gaps: u64,
    /// Several steps have the time of a step.
    pub doubled: u64,
    /// A step is not within the dates that the store names as valid (`valid_time_start` and
    /// `valid_time_stop` among the attributes of the group).
    pub invalid: u64,
    /// A step has numbers in chunks that are not stored, and such samples are
    /// [left out](crate::MissingPolicy::chunks).
    pub chunks: u64,
    /// A step has numbers that mean "missing", and such samples are left out.
    pub fills: u64,
    /// A step has NaN, and such samples are left out.
    pub nans: u64,
}

impl LeftOut {
    fn count(&mut self, reason: Reason) {
        match reason {
            Reason::NotFound(NotFound::Outside) => self.ends += 1,
            Reason::NotFound(NotFound::Gap) => self.gaps += 1,
            Reason::NotFound(NotFound::Doubled) => self.doubled += 1,
            Reason::Invalid => self.invalid += 1,
        }
    }
}

/// Why a step does not belong to a sample.
#[derive(Debug, Clone, Copy)]
enum Reason {
    NotFound(NotFound),
    Invalid,
}

/// The steps of samples in one variable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SampleSteps {
    /// Counted from the step that the sample is about.
    Relative(Vec<i64>),
    /// Those of all samples, `n` of each.
    Listed { steps: Vec<u64>, n: usize },
}

impl SampleSteps {
    /// The number of steps of a sample.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Relative(steps) => steps.len(),
            Self::Listed { n, .. } => *n,
        }
    }
}

impl Window {
    /// The samples of variables, whose steps are set.
    pub(crate) fn new(variables: &mut [OpenVariable], spec: &SampleSpec) -> Result<Self, Error> {
        let refused = |reason: String| Error::Spec { reason };
        if variables.is_empty() {
            return Err(refused("a sample needs a variable".to_owned()));
        }
        let Some(first) = first_with_steps(variables) else {
            let along = spec.along.as_ref().map(ToString::to_string).unwrap_or_default();
            return Err(refused(format!("no array has the dimension {along}")));
        };
        if let Some(variable) = variables.iter().find(|variable| variable.n_delivered_steps() == 0)
        {
            return Err(refused(format!("{} has no steps", variable.name)));
        }
        if spec.stride == 0 {
            return Err(refused("the stride must not be 0".to_owned()));
        }
        if let Some(lead) = spec.lead.as_ref().filter(|_| variables[first].leads.is_none()) {
            return Err(refused(format!("no array has the dimension of lead times {lead}")));
        }
        if spec.is_timed() {
            return Timed::new(variables, spec)?.window(variables, first);
        }
        let first = &variables[first];
        let others = variables.iter().filter(|variable| !variable.is_static());
        if let Some(other) = others.clone().find(|other| other.n_steps != first.n_steps) {
            return Err(refused(format!(
                "{} has {} steps and {} has {}: the arrays of a sample have equally many, unless \
                 they are found by their times: give steps as lengths of time (0h)",
                first.path(),
                first.n_steps,
                other.path(),
                other.n_steps
            )));
        }
        let relative = others.flat_map(|variable| match &variable.steps {
            SampleSteps::Relative(steps) => &steps[..],
            SampleSteps::Listed { .. } => &[],
        });
        let least = relative.clone().min().copied().unwrap_or(0);
        let most = relative.max().copied().unwrap_or(0);
        let before = least.min(0).unsigned_abs();
        let Range { start, end } = range(first, spec, before)?;
        // The steps that a sample may be about end before those that would reach beyond the last.
        let end = end.min(first.n_steps.saturating_sub(most.max(0).unsigned_abs()));
        let n_samples = end.saturating_sub(start).div_ceil(spec.stride);
        if n_samples == 0 {
            let wanted = spec.end.unwrap_or(first.n_steps);
            return Err(refused(format!(
                "there is no sample: {} has {} steps, samples begin at {start}, end before step \
                 {wanted} and reach from {least} to {most}",
                first.path(),
                first.n_steps
            )));
        }
        let anchors = Anchors::Regular { start, stride: spec.stride };
        Ok(Self::of(anchors, n_samples, LeftOut::default()))
    }

    /// A sample for each of the anchors, `n_samples` in all.
    fn of(anchors: Anchors, n_samples: u64, left_out: LeftOut) -> Self {
        Self { anchors, n_anchors: n_samples, patches: None, n_samples, left_out }
    }

    /// A sample for each patch of each of these steps.
    pub(crate) fn cut(self, patches: OpenPatches) -> Result<Self, Error> {
        let n_samples = self.n_anchors.checked_mul(patches.n).ok_or_else(|| Error::Spec {
            reason: format!("{} patches of {} steps are too many", patches.n, self.n_anchors),
        })?;
        Ok(Self { patches: Some(Arc::new(patches)), n_samples, ..self })
    }

    /// The number of samples of each step.
    fn n_patches(&self) -> u64 {
        self.patches.as_ref().map_or(1, |patches| patches.n)
    }

    /// The step that a sample is about.
    pub(crate) fn step(&self, sample: u64) -> u64 {
        self.anchor(sample / self.n_patches())
    }

    /// A step that samples are about.
    fn anchor(&self, sample: u64) -> u64 {
        match &self.anchors {
            Anchors::Regular { start, stride } => {
                start.saturating_add(sample.saturating_mul(*stride))
            }
            Anchors::Listed(all) => {
                let found = usize::try_from(sample).ok().and_then(|at| all.get(at));
                found.copied().unwrap_or(u64::MAX)
            }
        }
    }

    /// Keeps only some samples, which are whole steps still.
    pub(crate) fn retain(&mut self, variables: &mut [OpenVariable], is_kept: &[bool]) {
        let kept = (0..self.n_samples).zip(is_kept).filter(|(_, kept)| **kept);
        let anchors: Vec<u64> = kept.map(|(sample, _)| self.step(sample)).collect();
        for variable in variables {
            if let SampleSteps::Listed { steps, n } = &mut variable.steps {
                let each = steps.chunks(*n).zip(is_kept).filter(|(_, kept)| **kept);
                *steps = each.flat_map(|(steps, _)| steps).copied().collect();
            }
        }
        self.n_anchors = anchors.len() as u64;
        self.n_samples = self.n_anchors;
        self.anchors = Anchors::of(anchors);
    }

    /// The first sample after this one that reads another chunk of a variable.
    pub(crate) fn unit_end(&self, variable: &OpenVariable, sample: u64) -> u64 {
        let next = sample.saturating_add(1);
        let patches = self.patches.as_deref().filter(|_| !variable.has_patches_in_one_chunk());
        if patches.is_some_and(OpenPatches::is_random) {
            return next;
        }
        let chunks_of = |sample: u64| {
            let in_row = patches.map(|patches| variable.chunks_in_row(patches, sample));
            let steps = self.steps_of(variable, sample);
            (steps.flat_map(|step| variable.chunks_of(step)).collect::<Vec<_>>(), in_row)
        };
        let these = chunks_of(sample);
        let mut other = (next..self.n_samples).skip_while(|sample| chunks_of(*sample) == these);
        other.next().unwrap_or_else(|| self.n_samples.max(next))
    }

    /// The steps of a sample in a variable.
    pub(crate) fn steps_of<'a>(
        &self,
        variable: &'a OpenVariable,
        sample: u64,
    ) -> impl Iterator<Item = u64> + use<'a> {
        self.steps_at(variable, sample, 0..variable.steps.len())
    }

    /// Those of these numbers among the steps of a sample in a variable.
    pub(crate) fn steps_at<'a, N: Iterator<Item = usize>>(
        &self,
        variable: &'a OpenVariable,
        sample: u64,
        numbers: N,
    ) -> impl Iterator<Item = u64> + use<'a, N> {
        let step = self.step(sample);
        let (relative, listed) = match &variable.steps {
            SampleSteps::Relative(steps) => (&steps[..], &[][..]),
            SampleSteps::Listed { steps, n } => {
                let at = usize::try_from(sample / self.n_patches()).unwrap_or(usize::MAX);
                let start = at.saturating_mul(*n);
                (&[][..], steps.get(start..start.saturating_add(*n)).unwrap_or_default())
            }
        };
        numbers.filter_map(move |number| match relative.get(number) {
            Some(by) => Some(step.saturating_add_signed(*by)),
            None => listed.get(number).copied(),
        })
    }

    /// The samples that have any of these steps in a variable, one range for each of a sample's
    /// steps. If listed steps do not ascend, others than these.
    pub(crate) fn samples_of(
        &self,
        variable: &OpenVariable,
        steps: Range<u64>,
    ) -> impl Iterator<Item = Range<u64>> {
        let (n_steps, n_patches) = (variable.steps.len(), self.n_patches());
        (0..n_steps).map(move |at| {
            let step_of = |anchor: u64| match &variable.steps {
                SampleSteps::Relative(by) => self.anchor(anchor).saturating_add_signed(by[at]),
                SampleSteps::Listed { steps, n } => steps[anchor as usize * n + at],
            };
            let start = first_sample(self.n_anchors, |anchor| steps.start <= step_of(anchor));
            let end = first_sample(self.n_anchors, |anchor| steps.end <= step_of(anchor));
            start * n_patches..end.max(start) * n_patches
        })
    }

    /// What distinguishes the samples from others of the same arrays.
    pub(crate) fn fingerprint(&self) -> String {
        let n_samples = self.n_anchors;
        let of_steps = match &self.anchors {
            Anchors::Regular { start, stride } => {
                format!("Window {{ start: {start}, stride: {stride}, n_samples: {n_samples} }}")
            }
            Anchors::Listed(all) => format!("{n_samples} steps {:016x}", hash(all)),
        };
        match &self.patches {
            Some(patches) => format!("{of_steps} {}", patches.fingerprint()),
            None => of_steps,
        }
    }
}

/// The first of `n` samples for which `is_behind` holds, as for all after it; `n` if none.
fn first_sample(n: u64, is_behind: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_behind(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// A hash of numbers that is the same everywhere (FNV-1a).
pub(crate) fn hash(numbers: &[u64]) -> u64 {
    let bytes = numbers.iter().flat_map(|n| n.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The steps between the `start` and the `end` of a specification.
fn range(first: &OpenVariable, spec: &SampleSpec, before: u64) -> Result<Range<u64>, Error> {
    let refused = |reason: String| Error::Spec { reason };
    let start = spec.start.unwrap_or(before);
    if start < before {
        return Err(refused(format!(
            "the first sample is about step {start} and looks {before} steps back"
        )));
    }
    let wanted = spec.end.unwrap_or(first.n_steps);
    if first.n_steps < wanted {
        let n_steps = first.n_steps;
        return Err(refused(format!(
            "samples end before step {wanted}, and {} has {n_steps} steps",
            first.path()
        )));
    }
    Ok(start..wanted)
}

impl Anchors {
    fn of(steps: Vec<u64>) -> Self {
        let [first, second, ..] = steps[..] else { return Self::Listed(steps.into()) };
        let stride = second - first;
        if stride != 0 && steps.windows(2).all(|two| two[1] - two[0] == stride) {
            return Self::Regular { start: first, stride };
        }
        Self::Listed(steps.into())
    }
}
