//! The three figures of htc's benchmark: epoch durations, utilisation over an epoch, and mean
//! utilisation.

mod curve_chart;

use bench_report::Floor;

pub(crate) use curve_chart::{NamedCurve, draw_curves};

use crate::bench::Strategy;

/// The color of a strategy: htc's for its five, one more for ours.
pub(crate) fn color(strategy: Strategy) -> [u8; 3] {
    match strategy {
        Strategy::Original => [0x7F, 0x7F, 0x7F],
        Strategy::Blosc => [0xFF, 0x7F, 0x0E],
        Strategy::Fp16 => [0x8C, 0x56, 0x4B],
        Strategy::GpuAug => [0x94, 0x67, 0xBD],
        Strategy::RingBuffer => [0x2C, 0xA0, 0x2C],
        Strategy::EventRing => [0x1F, 0x77, 0xB4],
    }
}

/// Reading the files.
pub(crate) const DISK: Floor = Floor { name: "disk", color: [0, 0, 0] };
/// Decoding them.
pub(crate) const DECODER: Floor = Floor { name: "decoder", color: [0x00, 0x66, 0xCC] };
/// The compute of the device.
pub(crate) const DEVICE: Floor = Floor { name: "device", color: [0xCC, 0x00, 0x66] };
