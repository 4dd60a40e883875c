//! Datasets: runs of cells with their own donors, mix of cell types, depth and measured genes.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;

use super::genes::Genes;
use super::terms::{ASSAYS, CELL_TYPES, DEVELOPMENT_STAGES, DISEASES, ETHNICITIES, SEXES, TISSUES};
use crate::random::{Decision, below, generator, happens, log_normal, near_normal};

/// Shares are fractions of this whole.
const WHOLE: u64 = 1 << 32;

/// Standard deviation of the logarithm of the depth between datasets.
const DEPTH_SIGMA: f64 = 0.15;

/// A donor and the assay. Numbers are positions in the lists of `terms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Donor {
    pub(crate) name: String,
    pub(crate) assay: usize,
    pub(crate) tissue_general: usize,
    /// Position among the tissues of `tissue_general`.
    pub(crate) tissue: usize,
    pub(crate) disease: usize,
    pub(crate) sex: usize,
    pub(crate) ethnicity: usize,
    pub(crate) development_stage: usize,
}

/// The property by which a dataset's rows are sorted; the other is mixed cell by cell. Submitters
/// do either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortedBy {
    CellType,
    Donor,
}

/// A run of cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dataset {
    pub(crate) id: String,
    pub(crate) cells: Range<u64>,
    pub(crate) is_primary_data: bool,
    pub(crate) sorted_by: SortedBy,
    pub(crate) donors: Vec<Donor>,
    /// Position of its first donor among all donors.
    pub(crate) first_donor: usize,
    cell_types: Vec<usize>,
    /// End of each cell type's and each donor's part: in cells of the dataset for the property it
    /// is sorted by, otherwise in fractions of `WHOLE`.
    cell_type_ends: Vec<u64>,
    donor_ends: Vec<u64>,
    /// Logarithm of its sequencing depth relative to the mean.
    pub(crate) ln_depth: f64,
    /// The measured genes, one bit each.
    pub(crate) measured: Vec<u64>,
    pub(crate) n_measured: u64,
}

/// What a cell is, and who it is of.
pub(crate) struct TypeAndDonor {
    pub(crate) cell_type: usize,
    /// Within the dataset.
    pub(crate) donor: usize,
}

impl Dataset {
    /// The cell type and the donor of a cell; `bits` decide the mixed property.
    pub(crate) fn type_and_donor(&self, joinid: u64, bits: u32) -> TypeAndDonor {
        let part = |ends: &[u64], at: u64| ends.partition_point(|end| *end <= at);
        let (position, bits) = (joinid - self.cells.start, u64::from(bits));
        let (cell_type, donor) = match self.sorted_by {
            SortedBy::CellType => (position, bits),
            SortedBy::Donor => (bits, position),
        };
        TypeAndDonor {
            cell_type: self.cell_types[part(&self.cell_type_ends, cell_type)],
            donor: part(&self.donor_ends, donor),
        }
    }

    pub(crate) fn measures(&self, gene: usize) -> bool {
        self.measured[gene / 64] >> (gene % 64) & 1 == 1
    }

    fn new(seed: u64, dataset_idx: u64, cells: Range<u64>, genes: &Genes) -> Self {
        let mut draws = generator(seed, Decision::Dataset(dataset_idx));
        let n_cells = cells.end - cells.start;
        let id = uuid(&mut draws);
        let sorted_by = if happens(&mut draws, 90) { SortedBy::CellType } else { SortedBy::Donor };
        let run_of = |what: SortedBy| if what == sorted_by { n_cells } else { WHOLE };
        let n_types = 3 + below(&mut draws, 23);
        let mut cell_types: Vec<usize> = (0..CELL_TYPES.len()).collect();
        for place in 0..n_types {
            let other = place + below(&mut draws, CELL_TYPES.len() - place);
            cell_types.swap(place, other);
        }
        cell_types.truncate(n_types);
        let cell_type_ends = split(run_of(SortedBy::CellType), &weights(&mut draws, n_types, 1.3));
        let n_donors = 1 + below(&mut draws, 12);
        let donor_ends = split(run_of(SortedBy::Donor), &weights(&mut draws, n_donors, 0.5));
        let donors = draw_donors(&mut draws, donor_ends.len());
        let measured = draw_measured(&mut draws, genes);
        Self {
            id,
            cells,
            is_primary_data: happens(&mut draws, 154),
            sorted_by,
            donors,
            first_donor: 0,
            cell_types,
            cell_type_ends,
            donor_ends,
            ln_depth: DEPTH_SIGMA * near_normal(&mut draws),
            n_measured: measured.iter().map(|word| u64::from(word.count_ones())).sum(),
            measured,
        }
    }
}

/// Makes all datasets of an experiment of `n_cells`, in the order of their rows.
pub(crate) fn datasets(n_cells: u64, seed: u64, genes: &Genes) -> Vec<Dataset> {
    let mut draws = generator(seed, Decision::DatasetSizes);
    let sizes = weights(&mut draws, n_datasets(n_cells), 1.4);
    let mut start = 0;
    let mut datasets: Vec<Dataset> = split(n_cells, &sizes)
        .into_iter()
        .zip(0..)
        .map(|(end, dataset_idx)| {
            let cells = start..end;
            start = end;
            Dataset::new(seed, dataset_idx, cells, genes)
        })
        .collect();
    // Otherwise one large, deep dataset could make the whole experiment deep.
    let mean = datasets
        .iter()
        .map(|dataset| dataset.ln_depth * (dataset.cells.end - dataset.cells.start) as f64)
        .sum::<f64>()
        / n_cells as f64;
    let mut first_donor = 0;
    for dataset in &mut datasets {
        dataset.ln_depth -= mean;
        dataset.first_donor = first_donor;
        for (place, donor) in dataset.donors.iter_mut().enumerate() {
            donor.name = format!("D{:04}", first_donor + place);
        }
        first_donor += dataset.donors.len();
    }
    datasets
}

/// Number of datasets; grows like the Census did: about 35 for 20,000 cells, 330 for 10 million,
/// 650 for its 63 million.
fn n_datasets(n_cells: u64) -> usize {
    (n_cells as f64).powf(0.36).round() as usize
}

fn weights(draws: &mut ChaCha8Rng, n: usize, sigma: f64) -> Vec<u32> {
    (0..n).map(|_| log_normal(draws, 65_536.0, sigma, u32::MAX)).collect()
}

/// Cuts `0..n` in proportion to the weights, without empty parts, and returns the ends of the
/// parts. Weights that would not even get one element are left out.
fn split(n: u64, weights: &[u32]) -> Vec<u64> {
    let weights = &weights[..(weights.len() as u64).min(n) as usize];
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let to_share = u128::from(n - weights.len() as u64);
    let mut passed = 0;
    weights
        .iter()
        .zip(1..)
        .map(|(weight, n_parts)| {
            passed += u128::from(*weight);
            n_parts + (to_share * passed / total) as u64
        })
        .collect()
}

/// Random hexadecimal digits, grouped like a UUID.
fn uuid(draws: &mut ChaCha8Rng) -> String {
    let (high, low) = (draws.next_u64(), draws.next_u64());
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// Draws donors, which share the dataset's general tissue and mostly its assay.
fn draw_donors(draws: &mut ChaCha8Rng, n_donors: usize) -> Vec<Donor> {
    let assays = [below(draws, ASSAYS.len()), below(draws, ASSAYS.len())];
    let tissue_general = below(draws, TISSUES.len());
    let disease = 1 + below(draws, DISEASES.len() - 1);
    (0..n_donors)
        .map(|_| Donor {
            name: String::new(),
            assay: assays[usize::from(happens(draws, 40))],
            tissue_general,
            tissue: below(draws, TISSUES[tissue_general].1.len()),
            disease: if happens(draws, 90) { disease } else { 0 },
            sex: below(draws, SEXES.len()),
            ethnicity: below(draws, ETHNICITIES.len()),
            development_stage: below(draws, DEVELOPMENT_STAGES.len()),
        })
        .collect()
}

/// Draws the measured genes: nearly all coding genes, and a share of the others that depends on the
/// dataset's reference. At least one gene.
fn draw_measured(draws: &mut ChaCha8Rng, genes: &Genes) -> Vec<u64> {
    let others = [80, 150, 256][below(draws, 3)];
    let mut measured = vec![0_u64; genes.n_genes().div_ceil(64)];
    for gene in 0..genes.n_genes() {
        let parts = if genes.is_coding(gene) { 248 } else { others };
        measured[gene / 64] |= u64::from(happens(draws, parts)) << (gene % 64);
    }
    if measured.iter().all(|word| *word == 0) {
        measured[0] = 1;
    }
    measured
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_split_covers_everything_with_parts_that_are_not_empty(
            n in 1_u64..1 << 40,
            few in any::<bool>(),
            weights in prop::collection::vec(1_u32.., 1..40),
        ) {
            let n = if few { n % 50 + 1 } else { n };
            let ends = split(n, &weights);
            prop_assert_eq!(ends.last(), Some(&n));
            prop_assert_eq!(ends.len() as u64, n.min(weights.len() as u64));
            prop_assert!(ends[0] > 0 && ends.is_sorted_by(|a, b| a < b));
        }

        #[test]
        fn every_cell_has_a_type_and_a_donor(n_cells in 1_u64..3000, seed: u64, bits: u32) {
            let genes = Genes::new(10, seed);
            let datasets = datasets(n_cells, seed, &genes);
            prop_assert_eq!(datasets[0].cells.start, 0);
            prop_assert_eq!(datasets.last().map(|dataset| dataset.cells.end), Some(n_cells));
            for dataset in &datasets {
                prop_assert!(!dataset.cells.is_empty());
                prop_assert!((1..=10).contains(&dataset.n_measured));
                for joinid in [dataset.cells.start, dataset.cells.end - 1] {
                    for bits in [0, bits, u32::MAX] {
                        let TypeAndDonor { cell_type, donor } = dataset.type_and_donor(joinid, bits);
                        prop_assert!(cell_type < CELL_TYPES.len() && donor < dataset.donors.len());
                    }
                }
            }
        }
    }

    #[test]
    fn sizes_have_a_heavy_tail() {
        let datasets = datasets(1_000_000, 0, &Genes::new(10, 0));
        assert!((120..170).contains(&datasets.len()), "{}", datasets.len());
        let mut sizes: Vec<u64> =
            datasets.iter().map(|dataset| dataset.cells.end - dataset.cells.start).collect();
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2];
        let largest = sizes[sizes.len() - 1];
        assert!(largest > 8 * median, "{largest} to {median}");
    }

    #[test]
    fn a_sorted_dataset_has_each_type_in_one_run() {
        let datasets = datasets(100_000, 4, &Genes::new(10, 4));
        let sorted = datasets.iter().filter(|dataset| dataset.sorted_by == SortedBy::CellType);
        let mut n_checked = 0;
        for dataset in sorted {
            let mut runs: Vec<usize> = dataset
                .cells
                .clone()
                .map(|joinid| dataset.type_and_donor(joinid, 0).cell_type)
                .collect();
            runs.dedup();
            let n_runs = runs.len();
            runs.sort_unstable();
            runs.dedup();
            assert_eq!(runs.len(), n_runs);
            n_checked += 1;
        }
        assert!(n_checked > 5 && n_checked < datasets.len() / 2, "{n_checked}");
    }
}
