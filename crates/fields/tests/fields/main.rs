//! Stores of weather-like fields, read back and compared with the function that they are made of.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod layouts;
mod measurements;
mod peers;
mod program;
mod relayout;
mod tune;
mod whole;
mod xarray;

use std::path::Path;

use fields::Error;
use fields::generate::{FieldSpec, GenerateReport, GenerateSpec, Layout, generate};

/// A grid so small that every layout is written in an instant. Neither samples nor channels fill
/// the last chunk of most layouts.
const SMALL: FieldSpec =
    FieldSpec { n_samples: 5, n_lat: 4, n_lon: 6, n_inputs: 19, n_targets: 3, seed: 11 };

fn write(path: &Path, layout: Layout) -> Result<GenerateReport, Error> {
    let spec = GenerateSpec { fields: SMALL, layout, ..GenerateSpec::default() };
    generate(path, &spec, &mut |_| {})
}
