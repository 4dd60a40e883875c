//! The cells of a piece: their rows of X in CSR, and their obs values.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;

use super::datasets::TypeAndDonor;
use super::{Dataset, MAX_NNZ, MEDIAN_NNZ, MIN_NNZ, Model};
use crate::random::{Decision, generator, near_normal};

/// Standard deviation of the logarithm of the number of values within a dataset.
const NNZ_SIGMA: f64 = 0.42;

/// The obs values of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) dataset: usize,
    /// Number of the donor within the dataset.
    pub(crate) donor: usize,
    /// Position in `CELL_TYPES`.
    pub(crate) kind: usize,
    pub(crate) observation_joinid: String,
    pub(crate) nnz: u64,
    pub(crate) raw_sum: f64,
    pub(crate) sum_of_squares: f64,
}

/// Consecutive cells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    pub(crate) cells: Vec<Cell>,
    pub(crate) row_offsets: Vec<usize>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f32>,
    /// For each gene, the number of these cells that have it.
    pub(crate) gene_nnz: Vec<u32>,
}

impl Model {
    /// Makes the cells with these joinids.
    pub(crate) fn piece(&self, joinids: Range<u64>) -> Piece {
        let n_cells = (joinids.end - joinids.start) as usize;
        let mut piece = Piece {
            cells: Vec::with_capacity(n_cells),
            row_offsets: Vec::with_capacity(n_cells + 1),
            columns: Vec::new(),
            values: Vec::new(),
            gene_nnz: vec![0; self.genes.n_genes()],
        };
        piece.row_offsets.push(0);
        let mut chosen = vec![0_u64; self.genes.n_genes().div_ceil(64)];
        let mut dataset_idx =
            self.datasets.partition_point(|dataset| dataset.cells.end <= joinids.start);
        for joinid in joinids {
            if joinid >= self.datasets[dataset_idx].cells.end {
                dataset_idx += 1;
            }
            self.add_cell(joinid, dataset_idx, &mut chosen, &mut piece);
        }
        piece
    }

    /// Appends a cell to a piece. `chosen` is all zero before and after.
    fn add_cell(&self, joinid: u64, dataset_idx: usize, chosen: &mut [u64], piece: &mut Piece) {
        let dataset = &self.datasets[dataset_idx];
        let mut draws = generator(self.seed, Decision::Cell(joinid));
        let TypeAndDonor { cell_type, donor } = dataset.type_and_donor(joinid, draws.next_u32());
        let nnz = self.draw_nnz(&mut draws, dataset);
        let table = &self.tables[cell_type];
        let mut n_chosen = 0;
        while n_chosen < nnz {
            let gene = table.pick(draws.next_u64()) as usize;
            let (word, bit) = (gene / 64, 1 << (gene % 64));
            let is_new = dataset.measured[word] & bit & !chosen[word];
            chosen[word] |= is_new;
            n_chosen += u64::from(is_new != 0);
        }
        let (mut raw_sum, mut sum_of_squares) = (0, 0);
        for (word_idx, word) in chosen.iter_mut().enumerate() {
            while *word != 0 {
                let gene = word_idx * 64 + word.trailing_zeros() as usize;
                *word &= *word - 1;
                let count = self.genes.count(gene, draws.next_u32());
                raw_sum += u64::from(count);
                sum_of_squares += u64::from(count) * u64::from(count);
                piece.columns.push(gene as u32);
                piece.values.push(f32::from(count));
                piece.gene_nnz[gene] += 1;
            }
        }
        piece.row_offsets.push(piece.values.len());
        piece.cells.push(Cell {
            dataset: dataset_idx,
            donor,
            kind: cell_type,
            observation_joinid: observation_joinid(self.seed, joinid),
            nnz,
            raw_sum: raw_sum as f64,
            sum_of_squares: sum_of_squares as f64,
        });
    }

    /// Draws the number of genes of a cell.
    fn draw_nnz(&self, draws: &mut ChaCha8Rng, dataset: &Dataset) -> u64 {
        let nnz = MEDIAN_NNZ * (dataset.ln_depth + NNZ_SIGMA * near_normal(draws)).exp();
        let scaled = (nnz.clamp(MIN_NNZ, MAX_NNZ) * self.scale).round() as u64;
        // At most half of the measured genes, so that drawing distinct genes stays fast.
        scaled.min(dataset.n_measured / 2).max(1)
    }
}

/// Ten characters, different for each cell: the joinid, scrambled so that neighbors differ.
fn observation_joinid(seed: u64, joinid: u64) -> String {
    const CHARACTERS: &[u8; 64] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+-";
    const MASK: u64 = (1 << 60) - 1;
    // Each step is invertible on 60 bits: a sum, a product with an odd number, an xor with a shift.
    let start = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491_4f6c_dd1d);
    let mut bits = joinid.wrapping_add(start) & MASK;
    for _ in 0..2 {
        bits = bits.wrapping_mul(0xd134_2543_de82_ef95) & MASK;
        bits ^= bits >> 31;
    }
    (0..10).map(|place| char::from(CHARACTERS[(bits >> (6 * place) & 63) as usize])).collect()
}
