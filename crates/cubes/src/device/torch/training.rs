//! The training of a U-Net, step by step.

use anyhow::{Context as _, ensure};
use images::ImageBatch;
use images::augment::{Augmentation, Parameters};
use torch_feed::tch::{self, Device};
use torch_feed::{ArrayTensors, ChannelScale, ImageMaps, SegmentationBatch, UNet, UNetSpec};

use crate::device::torch_spec::{TorchProcessor, TorchSpec, TorchWork};

/// Learning rate of Adam.
const LEARNING_RATE: f64 = 3e-3;

/// The processor as torch names it.
pub(super) fn processor(of: TorchProcessor) -> Device {
    match of {
        TorchProcessor::Cpu => Device::Cpu,
        TorchProcessor::Cuda(idx) => Device::Cuda(idx),
    }
}

/// A model that is made of the first batch.
pub(super) struct Training {
    processor: Device,
    width: usize,
    work: TorchWork,
    model: Option<UNet>,
}

impl Training {
    /// Prepares torch's device.
    ///
    /// # Errors
    /// There are fewer than two classes; torch's errors.
    pub(super) fn new(spec: &TorchSpec, work: TorchWork) -> anyhow::Result<Self> {
        let n_classes = work.n_classes;
        ensure!(1 < n_classes, "a U-Net learns two classes or more; the data set has {n_classes}");
        let processor = processor(spec.processor);
        // The first use of a GPU opens it, which takes seconds and which NVML waits for.
        let opened = tch::Tensor::f_zeros([1], (tch::Kind::Float, processor));
        drop(opened.with_context(|| format!("torch cannot use {}", spec.processor))?);
        Ok(Self { processor, width: spec.width, work, model: None })
    }

    /// The device of the model.
    pub(super) fn processor(&self) -> Device {
        self.processor
    }

    /// The random maps of a batch's samples, those that the CPU would use; `None` if the device
    /// does not augment.
    pub(super) fn maps(&self, batch: &ImageBatch) -> anyhow::Result<Option<Vec<Parameters>>> {
        if !self.work.augments {
            return Ok(None);
        }
        let valid = batch.key("valid_pixels").context("batches have no valid_pixels")?;
        let [_, height, width] = valid.shape()[..] else {
            anyhow::bail!("valid_pixels are of shape {:?}", valid.shape());
        };
        ensure!(valid.element().n_bytes() == 1, "valid_pixels are of {}", valid.element());
        let epoch = batch.place().epoch;
        let masks = valid.bytes().chunks_exact((height * width).max(1));
        let maps = batch.samples().iter().zip(masks).map(|(sample, mask)| {
            let shape = [height, width];
            let drawn = Augmentation::default().draw(self.work.seed, epoch, *sample, shape);
            Ok(drawn.keeping_valid_pixels(shape, [mask], |is_valid| is_valid != 0)?)
        });
        maps.collect::<anyhow::Result<Vec<Parameters>>>().map(Some)
    }

    /// Trains on a batch that is on the device. Returns its loss, after the step has ended.
    ///
    /// # Errors
    /// The batch has no labels, or others than the classes; torch's errors.
    pub(super) fn step(
        &mut self,
        tensors: &ArrayTensors,
        maps: Option<&[Parameters]>,
    ) -> anyhow::Result<f64> {
        let maps = maps.map(|maps| self.image_maps(tensors, maps)).transpose()?;
        let batch = SegmentationBatch::new(tensors, maps.as_ref())?;
        let model = if let Some(model) = &mut self.model {
            model
        } else {
            let TorchWork { n_classes, seed, .. } = self.work;
            let (width, learning_rate) = (self.width, LEARNING_RATE);
            let spec = UNetSpec { width, n_classes, learning_rate, seed };
            self.model.insert(UNet::new(ChannelScale::measure(&[&batch])?, &spec)?)
        };
        let loss = model.step(&batch).context("cannot train on a batch")?;
        // Reading it waits for the step.
        loss.f_double_value(&[]).context("cannot read the loss of a batch")
    }

    pub(super) fn image_maps(
        &self,
        tensors: &ArrayTensors,
        maps: &[Parameters],
    ) -> anyhow::Result<ImageMaps> {
        let size = tensors.tensor("valid_pixels")?.size();
        let [_, height, width] = size[..] else {
            anyhow::bail!("valid_pixels are of shape {size:?}");
        };
        Ok(ImageMaps::new(maps, [height as usize, width as usize], self.processor)?)
    }
}
