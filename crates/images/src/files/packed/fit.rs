//! The weights of a prediction: least squares over the values of a block.

use super::predict::{Channel, ONE, ORDER, predictions};
use super::tile::{MAX_LOW_BITS, PIXELS, Row, ZEROS, row, values};

/// Values farther from the median than this many times the median distance are limited where the
/// weights are computed: a few extreme values must not decide them.
const USUAL: i32 = 8;
/// Standard deviation of the residuals in units of the lowest high bit, at least; at most it is
/// twice as much. Measured: Huffman codes of narrower distributions waste more.
const HIGH_DEVIATION: f64 = 2.1;
/// Bits per value that are lost, about, with 0, 1, 2... more low bits than are noise: bits above
/// the noise could be predicted, and are stored as they are.
const LOSSES: [f64; 1 + MAX_LOW_BITS as usize] = [0.0, 0.04, 0.2, 0.8, 1.7, 2.7, 3.7, 4.7, 5.7];
/// Bits of a patch.
const PATCH_BITS: f64 = 48.0;
/// Median absolute value of a normal distribution with standard deviation 1.
const NORMAL_MEDIAN: f64 = 0.6745;

/// Medians are those of every fourth tile.
const SAMPLED: usize = 4;

/// The values of all channels of a block, less the reference: for each channel, its tiles.
pub(super) type Planes = Vec<Vec<Row>>;

/// Chooses the prediction of each channel, and returns it with the channel's residuals.
pub(super) fn fit(planes: &Planes) -> Vec<(Channel, Vec<[i16; PIXELS]>)> {
    let moments = Moments::of(planes);
    let fitted = planes.iter().enumerate().map(|(at, tiles)| {
        let weights = moments.weights(at);
        let mut channel = Channel { weights, ..Channel::default() };
        let before = &planes[at.saturating_sub(ORDER)..at];
        let mut sample: Vec<_> = (0..tiles.len())
            .step_by(SAMPLED)
            .flat_map(|tile| residuals(&channel, tile, tiles, before))
            .collect();
        channel.bias = median(&mut sample);
        let residuals: Vec<_> =
            (0..tiles.len()).map(|tile| residuals(&channel, tile, tiles, before)).collect();
        channel.low_bits = low_bits(&residuals);
        (channel, residuals)
    });
    fitted.collect()
}

/// Values of a tile less their predictions. `before` are up to [`ORDER`] channels before.
fn residuals(channel: &Channel, tile: usize, tiles: &[Row], before: &[Vec<Row>]) -> [i16; PIXELS] {
    let mut rows = [&ZEROS; ORDER];
    for (place, tiles) in rows.iter_mut().rev().zip(before.iter().rev()) {
        *place = &tiles[tile];
    }
    let mut residuals = *values(&tiles[tile]);
    for (residual, predicted) in residuals.iter_mut().zip(predictions(channel, rows)) {
        *residual = residual.wrapping_sub(predicted);
    }
    residuals
}

/// The number of bits of the residuals that are noise, or more if that saves patches.
fn low_bits(residuals: &[[i16; PIXELS]]) -> u8 {
    let sample: Vec<i16> = residuals.iter().step_by(SAMPLED).flatten().copied().collect();
    let mut sizes: Vec<_> = sample.iter().map(|value| value.saturating_abs()).collect();
    let deviation = f64::from(median(&mut sizes)) / NORMAL_MEDIAN;
    let is_noise = |bits: &u8| deviation >= HIGH_DEVIATION * f64::from(1 << *bits);
    let noise = (1..=MAX_LOW_BITS).take_while(is_noise).last().unwrap_or(0);
    let cost = |low_bits: &u8| {
        let is_patched = |value: &&i16| i8::try_from(**value >> low_bits).is_err();
        let n_patches = sample.iter().filter(is_patched).count();
        let loss = LOSSES[usize::from(low_bits - noise)];
        n_patches as f64 * PATCH_BITS + sample.len() as f64 * loss
    };
    let costs = (noise..=MAX_LOW_BITS).map(|low_bits| (low_bits, cost(&low_bits)));
    costs.min_by(|(_, a), (_, b)| a.total_cmp(b)).map_or(noise, |(low_bits, _)| low_bits)
}

fn median(numbers: &mut [i16]) -> i16 {
    let middle = numbers.len() / 2;
    if numbers.is_empty() { 0 } else { *numbers.select_nth_unstable(middle).1 }
}

/// Covariances of channels at most [`ORDER`] apart.
#[derive(Debug)]
struct Moments {
    /// For each channel, the covariances with itself, the channel before, and so on; 0 where there
    /// is none.
    covariances: Vec<[f64; ORDER + 1]>,
}

impl Moments {
    fn of(planes: &Planes) -> Self {
        let limited: Vec<Vec<i32>> = planes.iter().map(|tiles| limited(tiles)).collect();
        let n = limited.first().map_or(1, Vec::len).max(1) as f64;
        let mean =
            |channel: &Vec<i32>| channel.iter().map(|&v| i64::from(v)).sum::<i64>() as f64 / n;
        let means: Vec<f64> = limited.iter().map(mean).collect();
        let covariance = |a: usize, b: usize| {
            let products =
                limited[a].iter().zip(&limited[b]).map(|(&a, &b)| i64::from(a) * i64::from(b));
            products.sum::<i64>() as f64 / n - means[a] * means[b]
        };
        let of_channel = |at: usize| {
            std::array::from_fn(|lag| {
                at.checked_sub(lag).map_or(0.0, |other| covariance(at, other))
            })
        };
        Self { covariances: (0..planes.len()).map(of_channel).collect() }
    }

    /// The weights of the channels before channel `at`.
    fn weights(&self, at: usize) -> [i16; ORDER] {
        let n = at.min(ORDER);
        let mut matrix = [[0.0; ORDER]; ORDER];
        let mut right = [0.0; ORDER];
        for i in 0..n {
            right[i] = self.covariances[at][i + 1];
            for (j, value) in matrix[i].iter_mut().enumerate().take(n) {
                let (earlier, later) = (i.max(j), i.min(j));
                *value = self.covariances[at - 1 - later][earlier - later];
            }
            // Values are integers, and noise of that size is in every one.
            matrix[i][i] += 0.1;
        }
        let solution = solve(&matrix, right, n);
        solution.map(|weight| ((weight * ONE).round() as i16).max(-i16::MAX))
    }
}

/// The values of a channel, where those far from the others are limited to what is usual.
fn limited(tiles: &[Row]) -> Vec<i32> {
    let sample = tiles.iter().step_by(SAMPLED).flat_map(values).copied();
    let mut sample: Vec<_> = sample.collect();
    let middle = median(&mut sample);
    for value in &mut sample {
        *value = value.saturating_sub(middle).saturating_abs();
    }
    let (middle, far) = (i32::from(middle), USUAL * i32::from(median(&mut sample)) + 1);
    let all = tiles.iter().flat_map(values);
    all.map(|&value| i32::from(value).clamp(middle - far, middle + far)).collect()
}

/// Solves the first `n` of a system of linear equations whose matrix is symmetric and positive
/// definite, by its Cholesky factor; the other unknowns are 0, as are those that it cannot solve.
fn solve(matrix: &[[f64; ORDER]; ORDER], right: [f64; ORDER], n: usize) -> [f64; ORDER] {
    let mut factor = [[0.0; ORDER]; ORDER];
    for i in 0..n {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
            let rest: f64 = matrix[i][j] - known;
            factor[i][j] = if i == j { rest.max(1e-3).sqrt() } else { rest / factor[j][j] };
        }
    }
    let mut solution = right;
    for i in 0..n {
        let known: f64 = (0..i).map(|k| factor[i][k] * solution[k]).sum();
        solution[i] = (solution[i] - known) / factor[i][i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| factor[k][i] * solution[k]).sum();
        solution[i] = (solution[i] - known) / factor[i][i];
    }
    solution
}

/// A row whose values are those of `values`, and its last one again where they end.
pub(super) fn filled_row(values: impl Iterator<Item = i16>) -> Row {
    let mut filled = [0; PIXELS];
    let mut last = 0;
    let mut values = values;
    for place in &mut filled {
        last = values.next().unwrap_or(last);
        *place = last;
    }
    row(filled)
}
