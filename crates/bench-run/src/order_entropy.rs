//! How random an order is: the entropy of a label in batches, as the plan lets expect and as the
//! delivered samples have it.

use std::collections::BTreeMap;
use std::ops::Range;

use bench_report::OrderEntropy;
use pipeline::PipelineSpec;
use shuffle::entropy::{Error, LabelEntropy, LabelLayout, simulate};
use shuffle::{Order, ramp_chunks};

use crate::block_spec::BlockSpec;

/// Epochs for simulations, outside the range of measured epochs.
const SIMULATED_EPOCHS: Range<u64> = 1 << 40..1 << 41;

/// Rows of a simulation, few enough for a fraction of a second.
const SIMULATED_ROWS: u64 = 2_000_000;

/// Rows of a simulation if there are many settings: about 400 batches, whose mean is accurate to a
/// hundredth of a bit.
const CURVE_ROWS: u64 = 400_000;

/// Most classes of a label that stands for a sample's position.
const MOST_PARTS: u64 = 64;

/// The class of each sample of a data set, by one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelCodes {
    /// Name of the label.
    pub label: String,
    /// Class of each sample, in the order of the data.
    pub codes: Vec<u32>,
    /// Codes are below this number.
    pub n_classes: usize,
}

/// A label's expected entropy for many settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Bits of entropy in batches of a perfect shuffle.
    pub perfect_bits: f64,
    /// Bits of entropy for each setting.
    pub bits: Vec<f64>,
}

impl LabelCodes {
    /// A label whose classes are the different values.
    pub fn of_values<T: Ord>(label: &str, values: &[T]) -> Self {
        let mut classes: BTreeMap<&T, u32> = values.iter().map(|value| (value, 0)).collect();
        for (code, of_class) in (0..).zip(classes.values_mut()) {
            *of_class = code;
        }
        let codes = values.iter().map(|value| classes[value]).collect();
        Self { label: label.to_owned(), codes, n_classes: classes.len() }
    }

    /// A label whose classes are equal parts of the samples in the order of the data: 64, or one
    /// for each of fewer samples.
    pub fn of_positions(label: &str, n_samples: u64) -> Self {
        let n_parts = n_samples.min(MOST_PARTS);
        // The part is below 64.
        let part =
            |sample| (u128::from(sample) * u128::from(n_parts) / u128::from(n_samples)) as u32;
        let codes = (0..n_samples).map(part).collect();
        Self { label: label.to_owned(), codes, n_classes: n_parts as usize }
    }

    /// Returns the expected entropy in the full batches of these settings; without expectation if
    /// there are none, or if the order is a list.
    ///
    /// # Errors
    /// The settings have no plan.
    pub fn expected(
        &self,
        spec: &PipelineSpec,
        max_batches: Option<u64>,
    ) -> Result<OrderEntropy, Error> {
        let layout = self.layout(spec.chunk_rows)?;
        let known = OrderEntropy {
            label: self.label.clone(),
            data: Some(layout.data_entropy()),
            ..OrderEntropy::default()
        };
        if (self.codes.len() as u64) < spec.batch_rows {
            return Ok(known);
        }
        let (expected, expected_by) = match spec.order {
            Order::InOrder => (self.in_order(spec, max_batches)?, "rows"),
            Order::Shuffled => self.shuffled(&layout, spec, SIMULATED_ROWS)?,
            // The list would have to be drawn; no point of a grid has one.
            Order::Listed => return Ok(known),
        };
        let first = match first_chunks(spec) {
            Some(chunks) if spec.order == Order::Shuffled => {
                Some(layout.in_blocks(chunks, spec.batch_rows)?.bits)
            }
            _ => None,
        };
        Ok(OrderEntropy {
            expected,
            first_expected: first,
            expected_by: expected.map(|_| expected_by.to_owned()),
            perfect: Some(layout.perfect(spec.batch_rows)?),
            ..known
        })
    }

    /// Returns the expected entropy in full batches of a shuffled order, for each of these block
    /// specifications. Consecutive specifications with the same chunk size are the fastest.
    ///
    /// # Errors
    /// A specification has no plan.
    pub fn curve(&self, specs: &[BlockSpec], batch_rows: u64, seed: u64) -> Result<Curve, Error> {
        let mut layout = self.layout(specs.first().map_or(1, |spec| spec.chunk_rows))?;
        let perfect_bits = layout.perfect(batch_rows)?;
        let mut bits = Vec::with_capacity(specs.len());
        for spec in specs {
            if layout.chunk_rows() != spec.chunk_rows {
                layout = self.layout(spec.chunk_rows)?;
            }
            let BlockSpec { chunk_rows, chunks_per_block } = *spec;
            let sizes = PipelineSpec { chunk_rows, chunks_per_block, ..PipelineSpec::default() };
            let spec = PipelineSpec { batch_rows, seed, ..sizes };
            let (found, _) = self.shuffled(&layout, &spec, CURVE_ROWS)?;
            // If no batch is full, all rows form a single batch.
            bits.push(found.unwrap_or(perfect_bits));
        }
        Ok(Curve { perfect_bits, bits })
    }

    /// Returns a meter for the batches of an epoch.
    ///
    /// # Errors
    /// The settings have no plan.
    pub fn meter(
        &self,
        spec: &PipelineSpec,
        max_batches: Option<u64>,
    ) -> Result<OrderMeter<'_>, Error> {
        let counted = LabelEntropy::new(self.n_classes, spec.batch_rows)?;
        Ok(OrderMeter { labels: self, counted, expected: self.expected(spec, max_batches)? })
    }

    fn layout(&self, chunk_rows: u64) -> Result<LabelLayout, Error> {
        LabelLayout::of_codes(self.codes.iter().copied(), self.n_classes, chunk_rows)
    }

    fn in_order(
        &self,
        spec: &PipelineSpec,
        max_batches: Option<u64>,
    ) -> Result<Option<f64>, Error> {
        let mut meter = LabelEntropy::new(self.n_classes, spec.batch_rows)?;
        let n_batches = max_batches.map_or(usize::MAX, |most| most as usize);
        for batch in self.codes.chunks_exact(spec.batch_rows as usize).take(n_batches) {
            meter.add(batch.iter().copied())?;
        }
        Ok(meter.batches().map(|batches| batches.mean))
    }

    fn shuffled(
        &self,
        layout: &LabelLayout,
        spec: &PipelineSpec,
        simulated_rows: u64,
    ) -> Result<(Option<f64>, &'static str), Error> {
        let by_formula = layout.expected(spec.chunks_per_block, spec.batch_rows)?;
        // The formula is for blocks of one size.
        if by_formula.is_close && spec.ramp_blocks == 0 {
            return Ok((Some(by_formula.bits), "formula"));
        }
        let plan = spec.plan(self.codes.len() as u64);
        let sizes = (spec.batch_rows, self.n_classes);
        let found =
            simulate(&plan, sizes.0, &self.codes, sizes.1, SIMULATED_EPOCHS, simulated_rows)?;
        Ok((found.map(|batches| batches.mean), "simulation"))
    }
}

/// Chunks of the first block, if the first blocks grow and a batch fits into it.
pub fn first_chunks(spec: &PipelineSpec) -> Option<u64> {
    let chunks = ramp_chunks(spec.chunks_per_block, spec.ramp_blocks);
    let is_small =
        0 < spec.ramp_blocks && spec.batch_rows <= chunks.saturating_mul(spec.chunk_rows);
    is_small.then_some(chunks)
}

/// Counts the labels of an epoch's batches.
#[derive(Debug)]
pub struct OrderMeter<'a> {
    labels: &'a LabelCodes,
    counted: LabelEntropy,
    expected: OrderEntropy,
}

impl OrderMeter<'_> {
    /// Counts a batch, given the numbers of its samples.
    ///
    /// # Errors
    /// The batch has more samples than the settings say.
    pub fn add(&mut self, samples: &[u64]) -> Result<(), Error> {
        let code = |sample: &u64| self.labels.codes.get(usize::try_from(*sample).ok()?).copied();
        self.counted.add(samples.iter().filter_map(code)).map(drop)
    }

    /// Returns the measured entropy beside the expected one.
    pub fn measured(self) -> OrderEntropy {
        let batches = self.counted.batches();
        OrderEntropy {
            mean: batches.map(|batches| batches.mean),
            standard_deviation: batches.map(|batches| batches.standard_deviation),
            ..self.expected
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_positions_are_classes() {
        let seasons = LabelCodes::of_values("season", &["winter", "spring", "winter"]);
        assert_eq!((seasons.codes, seasons.n_classes), (vec![1, 0, 1], 2));
        let few = LabelCodes::of_positions("time", 3);
        assert_eq!((few.codes, few.n_classes), (vec![0, 1, 2], 3));
        let many = LabelCodes::of_positions("time", 1000);
        assert_eq!((many.codes[0], many.codes[15], many.codes[16]), (0, 0, 1));
        assert_eq!((many.codes[999], many.n_classes), (63, 64));
        let none = LabelCodes::of_positions("time", 0);
        assert!(none.codes.is_empty() && none.n_classes == 0);
    }

    /// What an epoch delivers has the entropy that its plan lets expect; so does an order as
    /// stored.
    #[test]
    fn what_is_measured_is_what_is_expected() {
        let labels = LabelCodes::of_positions("time", 8192);
        for order in [Order::Shuffled, Order::InOrder] {
            let sizes =
                PipelineSpec { chunk_rows: 32, chunks_per_block: 64, ..PipelineSpec::default() };
            let spec = PipelineSpec { batch_rows: 64, order, ..sizes };
            let mut meter = labels.meter(&spec, None).unwrap();
            let delivered = crate::delivered_rows(&spec, 8192, 16, None).unwrap().concat();
            delivered.chunks(64).for_each(|batch| meter.add(batch).unwrap());
            let found = meter.measured();
            let (expected, mean) = (found.expected.unwrap(), found.mean.unwrap());
            assert!((expected - mean).abs() < 0.03, "{found:?}");
            let curve = labels
                .curve(&[BlockSpec { chunk_rows: 32, chunks_per_block: 64 }], 64, spec.seed)
                .unwrap();
            assert_eq!(found.perfect, Some(curve.perfect_bits));
            if order == Order::Shuffled {
                assert!((curve.bits[0] - expected).abs() < 0.02, "{curve:?} {expected}");
                assert!(expected < curve.perfect_bits);
            } else {
                assert_eq!(mean, 0.0);
            }
        }
    }
}
