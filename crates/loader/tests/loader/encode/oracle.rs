//! Compares encoders with a map that is filled row by row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int16Array, Int64Array, StringArray};
use loader::encode::{BatchKeyEncoder, Encoder, LabelEncoder, Nulls, Rules, UNSEEN_CODE, Unseen};
use proptest::prelude::*;

use crate::encode::labels::{dictionary, obs, owned_texts};

/// A label of the oracle: sorted like codes, null last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Text(String),
    Null,
}

fn cell(label: Option<&String>) -> Cell {
    label.map_or(Cell::Null, |label| Cell::Text(label.clone()))
}

type Texts = Vec<Option<String>>;

fn labels() -> impl Strategy<Value = Texts> {
    let label = prop_oneof![4 => "[abAé]{0,2}", 1 => any::<String>()];
    proptest::collection::vec(proptest::option::weighted(0.9, label), 0..40)
}

fn rules() -> impl Strategy<Value = Rules> {
    let nulls = prop_oneof![Just(Nulls::Unseen), Just(Nulls::Class)];
    nulls.prop_map(|nulls| Rules { unseen: Unseen::Code, nulls })
}

/// The labels as an array: plain, or a dictionary in another order, with unused and repeated
/// values.
fn array(labels: &Texts, is_dictionary: bool) -> ArrayRef {
    if !is_dictionary {
        return Arc::new(StringArray::from(labels.clone()));
    }
    let distinct: BTreeSet<&String> = labels.iter().flatten().collect();
    let mut values: Vec<&str> = vec!["unused"];
    values.extend(distinct.iter().rev().map(|label| label.as_str()));
    values.extend(distinct.iter().map(|label| label.as_str()));
    let key = |row: usize, label: &String| {
        let mut places = (1..values.len()).filter(|idx| values[*idx] == label);
        let place = if row.is_multiple_of(2) { places.next() } else { places.next_back() };
        place.unwrap() as i32
    };
    let keys =
        labels.iter().enumerate().map(|(row, label)| label.as_ref().map(|label| key(row, label)));
    dictionary(keys.collect(), Arc::new(StringArray::from(values.clone())))
}

/// Codes from a sorted map of the distinct keys.
fn oracle<Key: Ord + Clone>(fitted: &[Key], is_class: impl Fn(&Key) -> bool) -> BTreeMap<Key, i64> {
    let keys: BTreeSet<&Key> = fitted.iter().filter(|key| is_class(key)).collect();
    keys.into_iter().cloned().zip(0..).collect()
}

fn extend_oracle<Key: Ord + Clone>(
    codes: &mut BTreeMap<Key, i64>,
    seen: &[Key],
    is_class: impl Fn(&Key) -> bool,
) {
    let unknown: BTreeSet<&Key> =
        seen.iter().filter(|key| is_class(key) && !codes.contains_key(*key)).collect();
    let next = codes.len() as i64;
    codes.extend(unknown.into_iter().cloned().zip(next..));
}

proptest! {
    #[test]
    fn labels_have_the_codes_of_the_oracle(
        fitted in labels(),
        seen in labels(),
        rules in rules(),
        is_dictionary in any::<[bool; 2]>(),
    ) {
        let cells = |labels: &Texts| -> Vec<Cell> { labels.iter().map(|label| cell(label.as_ref())).collect() };
        let is_class = |cell: &Cell| rules.nulls == Nulls::Class || *cell != Cell::Null;
        let mut expect = oracle(&cells(&fitted), is_class);
        let seen_array = array(&seen, is_dictionary[1]);
        let mut encoder = LabelEncoder::fit("label", &array(&fitted, is_dictionary[0]), rules).unwrap();
        for _ in 0..2 {
            prop_assert_eq!(encoder.n_classes(), Some(expect.len()));
            let codes = encoder.encode_labels(&seen_array).unwrap();
            let expect_codes: Vec<i64> =
                cells(&seen).iter().map(|cell| expect.get(cell).copied().unwrap_or(UNSEEN_CODE)).collect();
            prop_assert_eq!(codes.values(), expect_codes.as_slice());
            let back: Texts = seen
                .iter()
                .zip(&expect_codes)
                .map(|(label, code)| label.clone().filter(|_| *code != UNSEEN_CODE))
                .collect();
            prop_assert_eq!(owned_texts(&encoder.inverse(&codes).unwrap()), back);

            let strict = encoder.clone().with_unseen(Unseen::Error).encode_labels(&seen_array);
            prop_assert_eq!(strict.is_ok(), !expect_codes.contains(&UNSEEN_CODE));
            let restored = LabelEncoder::from_json(&encoder.to_json().unwrap()).unwrap();
            prop_assert_eq!(&restored, &encoder);
            // The same again, extended by the new labels.
            encoder = encoder.extend(&seen_array).unwrap();
            extend_oracle(&mut expect, &cells(&seen), is_class);
        }
    }

    #[test]
    fn keys_have_the_codes_of_the_oracle(
        fitted in proptest::collection::vec((proptest::option::weighted(0.9, "[ab/\\\\N]{0,2}"), -2_i16..3, any::<u8>()), 0..40),
        seen in proptest::collection::vec((proptest::option::weighted(0.9, "[ab/\\\\N]{0,2}"), -2_i16..3, any::<u8>()), 0..40),
        rules in rules(),
        is_dictionary in any::<bool>(),
    ) {
        type Row = (Option<String>, i16, u8);
        let batch = |rows: &[Row]| {
            let texts: Texts = rows.iter().map(|row| row.0.clone()).collect();
            let numbers: ArrayRef = Arc::new(Int16Array::from_iter_values(rows.iter().map(|row| row.1)));
            let others: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| i64::from(row.2))));
            obs([("text", array(&texts, is_dictionary)), ("number", numbers), ("other", others)])
        };
        let keys = |rows: &[Row]| -> Vec<(Cell, i16)> {
            rows.iter().map(|row| (cell(row.0.as_ref()), row.1)).collect()
        };
        let is_class = |key: &(Cell, i16)| rules.nulls == Nulls::Class || key.0 != Cell::Null;
        let mut expect = oracle(&keys(&fitted), is_class);
        let mut encoder = BatchKeyEncoder::fit("batch", &["text", "number"], &batch(&fitted), rules).unwrap();
        for _ in 0..2 {
            let codes = encoder.encode(&batch(&seen)).unwrap();
            let expect_codes: Vec<i64> =
                keys(&seen).iter().map(|key| expect.get(key).copied().unwrap_or(UNSEEN_CODE)).collect();
            prop_assert_eq!(codes.values(), expect_codes.as_slice());

            let back = encoder.inverse(&codes).unwrap();
            let numbers = back.as_struct().column(1).as_primitive::<Int64Type>();
            for (row_idx, (row, code)) in seen.iter().zip(&expect_codes).enumerate() {
                let is_known = *code != UNSEEN_CODE;
                prop_assert_eq!(numbers.is_valid(row_idx), is_known);
                prop_assert!(!is_known || numbers.value(row_idx) == i64::from(row.1));
            }
            let texts: Texts = seen.iter().zip(&expect_codes)
                .map(|(row, code)| row.0.clone().filter(|_| *code != UNSEEN_CODE)).collect();
            prop_assert_eq!(owned_texts(back.as_struct().column(0)), texts);

            // Joined texts are as distinct as keys.
            let joined: BTreeSet<String> = encoder.joined_keys().into_iter().collect();
            prop_assert_eq!(joined.len(), expect.len());
            let restored = BatchKeyEncoder::from_json(&encoder.to_json().unwrap()).unwrap();
            prop_assert_eq!(&restored, &encoder);
            encoder = encoder.extend(&batch(&seen)).unwrap();
            extend_oracle(&mut expect, &keys(&seen), is_class);
        }
    }
}

/// Enough labels per column that pairs are numbered by hash, in no order.
#[test]
fn many_keys() {
    let number = |row: i64| (row * 7919) % 3001;
    let rows: Vec<i64> = (0..9003).collect();
    let a: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| number(*row))));
    let b: ArrayRef =
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| number(*row + 1) / 2)));
    let c: ArrayRef =
        Arc::new(Int16Array::from_iter_values(rows.iter().map(|row| (*row % 5) as i16)));
    let batch = obs([("a", a), ("b", b), ("c", c)]);
    let encoder =
        BatchKeyEncoder::fit("batch", &["c", "a", "b"], &batch, Rules::default()).unwrap();
    let keys: Vec<(i64, i64, i64)> =
        rows.iter().map(|row| (*row % 5, number(*row), number(*row + 1) / 2)).collect();
    let expect = oracle(&keys, |_| true);
    assert_eq!(encoder.n_classes(), Some(expect.len()));
    assert!(expect.len() > 3001);
    let codes = encoder.encode(&batch).unwrap();
    assert!(codes.values().iter().zip(&keys).all(|(code, key)| expect[key] == *code));
    // Integers of any width are restored as 64-bit integers.
    assert_eq!(encoder.classes().column(0).as_primitive::<Int64Type>().value(0), 0);
}
