//! Kernels over values in memory.
#![expect(clippy::unnecessary_wraps, reason = "all kernels are prepared alike")]

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use benches::cells;
use csr::{CsrBuffers, CsrView};
use densify::{csr_gather_rows, csr_rows_to_dense};
use sequences::{Alphabet, KmerSpec, TokenFrames, TokenScratch, WhenUnknown};
use shuffle::PlanSpec;
use tokens::{
    Cells, Layout, Places, RankSpec, RankValues, SpecialNames, Tokenizer, Vocabulary, Workspace,
};

use crate::Kernel;

const N_ROWS: usize = 256;
const N_COLUMNS: usize = 20_000;

/// A fixed order other than the stored one: 89 and 256 have no common divisor.
fn order() -> Vec<u32> {
    (0..N_ROWS as u32).map(|row| row * 89 % N_ROWS as u32).collect()
}

fn view(cells: &benches::Cells) -> CsrView<'_> {
    CsrView {
        row_offsets: &cells.row_offsets,
        columns: &cells.columns,
        values: &cells.values,
        n_columns: cells.n_columns,
    }
}

/// The order of the chunks of a million rows, and one block.
pub(crate) fn plan(_: &Path) -> anyhow::Result<Kernel> {
    let spec = PlanSpec { n_rows: 1_000_000, seed: 42, ..PlanSpec::default() };
    Ok(Box::new(move || {
        black_box(spec.epoch(black_box(3))?.block(black_box(5)));
        Ok(())
    }))
}

/// CSR rows in another order.
pub(crate) fn gather(_: &Path) -> anyhow::Result<Kernel> {
    let (cells, order) = (cells(N_ROWS, N_COLUMNS), order());
    let mut gathered = CsrBuffers::empty(N_COLUMNS);
    Ok(Box::new(move || {
        gathered.clear();
        Ok(csr_gather_rows(black_box(view(&cells)), &order, None, &mut gathered)?)
    }))
}

/// CSR rows into a dense batch.
pub(crate) fn densify(_: &Path) -> anyhow::Result<Kernel> {
    let (cells, order) = (cells(N_ROWS, N_COLUMNS), order());
    let mut dense = vec![0.0; N_ROWS * N_COLUMNS];
    Ok(Box::new(move || Ok(csr_rows_to_dense(black_box(view(&cells)), &order, None, &mut dense)?)))
}

/// Genes by rank, padded.
pub(crate) fn tokens(_: &Path) -> anyhow::Result<Kernel> {
    let cells = cells(N_ROWS, N_COLUMNS);
    let genes: Vec<String> = (0..N_COLUMNS).map(|column| format!("gene-{column}")).collect();
    let special = ["<pad>", "<cls>"].map(str::to_owned);
    let names = SpecialNames { pad: "<pad>", cls: Some("<cls>"), eos: None };
    let entries = special.into_iter().chain(genes.iter().cloned()).zip(0..);
    let vocabulary = Vocabulary::new(entries, names)?;
    let median = |column: usize| 0.5 + (column * 7_919 % N_COLUMNS) as f64 / 20_000.0;
    let medians = genes.iter().enumerate().map(|(at, gene)| (gene.clone(), median(at)));
    let medians: HashMap<String, f64> = medians.collect();
    let ranks = RankValues::new(&vocabulary, &medians, &genes, RankSpec::default())?;
    let tokenizer = Tokenizer::Ranks(ranks);
    let numbers: Vec<u64> = (0..N_ROWS as u64).collect();
    let (mut places, mut workspace) = (Places::default(), Workspace::default());
    let mut tokens = Vec::new();
    Ok(Box::new(move || {
        let cells = Cells { rows: view(&cells), totals: None, numbers: &numbers, epoch: 0 };
        tokenizer.places(black_box(&cells), Layout::Padded, 1, &mut places)?;
        tokens.resize(places.n_tokens(), 0_u32);
        let out = (&mut tokens[..], &mut [][..]);
        tokenizer.fill(&cells, &places, 1, &mut workspace, out)?;
        Ok(())
    }))
}

/// All 4-mers of a sequence of 10,000 letters, in four frames.
pub(crate) fn k_mers(_: &Path) -> anyhow::Result<Kernel> {
    let alphabet = Alphabet::new(b"ACGT")?;
    let spec = KmerSpec::all_frames(4, 2);
    let letters: Vec<u8> = (0..10_000_u32)
        .map(|at| b"ACGT"[(at.wrapping_mul(2_654_435_761) >> 30) as usize])
        .collect();
    let words: Vec<&[u8]> = letters.windows(4).collect();
    let counted = words.iter().map(|word| (*word, 1));
    let words = sequences::Vocabulary::from_words(&alphabet, &spec, WhenUnknown::Fail, counted)?;
    let tokenizer = sequences::Tokenizer::new(spec, Arc::new(words), WhenUnknown::Fail)?;
    let mut scratch = TokenScratch::default();
    Ok(Box::new(move || {
        let mut frames = TokenFrames::default();
        Ok(tokenizer.tokenize(0, black_box(&letters), &mut frames, &mut scratch)?)
    }))
}
