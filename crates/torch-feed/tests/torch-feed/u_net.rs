//! The model that segments cubes: it learns, and torch's errors come out.

use tch::{Device, Kind, Tensor};
use torch_feed::{ChannelScale, SegmentationBatch, UNet, UNetSpec};

const N_CHANNELS: i64 = 4;

/// Two images whose pixels are brightest in the channel of their class, in stripes of a class each.
/// The sizes are odd, so that levels round up.
fn batch(n_classes: i64) -> SegmentationBatch {
    let (height, width) = (7, 9);
    let labels = Tensor::arange(width, (Kind::Int64, Device::Cpu)).remainder(n_classes);
    let labels = labels.view([1, 1, width]).expand([2, height, width], false).contiguous();
    let bright = labels.one_hot(N_CHANNELS).to_kind(Kind::Float) * 100.0 + 1e3;
    SegmentationBatch { cubes: bright.permute([0, 3, 1, 2]), labels }
}

/// An untrained model whose channels are scaled as in the batch.
fn model(batch: &SegmentationBatch, n_classes: usize) -> UNet {
    // For tensors this small, torch's threads cost more than they gain.
    tch::set_num_threads(1);
    seeded(batch, n_classes, 0)
}

fn seeded(batch: &SegmentationBatch, n_classes: usize, seed: u64) -> UNet {
    let scale = ChannelScale::measure(&[batch]).unwrap();
    UNet::new(scale, &UNetSpec { width: 3, n_classes, learning_rate: 0.02, seed }).unwrap()
}

fn loss(of: &Tensor) -> f64 {
    f64::try_from(of).unwrap()
}

#[test]
fn it_learns_a_batch() {
    let batch = batch(3);
    let mut model = model(&batch, 3);
    assert_eq!(model.device(), Device::Cpu);
    let first = loss(&model.step(&batch).unwrap());
    for _ in 0..150 {
        let _loss = model.step(&batch).unwrap();
    }
    let last = loss(&model.step(&batch).unwrap());
    assert!(last < 0.2 * first, "{first} {last}");
    let logits = model.logits(&batch.cubes).unwrap();
    assert_eq!(logits.size(), [2, 3, 7, 9]);
    let right = logits.argmax(1, false).eq_tensor(&batch.labels).to_kind(Kind::Float);
    assert!(0.9 < loss(&right.mean(Kind::Float)));
}

#[test]
fn a_seed_decides_the_first_parameters() {
    let batch = batch(3);
    let logits = |seed| seeded(&batch, 3, seed).logits(&batch.cubes).unwrap();
    assert!(logits(7).equal(&logits(7)) && !logits(7).equal(&logits(8)));
}

#[test]
fn ignored_pixels_are_not_learned() {
    let mut batch = batch(3);
    let mut model = model(&batch, 3);
    let whole = loss(&model.step(&batch).unwrap());
    model.set_learning_rate(0.0);
    batch.labels = batch.labels.full_like(SegmentationBatch::IGNORED);
    // The mean over no pixel.
    assert!(whole.is_finite() && loss(&model.step(&batch).unwrap()).is_nan());
}

#[test]
fn what_torch_refuses_is_an_error() {
    let batch = batch(3);
    let refused = model(&batch, 2).step(&batch).unwrap_err();
    assert!(refused.to_string().contains("a step of a U-Net"), "{refused}");
    let fewer = batch.cubes.narrow(1, 0, 2);
    model(&batch, 3).logits(&fewer).unwrap_err();
    ChannelScale::measure(&[]).unwrap_err();
}
