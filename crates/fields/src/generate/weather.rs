//! The fields at any time: patterns that move along the circles of latitude, and noise.
//!
//! The pattern of the tropics moves west, that of the middle latitudes east, each at a constant
//! speed that depends on the group of channels. So the speed of what is seen depends on channel and
//! latitude, the next sample follows from this one, and fields stay smooth however late the sample:
//! a speed of its own for each latitude would shear them to pieces.

use std::array;
use std::ops::Range;

use super::pattern::{GROUP, Lanes, Patterns};
use super::random::{Decision, Noise};
use super::spec::{FieldSpec, check};
use crate::Error;

/// Returns the exact values of some channels at one time, latitude by latitude, longitude by
/// longitude, channel by channel.
///
/// Channel c of the inputs of sample t is channel c at time t; that of the targets is channel c at
/// time t + 1.
///
/// # Errors
/// A size is out of range, there are not so many channels, or there is not enough memory.
pub fn field(spec: &FieldSpec, time: u64, channels: Range<u64>) -> Result<Vec<f32>, Error> {
    spec.check()?;
    check("the last channel", channels.end, spec.n_channels())?;
    check("the first channel, counted from 1,", channels.start.saturating_add(1), channels.end)?;
    let weather = Weather::new(spec)?;
    let channels = channels.start as usize..channels.end as usize;
    let row_len = weather.n_lon * channels.len();
    let mut values = vec![0.0; weather.n_lat * row_len];
    let moment = weather.at(time);
    for (lat, row) in values.chunks_exact_mut(row_len).enumerate() {
        moment.row(lat, &channels, channels.len(), row);
    }
    Ok(values)
}

/// Everything about the fields that does not depend on the time.
#[derive(Debug)]
pub(crate) struct Weather {
    n_lat: usize,
    n_lon: usize,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    patterns: Patterns,
    /// Turns around the Earth from one sample to the next; negative to the west.
    tropical_speed: f64,
    temperate_speed: f64,
    noise_key: u64,
}

impl Weather {
    /// Makes the patterns of all channels. Fails if there is not enough memory.
    pub(crate) fn new(spec: &FieldSpec) -> Result<Self, Error> {
        let n_groups = (spec.n_channels() as usize).div_ceil(GROUP);
        let groups: Result<_, Error> = (0..n_groups).map(|idx| Group::new(spec, idx)).collect();
        Ok(Self { n_lat: spec.n_lat as usize, n_lon: spec.n_lon as usize, groups: groups? })
    }

    /// The fields at a time.
    pub(crate) fn at(&self, time: u64) -> Moment<'_> {
        let moved = |group: &Group| Moved {
            tropical: Shift::new(group.tropical_speed, time, self.n_lon),
            temperate: Shift::new(group.temperate_speed, time, self.n_lon),
            noise: Noise::new(group.noise_key, time),
        };
        Moment { weather: self, moved: self.groups.iter().map(moved).collect() }
    }
}

impl Group {
    fn new(spec: &FieldSpec, group_idx: usize) -> Result<Self, Error> {
        let mut speeds = Decision::Group(group_idx as u64).choices(spec.seed);
        let mut noise = Decision::Noise(group_idx as u64).choices(spec.seed);
        Ok(Self {
            patterns: Patterns::new(spec, group_idx)?,
            tropical_speed: -speeds.between(0.0025, 0.0075),
            temperate_speed: speeds.between(0.005, 0.015),
            noise_key: noise.bits(),
        })
    }
}

/// The fields at one time.
#[derive(Debug)]
pub(crate) struct Moment<'a> {
    weather: &'a Weather,
    moved: Vec<Moved>,
}

/// How far the patterns of a group have moved at one time, and its noise.
#[derive(Debug)]
struct Moved {
    tropical: Shift,
    temperate: Shift,
    noise: Noise,
}

impl Moment<'_> {
    /// Writes some channels of a row of latitude, longitude by longitude. The values of a longitude
    /// begin `stride` after those of the previous one; what lies between is left as it is.
    pub(crate) fn row(&self, lat: usize, channels: &Range<usize>, stride: usize, into: &mut [f32]) {
        let groups = channels.start / GROUP..channels.end.div_ceil(GROUP);
        for group_idx in groups {
            let first = group_idx * GROUP;
            let lanes = channels.start.max(first)..channels.end.min(first + GROUP);
            let offset = lanes.start - channels.start;
            let lanes = lanes.start - first..lanes.end - first;
            let points = into.chunks_mut(stride);
            for (values, point) in self.group_row(group_idx, lat).zip(points) {
                let point = &mut point[offset..offset + lanes.len()];
                match <&mut Lanes>::try_from(&mut *point) {
                    // A constant length is faster.
                    Ok(whole) => *whole = values,
                    Err(_) => point.copy_from_slice(&values[lanes.clone()]),
                }
            }
        }
    }

    /// The values of a group of channels, longitude by longitude.
    fn group_row(&self, group_idx: usize, lat: usize) -> impl Iterator<Item = Lanes> {
        let Weather { n_lon, groups, .. } = self.weather;
        let Patterns { tropical, temperate, noise: largest } = &groups[group_idx].patterns;
        let moved = &self.moved[group_idx];
        let points = lat * n_lon..(lat + 1) * n_lon;
        let positions = points.clone().map(|point| (point as u32).wrapping_mul(GROUP as u32));
        let tropical = moved.tropical.applied(&tropical[points.clone()]);
        let temperate = moved.temperate.applied(&temperate[points]);
        tropical.zip(temperate).zip(positions).map(move |((tropical, temperate), position)| {
            array::from_fn(|lane| {
                let noise = moved.noise.at(position.wrapping_add(lane as u32)) as f32 * SCALE;
                tropical[lane] + temperate[lane] + noise * largest[lane]
            })
        })
    }
}

/// Turns the whole numbers of [`Noise`] into numbers from -1 to 1.
const SCALE: f32 = 1.0 / (1_u32 << 31) as f32;

/// A way to the east along a circle of latitude.
#[derive(Debug, Clone, Copy)]
struct Shift {
    /// Whole steps of the grid, less than its longitudes.
    whole: usize,
    /// The rest: the share of a step.
    share: f32,
}

impl Shift {
    /// The way since time 0 at a speed in turns.
    fn new(speed: f64, time: u64, n_lon: usize) -> Self {
        let steps = (speed * time as f64).rem_euclid(1.0) * n_lon as f64;
        let whole = steps.floor();
        Self { whole: whole as usize % n_lon, share: (steps - whole) as f32 }
    }

    /// The values of a circle after it has moved: interpolated between two longitudes.
    fn applied(self, circle: &[Lanes]) -> impl Iterator<Item = Lanes> {
        let n_lon = circle.len();
        let start = n_lon - self.whole;
        let here = rotated(circle, start % n_lon);
        let west = rotated(circle, start - 1);
        here.zip(west).map(move |(here, west)| {
            array::from_fn(|lane| here[lane] + self.share * (west[lane] - here[lane]))
        })
    }
}

/// A circle's points from one on, once around.
fn rotated(circle: &[Lanes], start: usize) -> impl Iterator<Item = &Lanes> {
    let (first, last) = circle.split_at(start);
    last.iter().chain(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: FieldSpec =
        FieldSpec { n_samples: 9, n_lat: 6, n_lon: 32, n_inputs: 20, n_targets: 5, seed: 4 };

    fn rows(values: &[f32], n_channels: usize) -> Vec<&[f32]> {
        values.chunks_exact(n_channels).collect()
    }

    #[test]
    fn some_channels_are_a_part_of_all() {
        let all = field(&SPEC, 3, 0..20).unwrap();
        for channels in [0..1, 3..19, 15..17, 16..20] {
            let some = field(&SPEC, 3, channels.clone()).unwrap();
            let wanted = channels.start as usize..channels.end as usize;
            for (some, all) in rows(&some, wanted.len()).into_iter().zip(rows(&all, 20)) {
                assert_eq!(some, &all[wanted.clone()]);
            }
        }
        // Neither do they depend on the number of others.
        let fewer = FieldSpec { n_inputs: 3, n_samples: 1, ..SPEC };
        assert_eq!(field(&fewer, 3, 0..3).unwrap(), field(&SPEC, 3, 0..3).unwrap());
    }

    #[test]
    fn channels_that_do_not_exist_are_refused() {
        for channels in [0..21, 5..5, u64::MAX..u64::MAX] {
            assert!(field(&SPEC, 0, channels).unwrap_err().is_usage());
        }
    }

    #[test]
    fn seeds_and_times_differ() {
        let first = field(&SPEC, 0, 0..20).unwrap();
        assert_eq!(first, field(&SPEC, 0, 0..20).unwrap());
        assert_ne!(first, field(&SPEC, 1, 0..20).unwrap());
        assert_ne!(first, field(&FieldSpec { seed: 5, ..SPEC }, 0, 0..20).unwrap());
        assert!(field(&SPEC, u64::MAX, 0..20).unwrap().iter().all(|value| value.is_finite()));
    }

    #[test]
    fn a_pattern_moves_to_the_east() {
        let circle: Vec<Lanes> = (0..8_u8).map(|lon| [f32::from(lon); GROUP]).collect();
        let moved = |speed, time| -> Vec<f32> {
            Shift::new(speed, time, 8).applied(&circle).map(|point| point[0]).collect()
        };
        assert_eq!(moved(0.25, 0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(moved(0.25, 1), [6.0, 7.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(moved(0.0625, 1), [3.5, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5]);
        assert_eq!(moved(-0.125, 3), [3.0, 4.0, 5.0, 6.0, 7.0, 0.0, 1.0, 2.0]);
        assert_eq!(moved(0.25, 4), moved(0.25, 0));
    }
}
