//! An opened variable: its array in each store, its elements, and the part of it that is selected.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use slots::Pool;
use storage::Storage;

use crate::axes::{Axes, reordered};
use crate::coordinate_arrays::CoordinateArrays;
use crate::coordinates::Coordinates;
use crate::difference::{self, Difference};
use crate::dimensions::{Dimensions, dimension_names};
use crate::element::ElementType;
use crate::error::Error;
use crate::forcing::OpenForcing;
use crate::labels::Selection;
use crate::leads::Leads;
use crate::member::Member;
use crate::metadata::{self, Unopened};
use crate::open_array::{
    OpenArray, StaticValues, ValidDates, check_normalized, packing, valid_dates,
};
use crate::patches::PatchShape;
use crate::rollout;
use crate::selection::Indices;
use crate::spec::{Dimension, Variable};
use crate::times::{TimeSpan, Times};
use crate::window::{SampleSteps, hash};

/// A variable whose array is open, or several that are its channels.
#[derive(Debug)]
pub(crate) struct OpenVariable {
    pub(crate) name: String,
    /// Which steps a sample has, those that are subtracted last.
    pub(crate) steps: SampleSteps,
    /// The times between a sample's own and those of its steps, if they are found by these.
    pub(crate) spans: Vec<TimeSpan>,
    /// How many of them a sample has, from which epoch on; all of them if there is no entry.
    pub(crate) rollout: Vec<(u64, usize)>,
    /// Elements as delivered.
    pub(crate) element: ElementType,
    /// Names of the dimensions but that of the steps, as delivered; empty where the metadata has
    /// none.
    pub(crate) dimensions: Vec<String>,
    /// The coordinates of the selected indices, for all dimensions but that of the steps.
    pub(crate) coordinates: Vec<Option<Arc<Coordinates>>>,
    /// The coordinates of the steps.
    pub(crate) step_coordinates: Option<Arc<Coordinates>>,
    /// The number of steps, or of initial times if it has lead times.
    pub(crate) n_steps: u64,
    /// Its lead times, each of which is a step of every initial time.
    pub(crate) leads: Option<Leads>,
    /// Shape of the selected part of a row.
    pub(crate) row_shape: Vec<usize>,
    /// Its array, or one for some of its channels each, in the order of a row.
    pub(crate) members: Vec<Member>,
    /// What is computed of a row, without an array.
    pub(crate) forcings: Vec<OpenForcing>,
    /// What is subtracted, if anything is.
    pub(crate) difference: Option<Difference>,
    /// The values of an array without steps.
    pub(crate) values: Option<StaticValues>,
    /// The dimension of the channels, and those of arrays that became channels.
    pub(crate) channel_dimensions: Vec<String>,
    /// What a sample has of each step, if that is a patch.
    pub(crate) patch: Option<PatchShape>,
    /// Memory of its batches.
    pub(crate) pool: Arc<Pool>,
}

/// Where a variable is opened, and how.
pub(crate) struct Opening<'a, 's> {
    pub(crate) storage: &'s Arc<dyn Storage>,
    /// The number of the store.
    pub(crate) store: usize,
    /// The dimension of the steps.
    pub(crate) along: Option<&'a Dimension>,
    /// The dimension of the lead times.
    pub(crate) lead: Option<&'a String>,
    pub(crate) axes: Axes<'a>,
    pub(crate) arrays: &'a mut CoordinateArrays<'s>,
    /// The valid dates that groups of the store name, as far as they were looked for.
    pub(crate) valid: &'a mut HashMap<String, Option<ValidDates>>,
    /// Whether coordinates are read that no selection needs.
    pub(crate) with_coordinates: bool,
    /// Whether the dates are looked for that the store names as valid.
    pub(crate) is_timed: bool,
    /// Threads that read values.
    pub(crate) threads: usize,
}

impl OpenVariable {
    /// Opens the array of a variable, and reads it if it has no steps. `None` if there is none.
    pub(crate) fn open(spec: &Variable, opening: Opening<'_, '_>) -> Result<Option<Self>, Error> {
        let Opening { storage, arrays, valid, .. } = opening;
        rollout::check(spec)?;
        let difference = Difference::of(spec)?;
        let path = spec.path.trim_matches('/').to_owned();
        let opened = match metadata::open(storage, &path) {
            Err(Unopened::Missing) => return Ok(None),
            opened => opened.map_err(|unopened| unopened.error(&path, &**storage))?,
        };
        let array = &opened.array;
        if array.shape().is_empty() {
            return Err(Error::NoRows { array: path });
        }
        let dimensions = dimension_names(array);
        let needs = |(_, selection): &(_, Selection)| matches!(selection, Selection::Labels(_));
        let needs_them = spec.select.iter().any(needs) || opening.axes.turns(&dimensions);
        let coordinates = if opening.with_coordinates || needs_them {
            arrays.of_array(&path, &dimensions, array.shape())?
        } else {
            vec![None; dimensions.len()]
        };
        let known = Dimensions { array: &path, names: &dimensions, shape: array.shape() };
        let along = spec.along.as_ref().or(opening.along);
        let axis = known.axis(along)?;
        let lead = known.lead(opening.lead, axis)?;
        let mut selected = known.selected((&spec.select, axis), &coordinates, arrays)?;
        known.turn((&mut selected, axis), opening.axes.directions, &coordinates, arrays)?;
        let mut order = known.order((&spec.order, opening.axes.order), axis)?;
        if let Some(lead) = lead {
            order.retain(|at| *at != lead);
            order.insert(0, lead);
        }
        let mut coordinates = cut(&coordinates, &selected, array.shape());
        let leads = lead.map(|at| known.leads(at, &mut coordinates)).transpose()?;
        // The rows of an array without steps are the indices of the dimension delivered outermost.
        let rows_at = axis.or_else(|| order.first().copied()).unwrap_or(0);
        let outer = selected.remove(rows_at);
        let in_row = in_row(&order, rows_at);
        let packing = (!spec.as_stored).then(|| packing(&opened, &path)).transpose()?;
        let rows = (rows_at, selected);
        let array = OpenArray::new(opened.array, &path, (&**storage, opening.store), rows)?;
        let mut array = array.ordered(&in_row);
        if let Some(lead) = lead {
            array = array.by_lead(lead - usize::from(rows_at < lead));
            order.remove(0);
        }
        let (mut first, difference) = difference::delivered(array, spec, packing, difference)
            .map_err(|reason| Error::Spec {
                reason: format!("{} in {}: {reason}", spec.name, storage.place()),
            })?;
        let mut values = None;
        let mut step_coordinates = None;
        if let Some(axis) = axis {
            step_coordinates = coordinates.get_mut(axis).and_then(Option::take);
            if opening.is_timed {
                first.valid = valid_dates(&**storage, &path, valid)?;
            }
        } else {
            check_static(spec, along)?;
            values = Some(first.read_rows(&**storage, &outer, opening.threads)?);
        }
        // Those of spans are set once the times are known.
        let (steps, spans) = difference::all_steps(spec);
        Ok(Some(Self {
            name: spec.name.clone(),
            steps: SampleSteps::Relative(steps),
            spans,
            rollout: spec.rollout.clone(),
            element: difference::element(spec, difference.as_ref(), first.element),
            dimensions: reordered(&dimensions, &order),
            coordinates: reordered(&coordinates, &order),
            step_coordinates,
            n_steps: if values.is_some() { 0 } else { outer.len() },
            leads,
            row_shape: first.step_shape().to_vec(),
            members: vec![Member { first, later: Vec::new() }],
            forcings: Vec::new(),
            difference,
            values,
            channel_dimensions: Vec::new(),
            patch: None,
            pool: Arc::default(),
        }))
    }

    /// The same with normalised elements, converted to a type if one is given.
    pub(crate) fn normalized(
        mut self,
        by: &[(f64, f64)],
        element: Option<ElementType>,
    ) -> Result<Self, String> {
        check_normalized(by, &self.row_shape)?;
        if let Some(difference) = &mut self.difference {
            difference.normalize(by)?;
            return Ok(self);
        }
        for forcing in &mut self.forcings {
            forcing.normalize(by)?;
        }
        let normalized = |array: OpenArray| {
            let mut array = array.normalized(by)?;
            if let Some(element) = element {
                array.deliver_as(element);
            }
            Ok::<_, String>(array)
        };
        let of_member = |Member { first, later }| {
            let later = later.into_iter().map(|(start, array)| Ok((start, normalized(array)?)));
            let (later, first) = (later.collect::<Result<_, String>>()?, normalized(first)?);
            Ok::<_, String>(Member { first, later })
        };
        let members: Vec<Member> =
            self.members.into_iter().map(of_member).collect::<Result<_, _>>()?;
        let element = members.first().map_or(self.element, |member| member.first.element);
        Ok(Self { element, members, ..self })
    }

    /// Appends the steps of the same variable in a later store.
    pub(crate) fn append(&mut self, next: Self) -> Result<(), String> {
        if self.is_static() || next.is_static() {
            return if self.is_static() && next.is_static() {
                Ok(())
            } else {
                Err("it has steps in one only".to_owned())
            };
        }
        let shapes = (&self.row_shape, &next.row_shape);
        if self.dimensions != next.dimensions || shapes.0 != shapes.1 {
            return Err(format!(
                "its steps have the dimensions {:?} of {:?} and {:?} of {:?}",
                self.dimensions, shapes.0, next.dimensions, shapes.1
            ));
        }
        if self.element != next.element {
            return Err(format!(
                "its elements are {} and {}: convert them to float32",
                self.element, next.element
            ));
        }
        let mut pairs = self.dimensions.iter().zip(self.coordinates.iter().zip(&next.coordinates));
        let differs =
            |(one, other): (&Arc<Coordinates>, &Arc<Coordinates>)| one.values() != other.values();
        if let Some((dimension, _)) =
            pairs.find(|(_, (one, other))| one.as_ref().zip(other.as_ref()).is_some_and(differs))
        {
            return Err(format!("the coordinates of {dimension} differ"));
        }
        if self.leads.as_ref().map(|of| &of.micros) != next.leads.as_ref().map(|of| &of.micros) {
            return Err("its lead times differ".to_owned());
        }
        let both = self.step_coordinates.take().zip(next.step_coordinates);
        self.step_coordinates = both.and_then(|(these, next)| these.then(&next)).map(Arc::new);
        for (member, next) in self.members.iter_mut().zip(next.members) {
            member.later.push((self.n_steps, next.first));
        }
        self.n_steps += next.n_steps;
        Ok(())
    }

    /// The path of its array, or of the first of its channels.
    pub(crate) fn path(&self) -> &str {
        self.members.first().map_or(&self.name, |member| &member.first.chunks.path)
    }

    /// Whether it has no steps.
    pub(crate) fn is_static(&self) -> bool {
        self.values.is_some()
    }

    /// Its values, if all samples of a batch share them.
    pub(crate) fn shared_values(&self) -> Option<&StaticValues> {
        self.values.as_ref().filter(|_| self.patch.is_none())
    }

    /// Its arrays, in all stores.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = &OpenArray> {
        self.members.iter().flat_map(Member::arrays).map(|(_, array)| array)
    }

    /// The steps of these rows of an array, in the numbers of the variable; none if it does not
    /// have the array, which is known by the name of its kept chunks.
    pub(crate) fn steps_in(
        &self,
        kept_as: &str,
        rows: Range<u64>,
    ) -> impl Iterator<Item = Range<u64>> {
        let n_leads = self.n_leads();
        let arrays = self.members.iter().flat_map(Member::arrays);
        let found = arrays.filter(move |(_, array)| *array.chunks.kept_as == *kept_as);
        found.map(move |(first, _)| {
            let step = |row: u64| first.saturating_add(row).saturating_mul(n_leads);
            step(rows.start)..step(rows.end)
        })
    }

    /// The store that has a step, in the first of its arrays.
    pub(crate) fn store_of(&self, step: u64) -> usize {
        self.members.first().map_or(0, |member| member.array_of(self.row_of(step)).0.store)
    }

    /// The steps that are valid by what the stores say, in each of its arrays.
    pub(crate) fn valid_steps(&self, times: &Times) -> Result<Vec<Vec<Range<u64>>>, String> {
        self.members.iter().map(|member| member.valid_steps(self.n_steps, times)).collect()
    }

    /// Bytes of a sample's part of a row, as delivered.
    pub(crate) fn row_bytes(&self) -> usize {
        self.row_shape.iter().product::<usize>() * self.element.n_bytes()
    }

    /// Shape of a sample with all its steps.
    pub(crate) fn sample_shape(&self) -> Vec<usize> {
        self.sample_shape_in(None)
    }

    /// The names of the dimensions of [`sample_shape`](Self::sample_shape).
    pub(crate) fn sample_dimensions(&self) -> Vec<&str> {
        let steps = self.has_step_dimension().then_some("step");
        let row = self.dimensions.iter().map(String::as_str);
        steps.into_iter().chain(row).collect()
    }

    /// The coordinates of the selected indices of a dimension that is not that of the steps.
    pub(crate) fn coordinates_of(&self, dimension: &str) -> Option<&Coordinates> {
        let mut pairs = self.dimensions.iter().zip(&self.coordinates);
        let (_, coordinates) = pairs.find(|(name, _)| *name == dimension)?;
        coordinates.as_deref()
    }

    /// Bytes of a sample with all its steps.
    pub(crate) fn sample_bytes(&self) -> u64 {
        self.sample_bytes_in(None)
    }

    /// Bytes of `n_samples` samples in a batch.
    pub(crate) fn batch_bytes(&self, n_samples: u64) -> u64 {
        match self.shared_values() {
            Some(values) => values.n_bytes as u64,
            None => self.sample_bytes().saturating_mul(n_samples),
        }
    }

    /// What distinguishes its steps from those of other variables.
    pub(crate) fn description(&self) -> String {
        let paths: Vec<&str> = self.arrays().map(|array| &*array.chunks.path).collect();
        let members: Vec<String> = self.members.iter().map(Member::fingerprint).collect();
        format!("{} {} {}", paths.join(" and "), self.n_steps, members.join(" and "))
    }

    /// What distinguishes its samples from those of other variables.
    pub(crate) fn fingerprint(&self) -> String {
        let (path, n_steps) = (self.path(), self.n_steps);
        let steps = match &self.steps {
            SampleSteps::Relative(steps) => format!("{steps:?}"),
            SampleSteps::Listed { steps, n } => format!("{n} of {:016x}", hash(steps)),
        };
        let rollout = match &self.rollout[..] {
            [] => String::new(),
            rollout => format!(" by epoch {rollout:?}"),
        };
        let members = self.members.iter().map(Member::fingerprint);
        let forcings = self.forcings.iter().map(OpenForcing::fingerprint);
        let parts: Vec<String> = members.chain(forcings).collect();
        let difference = match &self.difference {
            Some(difference) => difference.fingerprint(self.element),
            None => String::new(),
        };
        format!("{path} {n_steps} {steps}{rollout} {}{difference}", parts.join(" and "))
    }
}

/// The coordinates of the selected indices of each dimension.
fn cut(
    coordinates: &[Option<Arc<Coordinates>>],
    selected: &[Indices],
    lens: &[u64],
) -> Vec<Option<Arc<Coordinates>>> {
    let each = coordinates.iter().zip(selected).zip(lens).map(|((found, indices), len)| {
        let coordinates = found.as_ref()?;
        let is_whole = *indices == Indices::Range(0..*len);
        Some(if is_whole {
            Arc::clone(coordinates)
        } else {
            Arc::new(coordinates.pick(indices.iter()))
        })
    });
    each.collect()
}

/// Refuses steps of an array that has none.
fn check_static(spec: &Variable, along: Option<&Dimension>) -> Result<(), Error> {
    let has_one = spec.steps == [0] && spec.spans.is_empty() && spec.rollout.is_empty();
    if has_one && spec.minus.is_empty() {
        return Ok(());
    }
    let dimension = along.map(ToString::to_string).unwrap_or_default();
    let reason = format!("{} has no dimension {dimension}, so it has no steps", spec.name);
    Err(Error::Spec { reason })
}

/// The places of dimensions in a row, of those of the array in this order.
fn in_row(order: &[usize], rows_at: usize) -> Vec<usize> {
    let of_row = order.iter().filter(|at| **at != rows_at);
    of_row.map(|at| at - usize::from(rows_at < *at)).collect()
}
