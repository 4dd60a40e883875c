//! Samples whose steps are found by their times.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::leads::first_with_steps;
use crate::spec::{Period, SampleSpec};
use crate::times::{NotFound, TimeSpan, Times};
use crate::variable::OpenVariable;

use super::{Anchors, LeftOut, Reason, SampleSteps, Window, range};

/// Samples whose steps are found by their times.
pub(super) struct Timed<'a> {
    spec: &'a SampleSpec,
    /// The times of each variable that has steps; equal ones are one object.
    times: Vec<Option<Arc<Times>>>,
    /// The valid steps of each variable, in each of its arrays.
    valid: Vec<Vec<Vec<Range<u64>>>>,
    /// The lead times of each variable that has some, for each lead time of samples.
    leads: Vec<Vec<Result<Vec<u64>, NotFound>>>,
}

/// What a sample is about.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    /// The step, or the initial time.
    row: u64,
    /// Its time.
    micros: i64,
    /// The number of the lead time, and how long it is; 0 if there is none.
    lead: (u64, i64),
}

impl<'a> Timed<'a> {
    pub(super) fn new(variables: &[OpenVariable], spec: &'a SampleSpec) -> Result<Self, Error> {
        let refused = |reason: String| Error::Spec { reason };
        if spec.frequency.is_some() && spec.stride != 1 {
            return Err(refused("give a frequency or a stride, not both".to_owned()));
        }
        if let Some(TimeSpan { micros: ..=0 }) = spec.frequency {
            return Err(refused("the frequency must be a positive time".to_owned()));
        }
        let mut times: Vec<Option<Arc<Times>>> = Vec::with_capacity(variables.len());
        let mut valid = Vec::with_capacity(variables.len());
        for variable in variables {
            let unread = |reason: String| {
                refused(format!("the times of {} are not known: {reason}", variable.path()))
            };
            if variable.is_static() {
                times.push(None);
                valid.push(Vec::new());
                continue;
            }
            let coordinates = variable.step_coordinates.as_deref();
            let coordinates = coordinates
                .ok_or_else(|| unread("its first dimension has no coordinates".to_owned()))?;
            let found = Times::of(coordinates).map_err(unread)?;
            if times.iter().flatten().next().is_some_and(|first| !first.counts_as(&found)) {
                return Err(unread("their calendar is another than that of others".to_owned()));
            }
            let known = times.iter().flatten().find(|known| ***known == found).cloned();
            let found = known.unwrap_or_else(|| Arc::new(found));
            valid.push(variable.valid_steps(&found).map_err(unread)?);
            times.push(Some(found));
        }
        let first = first_with_steps(variables).and_then(|at| variables[at].leads.as_ref());
        let of_samples = first.map_or(&[][..], |leads| &leads.micros);
        let leads = variables.iter().map(|variable| match &variable.steps {
            SampleSteps::Relative(steps) => variable.leads_of(of_samples, steps),
            SampleSteps::Listed { .. } => Vec::new(),
        });
        let leads = leads.collect();
        Ok(Self { spec, times, valid, leads })
    }

    /// The step of a variable at a time.
    fn find(&self, variable: usize, micros: i64) -> Result<u64, Reason> {
        let times = self.times[variable].as_ref();
        let step = times.map_or(Err(NotFound::Outside), |times| times.find(micros));
        self.valid_step(variable, step.map_err(Reason::NotFound)?)
    }

    fn valid_step(&self, variable: usize, step: u64) -> Result<u64, Reason> {
        let is_in = |valid: &Vec<Range<u64>>| valid.iter().any(|valid| valid.contains(&step));
        let is_valid = self.valid[variable].iter().all(is_in);
        if is_valid { Ok(step) } else { Err(Reason::Invalid) }
    }

    /// The steps of a variable in the sample about a step of the variable `first`.
    fn steps(
        &self,
        variables: &[OpenVariable],
        (variable, first): (usize, usize),
        anchor: Anchor,
        into: &mut Vec<u64>,
    ) -> Result<(), Reason> {
        let has_times_of_first = self.times[variable].as_ref().zip(self.times[first].as_ref());
        let is_own = has_times_of_first.is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        let OpenVariable { spans, steps, n_steps, leads, .. } = &variables[variable];
        if leads.is_some() {
            let row = if is_own { anchor.row } else { self.find(variable, anchor.micros)? };
            let row = self.valid_step(variable, row)?;
            let n_leads = variables[variable].n_leads();
            match self.leads[variable].get(anchor.lead.0 as usize) {
                Some(Ok(found)) => into.extend(found.iter().map(|lead| row * n_leads + lead)),
                Some(Err(reason)) => return Err(Reason::NotFound(*reason)),
                None => return Err(Reason::NotFound(NotFound::Outside)),
            }
            return Ok(());
        }
        let outside = Reason::NotFound(NotFound::Outside);
        let micros = anchor.micros.checked_add(anchor.lead.1).ok_or(outside)?;
        for span in spans {
            let at = micros.checked_add(span.micros).ok_or(outside)?;
            into.push(self.find(variable, at)?);
        }
        let SampleSteps::Relative(relative) = steps else { return Ok(()) };
        if !spans.is_empty() {
            return Ok(());
        }
        let is_own = is_own && variables[first].leads.is_none();
        let own = if is_own { anchor.row } else { self.find(variable, micros)? };
        for by in relative {
            let step = own.checked_add_signed(*by).filter(|step| step < n_steps);
            let step = step.ok_or(outside)?;
            into.push(self.valid_step(variable, step)?);
        }
        Ok(())
    }

    /// The samples, about steps of the variable `first`.
    pub(super) fn window(
        &self,
        variables: &mut [OpenVariable],
        first: usize,
    ) -> Result<Window, Error> {
        let refused = |reason: String| Error::Spec { reason };
        let Some(times) = &self.times[first] else {
            return Err(refused("no variable has times".to_owned()));
        };
        let rows = self.wanted(&variables[first], times)?;
        let n_leads = variables[first].n_leads();
        let leads = variables[first].leads.as_ref().map_or_else(|| vec![0], |of| of.micros.clone());
        let wanted = rows.into_iter().flat_map(|(row, micros)| {
            (0..).zip(&leads).map(move |(at, lead)| Anchor { row, micros, lead: (at, *lead) })
        });
        let with_steps: Vec<usize> =
            (0..variables.len()).filter(|at| !variables[*at].is_static()).collect();
        let mut steps: Vec<Vec<u64>> = vec![Vec::new(); with_steps.len()];
        let (mut anchors, mut left_out) = (Vec::new(), LeftOut::default());
        let mut of_sample: Vec<Vec<u64>> = steps.clone();
        for anchor in wanted {
            let found = with_steps.iter().zip(&mut of_sample).try_for_each(|(at, into)| {
                into.clear();
                self.steps(variables, (*at, first), anchor, into)
            });
            match found {
                Ok(()) => {
                    anchors.push(anchor.row * n_leads + anchor.lead.0);
                    steps.iter_mut().zip(&of_sample).for_each(|(all, of)| all.extend(of));
                }
                Err(reason) => left_out.count(reason),
            }
        }
        if anchors.is_empty() {
            return Err(refused(format!(
                "there is no sample: {} has {} steps, and of those that were asked for {} look \
                 beyond its ends, {} into gaps, {} at doubled times and {} at times that are not \
                 valid",
                variables[first].path(),
                variables[first].n_steps,
                left_out.ends,
                left_out.gaps,
                left_out.doubled,
                left_out.invalid
            )));
        }
        for (at, steps) in with_steps.into_iter().zip(steps) {
            let n = variables[at].steps.len();
            variables[at].steps = packed(&anchors, steps, n);
        }
        let n_samples = anchors.len() as u64;
        Ok(Window::of(Anchors::of(anchors), n_samples, left_out))
    }

    /// The steps that samples are wanted of, each with its time.
    fn wanted(&self, first: &OpenVariable, times: &Times) -> Result<Vec<(u64, i64)>, Error> {
        let of_period = |Period { start, end }: &Period| -> Result<Range<u64>, String> {
            let start = start.as_deref().map_or(Ok(0), |date| times.first_from(date))?;
            let end = end.as_deref();
            Ok(start..end.map_or(Ok(first.n_steps), |date| times.first_after(date))?)
        };
        let periods = self.spec.periods.iter().map(of_period).collect::<Result<Vec<_>, _>>();
        let periods = periods.map_err(|reason| Error::Spec { reason })?;
        let is_wanted =
            |step: &u64| periods.is_empty() || periods.iter().any(|period| period.contains(step));
        let steps = range(first, self.spec, 0)?.step_by(self.spec.stride as usize);
        let mut wanted: Vec<(u64, i64)> =
            steps.filter(is_wanted).filter_map(|step| Some((step, times.micros(step)?))).collect();
        if let (Some(TimeSpan { micros: every }), Some((_, start))) =
            (self.spec.frequency, wanted.first().copied())
        {
            let is_near = |micros: i64| {
                let after = micros.saturating_sub(start).rem_euclid(every);
                after.min(every - after) <= times.tolerance()
            };
            wanted.retain(|(_, micros)| is_near(*micros));
        }
        Ok(wanted)
    }
}

/// The steps of all samples, `n` of each, as distances from `anchors` if all samples have the same.
fn packed(anchors: &[u64], steps: Vec<u64>, n: usize) -> SampleSteps {
    let distance =
        |anchor: &u64, step: &u64| i64::try_from(i128::from(*step) - i128::from(*anchor));
    let of = |anchor: &u64, steps: &[u64]| -> Option<Vec<i64>> {
        steps.iter().map(|step| distance(anchor, step).ok()).collect()
    };
    let mut samples = anchors.iter().zip(steps.chunks_exact(n.max(1)));
    let first = samples.next().and_then(|(anchor, steps)| of(anchor, steps));
    match first {
        Some(first)
            if samples.all(|(anchor, steps)| of(anchor, steps).as_ref() == Some(&first)) =>
        {
            SampleSteps::Relative(first)
        }
        _ => SampleSteps::Listed { steps, n },
    }
}
