//! Tokens: a batch of 1,024 cells from CSR to padded sequences, on one thread and on two.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use std::collections::HashMap;
use std::hint::black_box;

use benches::cells;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use csr::CsrView;
use tokens::{
    BinSpec, BinnedValues, Cells, Layout, Places, RankSpec, RankValues, SpecialNames, Ties,
    Tokenizer, Vocabulary, Workspace,
};

const N_ROWS: usize = 1_024;
const N_COLUMNS: usize = 60_000;

fn tokens(criterion: &mut Criterion) {
    let cells = cells(N_ROWS, N_COLUMNS);
    let rows = CsrView {
        row_offsets: &cells.row_offsets,
        columns: &cells.columns,
        values: &cells.values,
        n_columns: N_COLUMNS,
    };
    let numbers: Vec<u64> = (0..N_ROWS as u64).collect();
    let cells = Cells { rows, totals: None, numbers: &numbers, epoch: 0 };

    let mut group = criterion.benchmark_group(format!("tokens {N_COLUMNS} genes"));
    group.throughput(Throughput::Elements(N_ROWS as u64));
    for (name, tokenizer) in tokenizers() {
        for (layout, called) in [(Layout::Padded, "padded"), (Layout::Ragged, "ragged")] {
            for n_threads in [1, 2] {
                let (mut places, mut workspace) = (Places::default(), Workspace::default());
                let (mut tokens, mut values) = (Vec::new(), Vec::new());
                let id = format!("{name}, {called}, {n_threads} threads");
                group.bench_function(id, |bencher| {
                    bencher.iter(|| {
                        let cells = black_box(&cells);
                        tokenizer.places(cells, layout, n_threads, &mut places).unwrap();
                        tokens.resize(places.n_tokens(), 0_u32);
                        let has_values = tokenizer.pad_value().is_some();
                        values.resize(if has_values { tokens.len() } else { 0 }, 0.0);
                        let out = (&mut tokens[..], &mut values[..]);
                        tokenizer.fill(cells, &places, n_threads, &mut workspace, out)
                    });
                });
            }
        }
    }
    group.finish();
}

/// Tokenizers whose vocabulary has four in ten genes, like Geneformer's of human genes.
fn tokenizers() -> Vec<(&'static str, Tokenizer)> {
    let genes: Vec<String> = (0..N_COLUMNS).map(|column| format!("gene-{column}")).collect();
    let known = genes.iter().step_by(5).chain(genes.iter().skip(1).step_by(5)).cloned();
    let special = ["<pad>", "<cls>"].map(str::to_owned);
    let entries = special.into_iter().chain(known).zip(0..);
    let names = SpecialNames { pad: "<pad>", cls: Some("<cls>"), eos: None };
    let vocabulary = Vocabulary::new(entries, names).unwrap();
    let all = ["<pad>", "<cls>"].map(str::to_owned).into_iter().chain(genes.iter().cloned());
    let all = Vocabulary::new(all.zip(0..), names).unwrap();
    let median = |column: usize| 0.5 + (column * 7_919 % N_COLUMNS) as f64 / 20_000.0;
    let medians = genes.iter().enumerate().map(|(at, gene)| (gene.clone(), median(at)));
    let medians: HashMap<String, f64> = medians.collect();
    let ranks = |vocabulary: &Vocabulary| {
        let ranks = RankValues::new(vocabulary, &medians, &genes, RankSpec::default());
        Tokenizer::Ranks(ranks.unwrap())
    };
    let bins = |ties| {
        let spec = BinSpec { ties, ..BinSpec::default() };
        Tokenizer::Bins(BinnedValues::new(&all, &genes, spec).unwrap())
    };
    vec![
        ("ranks of all genes", ranks(&all)),
        ("ranks of 24,000 genes", ranks(&vocabulary)),
        ("bins, random ties", bins(Ties::Spread)),
        ("bins, highest ties", bins(Ties::Highest)),
    ]
}

criterion_group!(benches, tokens);
criterion_main!(benches);
