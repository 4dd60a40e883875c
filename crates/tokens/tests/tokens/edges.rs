//! Cells and vocabularies at the edges.

use tokens::{BinSpec, BinnedValues, Layout, RankSpec, RankValues, Ties, Tokenizer};

use crate::example::{CLS, EOS, PADDED, Rows, Way, csr, genes, medians, sequences, vocabulary};

const N_COLUMNS: usize = 8;

fn ranks(max_length: usize) -> Tokenizer {
    let spec = RankSpec { max_length, ..RankSpec::default() };
    let vocabulary = vocabulary(N_COLUMNS, true, true);
    let names = genes(N_COLUMNS);
    Tokenizer::Ranks(RankValues::new(&vocabulary, &medians(N_COLUMNS), &names, spec).unwrap())
}

fn bins(spec: BinSpec) -> Tokenizer {
    let vocabulary = vocabulary(N_COLUMNS, true, true);
    Tokenizer::Bins(BinnedValues::new(&vocabulary, &genes(N_COLUMNS), spec).unwrap())
}

#[track_caller]
fn check(tokenizer: &Tokenizer, rows: &Rows, tokens: &[&[u32]], values: &[&[f32]]) {
    for layout in [Layout::Padded, Layout::PaddedToLongest, Layout::Ragged] {
        let way = Way { layout, ..PADDED };
        let made = sequences(tokenizer, &csr(rows, N_COLUMNS), way).unwrap();
        assert_eq!(made.tokens, tokens);
        assert_eq!(made.values, values);
    }
}

#[test]
fn cells_without_genes_are_special_tokens_only() {
    // An empty row, a stored zero, and a gene that the vocabulary does not know.
    let rows = || vec![vec![], vec![(1, 0.0)], vec![(3, 5.0)]];
    let empty: &[u32] = &[CLS, EOS];
    check(&ranks(6), &rows(), &[empty; 3], &[]);
    check(&bins(BinSpec::default()), &rows(), &[empty; 3], &[&[0.0, 0.0][..]; 3]);
    check(&ranks(6), &Vec::new(), &[], &[]);
    check(&bins(BinSpec::default()), &Vec::new(), &[], &[]);
}

#[test]
fn one_gene_is_in_the_highest_bin() {
    let rows = || vec![vec![(0, 3.0)]];
    check(&ranks(3), &rows(), &[&[CLS, 26, EOS]], &[]);
    let highest = BinSpec { ties: Ties::Highest, ..BinSpec::default() };
    check(&bins(highest), &rows(), &[&[CLS, 26, EOS]], &[&[0.0, 50.0, 0.0]]);
}

#[test]
fn equal_values_are_in_the_highest_bin_and_ranked_by_column() {
    let row = || vec![(0..N_COLUMNS as u32).map(|column| (column, 2.0)).collect()];
    // By median: 0.5 of gene 6 and 2, then 1.0, then 2.0.
    let medians = medians(N_COLUMNS);
    let median = |column: usize| medians[&format!("gene-{column}")];
    let mut columns: Vec<usize> = (0..N_COLUMNS).filter(|column| column % 4 != 3).collect();
    columns.sort_by(|one, other| median(*one).total_cmp(&median(*other)));
    let mut expected = vec![CLS];
    expected.extend(columns.iter().map(|column| 26 - *column as u32));
    expected.push(EOS);
    check(&ranks(100), &row(), &[&expected], &[]);
    expected.truncate(4);
    expected.push(EOS);
    check(&ranks(5), &row(), &[&expected], &[]);
    let highest = BinSpec { ties: Ties::Highest, ..BinSpec::default() };
    let values = [0.0, 50.0, 50.0, 50.0, 50.0, 50.0, 50.0, 0.0];
    check(&bins(highest), &row(), &[&[CLS, 26, 25, 24, 22, 21, 20, EOS]], &[&values]);
}

#[test]
fn zeros_have_tokens_if_asked() {
    let spec =
        BinSpec { include_zeros: true, ties: Ties::Highest, n_bins: 3, ..BinSpec::default() };
    let rows = vec![vec![(5, 7.0), (1, 2.0), (3, 9.0)], vec![(0, -0.0)]];
    let tokens: &[u32] = &[CLS, 26, 25, 24, 22, 21, 20, EOS];
    let values = [[0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0], [0.0; 8]];
    check(&bins(spec), &rows, &[tokens; 2], &[&values[0], &values[1]]);
}

#[test]
fn genes_count_as_known_and_unknown() {
    let tokenizer = ranks(5);
    let found = tokenizer.genes();
    assert_eq!((found.n_columns(), found.n_known(), found.n_unknown()), (8, 6, 2));
    assert_eq!((found.token(0), found.token(3), found.token(99)), (Some(26), None, None));
    // A gene without a median is unknown to ranks.
    let medians = [("gene-2".to_owned(), 1.0)].into();
    let vocabulary = vocabulary(N_COLUMNS, false, false);
    let spec = RankSpec::default();
    let ranks = RankValues::new(&vocabulary, &medians, &genes(N_COLUMNS), spec).unwrap();
    assert_eq!(ranks.genes().known().collect::<Vec<_>>(), [(2, 24)]);
}
