//! Spectra of the classes: smooth curves like those of tissue.
//!
//! A curve rises from green to red, as blood absorbs less there, and has dips at the wavelengths
//! that blood (542, 577 and 760 nm) and water (970 nm) absorb. Heights, edge and depths differ
//! between the classes. No measured spectrum is imitated.

use libm::{cos, exp};
use std::f64::consts::TAU;

use super::random::Decision;
use super::spec::CubeSpec;

/// First and last wavelength in nm, those of a Tivita camera.
const WAVELENGTHS: [f64; 2] = [500.0, 1000.0];

/// Number of properties in which classes differ.
const N_PROPERTIES: usize = 8;
/// The base of the sequence that spreads the classes' properties: the root of x^9 = x + 1. Its
/// powers fill 8 dimensions evenly, so that no two classes are close.
/// Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences" (2018).
const SPREADING: f64 = 1.085_070_245_491_45;

/// The spectrum of a class in an image and its two main variations, one value per channel.
#[derive(Debug, Clone)]
pub(crate) struct Spectrum {
    /// Mean reflectance.
    pub(crate) mean: Vec<f32>,
    /// What more blood adds.
    pub(crate) blood: Vec<f32>,
    /// What finer scattering adds.
    pub(crate) scatter: Vec<f32>,
}

/// Share of the light that is left in the dips of blood at full variation.
const BLOOD: f64 = 0.08;
/// Largest tilt of a spectrum by scattering.
const SCATTER: f64 = 0.05;
/// How far a domain's response departs from 1, and a subject from the mean of a class.
const RESPONSE: f64 = 0.03;
const SUBJECT: f64 = 0.015;
/// Reflectance of the background, outside of the lens's circle.
const BACKGROUND: f64 = 0.12;

/// The spectra of all classes as one image sees them.
pub(crate) fn spectra_of(spec: &CubeSpec, domain: u64, subject: u64) -> Vec<Spectrum> {
    let n_channels = spec.shape[2];
    let response = Ripple::new(spec.seed, Decision::Response(domain), RESPONSE);
    let difference = Ripple::new(spec.seed, Decision::Subject(subject), SUBJECT);
    let at = |value: &dyn Fn(f64) -> f64| -> Vec<f32> {
        (0..n_channels)
            .map(|channel| {
                let share = share_of(channel, n_channels);
                (value(wavelength(share)) * response.at(share) * difference.at(share)) as f32
            })
            .collect()
    };
    let mut choices = Decision::Spectra.choices(spec.seed);
    let start: [f64; N_PROPERTIES] = std::array::from_fn(|_| choices.share());
    let spectrum = |class: usize| {
        let curve = Curve::new(&start, class);
        Spectrum {
            mean: at(&|nm| curve.at(nm)),
            blood: at(&|nm| -BLOOD * curve.at(nm) * (dip(nm, 542.0, 12.0) + dip(nm, 577.0, 12.0))),
            scatter: at(&|nm| SCATTER * curve.at(nm) * (nm - 750.0) / 250.0),
        }
    };
    (0..spec.n_classes).map(spectrum).collect()
}

/// The spectrum of the background: flat, and without variations.
pub(crate) fn background(n_channels: usize) -> Spectrum {
    let none = vec![0.0; n_channels];
    Spectrum { mean: vec![BACKGROUND as f32; n_channels], blood: none.clone(), scatter: none }
}

/// Noise of each channel: small in the middle, four times as large at both ends, where a camera
/// gets little light.
pub(crate) fn noise_of(spec: &CubeSpec) -> Vec<f32> {
    let n_channels = spec.shape[2];
    let noise = |channel| {
        let off_center = 2.0 * share_of(channel, n_channels) - 1.0;
        (spec.noise * (1.0 + 3.0 * off_center.powi(6))) as f32
    };
    (0..n_channels).map(noise).collect()
}

/// Position of a channel in the spectrum, from 0 to 1; the only one of one is in the middle.
fn share_of(channel: usize, n_channels: usize) -> f64 {
    if n_channels == 1 { 0.5 } else { channel as f64 / (n_channels - 1) as f64 }
}

fn wavelength(share: f64) -> f64 {
    WAVELENGTHS[0] + share * (WAVELENGTHS[1] - WAVELENGTHS[0])
}

/// A bell curve around a wavelength, in nm.
fn dip(nm: f64, center: f64, width: f64) -> f64 {
    let off = (nm - center) / width;
    exp(-0.5 * off * off)
}

/// The spectrum of a class.
#[derive(Debug)]
struct Curve {
    low: f64,
    rise: f64,
    /// The wavelength of the rise and its width in nm.
    edge: f64,
    width: f64,
    blood: f64,
    deoxygenated: f64,
    water: f64,
    slope: f64,
}

impl Curve {
    fn new(start: &[f64; N_PROPERTIES], class: usize) -> Self {
        let mut step = 1.0;
        let shares = start.map(|start| {
            step /= SPREADING;
            (start + class as f64 * step).fract()
        });
        let between = |idx: usize, least: f64, most: f64| least + shares[idx] * (most - least);
        Self {
            low: between(0, 0.12, 0.34),
            rise: between(1, 0.16, 0.40),
            edge: between(2, 575.0, 650.0),
            width: between(3, 10.0, 26.0),
            blood: between(4, 0.04, 0.40),
            deoxygenated: between(5, 0.0, 0.22),
            water: between(6, 0.05, 0.40),
            slope: between(7, -0.12, 0.12),
        }
    }

    fn at(&self, nm: f64) -> f64 {
        let plateau = self.low + self.rise / (1.0 + exp(-(nm - self.edge) / self.width));
        plateau
            * (1.0 + self.slope * (nm - 750.0) / 250.0)
            * (1.0 - self.blood * dip(nm, 542.0, 12.0))
            * (1.0 - self.blood * dip(nm, 577.0, 12.0))
            * (1.0 - self.deoxygenated * dip(nm, 760.0, 18.0))
            * (1.0 - self.water * dip(nm, 970.0, 25.0))
    }
}

/// A smooth factor near 1 along the spectrum: two waves.
#[derive(Debug)]
struct Ripple {
    /// Height, number and phase (in waves) of each.
    waves: [[f64; 3]; 2],
}

impl Ripple {
    fn new(seed: u64, decision: Decision, height: f64) -> Self {
        let mut choices = decision.choices(seed);
        let wave = |number| [height * choices.between(0.3, 0.6), number, choices.share()];
        Self { waves: [0.5, 1.0].map(wave) }
    }

    fn at(&self, share: f64) -> f64 {
        let wave = |[height, number, phase]: [f64; 3]| height * cos(TAU * (number * share + phase));
        1.0 + self.waves.into_iter().map(wave).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spectra_are_reflectances_and_differ() {
        for seed in 0..20 {
            let spec = CubeSpec { seed, n_classes: 20, ..CubeSpec::default() };
            let spectra = spectra_of(&spec, 0, 0);
            for (class, one) in spectra.iter().enumerate() {
                assert!(one.mean.iter().all(|value| (0.03..1.0).contains(value)), "{one:?}");
                for other in &spectra[class + 1..] {
                    // Half the sum of differences between the normalised spectra.
                    let sum = |spectrum: &Spectrum| spectrum.mean.iter().sum::<f32>();
                    let (norm, other_norm) = (sum(one), sum(other));
                    let pairs = one.mean.iter().zip(&other.mean);
                    let off: f32 = pairs.map(|(a, b)| (a / norm - b / other_norm).abs()).sum();
                    assert!(0.01 < off, "seed {seed}: {off}");
                }
            }
        }
    }

    #[test]
    fn any_number_of_channels_has_a_spectrum() {
        for n_channels in [1, 2, 5, 300] {
            let spec = CubeSpec { shape: [1, 1, n_channels], ..CubeSpec::default() };
            for Spectrum { mean, blood, scatter } in spectra_of(&spec, 3, 4) {
                assert_eq!([mean.len(), blood.len(), scatter.len()], [n_channels; 3]);
                assert!(mean.iter().all(|value| value.is_finite()));
            }
            assert!(noise_of(&spec).iter().all(|noise| (0.013..0.057).contains(noise)));
        }
    }
}
