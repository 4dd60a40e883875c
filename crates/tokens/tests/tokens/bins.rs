//! Binned values against the oracle.

use proptest::prelude::*;
use tokens::{BinSpec, BinnedValues, Cut, Layout, Ties, Tokenizer};

use crate::example::{self, CLS, Rows, Sequences, Way, csr, genes, sequences, vocabulary};
use crate::oracle::{bin_range, borders};

const N_COLUMNS: usize = 300;

fn tokenizer(spec: BinSpec) -> Tokenizer {
    let vocabulary = vocabulary(N_COLUMNS, true, false);
    Tokenizer::Bins(BinnedValues::new(&vocabulary, &genes(N_COLUMNS), spec).unwrap())
}

/// The known genes of a row with their tokens and values, by column; zeros only if asked.
fn known(row: &[(u32, f32)], with_zeros: bool) -> Vec<(u32, f32)> {
    let vocabulary = vocabulary(N_COLUMNS, true, false);
    let value = |column: u32| row.iter().find(|one| one.0 == column).map_or(0.0, |one| one.1);
    let columns = (0..N_COLUMNS as u32).map(|column| (column, value(column)));
    let columns = columns.filter(|(_, value)| with_zeros || *value != 0.0);
    let name = |column: u32| format!("gene-{column}");
    columns.filter_map(|(column, value)| Some((vocabulary.id(&name(column))?, value))).collect()
}

/// Fails unless each gene of a sequence has a bin that its value allows.
fn check_bins(made: &Sequences, rows: &Rows, spec: &BinSpec) -> Result<(), TestCaseError> {
    for ((row, tokens), bins) in rows.iter().zip(&made.tokens).zip(&made.values) {
        let detected: Vec<f32> = known(row, false).iter().map(|gene| gene.1).collect();
        let all = known(row, spec.include_zeros);
        prop_assert_eq!(tokens.len(), (all.len() + 1).min(spec.max_length));
        prop_assert_eq!((tokens[0], bins[0]), (CLS, 0.0));
        let mut rest = all.iter();
        for (token, bin) in tokens.iter().zip(bins).skip(1) {
            // Genes keep the order of columns.
            let found = rest.find(|gene| gene.0 == *token);
            let value = found.unwrap().1;
            let range = if value == 0.0 {
                (0, 0)
            } else {
                let (lowest, highest) = bin_range(value, &borders(&detected, spec.n_bins));
                (if spec.ties == Ties::Highest { highest } else { lowest }, highest)
            };
            prop_assert!((range.0 as f32..=range.1 as f32).contains(bin), "{value}: {bin}");
            prop_assert_eq!(bin.fract(), 0.0);
        }
        if spec.cut == Cut::HighestValues && all.len() >= spec.max_length {
            let mut expected = all.clone();
            expected.sort_by(|one, other| other.1.total_cmp(&one.1));
            let mut expected: Vec<u32> = expected.iter().map(|gene| gene.0).collect();
            expected.truncate(spec.max_length - 1);
            expected.sort_unstable();
            let mut found = tokens[1..].to_vec();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
    Ok(())
}

proptest! {
    // The oracle looks at every pair of a value and a border.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn values_are_binned_by_the_definition(
        rows in example::rows(N_COLUMNS),
        n_bins in prop_oneof![Just(51_usize), 2_usize..9],
        spreads: bool,
        cuts_at_random: bool,
        include_zeros: bool,
        max_length in 2_usize..300,
        layout in prop_oneof![
            Just(Layout::Padded), Just(Layout::PaddedToLongest), Just(Layout::Ragged)
        ],
        seed: u64,
    ) {
        let spec = BinSpec {
            n_bins,
            ties: if spreads { Ties::Spread } else { Ties::Highest },
            cut: if cuts_at_random { Cut::Random } else { Cut::HighestValues },
            include_zeros,
            max_length,
            seed,
            ..BinSpec::default()
        };
        let (tokenizer, csr) = (tokenizer(spec), csr(&rows, N_COLUMNS));
        let way = Way { layout, ..example::PADDED };
        let made = sequences(&tokenizer, &csr, way).unwrap();
        check_bins(&made, &rows, &spec)?;
        // Threads change nothing, nor does the rest of the batch.
        let threads = Way { n_threads: 3, ..way };
        prop_assert_eq!(&sequences(&tokenizer, &csr, threads).unwrap(), &made);
        if let Some(last) = rows.last() {
            let alone = example::csr(&vec![last.clone()], N_COLUMNS);
            let alone = sequences(&tokenizer, &alone, way).unwrap();
            prop_assert_eq!(alone.tokens.last(), made.tokens.last());
            prop_assert_eq!(alone.values.last(), made.values.last());
        }
    }
}

/// A row in which every known gene has the value 1.
fn ones() -> Rows {
    vec![(0..N_COLUMNS as u32).map(|column| (column, 1.0)).collect()]
}

#[test]
fn ties_are_spread_evenly_and_anew_in_each_epoch() {
    // All 50 borders are 1: each bin is as likely. 225 genes in 400 epochs are 90,000 draws over 50
    // bins; chi-squared with 49 degrees of freedom is above 85.4 once in a thousand.
    let tokenizer = tokenizer(BinSpec { seed: 5, ..BinSpec::default() });
    let csr = csr(&ones(), N_COLUMNS);
    let mut counts = [0_u32; 51];
    let mut epochs = Vec::new();
    for epoch in 0..400 {
        let made = sequences(&tokenizer, &csr, Way { epoch, ..example::PADDED }).unwrap();
        made.values[0][1..].iter().for_each(|bin| counts[*bin as usize] += 1);
        epochs.push(made.values);
    }
    assert_eq!(counts[0], 0);
    let expected = 225.0 * 400.0 / 50.0;
    let chi_squared: f64 =
        counts[1..].iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    assert!(chi_squared < 85.4, "{chi_squared}");
    assert!(epochs.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn genes_are_cut_with_equal_chances() {
    // 20 of 225 genes in 2,000 epochs; chi-squared with 224 degrees of freedom is above 296 once in
    // a thousand, and lower still without replacement.
    let spec = BinSpec { max_length: 21, ties: Ties::Highest, ..BinSpec::default() };
    let (tokenizer, csr) = (tokenizer(spec), csr(&ones(), N_COLUMNS));
    let mut counts = std::collections::HashMap::new();
    for epoch in 0..2_000 {
        let made = sequences(&tokenizer, &csr, Way { epoch, ..example::PADDED }).unwrap();
        made.tokens[0][1..].iter().for_each(|token| *counts.entry(*token).or_insert(0_u32) += 1);
    }
    assert_eq!(counts.len(), 225);
    let expected = 20.0 * 2_000.0 / 225.0;
    let chi_squared: f64 =
        counts.values().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    assert!(chi_squared < 296.0, "{chi_squared}");
}

#[test]
fn bins_are_those_of_numpy() {
    // np.digitize(x, np.quantile(x, np.linspace(0, 1, 4))) of numpy 2.4.6.
    let row = vec![(0, 1.0), (1, 1.0), (2, 2.0), (4, 3.0), (5, 5.0), (6, 8.0)];
    let spec = BinSpec { n_bins: 5, ties: Ties::Highest, ..BinSpec::default() };
    let made = sequences(&tokenizer(spec), &csr(&vec![row], N_COLUMNS), example::PADDED).unwrap();
    assert_eq!(made.values, [[0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 4.0]]);
}
