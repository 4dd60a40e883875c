//! Input that does not fit, each with its error.

use std::collections::HashMap;

use tokens::{
    BinSpec, BinnedValues, Cells, Error, Layout, Places, RankSpec, RankValues, SpecialNames,
    Tokenizer, Vocabulary, Workspace,
};

use crate::example::{PADDED, Rows, Way, csr, genes, medians, sequences, vocabulary};

#[track_caller]
fn check<T: std::fmt::Debug>(result: Result<T, Error>, expected: &str) {
    let found = result.unwrap_err().to_string();
    assert!(found.contains(expected), "{found}");
}

fn ranks() -> Tokenizer {
    let vocabulary = vocabulary(8, false, false);
    let spec = RankSpec::default();
    Tokenizer::Ranks(RankValues::new(&vocabulary, &medians(8), &genes(8), spec).unwrap())
}

fn bins(spec: BinSpec) -> Result<BinnedValues, Error> {
    BinnedValues::new(&vocabulary(8, true, false), &genes(8), spec)
}

#[test]
fn values_and_columns_that_cannot_be() {
    let tokenizers = [ranks(), Tokenizer::Bins(bins(BinSpec::default()).unwrap())];
    for tokenizer in &tokenizers {
        for (row, expected) in [
            (vec![(0, f32::NAN)], "row 1 has the value NaN in column 0"),
            (vec![(0, 1.0), (3, -1.0)], "row 1 has the value -1 in column 3"),
            (vec![(7, f32::INFINITY)], "row 1 has the value inf in column 7"),
            (vec![(8, 1.0)], "row 1 has column 8, but there are 8 columns"),
        ] {
            let rows: Rows = vec![vec![(0, 1.0)], row];
            check(sequences(tokenizer, &csr(&rows, 8), PADDED), expected);
        }
        let mut torn = csr(&vec![vec![(0, 1.0)]], 8);
        torn.row_offsets = vec![0, 2];
        let cells = Cells { rows: torn.view(), totals: None, numbers: &[0], epoch: 0 };
        let measured = tokenizer.places(&cells, Layout::Ragged, 1, &mut Places::default());
        check(measured, "row 0 goes from 0 to 2, but there are 1 values");
    }
}

#[test]
fn totals_that_cannot_be() {
    let rows = csr(&vec![vec![(0, 1.0)], vec![(0, 1.0)]], 8);
    for (total, expected) in [(0.0, "is 0"), (-1.0, "is -1"), (f64::NAN, "is NaN")] {
        let totals = Some(&[1.0, total][..]);
        check(sequences(&ranks(), &rows, Way { totals, ..PADDED }), expected);
    }
    // A cell without genes needs no total.
    let totals = Some(&[1.0, 0.0][..]);
    let rows = csr(&vec![vec![(0, 1.0)], vec![]], 8);
    sequences(&ranks(), &rows, Way { totals, ..PADDED }).unwrap();
    let totals = Some(&[1.0][..]);
    check(
        sequences(&ranks(), &rows, Way { totals, ..PADDED }),
        "the totals has 1 elements, 2 were expected",
    );
}

#[test]
fn slices_that_do_not_fit() {
    let (rows, tokenizer) = (csr(&vec![vec![(0, 1.0)]], 8), bins(BinSpec::default()).unwrap());
    let tokenizer = Tokenizer::Bins(tokenizer);
    let mut cells = Cells { rows: rows.view(), totals: None, numbers: &[], epoch: 0 };
    let mut places = Places::default();
    let without = tokenizer.places(&cells, Layout::Ragged, 1, &mut places);
    check(without, "the numbers of cells has 0 elements");
    cells.numbers = &[4];
    tokenizer.places(&cells, Layout::Ragged, 1, &mut places).unwrap();
    let mut workspace = Workspace::default();
    for (n_tokens, n_values, expected) in [(3, 2, "the tokens has 3"), (2, 0, "the values has 0")] {
        let out = (&mut vec![0_i32; n_tokens][..], &mut vec![0.0; n_values][..]);
        check(tokenizer.fill(&cells, &places, 1, &mut workspace, out), expected);
    }
    let none = Places::default();
    let out = (&mut [0_i32; 0][..], &mut [][..]);
    check(tokenizer.fill(&cells, &none, 1, &mut workspace, out), "the places has 0");
}

#[test]
fn settings_that_do_not_fit() {
    let short = BinSpec { max_length: 1, ..BinSpec::default() };
    check(bins(short), "a maximal length of 1 has no room for a gene beside 1 special");
    for max_length in [(1 << 20) + 1, usize::MAX] {
        check(bins(BinSpec { max_length, ..BinSpec::default() }), "or is above 2^20");
    }
    check(bins(BinSpec { n_bins: 1, ..BinSpec::default() }), "1 bins");
    check(bins(BinSpec { pad_value: f32::NAN, ..BinSpec::default() }), "NaN is not finite");
    let ranks = |medians: HashMap<String, f64>, spec: RankSpec| {
        RankValues::new(&vocabulary(8, false, false), &medians, &genes(8), spec)
    };
    let target_sum = RankSpec { target_sum: 0.0, ..RankSpec::default() };
    check(ranks(medians(8), target_sum), "a target sum of 0");
    let no_length = RankSpec { max_length: 0, ..RankSpec::default() };
    check(ranks(medians(8), no_length), "a maximal length of 0");
    let zero = [("gene-1".to_owned(), 0.0)].into();
    check(ranks(zero, RankSpec::default()), "the median of \"gene-1\" is 0");
    check(ranks(HashMap::new(), RankSpec::default()), "none of the 8 genes is known");
}

#[test]
fn vocabularies_that_cannot_be() {
    let make = |entries: &[(&str, u32)], cls: Option<&str>| {
        let entries = entries.iter().map(|(name, id)| ((*name).to_owned(), *id));
        Vocabulary::new(entries, SpecialNames { pad: "<pad>", cls, eos: None })
    };
    check(make(&[("<pad>", 0), ("A", 1), ("A", 2)], None), "has \"A\" twice");
    check(make(&[("<pad>", 0), ("A", 1), ("B", 1)], None), "\"A\" and \"B\"");
    check(make(&[("<pad>", 0), ("A", 1 << 31)], None), "token id 2147483648");
    check(make(&[("A", 1)], None), "no \"<pad>\"");
    check(make(&[("<pad>", 0)], Some("<cls>")), "no \"<cls>\"");
    let vocabulary = make(&[("<pad>", 0), ("A", 1), ("B", 2)], None).unwrap();
    check(vocabulary.genes(&["A", "x", "A"]), "columns 0 and 2 are both \"A\"");
    check(vocabulary.genes(&["x", "y"]), "the first is \"x\", and the vocabulary has \"A\"");
    // Unknown genes may come twice, and special tokens are no genes.
    let genes = vocabulary.genes(&["A", "x", "x", "<pad>"]).unwrap();
    assert_eq!((genes.n_known(), genes.n_unknown()), (1, 3));
    assert_eq!(vocabulary.genes::<&str>(&[]).unwrap().n_columns(), 0);
}
