//! Ranked genes against the oracle.

use proptest::prelude::*;
use tokens::{Layout, RankSpec, RankValues, Tokenizer};

use crate::example::{self, CLS, EOS, Way, csr, genes, medians, sequences, vocabulary};
use crate::oracle::ranked;

fn layouts() -> impl Strategy<Value = Layout> {
    prop_oneof![Just(Layout::Padded), Just(Layout::PaddedToLongest), Just(Layout::Ragged)]
}

proptest! {
    #[test]
    fn genes_are_ranked_by_the_definition(
        // Enough columns to sort by digits in some cases, few enough to compare in others.
        (n_columns, rows) in prop_oneof![Just(30_usize), Just(500)]
            .prop_flat_map(|n_columns| (Just(n_columns), example::rows(n_columns))),
        max_length in 3_usize..600,
        with_cls: bool,
        with_eos: bool,
        layout in layouts(),
        n_threads in 1_usize..4,
        with_totals: bool,
    ) {
        let (names, vocabulary) = (genes(n_columns), vocabulary(n_columns, with_cls, with_eos));
        let medians = medians(n_columns);
        let spec = RankSpec { max_length, ..RankSpec::default() };
        let ranks = RankValues::new(&vocabulary, &medians, &names, spec).unwrap();
        let sum = |row: &Vec<(u32, f32)>| row.iter().map(|(_, value)| f64::from(*value)).sum();
        let totals: Vec<f64> = if with_totals {
            (0..rows.len()).map(|row| 1_000.0 + row as f64).collect()
        } else {
            rows.iter().map(sum).collect()
        };
        let way = Way { layout, n_threads, totals: Some(&totals), epoch: 0 };
        let made = sequences(&Tokenizer::Ranks(ranks), &csr(&rows, n_columns), way);
        let expected = rows.iter().zip(&totals).map(|(row, total)| {
            let mut ranked = ranked(row, &names, &vocabulary, &medians, (*total, 10_000.0));
            ranked.truncate(max_length - usize::from(with_cls) - usize::from(with_eos));
            let cls = with_cls.then_some(CLS);
            cls.into_iter().chain(ranked).chain(with_eos.then_some(EOS)).collect::<Vec<u32>>()
        });
        prop_assert_eq!(made.unwrap().tokens, expected.collect::<Vec<_>>());
    }
}

#[test]
fn without_totals_a_cell_is_divided_by_the_sum_of_all_its_genes() {
    // The total of a cell scales all of its results, so only rounding shows it: results that are
    // equal with one total differ with another.
    let (names, vocabulary) = (genes(8), vocabulary(8, false, false));
    let medians = [("gene-0", 0.1), ("gene-1", 0.3), ("gene-3", 1.0)];
    let medians = medians.map(|(name, median)| (name.to_owned(), median)).into();
    let ranks = RankValues::new(&vocabulary, &medians, &names, RankSpec::default()).unwrap();
    let tokenizer = Tokenizer::Ranks(ranks);
    for unknown in 1..200_u16 {
        // Gene 3 has no token, but its count belongs to the total.
        let row = vec![(0, 1.0), (1, 3.0), (3, f32::from(unknown))];
        let total = f64::from(unknown) + 4.0;
        let expected = ranked(&row, &names, &vocabulary, &medians, (total, 10_000.0));
        let made = sequences(&tokenizer, &csr(&vec![row], 8), example::PADDED).unwrap();
        assert_eq!(made.tokens, [expected]);
    }
}

#[test]
fn results_that_f32_cannot_tell_apart_keep_their_order() {
    let n_columns = 400;
    let (names, vocabulary) = (genes(n_columns), vocabulary(n_columns, false, false));
    // Medians that differ by less than f32 can express, in no order.
    let median = |column: usize| 1.0 + (column * 37 % 101) as f64 * 1e-12;
    let medians = (0..n_columns).map(|column| (format!("gene-{column}"), median(column))).collect();
    let ranks = RankValues::new(&vocabulary, &medians, &names, RankSpec::default()).unwrap();
    let row: Vec<(u32, f32)> = (0..n_columns as u32).map(|column| (column, 3.0)).collect();
    let total = 3.0 * n_columns as f64;
    let expected = ranked(&row, &names, &vocabulary, &medians, (total, 10_000.0));
    let rows = csr(&vec![row], n_columns);
    let made = sequences(&Tokenizer::Ranks(ranks), &rows, example::PADDED).unwrap();
    assert_eq!(made.tokens, [expected]);
}
