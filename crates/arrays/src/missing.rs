//! Missing numbers of samples: counted by what they are, and what is done with such samples.

use std::sync::Arc;

use pipeline::Stop;
use storage::Storage;

use crate::chunk_task::{Rows, Task, Worker};
use crate::counting::{Counting, StepCounts, count_absent};
use crate::error::Error;
use crate::kept::KeptChunks;
use crate::member::Member;
use crate::open_array::OpenArray;
use crate::read::{self, Failure};
use crate::samples::ArraySamples;
use crate::spec::SampleSpec;
use crate::variable::OpenVariable;
use crate::window::Window;

/// Tasks that are made at once.
const MOST_TASKS: usize = 4096;

/// What is done with a sample that has missing numbers of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenMissing {
    /// It is a sample like others.
    #[default]
    Keep,
    /// It is left out, and counted ([`ArraySamples::left_out`]).
    LeaveOut,
    /// Opening fails.
    Fail,
}

/// What is done with samples that have missing numbers, by what these are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MissingPolicy {
    /// Numbers in chunks that are not stored.
    pub chunks: WhenMissing,
    /// Numbers in stored chunks that mean "missing": those of `_FillValue` and `missing_value`.
    pub fills: WhenMissing,
    /// NaN in stored chunks.
    pub nans: WhenMissing,
}

impl MissingPolicy {
    /// Whether samples are kept whatever is missing.
    pub fn keeps_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it depends on numbers of stored chunks, which are then decoded when samples are
    /// opened. Which chunks are not stored is known without.
    pub fn needs_values(&self) -> bool {
        (self.fills, self.nans) != (WhenMissing::Keep, WhenMissing::Keep)
    }
}

/// How many numbers are missing, of the selected part of a step. Each is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MissingCounts {
    /// In chunks that are not stored, whose numbers all are the array's fill value.
    pub in_chunks: u64,
    /// In stored chunks: those that `_FillValue` or `missing_value` name. Where one of these is
    /// NaN, such numbers count as NaN.
    pub fills: u64,
    /// In stored chunks: NaN.
    pub nans: u64,
}

/// The missing numbers of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingNumbers {
    /// The name of the variable.
    pub name: String,
    /// What distinguishes its steps from those of other arrays, and of other parts.
    pub description: String,
    /// Numbers of the selected part of a step.
    pub n_elements: u64,
    /// The steps, ascending, counted over all stores.
    pub steps: Vec<u64>,
    /// What each of them lacks.
    pub counts: Vec<MissingCounts>,
}

/// The missing numbers of samples, by variable and step. Arrays without steps are not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Those of each variable that has steps.
    pub variables: Vec<MissingNumbers>,
    /// Whether numbers in stored chunks were counted, too.
    pub has_values: bool,
}

impl ArraySamples {
    /// Counts what is missing of samples, in one pass over their steps on
    /// [`SampleSpec::threads`] threads: each chunk is decoded once, and none is kept. Returns
    /// early, with counts that are too low, once `stop` is set.
    ///
    /// A store has no version that says that it is as it was. The counts are plain data: keep them
    /// beside the store, and hand them in as [`SampleSpec::counted`].
    ///
    /// # Errors
    /// A chunk cannot be read or decoded. Samples are of lead times.
    pub fn missing(
        &self,
        samples: impl IntoIterator<Item = u64>,
        stop: &Stop,
    ) -> Result<Missing, Error> {
        if self.lead_time(0).is_some() {
            let reason = "missing numbers are not counted by lead times".to_owned();
            return Err(Error::Spec { reason });
        }
        let samples: Vec<u64> =
            samples.into_iter().filter(|sample| *sample < self.n_samples()).collect();
        let (stores, variables, window) = self.opened();
        count((stores, variables), (window, &samples), (self.threads(), true), stop)
    }
}

/// The steps of some members of variables that are one: of the same part of the same array.
struct CountedPart<'a> {
    member: &'a Member,
    steps: Vec<u64>,
    counts: Vec<StepCounts>,
}

/// Counts what is missing of samples; only in chunks that are not stored unless values are wanted.
fn count(
    (stores, variables): (&[Arc<dyn Storage>], &[OpenVariable]),
    (window, samples): (&Window, &[u64]),
    (threads, with_values): (usize, bool),
    stop: &Stop,
) -> Result<Missing, Error> {
    let with_steps: Vec<&OpenVariable> = variables.iter().filter(|of| !of.is_static()).collect();
    let steps_of = |variable: &OpenVariable| {
        let all = samples.iter().flat_map(|sample| window.steps_of(variable, *sample));
        let mut steps: Vec<u64> = all.collect();
        steps.sort_unstable();
        steps.dedup();
        steps
    };
    let steps: Vec<Vec<u64>> = with_steps.iter().map(|variable| steps_of(variable)).collect();
    let mut parts: Vec<CountedPart<'_>> = Vec::new();
    for (variable, steps) in with_steps.iter().zip(&steps) {
        for member in &variable.members {
            match parts.iter_mut().find(|part| part.member.has_rows_of(member)) {
                Some(part) => part.steps.extend(steps),
                None => {
                    parts.push(CountedPart { member, steps: steps.clone(), counts: Vec::new() });
                }
            }
        }
    }
    for part in &mut parts {
        part.steps.sort_unstable();
        part.steps.dedup();
        part.counts.resize_with(part.steps.len(), StepCounts::default);
    }
    for part in &parts {
        for (first, array) in part.member.arrays() {
            let counting = Counting::new(array, first, (&part.steps, &part.counts));
            let decodes = with_values && array.may_lack_values();
            let how = (decodes.then_some(threads), stop);
            let storage = &*stores[array.store];
            count_array(storage, (part.member, array), &part.steps, &counting, how).map_err(
                |Failure { path: array, source }| Error::ReadElements {
                    array,
                    place: storage.place(),
                    source,
                },
            )?;
        }
    }
    let variables = with_steps.iter().zip(steps).map(|(variable, steps)| {
        let of_member = |member: &Member, step: &u64| {
            let part = parts.iter().find(|part| part.member.has_rows_of(member))?;
            Some(part.counts[part.steps.binary_search(step).ok()?].now())
        };
        let counts = steps.iter().map(|step| {
            let each = variable.members.iter().filter_map(|member| of_member(member, step));
            each.fold(MissingCounts::default(), |sum, one| MissingCounts {
                in_chunks: sum.in_chunks + one.in_chunks,
                fills: sum.fills + one.fills,
                nans: sum.nans + one.nans,
            })
        });
        MissingNumbers {
            name: variable.name.clone(),
            description: variable.description(),
            n_elements: variable.step_elements() as u64,
            counts: counts.collect(),
            steps,
        }
    });
    Ok(Missing { variables: variables.collect(), has_values: with_values })
}

/// Counts the steps of an array, one of a member's: decodes chunks if threads are given for it.
fn count_array(
    storage: &dyn Storage,
    (member, array): (&Member, &OpenArray),
    steps: &[u64],
    counting: &Counting<'_>,
    (decoding, stop): (Option<usize>, &Stop),
) -> Result<(), Failure> {
    let chunk_rows = array.chunks.geometry.chunk_rows;
    let of_array: Vec<u64> = steps
        .iter()
        .map(|step| member.array_of(*step))
        .filter(|(other, _)| std::ptr::eq(*other, array))
        .map(|(_, step)| step)
        .collect();
    let (mut tasks, mut workers): (Vec<Task<'_>>, Vec<Worker>) = (Vec::new(), Vec::new());
    let mut run = |tasks: Vec<Task<'_>>| match decoding {
        Some(threads) => {
            let kept = KeptChunks::default();
            read::run((storage, &kept), tasks, (&mut workers, threads), stop).map(drop)
        }
        None if stop.is_set() => Ok(()),
        None => count_absent(storage, &tasks),
    };
    for of_chunk in of_array.chunk_by(|one, next| one / chunk_rows == next / chunk_rows) {
        let Some(first) = of_chunk.first() else { continue };
        for segments in array.chunks.geometry.segments().chunks(1) {
            let row = |step: &u64| Rows {
                first: (step % chunk_rows) as usize,
                len: 1,
                into: Default::default(),
            };
            let rows = of_chunk.iter().map(row).collect();
            let of = (&array.chunks, &array.convert);
            let task = Task::new(of, (first / chunk_rows, segments), rows);
            tasks.push(task.counting(counting));
        }
        if MOST_TASKS <= tasks.len() {
            run(std::mem::take(&mut tasks))?;
        }
    }
    if tasks.is_empty() { Ok(()) } else { run(tasks) }
}

/// The samples that the settings keep, with what was counted for it: nothing if they keep all.
pub(crate) fn kept_samples(
    (stores, variables): (&[Arc<dyn Storage>], &mut [OpenVariable]),
    mut window: Window,
    (spec, threads): (&SampleSpec, usize),
) -> Result<(Window, Option<Missing>), Error> {
    let policy = spec.missing;
    if policy.keeps_all() {
        return Ok((window, None));
    }
    let counted = if let Some(counted) = &spec.counted {
        counted.clone()
    } else {
        let all: Vec<u64> = (0..window.n_samples).collect();
        let how = (threads, policy.needs_values());
        count((stores, &*variables), (&window, &all), how, &Stop::default())?
    };
    let known = Known::of(&counted, variables, policy)?;
    let mut is_kept = Vec::new();
    for sample in 0..window.n_samples {
        let reason = known.reason((&*variables, &window), policy, sample)?;
        is_kept.push(reason.is_none());
        match reason {
            Some(Reason::Chunk) => window.left_out.chunks += 1,
            Some(Reason::Fill) => window.left_out.fills += 1,
            Some(Reason::Nan) => window.left_out.nans += 1,
            None => {}
        }
    }
    if !is_kept.contains(&true) {
        let n = window.n_samples;
        let reason = format!("there is no sample: each of {n} has missing numbers");
        return Err(Error::Spec { reason });
    }
    if is_kept.contains(&false) {
        window.retain(variables, &is_kept);
    }
    Ok((window, Some(counted)))
}

/// Why a sample is left out; of several reasons the first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    Chunk,
    Fill,
    Nan,
}

impl Reason {
    const ALL: [Self; 3] = [Self::Chunk, Self::Fill, Self::Nan];

    fn policy(self, policy: MissingPolicy) -> WhenMissing {
        match self {
            Self::Chunk => policy.chunks,
            Self::Fill => policy.fills,
            Self::Nan => policy.nans,
        }
    }

    fn count(self, counts: MissingCounts) -> u64 {
        match self {
            Self::Chunk => counts.in_chunks,
            Self::Fill => counts.fills,
            Self::Nan => counts.nans,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Chunk => "in chunks that are not stored",
            Self::Fill => "that are a fill value",
            Self::Nan => "that are NaN",
        }
    }
}

/// The counts of each variable, which fit it; `None` of those without steps.
struct Known<'a>(Vec<Option<&'a MissingNumbers>>);

impl<'a> Known<'a> {
    fn of(
        counted: &'a Missing,
        variables: &[OpenVariable],
        policy: MissingPolicy,
    ) -> Result<Self, Error> {
        let refused = |reason: String| Error::Spec { reason };
        if policy.needs_values() && !counted.has_values {
            let reason = "only chunks that are not stored were counted, no numbers in others";
            return Err(refused(reason.to_owned()));
        }
        let of_variable = |variable: &OpenVariable| {
            let name = &variable.name;
            if variable.is_static() {
                return Ok(None);
            }
            let found = counted.variables.iter().find(|of| of.name == *name);
            match found.filter(|of| of.description == variable.description()) {
                Some(found) if found.steps.len() == found.counts.len() => Ok(Some(found)),
                _ => Err(refused(format!(
                    "the missing numbers that were counted are not of the variable {name}: count \
                     them again"
                ))),
            }
        };
        Ok(Self(variables.iter().map(of_variable).collect::<Result<_, _>>()?))
    }

    /// Why a sample is left out, if so.
    fn reason(
        &self,
        (variables, window): (&[OpenVariable], &Window),
        policy: MissingPolicy,
        sample: u64,
    ) -> Result<Option<Reason>, Error> {
        let mut left_out: Option<Reason> = None;
        for (variable, known) in variables.iter().zip(&self.0) {
            let Some(known) = known else { continue };
            for step in window.steps_of(variable, sample) {
                let at = known.steps.binary_search(&step).map_err(|_| Error::Spec {
                    reason: format!(
                        "no missing numbers of {} were counted at step {step}",
                        known.name
                    ),
                })?;
                for reason in Reason::ALL {
                    let n = reason.count(known.counts[at]);
                    if n == 0 {
                        continue;
                    }
                    match reason.policy(policy) {
                        WhenMissing::Keep => {}
                        WhenMissing::Fail => {
                            let variable = known.name.clone();
                            let what = format!("{n} numbers {}", reason.name());
                            return Err(Error::Missing { variable, step, what });
                        }
                        WhenMissing::LeaveOut => {
                            left_out = Some(left_out.map_or(reason, |first| first.min(reason)));
                        }
                    }
                }
            }
        }
        Ok(left_out)
    }
}
