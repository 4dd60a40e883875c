//! Cells, vocabularies and finished sequences for the tests.

use std::collections::HashMap;

use csr::CsrBuffers;
use proptest::collection::vec;
use proptest::prelude::*;
use tokens::{Cells, Error, Layout, Places, SpecialNames, Tokenizer, Vocabulary, Workspace};

pub(crate) const PAD: u32 = 0;
pub(crate) const CLS: u32 = 1;
pub(crate) const EOS: u32 = 2;

/// Rows as lists of columns with values.
pub(crate) type Rows = Vec<Vec<(u32, f32)>>;

pub(crate) fn csr(rows: &Rows, n_columns: usize) -> CsrBuffers {
    let mut csr = CsrBuffers::empty(n_columns);
    for row in rows {
        csr.columns.extend(row.iter().map(|(column, _)| *column));
        csr.values.extend(row.iter().map(|(_, value)| *value));
        csr.row_offsets.push(csr.values.len());
    }
    csr
}

/// Up to 40 rows of up to `n_columns` columns, mostly of small counts; some values are stored zeros
/// and some are not whole.
pub(crate) fn rows(n_columns: usize) -> impl Strategy<Value = Rows> {
    let value = prop_oneof![
        6 => (0_u16..6).prop_map(f32::from),
        2 => (0_u16..3_000).prop_map(f32::from),
        1 => 1e-3_f32..1e6,
    ];
    let row = vec(prop::option::weighted(0.7, value), n_columns);
    let row = row.prop_map(|row| {
        (0..).zip(row).filter_map(|(column, value)| Some((column, value?))).collect()
    });
    vec(row, 0..40)
}

/// The gene of each column.
pub(crate) fn genes(n_columns: usize) -> Vec<String> {
    (0..n_columns).map(|column| format!("gene-{column}")).collect()
}

/// A vocabulary in which every fourth gene has no token; the others have descending ids.
pub(crate) fn vocabulary(n_columns: usize, with_cls: bool, with_eos: bool) -> Vocabulary {
    let special = [("<pad>", PAD), ("<cls>", CLS), ("<eos>", EOS)];
    let special = special.map(|(name, id)| (name.to_owned(), id));
    let known = (0..n_columns).filter(|column| column % 4 != 3);
    let known =
        known.map(|column| (format!("gene-{column}"), (10 + 2 * n_columns - column) as u32));
    let names = SpecialNames {
        pad: "<pad>",
        cls: with_cls.then_some("<cls>"),
        eos: with_eos.then_some("<eos>"),
    };
    Vocabulary::new(special.into_iter().chain(known), names).unwrap()
}

/// Medians that repeat, so that different counts of two genes may have equal results.
pub(crate) fn medians(n_columns: usize) -> HashMap<String, f64> {
    let median = |column: usize| [1.0, 2.0, 0.5, 1.7][column * 7 % 4];
    (0..n_columns).map(|column| (format!("gene-{column}"), median(column))).collect()
}

/// Sequences of a batch, without padding.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sequences {
    pub(crate) tokens: Vec<Vec<u32>>,
    /// Empty for ranks.
    pub(crate) values: Vec<Vec<f32>>,
}

/// How [`sequences`] makes them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way<'a> {
    pub(crate) layout: Layout,
    pub(crate) n_threads: usize,
    pub(crate) totals: Option<&'a [f64]>,
    pub(crate) epoch: u64,
}

pub(crate) const PADDED: Way<'_> =
    Way { layout: Layout::Padded, n_threads: 1, totals: None, epoch: 0 };

/// Makes sequences and checks their padding. Cells are numbered by their total of columns.
pub(crate) fn sequences(
    tokenizer: &Tokenizer,
    csr: &CsrBuffers,
    way: Way<'_>,
) -> Result<Sequences, Error> {
    let numbers: Vec<u64> = (0..csr.n_rows()).map(|row| number(csr, row)).collect();
    let Way { layout, n_threads, totals, epoch } = way;
    let cells = Cells { rows: csr.view(), totals, numbers: &numbers, epoch };
    let (mut places, mut workspace) = (Places::default(), Workspace::default());
    tokenizer.places(&cells, layout, n_threads, &mut places)?;
    // Memory that was used before.
    let mut ids = vec![7_777_i64; places.n_tokens()];
    let n_values = if tokenizer.pad_value().is_some() { ids.len() } else { 0 };
    let mut values = vec![f32::NAN; n_values];
    tokenizer.fill(&cells, &places, n_threads, &mut workspace, (&mut ids, &mut values))?;
    let mut sequences = Sequences { tokens: Vec::new(), values: Vec::new() };
    for (place, length) in places.offsets().windows(2).zip(places.lengths()) {
        let end = place[0] + *length as usize;
        assert!(ids[end..place[1]].iter().all(|id| *id == i64::from(PAD)));
        sequences.tokens.push(ids[place[0]..end].iter().map(|id| *id as u32).collect());
        if let Some(pad_value) = tokenizer.pad_value() {
            assert!(values[end..place[1]].iter().all(|value| *value == pad_value));
            sequences.values.push(values[place[0]..end].to_vec());
        }
        let width = place[1] - place[0];
        match layout {
            Layout::Padded => assert_eq!(width, tokenizer.max_length()),
            Layout::Ragged => assert_eq!(width, *length as usize),
            _ => assert_eq!(Some(width), places.width()),
        }
    }
    Ok(sequences)
}

/// A number that depends on the cell alone.
fn number(csr: &CsrBuffers, row: usize) -> u64 {
    let (columns, values) = csr.row(row);
    let parts = columns
        .iter()
        .zip(values)
        .map(|(column, value)| u64::from(*column + 1).wrapping_mul(u64::from(value.to_bits()) | 1));
    parts.fold(1, |number: u64, part| number.wrapping_mul(31).wrapping_add(part))
}
