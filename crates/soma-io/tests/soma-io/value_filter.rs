//! Value filters: the rows that they select, compared with a row-by-row evaluator, and that no text
//! makes them panic.

use std::fmt::Write as _;

use arrow_array::{Array, RecordBatch};
use arrow_schema::Schema;
use proptest::prelude::*;
use soma_io::ValueFilter;

use crate::frame_of_kinds::{COLUMNS, Cell, Row, Value, batch, rows};

/// A filter before it is written as text.
#[derive(Debug, Clone)]
enum Node {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    /// The index of the column, the index of the comparison, a value, and the style of writing.
    Compare(usize, usize, Value, Style),
    Member(usize, bool, Vec<Value>),
    Null(usize, bool),
}

#[derive(Debug, Clone, Copy)]
enum Style {
    Plain,
    Reversed,
    Val,
    Attr,
    Parentheses,
}

const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];
const REVERSED: [&str; 6] = ["==", "!=", ">", ">=", "<", "<="];
/// The index of each comparison's opposite.
const OPPOSITE: [usize; 6] = [1, 0, 5, 4, 3, 2];

fn holds(comparison: usize, order: Option<std::cmp::Ordering>) -> bool {
    let Some(order) = order else { return comparison == 1 };
    match comparison {
        0 => order.is_eq(),
        1 => order.is_ne(),
        2 => order.is_lt(),
        3 => order.is_le(),
        4 => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// Whether a row matches a node, or its negation.
fn matches(node: &Node, row: &Row, negated: bool) -> bool {
    match node {
        Node::All(parts) if negated => parts.iter().any(|part| matches(part, row, true)),
        Node::All(parts) => parts.iter().all(|part| matches(part, row, false)),
        Node::Any(parts) if negated => parts.iter().all(|part| matches(part, row, true)),
        Node::Any(parts) => parts.iter().any(|part| matches(part, row, false)),
        Node::Not(part) => matches(part, row, !negated),
        Node::Null(column, is_null) => row[*column].is_none() == (*is_null != negated),
        Node::Compare(column, comparison, value, _) => {
            let comparison = if negated { OPPOSITE[*comparison] } else { *comparison };
            row[*column].as_ref().is_some_and(|cell: &Cell| holds(comparison, cell.order(value)))
        }
        Node::Member(column, is_opposite, values) => {
            let is_among = |cell: &Cell| values.iter().any(|value| cell.is_same(value));
            row[*column].as_ref().is_some_and(|cell| is_among(cell) != (*is_opposite != negated))
        }
    }
}

fn write_parts(out: &mut String, parts: &[Node], joint: &str) {
    for (idx, part) in parts.iter().enumerate() {
        out.push_str(if idx == 0 { "" } else { joint });
        out.push('(');
        write_node(out, part);
        out.push(')');
    }
}

fn write_node(out: &mut String, node: &Node) {
    let name = |column: &usize| COLUMNS[*column].0;
    match node {
        Node::All(parts) => {
            write_parts(out, parts, if parts.len().is_multiple_of(2) { " and " } else { "&" });
        }
        Node::Any(parts) => {
            write_parts(out, parts, if parts.len().is_multiple_of(2) { " or " } else { " | " });
        }
        Node::Not(part) => {
            out.push_str("not (");
            write_node(out, part);
            out.push(')');
        }
        Node::Null(column, is_null) => {
            write!(out, "{} {} None", name(column), if *is_null { "==" } else { "!=" }).unwrap();
        }
        Node::Compare(column, comparison, value, style) => {
            let (name, comparison, reversed) =
                (name(column), COMPARISONS[*comparison], REVERSED[*comparison]);
            match style {
                Style::Plain => write!(out, "{name} {comparison} {value}"),
                Style::Reversed => write!(out, "{value} {reversed} {name}"),
                Style::Val => write!(out, "{name}{comparison}val( {value} )"),
                Style::Attr => write!(out, "attr('{name}'){comparison}{value}"),
                Style::Parentheses => write!(out, "(({name})){comparison}(\n{value})"),
            }
            .unwrap();
        }
        Node::Member(column, is_opposite, values) => {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            let member = if *is_opposite { "not in" } else { "in" };
            write!(out, "{} {member} [{}]", name(column), values.join(", ")).unwrap();
        }
    }
}

fn leaf() -> impl Strategy<Value = Node> {
    (0..COLUMNS.len()).prop_flat_map(|column| {
        let style = prop_oneof![
            Just(Style::Plain),
            Just(Style::Reversed),
            Just(Style::Val),
            Just(Style::Attr),
            Just(Style::Parentheses)
        ];
        let n_comparisons = if COLUMNS[column].1.has_order() { 6_usize } else { 2 };
        let value = || COLUMNS[column].1.value();
        prop_oneof![
            4 => (0..n_comparisons, value(), style).prop_map(move |(comparison, value, style)| {
                Node::Compare(column, comparison, value, style)
            }),
            2 => (any::<bool>(), proptest::collection::vec(value(), 1..5))
                .prop_map(move |(is_opposite, values)| Node::Member(column, is_opposite, values)),
            1 => any::<bool>().prop_map(move |is_null| Node::Null(column, is_null)),
        ]
    })
}

fn node() -> impl Strategy<Value = Node> {
    leaf().prop_recursive(4, 24, 3, |inner| {
        let parts = || proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            parts().prop_map(Node::All),
            parts().prop_map(Node::Any),
            inner.clone().prop_map(|part| Node::Not(Box::new(part))),
        ]
    })
}

fn found(filter: &ValueFilter, batch: &RecordBatch) -> Vec<bool> {
    let matches = filter.evaluate(batch).unwrap();
    assert_eq!(matches.nulls(), None);
    matches.values().iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn rows_match_as_one_by_one(node in node(), rows in rows()) {
        let mut text = String::new();
        write_node(&mut text, &node);
        let batch = batch(&rows);
        let filter = ValueFilter::parse(&text).unwrap();
        filter.check(&batch.schema()).unwrap();
        let expected: Vec<bool> = rows.iter().map(|row| matches(&node, row, false)).collect();
        prop_assert_eq!(found(&filter, &batch), expected, "{}", &text);
        // A batch that begins in the middle of its arrays.
        let half = batch.num_rows() / 2;
        let rest = batch.slice(half, batch.num_rows() - half);
        let expected: Vec<bool> = rows[half..].iter().map(|row| matches(&node, row, false)).collect();
        prop_assert_eq!(found(&filter, &rest), expected, "{}", &text);
    }

    #[test]
    fn no_text_makes_it_panic(text in r#"([ab0-9.xe_"'\\()\[\],<>=!&|+-]|and |or |not |in |None|val\(|attr\(| ){0,24}"#) {
        check_position(&text);
    }

    #[test]
    fn no_character_makes_it_panic(text in any::<String>()) {
        check_position(&text);
    }

    #[test]
    fn a_filter_cut_short_or_spoiled_fails_at_its_place(node in node(), at in any::<prop::sample::Index>(), c in any::<char>()) {
        let mut text = String::new();
        write_node(&mut text, &node);
        let mut characters: Vec<char> = text.chars().collect();
        let at = at.index(characters.len());
        check_position(&characters[..at].iter().collect::<String>());
        characters[at] = c;
        check_position(&characters.iter().collect::<String>());
    }
}

/// An invalid text fails at one of its characters, or at its end.
fn check_position(text: &str) {
    match ValueFilter::parse(text) {
        Ok(filter) => {
            filter.columns();
            filter.check(&Schema::empty()).unwrap_err();
        }
        Err(soma_io::Error::ValueFilter { position, problem, .. }) => {
            assert!((1..=text.chars().count() + 1).contains(&position), "{position} {text:?}");
            assert!(!problem.contains('\n'), "{problem}");
        }
        Err(other) => panic!("{other}"),
    }
}
