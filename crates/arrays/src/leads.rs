//! Lead times: forecasts from one initial time, each of which is a step of its own.

use std::sync::Arc;

use crate::coordinates::Coordinates;
use crate::dimensions::Dimensions;
use crate::error::Error;
use crate::open_array::OpenArray;
use crate::spec::{Dimension, SampleSpec, Variable};
use crate::times::{NotFound, TimeSpan, span_micros};
use crate::variable::OpenVariable;

/// The selected lead times of a variable. Its steps are counted by initial times and, fastest, by
/// these.
#[derive(Debug, Clone)]
pub(crate) struct Leads {
    pub(crate) coordinates: Arc<Coordinates>,
    /// Microseconds since the initial time.
    pub(crate) micros: Vec<i64>,
}

impl Leads {
    /// What coordinates stand for. The error says why they are no lead times.
    fn of(coordinates: Option<Arc<Coordinates>>) -> Result<Self, String> {
        let coordinates = coordinates.ok_or("the dimension has no coordinates")?;
        Ok(Self { micros: span_micros(&coordinates)?, coordinates })
    }

    /// How many there are.
    pub(crate) fn n(&self) -> u64 {
        (self.micros.len() as u64).max(1)
    }

    /// The number of a lead time among them.
    fn find(&self, micros: i64) -> Result<u64, NotFound> {
        let mut at = self.micros.iter().enumerate().filter(|(_, other)| **other == micros);
        match (at.next(), at.next()) {
            (Some((at, _)), None) => Ok(at as u64),
            (Some(_), Some(_)) => Err(NotFound::Doubled),
            (None, _) => {
                let is_within = self.micros.iter().any(|other| *other < micros)
                    && self.micros.iter().any(|other| micros < *other);
                Err(if is_within { NotFound::Gap } else { NotFound::Outside })
            }
        }
    }
}

impl Dimensions<'_> {
    /// The dimension of the lead times of an array whose steps lie along `axis`, if it has it.
    pub(crate) fn lead(
        &self,
        name: Option<&String>,
        axis: Option<usize>,
    ) -> Result<Option<usize>, Error> {
        let Some(dimension) = name.map(|name| Dimension::Name(name.clone())) else {
            return Ok(None);
        };
        let found = self.position(&dimension).filter(|_| axis.is_some());
        if found.is_some() && found == axis {
            let reason = "it is that of the initial times: name another one for lead times";
            return Err(self.refused(&dimension, reason.to_owned()));
        }
        Ok(found)
    }

    /// Takes the lead times from the coordinates.
    pub(crate) fn leads(
        &self,
        lead: usize,
        coordinates: &mut [Option<Arc<Coordinates>>],
    ) -> Result<Leads, Error> {
        let found = Leads::of(coordinates.get_mut(lead).and_then(Option::take));
        found.map_err(|reason| {
            let name = self.names.get(lead).cloned().unwrap_or_default();
            self.refused(&Dimension::Name(name), format!("no lead times: {reason}"))
        })
    }
}

impl OpenVariable {
    /// The row of its arrays that has a step: its initial time, if it has lead times.
    pub(crate) fn row_of(&self, step: u64) -> u64 {
        step / self.n_leads()
    }

    /// The number of a step's lead time; 0 if it has none.
    pub(crate) fn lead_of(&self, step: u64) -> u64 {
        step % self.n_leads()
    }

    /// How long a step's lead time is, if it has one.
    pub(crate) fn lead_time(&self, step: u64) -> Option<TimeSpan> {
        let at = usize::try_from(self.lead_of(step)).ok()?;
        self.leads.as_ref()?.micros.get(at).map(|micros| TimeSpan { micros: *micros })
    }

    /// The lead times of each initial time; 1 if it has none.
    pub(crate) fn n_leads(&self) -> u64 {
        self.leads.as_ref().map_or(1, Leads::n)
    }

    /// For each lead time of samples, those that belong to it in this variable: their numbers. They
    /// are found by the time from the sample's own, or counted from it.
    pub(crate) fn leads_of(
        &self,
        of_samples: &[i64],
        relative: &[i64],
    ) -> Vec<Result<Vec<u64>, NotFound>> {
        let Some(leads) = &self.leads else { return Vec::new() };
        let each = of_samples.iter().map(|own| {
            if !self.spans.is_empty() {
                let at = |span: &TimeSpan| own.checked_add(span.micros).ok_or(NotFound::Outside);
                return self.spans.iter().map(|span| leads.find(at(span)?)).collect();
            }
            let own = leads.find(*own)?;
            let by = |by: &i64| {
                let found = own.checked_add_signed(*by).filter(|at| *at < leads.n());
                found.ok_or(NotFound::Outside)
            };
            relative.iter().map(by).collect()
        });
        each.collect()
    }

    /// The chunks of its arrays that have a step: the store, the row of chunks, and the chunk of
    /// the lead time.
    pub(crate) fn chunks_of(&self, step: u64) -> impl Iterator<Item = (usize, u64, u64)> {
        let (row, lead) = (self.row_of(step), self.lead_of(step));
        self.members.iter().map(move |member| {
            let (array, row) = member.array_of(row);
            let chunk_rows = array.chunks.geometry.chunk_rows.max(1);
            (array.store, row / chunk_rows, OpenArray::lead_chunk(array, lead))
        })
    }
}

/// The variable whose steps samples are about: the first that is stored and has lead times, or else
/// the first that is stored and has steps.
pub(crate) fn first_with_steps(variables: &[OpenVariable]) -> Option<usize> {
    let is_stored = |of: &OpenVariable| !of.is_static() && !of.is_computed();
    let has_leads = variables.iter().position(|of| is_stored(of) && of.leads.is_some());
    has_leads.or_else(|| variables.iter().position(is_stored))
}

/// Why lead times do not go together with other settings, if so.
pub(crate) fn problem(spec: &SampleSpec) -> Option<String> {
    let lead = spec.lead.as_ref()?;
    if !spec.missing.keeps_all() {
        return Some(format!(
            "missing numbers are not counted by lead times ({lead}): keep samples that have some"
        ));
    }
    let orders = |variable: &Variable| variable.order.contains(&lead.as_str().into());
    let is_ordered = spec.order.contains(lead)
        || spec.variables.iter().any(|of| orders(of) || of.stack.iter().any(orders));
    is_ordered.then(|| format!("samples are made of {lead}, which has no place among dimensions"))
}
