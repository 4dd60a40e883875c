//! Error messages of value filters: the character, and the expected token or value.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int8Array, Int64Array, LargeStringArray, NullArray, PrimitiveArray,
    RecordBatch,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use soma_io::{Error, ValueFilter};

/// The position, from 1, and the problem.
#[track_caller]
fn problem(error: Error) -> (usize, String) {
    let shown = error.to_string();
    assert!(!shown.contains('\n'), "{shown}");
    match error {
        Error::ValueFilter { position, problem, .. } => {
            assert!(shown.contains(&format!("character {position}: {problem}")), "{shown}");
            (position, problem)
        }
        other => panic!("{other}"),
    }
}

#[track_caller]
fn check_parse(text: &str, position: usize, part: &str) {
    let (found, problem) = problem(ValueFilter::parse(text).unwrap_err());
    let shown: String = text.chars().take(100).collect();
    assert_eq!(found, position, "{shown}: {problem}");
    assert!(problem.contains(part), "{shown}: {problem}");
}

#[test]
fn texts_that_are_no_filters() {
    check_parse("", 1, "the filter is empty");
    check_parse("  # nothing", 1, "the filter is empty");
    check_parse(
        "tissue",
        1,
        "a filter must be a comparison, for example `tissue == \"lung\"`; found the column `tissue`",
    );
    check_parse("(5)", 2, "found 5");
    check_parse("tissue = 'lung'", 8, "equality is `==`");
    check_parse("tissue == lung", 11, "quote it if it is a text");
    check_parse("tissue == 'lung", 11, "not closed");
    check_parse("é == 'a' or ü == \"b", 18, "not closed");
    check_parse("a == 1 & b == 2", 6, "`&` binds tighter than comparisons");
    check_parse("(a == 1) | b == 2", 12, "write `or`");
    check_parse("a == 1 && b == 2", 8, "write `and`");
    check_parse("a == 1 b", 8, "expected `and`, `or` or the end, found `b`");
    check_parse("a == 1)", 7, "found `)`");
    check_parse("(a == 1", 8, "expected `)`, found the end");
    check_parse("a == 1 and", 11, "expected a column or a value, found the end");
    check_parse("a == 1 and b", 12, "each side of `and` must be a comparison");
    check_parse("a == 1 and b = 2", 14, "equality is `==`");
    check_parse("not obs.a == 1", 8, "attr(\"…\")");
    check_parse("not a", 5, "the operand of `not`");
    check_parse("a is None", 3, "write `==` or `!=`");
    check_parse("1 == 2", 6, "expected a column on one side");
    check_parse("a < None", 5, "None can be compared by == and != only");
    check_parse("None >= a", 1, "None can be compared by == and != only");
    check_parse("obs.a == 1", 4, "attr(\"…\")");
    check_parse("class == 1", 1, "attr(\"class\")");
    check_parse("len(a) == 1", 1, "there are attr(…) and val(…)");
    check_parse("attr(a) == 1", 6, "quoted name");
    check_parse("attr('a', 'b') == 1", 11, "one argument");
    check_parse("a == val()", 10, "expected a column or a value");
    check_parse("a == -'b'", 7, "expected a number after the sign");
    check_parse("a == 1 + 2", 8, "found `+`");
    check_parse("a == 5L", 7, "expected the end of the number");
    check_parse("a == '\\ud800'", 7, "not a character of Unicode");
    check_parse("a == 'b' b'c'", 10, "do not join");
    check_parse("a == €", 6, "'€' means nothing");
    check_parse("a == 1\nand b == 2", 8, "within parentheses");
}

#[test]
fn lists_and_chains() {
    check_parse("a in []", 6, "the list is empty");
    check_parse("a in (1, 2)", 6, "a list after `in`");
    check_parse("a in [1 2]", 9, "`,` or `]`");
    check_parse("a in [1, None]", 10, "None cannot stand in a list");
    check_parse("a in [b]", 7, "quote it");
    check_parse("a in [1", 8, "found the end");
    check_parse("a not 1", 7, "`in` after `not`");
    check_parse("1 in [1]", 1, "a column must stand before `in`");
    check_parse("1 < a in [1]", 7, "`in` cannot be part of a chain");
    check_parse("a in [1] == b", 10, "`in` is not part of a chain");
    check_parse("1 < a < b", 9, "found the column `b`");
    check_parse("(a == 1) == 2", 2, "found a comparison");
    check_parse("[1] == a", 1, "only after `in`");
}

#[test]
fn a_long_filter_is_cut_around_the_place() {
    let text = format!("{}a = 1{}", "b == 2 or ".repeat(100), " or c == 3".repeat(100));
    let error = ValueFilter::parse(&text).unwrap_err();
    let shown = error.to_string();
    assert_eq!(problem(error).0, 1_003);
    assert!(shown.len() < 300 && shown.contains("or a = 1 or"), "{shown}");
}

#[test]
fn depth_is_limited() {
    // Filters of the maximum depth must fit the small stack of this thread.
    let deep = |depth: usize| format!("{}a == 1{}", "(".repeat(depth), ")".repeat(depth));
    let check = move || {
        let alternating = format!("{}a == 1{}", "not (b == 1 and (".repeat(32), "))".repeat(32));
        for text in [&deep(64), &alternating] {
            let filter = ValueFilter::parse(text).unwrap();
            assert_eq!(filter.clone(), filter);
        }
        check_parse(&deep(65), 65, "more than 64 deep");
        check_parse(&deep(1_000_000), 65, "more than 64 deep");
        check_parse(&"(".repeat(1_000_000), 65, "more than 64 deep");
        check_parse(&format!("a == {}1", "val(".repeat(1_000_000)), 266, "more than 64 deep");
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(check).unwrap().join().unwrap();
}

#[test]
fn what_is_long_but_flat_is_taken() {
    let many = vec!["a == 1"; 20_000];
    for joint in [" or ", " and "] {
        assert_eq!(ValueFilter::parse(&many.join(joint)).unwrap().columns(), ["a"]);
    }
    assert!(ValueFilter::parse(&format!("{}a == 1", "not ".repeat(100_000))).is_ok());
    assert!(ValueFilter::parse(&format!("a == {}1", "-".repeat(100_000))).is_ok());
    assert!(ValueFilter::parse(&format!("a in [{}]", "1,".repeat(100_000))).is_ok());
    assert!(ValueFilter::parse(&format!("(a == 1){}", " & (a == 1)".repeat(20_000))).is_ok());
}

fn schema() -> Schema {
    let category = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeUtf8));
    Schema::new(vec![
        Field::new("soma_joinid", DataType::Int64, false),
        Field::new("tissue", category.clone(), false),
        Field::new("stage", category, true).with_dict_is_ordered(true),
        Field::new("n_genes", DataType::UInt16, true),
        Field::new("is_primary", DataType::Boolean, false),
        Field::new("share", DataType::Float32, false),
        Field::new("note", DataType::LargeUtf8, true),
        Field::new("taken", DataType::Timestamp(TimeUnit::Second, None), true),
        Field::new("day", DataType::Date32, true),
    ])
}

#[track_caller]
fn check_types(text: &str, position: usize, part: &str) {
    let filter = ValueFilter::parse(text).unwrap();
    let (found, problem) = problem(filter.check(&schema()).unwrap_err());
    assert_eq!(found, position, "{text}: {problem}");
    assert!(problem.contains(part), "{text}: {problem}");
}

#[test]
fn values_that_do_not_fit() {
    check_types("tissu == 'lung'", 1, "no column \"tissu\"; there are soma_joinid, tissue, stage");
    check_types("n_genes > 1 and attr('cell type') == 'b'", 17, "no column \"cell type\"");
    check_types("tissue == 5", 11, "expected a text in quotes, found 5");
    check_types("tissue < 'lung'", 1, "have no order");
    check_types("stage < 3", 9, "expected a text in quotes");
    check_types(
        "n_genes == 70000",
        12,
        "column `n_genes` is of type UInt16: expected a whole number within its range, found 70000",
    );
    check_types("n_genes in [1, -1]", 16, "found -1");
    check_types("n_genes < 1.5", 11, "found 1.5");
    check_types("'5' == n_genes", 1, "found the text \"5\"");
    check_types("soma_joinid == 1e300", 16, "a whole number");
    check_types("is_primary == 2", 15, "expected True or False, found 2");
    check_types("share > 'a'", 9, "expected a number");
    check_types("taken > '2020-01-01'", 9, "a whole number");
    check_types("note == 1", 9, "expected a text in quotes");
    check_types("day == 1", 1, "cannot be filtered");
    check_types("day == None or note == 1", 24, "expected a text");
}

#[test]
fn values_that_fit() {
    for text in [
        "stage < 'adult' and tissue == 'lung' and tissue != 'nope'",
        "n_genes == 5.0 or n_genes == True or 0 <= n_genes <= 65_535",
        "is_primary == 1 or is_primary in [False, 0.0]",
        "share < 1 or share in [True, 2]",
        "note == b'a' or note in ['b']",
        "taken > 1577836800 and taken != None",
        "soma_joinid in [1, 2]",
    ] {
        let filter = ValueFilter::parse(text).unwrap();
        filter.check(&schema()).unwrap();
        assert_eq!(filter.text(), text);
    }
    let filter =
        ValueFilter::parse("b == 1 and (a == 2 or not b == 3) and attr('c d') in [1]").unwrap();
    assert_eq!(filter.columns(), ["b", "a", "c d"]);
}

#[test]
fn batches_out_of_the_common() {
    let evaluate = |text: &str, array: ArrayRef| {
        let batch = RecordBatch::try_from_iter_with_nullable([("a", array, true)]).unwrap();
        let matches = ValueFilter::parse(text)?.evaluate(&batch)?;
        Ok::<Vec<bool>, Error>(matches.values().iter().collect())
    };
    // Null categories, and no categories.
    let values: Arc<LargeStringArray> = Arc::new(vec![Some("x"), None].into());
    let codes = || Int8Array::from(vec![Some(0), Some(1), None]);
    let with_null: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(codes(), values));
    assert_eq!(evaluate("a != 'y'", Arc::clone(&with_null)).unwrap(), [true, false, false]);
    assert_eq!(evaluate("a == None", with_null).unwrap(), [false, true, true]);
    let none = Arc::new(LargeStringArray::from(Vec::<&str>::new()));
    let codes = PrimitiveArray::from(vec![None, None]);
    let without: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(codes, none));
    assert_eq!(evaluate("a != 'y'", Arc::clone(&without)).unwrap(), [false, false]);
    assert_eq!(evaluate("a == None", without).unwrap(), [true, true]);
    // No rows, no column of this name, and a type that no data frame has.
    let empty: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
    assert_eq!(evaluate("not a in [1]", Arc::clone(&empty)).unwrap(), [false; 0]);
    assert_eq!(problem(evaluate("b == 1", empty).unwrap_err()).0, 1);
    let nothing: ArrayRef = Arc::new(NullArray::new(2));
    assert_eq!(evaluate("a == None", Arc::clone(&nothing)).unwrap(), [true, true]);
    problem(evaluate("a == 1", nothing).unwrap_err());
}
