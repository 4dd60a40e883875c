//! The same parameters give the same result as Kornia.
//!
//! `data/kornia.json` has the cases and `data/kornia.bin` the results of Kornia 0.9.0 with torch
//! 2.11.0. To make the results anew, in an environment with `pip install torch kornia`:
//!
//! ```text
//! cd crates/images/tests
//! python kornia_reference.py data/kornia.json data/kornia.bin
//! ```
//!
//! torch is too large for the environment of `cargo xtask python`, so the comparison with a Kornia
//! that is installed, on parameters drawn for it, runs on request only:
//!
//! ```text
//! SOMAFEED_KORNIA_PYTHON=PYTHON cargo test -p somafeed-images --test images kornia -- --ignored
//! ```

use std::fs;
use std::path::Path;
use std::process::Command;

use images::augment::{AffineMap, Augmentation, Parameters};
use serde_json::{Value, json};

use super::{image, mask, oracle, warped, warped_mask};

/// Largest difference of positions, and so of values from 0 to 1, for each pixel that a position
/// may be away. Kornia computes in f32: on images of 480 x 640 random values its results differ by
/// up to 1.6e-4 from its own in f64, by 2.5e-7 for each pixel of the longer side.
const TOLERANCE: f64 = 5e-7;

#[derive(Debug)]
struct Case {
    shape: [usize; 3],
    parameters: Parameters,
}

impl Case {
    fn from_json(case: &Value) -> Self {
        let number = |value: &Value| value.as_f64().unwrap();
        let affine = &case["affine"];
        let affine = (!affine.is_null()).then(|| AffineMap {
            degrees: number(&affine["degrees"]),
            translation: [number(&affine["translation"][0]), number(&affine["translation"][1])],
            scale: number(&affine["scale"]),
        });
        let parameters = Parameters {
            affine,
            horizontal_flip: case["horizontal_flip"].as_bool().unwrap(),
            vertical_flip: case["vertical_flip"].as_bool().unwrap(),
        };
        let size = |axis: usize| case["shape"][axis].as_u64().unwrap() as usize;
        Self { shape: [size(0), size(1), size(2)], parameters }
    }

    fn to_json(&self) -> Value {
        let affine = self.parameters.affine.map(|affine| {
            json!({
                "degrees": affine.degrees,
                "translation": affine.translation,
                "scale": affine.scale,
            })
        });
        json!({
            "shape": self.shape,
            "affine": affine,
            "horizontal_flip": self.parameters.horizontal_flip,
            "vertical_flip": self.parameters.vertical_flip,
        })
    }

    /// Pixels that a position in the source may be away from its origin, before reflection.
    fn reach(&self) -> f64 {
        let [height, width, _] = self.shape;
        let side = height.max(width).max(10) as f64;
        self.parameters.affine.map_or(side, |affine| {
            let [right, down] = affine.translation.map(f64::abs);
            (side + right.max(down)) / affine.scale.min(1.0)
        })
    }

    /// Compares with Kornia's image and mask, and returns the number of pixels of the mask that
    /// lie in the middle between two of the source and differ.
    fn compare(&self, expected: &[f32], expected_mask: &[u8]) -> usize {
        let [height, width, _] = self.shape;
        let found: Vec<f32> = warped(&self.parameters, self.shape, &image(self.shape));
        let tolerance = TOLERANCE * self.reach();
        let is_copy = self.parameters.affine.is_none();
        let of_values = if is_copy { 0.0 } else { tolerance as f32 };
        for (idx, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!((found - expected).abs() <= of_values, "{self:?} {idx}: {found} {expected}");
        }
        let found = warped_mask(&self.parameters, [height, width], &mask([height, width]));
        let positions = oracle::positions(&self.parameters, [height, width]);
        let pairs = found.iter().zip(expected_mask).zip(positions);
        let different = pairs.filter(|((found, expected), _)| found != expected);
        let ties = different.inspect(|(_, position)| {
            assert!(oracle::is_tie(*position, tolerance), "{self:?} {position:?}");
        });
        ties.count()
    }
}

/// Compares all cases with Kornia's results; the number of ties that differ.
fn compare(cases: &[Case], mut results: &[u8]) -> usize {
    let n_ties = cases.iter().map(|case| {
        let [height, width, channels] = case.shape;
        let (image, rest) = results.split_at(height * width * channels * 4);
        let (mask, rest) = rest.split_at(height * width);
        results = rest;
        let value = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
        case.compare(&image.chunks(4).map(value).collect::<Vec<f32>>(), mask)
    });
    let n_ties = n_ties.sum();
    assert!(results.is_empty());
    n_ties
}

fn stored() -> (String, Vec<Case>) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let text = fs::read_to_string(data.join("kornia.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let cases = document["cases"].as_array().unwrap().iter().map(Case::from_json).collect();
    (data.join("kornia.bin").to_str().unwrap().to_owned(), cases)
}

#[test]
fn stored_results_of_kornia_are_ours() {
    let (results, cases) = stored();
    let n_ties = compare(&cases, &fs::read(results).unwrap());
    println!("{} cases, {n_ties} ties differ", cases.len());
    // There are 5,000 pixels; a shift by half a pixel makes ties of all pixels of a mask.
    assert!(n_ties <= 100, "{n_ties}");
}

/// Draws of the default, for images of several sizes.
fn drawn_cases() -> Vec<Case> {
    let shapes = [[12, 16, 5], [31, 17, 3], [48, 64, 10], [120, 160, 4], [480, 640, 2]];
    let cases = (0..100).map(|sample| {
        let shape = shapes[sample as usize % shapes.len()];
        let parameters = Augmentation::default().draw(1, 0, sample, [shape[0], shape[1]]);
        Case { shape, parameters }
    });
    cases.collect()
}

#[test]
#[ignore = "needs torch and kornia: see the module's documentation"]
fn drawn_parameters_give_the_result_of_an_installed_kornia() {
    let python = std::env::var_os("SOMAFEED_KORNIA_PYTHON");
    let python = python.expect("SOMAFEED_KORNIA_PYTHON must name a Python with torch and kornia");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let folder = tempfile::tempdir().unwrap();
    let (cases, results) = (folder.path().join("cases.json"), folder.path().join("results.bin"));
    let drawn = drawn_cases();
    let list: Vec<Value> = drawn.iter().map(Case::to_json).collect();
    fs::write(&cases, json!({ "cases": list }).to_string()).unwrap();
    let mut command = Command::new(python);
    command.arg(tests.join("kornia_reference.py")).arg(&cases).arg(&results);
    let status = command.status().unwrap();
    assert!(status.success(), "{status}");
    let n_ties = compare(&drawn, &fs::read(results).unwrap());
    println!("{} cases, {n_ties} ties differ", drawn.len());
}
