//! Random maps of one hyperspectral cube of 480 x 640 x 100 and its mask.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use half::f16;
use images::augment::{AffineMap, ImageElement, Parameters, warp_image, warp_mask};

const SHAPE: [usize; 3] = [480, 640, 100];

/// An affine map inside of htc's ranges, and flips alone.
fn maps() -> [(&'static str, Parameters); 3] {
    let affine = AffineMap { degrees: 20.0, translation: [10.3, -5.7], scale: 0.97 };
    [
        (
            "affine and flip",
            Parameters { affine: Some(affine), horizontal_flip: true, ..Parameters::IDENTITY },
        ),
        ("horizontal flip", Parameters { horizontal_flip: true, ..Parameters::IDENTITY }),
        ("vertical flip", Parameters { vertical_flip: true, ..Parameters::IDENTITY }),
    ]
}

fn images<S: ImageElement, T: ImageElement>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    types: &str,
    cube: &[S],
) {
    let mut warped = vec![T::zeroed(); cube.len()];
    for (map, parameters) in maps() {
        group.bench_function(format!("{map}: {types}"), |bencher| {
            bencher.iter(|| {
                warp_image(&parameters, SHAPE, black_box(cube), 0..SHAPE[0], &mut warped).unwrap();
            });
        });
    }
}

fn augment(criterion: &mut Criterion) {
    let [height, width, channels] = SHAPE;
    let cube: Vec<f32> = (0..height * width * channels)
        .map(|idx| ((idx as u32).wrapping_mul(2_654_435_761) >> 8) as f32)
        .collect();
    let narrow: Vec<f16> = cube.iter().map(|value| f16::from_f32(value / 1e6)).collect();
    let mut group = criterion.benchmark_group("augment a cube");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    images::<f32, f32>(&mut group, "f32 to f32", &cube);
    images::<f16, f32>(&mut group, "f16 to f32", &narrow);
    images::<f16, f16>(&mut group, "f16 to f16", &narrow);
    let mask = vec![0_u8; height * width];
    let mut warped = mask.clone();
    for (map, parameters) in maps() {
        group.bench_function(format!("{map}: mask"), |bencher| {
            let (mask, shape) = (black_box(&mask), [height, width]);
            bencher.iter(|| warp_mask(&parameters, shape, mask, 0..height, &mut warped).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, augment);
criterion_main!(benches);
