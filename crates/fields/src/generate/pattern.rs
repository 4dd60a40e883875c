//! Smooth random patterns of groups of channels, made once from the seed.
//!
//! A channel has two patterns: one that is strong in the tropics, and one that is strong at middle
//! latitudes. Each is a sum of a few waves along latitude and longitude. Both vanish towards the
//! poles, where all longitudes meet. What does not depend on the longitude is part of the first.

use std::array;
use std::f64::consts::{PI, TAU};

use libm::{cos, sin};

use bench_run::Choices;

use super::random::Decision;
use super::spec::FieldSpec;
use crate::Error;

/// Number of channels in a group: they move together, like the levels of one variable.
pub(crate) const GROUP: usize = 16;

/// Values of the channels of a group at one point of the grid.
pub(crate) type Lanes = [f32; GROUP];

/// Number of waves in a pattern.
const N_WAVES: usize = 6;
/// Most waves around a circle of latitude.
const MAX_ZONAL: u32 = 6;
/// Most half waves from pole to pole.
const MAX_MERIDIONAL: u32 = 4;
/// Share of the noise in the spread of a channel.
const NOISE: f64 = 0.01;
/// Largest distance of a value from its mean, in spreads: 0.5 for the mean over longitudes, 1 for
/// each pattern, and the noise.
const REACH: f64 = 2.6;

/// A physical quantity: the values of a group are like those of one.
#[derive(Debug, Clone, Copy)]
struct Quantity {
    name: &'static str,
    mean: f64,
    spread: f64,
}

const QUANTITIES: [Quantity; 7] = [
    // Temperature in K.
    Quantity { name: "temperature", mean: 280.0, spread: 20.0 },
    // Wind to the east and to the north in m/s.
    Quantity { name: "wind_east", mean: 5.0, spread: 10.0 },
    Quantity { name: "wind_north", mean: 0.0, spread: 8.0 },
    // Specific humidity in kg/kg.
    Quantity { name: "humidity", mean: 0.01, spread: 0.003 },
    // Pressure in hPa.
    Quantity { name: "pressure", mean: 1010.0, spread: 12.0 },
    // Height of a pressure level in m.
    Quantity { name: "height", mean: 5500.0, spread: 150.0 },
    // Vertical wind in Pa/s.
    Quantity { name: "wind_up", mean: 0.0, spread: 0.2 },
];

impl Quantity {
    fn of_group(group_idx: usize) -> Self {
        QUANTITIES[group_idx % QUANTITIES.len()]
    }
}

/// Name of a channel: its quantity and its level, counted from 0.
pub(crate) fn channel_name(channel: usize) -> String {
    let (group_idx, lane) = (channel / GROUP, channel % GROUP);
    let level = group_idx / QUANTITIES.len() * GROUP + lane;
    format!("{}_{level}", Quantity::of_group(group_idx).name)
}

/// Bounds of all values of the first channels.
pub(crate) fn bounds(n_channels: usize) -> (f64, f64) {
    let quantities = (0..n_channels.div_ceil(GROUP)).map(Quantity::of_group);
    quantities.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(low, high), Quantity { mean, spread, .. }| {
            (low.min(mean - REACH * spread), high.max(mean + REACH * spread))
        },
    )
}

/// The patterns of a group, point after point in the order of the grid.
#[derive(Debug)]
pub(crate) struct Patterns {
    pub(crate) tropical: Vec<Lanes>,
    pub(crate) temperate: Vec<Lanes>,
    /// Largest noise of each channel.
    pub(crate) noise: Lanes,
}

impl Patterns {
    /// Makes the patterns of a group. Fails if there is not enough memory.
    pub(crate) fn new(spec: &FieldSpec, group_idx: usize) -> Result<Self, Error> {
        let channels: [Channel; GROUP] =
            array::from_fn(|lane| Channel::new(spec.seed, group_idx, lane));
        let (n_lat, n_lon) = (spec.n_lat as usize, spec.n_lon as usize);
        let latitude = |lat: usize| PI * ((lat as f64 + 0.5) / n_lat as f64 - 0.5);
        let Quantity { mean, .. } = Quantity::of_group(group_idx);
        let means = |lat: usize| {
            let profile = cos(latitude(lat)).powi(2) - 0.5;
            array::from_fn(|lane| (mean + channels[lane].spread * profile) as f32)
        };
        let tropical = Waves::new(&channels, n_lat, n_lon, |channel, lat| {
            (&channel.tropical, channel.spread * cos(latitude(lat)).powi(4))
        });
        let temperate = Waves::new(&channels, n_lat, n_lon, |channel, lat| {
            (&channel.temperate, channel.spread * sin(2.0 * latitude(lat)).powi(2))
        });
        Ok(Self {
            tropical: tropical.sum(means)?,
            temperate: temperate.sum(|_| [0.0; GROUP])?,
            noise: array::from_fn(|lane| (channels[lane].spread * NOISE) as f32),
        })
    }
}

/// The random choices of a channel.
#[derive(Debug)]
struct Channel {
    spread: f64,
    tropical: [Wave; N_WAVES],
    temperate: [Wave; N_WAVES],
}

impl Channel {
    fn new(seed: u64, group_idx: usize, lane: usize) -> Self {
        let channel = (group_idx * GROUP + lane) as u64;
        let mut choices = Decision::Channel(channel).choices(seed);
        Self {
            spread: Quantity::of_group(group_idx).spread * choices.between(0.5, 1.0),
            tropical: waves(&mut choices),
            temperate: waves(&mut choices),
        }
    }
}

/// A wave along latitude and longitude; its phases are shares of a whole wave.
#[derive(Debug, Clone, Copy)]
struct Wave {
    amplitude: f64,
    zonal: u32,
    zonal_phase: f64,
    meridional: u32,
    meridional_phase: f64,
}

/// Draws waves whose amplitudes add up to 1.
fn waves(choices: &mut Choices) -> [Wave; N_WAVES] {
    let mut waves = array::from_fn(|_| Wave {
        amplitude: choices.between(0.3, 1.0),
        zonal: 1 + choices.below(MAX_ZONAL),
        zonal_phase: choices.share(),
        meridional: choices.below(MAX_MERIDIONAL + 1),
        meridional_phase: choices.share(),
    });
    let sum: f64 = waves.iter().map(|wave| wave.amplitude).sum();
    for wave in &mut waves {
        wave.amplitude /= sum;
    }
    waves
}

impl Wave {
    fn along_lat(&self, lat: usize, n_lat: usize) -> f64 {
        let from_pole = (lat as f64 + 0.5) / n_lat as f64;
        self.amplitude
            * cos(PI * f64::from(self.meridional) * from_pole + TAU * self.meridional_phase)
    }

    fn along_lon(&self, lon: usize, n_lon: usize) -> f64 {
        cos(TAU * (f64::from(self.zonal) * lon as f64 / n_lon as f64 + self.zonal_phase))
    }
}

/// The waves of a group's channels along each axis, from which a pattern is multiplied and added:
/// the cosine of every point would take a minute.
#[derive(Debug)]
struct Waves {
    /// For each latitude, each wave.
    along_lat: Vec<[Lanes; N_WAVES]>,
    /// For each longitude, each wave.
    along_lon: Vec<[Lanes; N_WAVES]>,
}

impl Waves {
    /// Tabulates waves. `chosen` returns the waves of a channel, and their strength at a latitude.
    fn new<'a>(
        channels: &'a [Channel; GROUP],
        n_lat: usize,
        n_lon: usize,
        chosen: impl Fn(&'a Channel, usize) -> (&'a [Wave; N_WAVES], f64),
    ) -> Self {
        let table = |n: usize, value: &dyn Fn(&'a Channel, usize, usize) -> f64| {
            let at = |idx: usize| -> [Lanes; N_WAVES] {
                array::from_fn(|wave| {
                    array::from_fn(|lane| value(&channels[lane], wave, idx) as f32)
                })
            };
            (0..n).map(at).collect::<Vec<_>>()
        };
        let along_lat = table(n_lat, &|channel, wave, lat| {
            let (waves, strength) = chosen(channel, lat);
            strength * waves[wave].along_lat(lat, n_lat)
        });
        let along_lon = table(n_lon, &|channel, wave, lon| {
            let (waves, _) = chosen(channel, 0);
            waves[wave].along_lon(lon, n_lon)
        });
        Self { along_lat, along_lon }
    }

    /// Adds up the waves at each point, and what `base` returns for its latitude.
    fn sum(&self, base: impl Fn(usize) -> Lanes) -> Result<Vec<Lanes>, Error> {
        let n_points = self.along_lat.len() * self.along_lon.len();
        let mut points = Vec::new();
        points.try_reserve_exact(n_points).map_err(|_| Error::Memory {
            what: "the patterns of the fields",
            n_bytes: n_points * size_of::<Lanes>(),
        })?;
        for (lat, along_lat) in self.along_lat.iter().enumerate() {
            let base = base(lat);
            points.extend(self.along_lon.iter().map(|along_lon| {
                let mut sum = base;
                for (along_lat, along_lon) in along_lat.iter().zip(along_lon) {
                    for (lane, sum) in sum.iter_mut().enumerate() {
                        *sum += along_lat[lane] * along_lon[lane];
                    }
                }
                sum
            }));
        }
        Ok(points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_within_their_bounds() {
        let spec = FieldSpec { n_lat: 24, n_lon: 48, seed: 3, ..FieldSpec::default() };
        for group_idx in 0..QUANTITIES.len() {
            let patterns = Patterns::new(&spec, group_idx).unwrap();
            let Quantity { mean, spread, .. } = Quantity::of_group(group_idx);
            let (low, high) = bounds((group_idx + 1) * GROUP);
            let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
            // Where two patterns lie on each other depends on the time.
            let temperate = patterns
                .temperate
                .as_flattened()
                .iter()
                .fold(0.0, |most: f32, value| most.max(value.abs()));
            for point in &patterns.tropical {
                for (value, noise) in point.iter().zip(patterns.noise) {
                    least = least.min(f64::from(value - temperate - noise));
                    most = most.max(f64::from(value + temperate + noise));
                }
            }
            assert!(low <= least && most <= high, "{low} <= {least}, {most} <= {high}");
            assert!(mean - REACH * spread <= least && most <= mean + REACH * spread);
            // Not all the same.
            assert!(spread * 0.2 < most - least);
        }
    }

    #[test]
    fn patterns_are_smooth() {
        let spec = FieldSpec { n_lat: 32, n_lon: 64, ..FieldSpec::default() };
        let patterns = Patterns::new(&spec, 0).unwrap();
        for row in patterns.tropical.chunks_exact(64) {
            for (one, next) in row.iter().zip(row.iter().cycle().skip(1)) {
                let step = one.iter().zip(next).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                // At most 6 waves around the circle, with an amplitude of at most the spread.
                assert!(step < 20.0 * 0.6, "{step}");
            }
        }
    }
}
