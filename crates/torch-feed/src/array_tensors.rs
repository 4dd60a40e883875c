//! One batch of array samples as tensors.

use arrays::{ArrayBatch, ElementType, OwnedValues};
#[cfg(feature = "images")]
use images::ImageBatch;
use pipeline::BatchPlace;
use tch::{Device, Kind, Tensor};

use crate::device::{CopyDevice as _, Ticket, TorchDevice};
use crate::error::Error;
#[cfg(feature = "images")]
use crate::memory::lend_images;
use crate::memory::lend_values;

/// Samples of arrays as tensors: for each variable, one of shape `[samples, ...]`.
///
/// If the batch was the whole of its block, its tensors borrow the memory that the chunks were
/// decoded into. A batch that is a part of its block is copied once.
///
/// The tensors may be kept without the batch, and so may every tensor that shares their memory
/// (`shallow_clone`, views, tensors that autograd keeps for the backward pass). Their memory is
/// reused for a later block when the last of them is dropped. The memory has a fixed size: copy a
/// tensor before calling `resize_`.
#[derive(Debug)]
pub struct ArrayTensors {
    variables: Vec<VariableTensor>,
    samples: Vec<u64>,
    place: BatchPlace,
}

#[derive(Debug)]
struct VariableTensor {
    name: String,
    dimensions: Vec<String>,
    tensor: Tensor,
}

impl ArrayTensors {
    /// Makes the tensors of a batch, on the CPU.
    ///
    /// # Errors
    /// torch has no tensors of a variable's elements (u16, u32, u64), or no memory.
    pub fn new(batch: ArrayBatch) -> Result<Self, Error> {
        let (samples, place) = (batch.samples().to_vec(), batch.place());
        let variables = batch.into_values().map(VariableTensor::new).collect::<Result<_, _>>()?;
        Ok(Self { variables, samples, place })
    }

    /// Makes the tensors of a batch of images, on the CPU: one for each key, of shape
    /// `[samples, height, width, channels]`, or without channels for masks. They borrow the batch's
    /// memory; a slot of a ring is free when the last of them is dropped.
    ///
    /// # Errors
    /// torch has no tensors of a key's elements (u16, u32, u64), or no memory.
    #[cfg(feature = "images")]
    pub fn from_images(batch: ImageBatch) -> Result<Self, Error> {
        const DIMENSIONS: [&str; 4] = ["sample", "height", "width", "channel"];
        let (samples, place) = (batch.samples().to_vec(), batch.place());
        let mut named = Vec::new();
        let mut tensors = Vec::new();
        for values in batch.keys() {
            let kind = kind_of(values.name(), values.element())?;
            let n_values = values.bytes().len() / values.element().n_bytes();
            let shape = torch_shape(&values.shape(), n_values)?;
            let is_image = shape.len() <= DIMENSIONS.len() && !values.is_plain();
            let dimensions = DIMENSIONS.iter().take(if is_image { shape.len() } else { 0 });
            let dimensions = dimensions.map(|name| (*name).to_owned()).collect();
            named.push((values.name().to_owned(), dimensions));
            tensors.push((kind, shape));
        }
        let lent = match batch.into_memory() {
            Ok(memory) => lend_images(memory, &tensors),
            // Something else shares the memory.
            Err(batch) => batch
                .keys()
                .zip(&tensors)
                .map(|(values, (kind, shape))| copied(values.bytes(), *kind, shape))
                .collect(),
        };
        let lent = lent.map_err(Error::torch("a tensor of a key's values"))?;
        let variables = named
            .into_iter()
            .zip(lent)
            .map(|((name, dimensions), tensor)| VariableTensor { name, dimensions, tensor });
        Ok(Self { variables: variables.collect(), samples, place })
    }

    /// A batch of these tensors.
    #[cfg(feature = "sequences")]
    pub(crate) fn of_tensors(
        tensors: Vec<(String, Tensor)>,
        samples: Vec<u64>,
        place: BatchPlace,
    ) -> Self {
        let variable = |(name, tensor)| VariableTensor { name, dimensions: Vec::new(), tensor };
        Self { variables: tensors.into_iter().map(variable).collect(), samples, place }
    }

    /// The tensor of a variable: samples, then steps if there is more than one, then the selected
    /// part of the array's dimensions but the first. Always contiguous.
    ///
    /// # Errors
    /// There is no variable of that name.
    pub fn tensor(&self, variable: &str) -> Result<&Tensor, Error> {
        Ok(&self.variable(variable)?.tensor)
    }

    /// The names of a tensor's dimensions: `sample`, `step` if there is more than one, then those
    /// of the array; empty if the array does not name them.
    ///
    /// # Errors
    /// There is no variable of that name.
    pub fn dimensions(&self, variable: &str) -> Result<&[String], Error> {
        Ok(&self.variable(variable)?.dimensions)
    }

    /// All tensors with the names of their variables, in the order of the settings.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.variables.iter().map(|variable| (variable.name.as_str(), &variable.tensor))
    }

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

    /// Copies the tensors to `device`; no copy if they are on the CPU already. Waits for the copy.
    ///
    /// # Errors
    /// torch's errors, if there is no such device or no memory.
    pub fn to_device(self, device: Device) -> Result<Self, Error> {
        if device == Device::Cpu && self.tensors().all(|(_, of)| of.device() == Device::Cpu) {
            return Ok(self);
        }
        self.copies(|tensor| {
            tensor.f_to(device).map_err(Error::torch("a copy of a variable's values on the device"))
        })
    }

    /// Copies the tensors to `device`, also from the CPU to the CPU, and waits for the copies. From
    /// pinned memory they are all begun before the wait.
    ///
    /// After an error some copies may still be under way: keep these tensors until the device has
    /// done all its work.
    ///
    /// # Errors
    /// torch's errors, if there is no such device or no memory.
    pub fn copy_to(&self, device: Device) -> Result<Self, Error> {
        let device = TorchDevice::new(device)?;
        let mut last = Ticket::default();
        let copy = self.copies(|tensor| {
            let (copy, ticket) = device.begin_copy(tensor)?;
            last = last.max(ticket);
            Ok(copy)
        })?;
        device.join()?;
        device.wait(last);
        Ok(copy)
    }

    /// The same batch with a copy of each tensor.
    pub(crate) fn copies(
        &self,
        mut copy: impl FnMut(&Tensor) -> Result<Tensor, Error>,
    ) -> Result<Self, Error> {
        let variables = self.variables.iter().map(|variable| {
            let VariableTensor { name, dimensions, tensor } = variable;
            let (name, dimensions) = (name.clone(), dimensions.clone());
            Ok(VariableTensor { name, dimensions, tensor: copy(tensor)? })
        });
        let variables = variables.collect::<Result<_, Error>>()?;
        Ok(Self { variables, samples: self.samples.clone(), place: self.place })
    }

    fn variable(&self, name: &str) -> Result<&VariableTensor, Error> {
        let found = self.variables.iter().find(|variable| variable.name == name);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.tensors().map(|(name, _)| name).collect();
            Error::NoVariable { variable: name.to_owned(), known: known.join(", ") }
        })
    }
}

impl VariableTensor {
    fn new(mut owned: OwnedValues) -> Result<Self, Error> {
        let values = owned.values();
        let kind = kind_of(values.name(), values.element())?;
        let name = values.name().to_owned();
        let dimensions = values.dimensions().into_iter().map(str::to_owned).collect();
        let n_values = values.bytes().len() / values.element().n_bytes();
        let shape = torch_shape(&values.shape(), n_values)?;
        let tensor = if owned.bytes_mut().is_some() {
            lend_values(owned, kind, &shape)
        } else {
            copied(owned.values().bytes(), kind, &shape)
        };
        let tensor = tensor.map_err(Error::torch("a tensor of a variable's values"))?;
        Ok(Self { name, dimensions, tensor })
    }
}

/// A shape as torch counts.
fn torch_shape(shape: &[usize], n_values: usize) -> Result<Vec<i64>, Error> {
    let shape = shape.iter().map(|length| i64::try_from(*length)).collect::<Result<Vec<_>, _>>();
    shape.map_err(|_| Error::TooLarge { n_values })
}

/// Copies values into memory of torch's own.
fn copied(bytes: &[u8], kind: Kind, shape: &[i64]) -> Result<Tensor, tch::TchError> {
    if kind == Kind::Bool {
        // Other numbers than 0 and 1 are not values of C++'s bool.
        return Tensor::f_from_data_size(bytes, shape, Kind::Uint8)?.f_to_kind(Kind::Bool);
    }
    Tensor::f_from_data_size(bytes, shape, kind)
}

/// The type of a tensor of these elements.
///
/// # Errors
/// tch has none: it knows no unsigned integers of more than 8 bits.
pub(crate) fn kind_of(variable: &str, element: ElementType) -> Result<Kind, Error> {
    match element {
        ElementType::Bool => Ok(Kind::Bool),
        ElementType::I8 => Ok(Kind::Int8),
        ElementType::I16 => Ok(Kind::Int16),
        ElementType::I32 => Ok(Kind::Int),
        ElementType::I64 => Ok(Kind::Int64),
        ElementType::U8 => Ok(Kind::Uint8),
        ElementType::F16 => Ok(Kind::Half),
        ElementType::BF16 => Ok(Kind::BFloat16),
        ElementType::F32 => Ok(Kind::Float),
        ElementType::F64 => Ok(Kind::Double),
        _ => Err(Error::Element { variable: variable.to_owned(), element }),
    }
}
