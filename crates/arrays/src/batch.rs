//! Batches of samples.

use std::ops::Range;
use std::sync::Arc;

use pipeline::BatchPlace;
use slots::{PooledSlot, SlotMemory as _};

use crate::coordinates::Coordinates;
use crate::element::{Element, ElementType};
use crate::error::Error;
use crate::leads::first_with_steps;
use crate::patches::OpenPatches;
use crate::times::TimeSpan;
use crate::variable::OpenVariable;
use crate::window::Window;

/// Samples in the order of the plan: for each variable, an array of shape `[samples, ...]`.
///
/// Dropping a batch returns its memory for later ones. A batch that is kept keeps its memory, and
/// that of the block it lies in.
#[derive(Debug)]
pub struct ArrayBatch {
    pub(crate) variables: Arc<[OpenVariable]>,
    /// The memory of each variable, and the batch's bytes in it.
    pub(crate) values: Vec<(Arc<PooledSlot>, Range<usize>)>,
    pub(crate) samples: Vec<u64>,
    pub(crate) window: Arc<Window>,
    pub(crate) place: BatchPlace,
}

impl ArrayBatch {
    /// The number of samples.
    pub fn n_samples(&self) -> usize {
        self.samples.len()
    }

    /// The numbers of the samples.
    pub fn samples(&self) -> &[u64] {
        &self.samples
    }

    /// The batch's position in its epoch.
    pub fn place(&self) -> BatchPlace {
        self.place
    }

    /// The values of all variables, in the order of the settings.
    pub fn variables(&self) -> impl Iterator<Item = VariableValues<'_>> {
        self.variables.iter().zip(&self.values).map(|(variable, (slot, bytes))| VariableValues {
            variable,
            bytes: slot.bytes().get(bytes.clone()).unwrap_or_default(),
            samples: &self.samples,
            window: &self.window,
            epoch: self.place.epoch,
        })
    }

    /// The first index of each sample's patch in each dimension that is cut, counted from the first
    /// selected one, in C order of `[samples, dimensions]`; negative where a patch begins in the
    /// padding. Empty if samples are whole steps.
    pub fn patch_starts(&self) -> Vec<i64> {
        let epoch = self.place.epoch;
        let patches = self.window.patches.iter();
        let of = |patches: &Arc<OpenPatches>| -> Vec<i64> {
            self.samples.iter().flat_map(|sample| patches.starts(*sample, epoch)).collect()
        };
        patches.flat_map(of).collect()
    }

    /// The lead time of each sample; empty if samples have none
    /// ([`SampleSpec::lead`](crate::SampleSpec::lead)).
    pub fn lead_times(&self) -> Vec<TimeSpan> {
        let first = first_with_steps(&self.variables).and_then(|at| self.variables.get(at));
        let Some(first) = first.filter(|first| first.leads.is_some()) else { return Vec::new() };
        let steps = self.samples.iter().map(|sample| self.window.step(*sample));
        steps.filter_map(|step| first.lead_time(step)).collect()
    }

    /// Takes the batch apart: the values of each variable, in the order of the settings.
    pub fn into_values(self) -> impl Iterator<Item = OwnedValues> {
        let Self { variables, values, samples, window, place } = self;
        let samples: Arc<[u64]> = samples.into();
        values.into_iter().enumerate().map(move |(idx, (slot, bytes))| OwnedValues {
            variables: Arc::clone(&variables),
            idx,
            slot,
            bytes,
            samples: Arc::clone(&samples),
            window: Arc::clone(&window),
            epoch: place.epoch,
        })
    }

    /// The values of a variable; `None` if there is none of that name.
    pub fn variable(&self, name: &str) -> Option<VariableValues<'_>> {
        self.variables().find(|values| values.name() == name)
    }
}

/// The values of one variable in a batch.
#[derive(Debug, Clone, Copy)]
pub struct VariableValues<'a> {
    pub(crate) variable: &'a OpenVariable,
    bytes: &'a [u8],
    samples: &'a [u64],
    window: &'a Window,
    pub(crate) epoch: u64,
}

impl<'a> VariableValues<'a> {
    /// The variable's name.
    pub fn name(&self) -> &'a str {
        &self.variable.name
    }

    /// The type of the elements.
    pub fn element(&self) -> ElementType {
        self.variable.element
    }

    /// Whether the batch has the values once, since the array has no steps, and is not cut into
    /// patches.
    pub fn is_static(&self) -> bool {
        self.variable.shared_values().is_some()
    }

    /// The shape: samples, then steps if the variable has more than one or a rollout, then the
    /// selected part of the array's dimensions but that of the steps. Without samples if the array
    /// is static.
    pub fn shape(&self) -> Vec<usize> {
        let samples = (!self.is_static()).then_some(self.samples.len());
        let of_sample = self.variable.sample_shape_in(Some(self.epoch));
        samples.into_iter().chain(of_sample).collect()
    }

    /// The names of the dimensions of [`shape`](Self::shape): `sample`, `step` if there is more
    /// than one, then those of the array; empty where the array has no names.
    pub fn dimensions(&self) -> Vec<&'a str> {
        let samples = (!self.is_static()).then_some("sample");
        samples.into_iter().chain(self.variable.sample_dimensions()).collect()
    }

    /// The coordinates of the selected indices of a dimension of the array, which is not the
    /// first. `None` if the dimension does not exist, has no coordinates, or is cut into patches.
    /// All batches share them.
    pub fn coordinates(&self, dimension: &str) -> Option<&'a Coordinates> {
        self.variable.coordinates_of(dimension).filter(|_| !self.is_cut(dimension))
    }

    /// Whether a dimension of the array is cut into patches.
    pub fn is_cut(&self, dimension: &str) -> bool {
        self.variable.number_of_cut(dimension).is_some()
    }

    /// The coordinates of a dimension that is cut, for each sample, in C order of
    /// `[samples, indices of a patch]`; in the padding those of the indices that are there. `None`
    /// if the dimension is not cut, or has no coordinates.
    pub fn patch_coordinates(&self, dimension: &str) -> Option<Coordinates> {
        let patches = self.window.patches.as_ref()?;
        let of = self.variable.number_of_cut(dimension)?;
        let all = self.variable.coordinates_of(dimension)?;
        let of_sample = |sample: &u64| {
            let start = patches.starts(*sample, self.epoch).get(of).copied();
            start.into_iter().flat_map(|start| patches.places(of, start))
        };
        Some(all.pick(self.samples.iter().flat_map(of_sample)))
    }

    /// The coordinates of the array's first dimension, times for example, initial times of
    /// forecasts: one for each sample and step, in C order of `[samples, steps]`. `None` if the
    /// dimension has no coordinates.
    pub fn sample_coordinates(&self) -> Option<Coordinates> {
        let of_steps = self.variable.step_coordinates.as_deref()?;
        let n_steps = self.n_steps();
        let of_sample = |sample: &u64| self.window.steps_of(self.variable, *sample).take(n_steps);
        let steps = self.samples.iter().flat_map(of_sample);
        Some(of_steps.pick(steps.map(|step| self.variable.row_of(step))))
    }

    /// The lead times of forecasts: one for each sample and step, in C order of `[samples, steps]`,
    /// as they are stored. `None` if the variable has none
    /// ([`SampleSpec::lead`](crate::SampleSpec::lead)).
    pub fn lead_coordinates(&self) -> Option<Coordinates> {
        let leads = self.variable.leads.as_ref()?;
        let n_steps = self.n_steps();
        let of_sample = |sample: &u64| self.window.steps_of(self.variable, *sample).take(n_steps);
        let steps = self.samples.iter().flat_map(of_sample);
        Some(leads.coordinates.pick(steps.map(|step| self.variable.lead_of(step))))
    }

    /// The values in C order.
    ///
    /// # Errors
    /// The elements are not of type `T`.
    pub fn values<T: Element>(&self) -> Result<&'a [T], Error> {
        if !T::is(self.element()) {
            return Err(Error::WrongElement {
                variable: self.name().to_owned(),
                element: self.element(),
                wanted: std::any::type_name::<T>(),
            });
        }
        Ok(bytemuck::cast_slice(self.bytes))
    }

    /// The values in C order, as the machine's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// The values of one variable of a batch that was taken apart.
///
/// Dropping them returns their memory for later batches.
#[derive(Debug)]
pub struct OwnedValues {
    variables: Arc<[OpenVariable]>,
    /// The variable among them.
    idx: usize,
    slot: Arc<PooledSlot>,
    /// The values in the slot.
    bytes: Range<usize>,
    samples: Arc<[u64]>,
    window: Arc<Window>,
    epoch: u64,
}

impl OwnedValues {
    /// The values, with their name, type and shape.
    pub fn values(&self) -> VariableValues<'_> {
        VariableValues {
            variable: &self.variables[self.idx],
            bytes: self.slot.bytes().get(self.bytes.clone()).unwrap_or_default(),
            samples: &self.samples,
            window: &self.window,
            epoch: self.epoch,
        }
    }

    /// The memory of the values, without the arrays and their storage. Dropping it returns it for
    /// later batches.
    ///
    /// # Errors
    /// The values themselves, if the memory does not belong to them alone
    /// ([`bytes_mut`](Self::bytes_mut)).
    pub fn into_slot(self) -> Result<PooledSlot, Self> {
        if self.bytes != (0..self.slot.bytes().len()) {
            return Err(self);
        }
        Arc::try_unwrap(self.slot).map_err(|slot| Self { slot, ..self })
    }

    /// The values in C order, for writing. They begin at a multiple of 8 bytes, and stay where they
    /// are while `self` lives, also when it is moved.
    ///
    /// `None` if the memory does not belong to these values alone: the batch was a part of its
    /// block. A batch is the whole of its block if blocks are as large as batches, and it is alone
    /// if it was copied from two blocks, or as [`SampleSpec::shares_blocks`] says.
    ///
    /// [`SampleSpec::shares_blocks`]: crate::SampleSpec::shares_blocks
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let bytes = Arc::get_mut(&mut self.slot)?.bytes_mut();
        (self.bytes == (0..bytes.len())).then_some(bytes)
    }
}
