//! Which cells meet a condition.
//!
//! The rules are those of libtiledb's `query_condition.cc`, also where they surprise: a null meets
//! no comparison, so that it meets neither a condition nor its negation; a cell from before an
//! attribute was added meets no comparison with it, and makes those before it in the same OR count
//! for nothing; an OR that is a direct part of another OR is combined with it by AND.

use std::cmp::Ordering;

use super::condition::{Comparison, Condition, Kind, Operator, Test};
use crate::datatype::Number;

/// The values of one field of some cells, little-endian.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldCells<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) places: Places<'a>,
    /// Whether each cell has a value, unless all have.
    pub(crate) validity: Option<&'a [u8]>,
}

/// Where the value of each cell is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Places<'a> {
    /// Values of this many bytes, one after another.
    Fixed(usize),
    /// The first byte of each value, and the end of the last.
    VarSized(&'a [usize]),
}

impl<'a> FieldCells<'a> {
    /// Cells of `n_bytes` bytes each, none of them null.
    pub(crate) fn fixed(bytes: &'a [u8], n_bytes: usize) -> Self {
        Self { bytes, places: Places::Fixed(n_bytes), validity: None }
    }

    /// The value of a cell; empty if there is no such cell.
    fn value(&self, cell: usize) -> &'a [u8] {
        let range = match self.places {
            Places::Fixed(n_bytes) => cell * n_bytes..(cell + 1) * n_bytes,
            Places::VarSized(offsets) => match offsets.get(cell..cell + 2) {
                Some([start, end]) => *start..*end,
                _ => 0..0,
            },
        };
        self.bytes.get(range).unwrap_or_default()
    }

    fn is_valid(&self, cell: usize) -> bool {
        self.validity.is_none_or(|validity| validity.get(cell).is_some_and(|byte| *byte != 0))
    }
}

/// The fields of some cells, in the order of the schema: `None` for those that the cells' fragment
/// does not have, or that no condition compares.
pub(crate) type Fields<'a> = [Option<FieldCells<'a>>];

/// How the result of a condition joins that of the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    And,
    Or,
}

/// Clears those of `kept` whose cells do not meet `condition`.
pub(super) fn keep_matching(condition: &Condition, fields: &Fields<'_>, kept: &mut [bool]) {
    apply(condition, fields, Join::And, kept);
}

/// Clears those of `kept` whose cells do not meet `condition` and are not later than `time`.
pub(super) fn keep_matching_or_later(
    condition: &Condition,
    (times, time): (&[u64], u64),
    fields: &Fields<'_>,
    kept: &mut [bool],
) {
    let mut met: Vec<bool> = times.iter().map(|of_cell| *of_cell > time).collect();
    match condition {
        Condition::Or(children) => {
            apply_all(children, fields, Join::Or, &mut met);
        }
        other => apply(other, fields, Join::Or, &mut met),
    }
    join(Join::And, &met, kept);
}

/// Applies one condition after another.
fn apply_all(conditions: &[Condition], fields: &Fields<'_>, how: Join, met: &mut [bool]) {
    for condition in conditions {
        apply(condition, fields, how, met);
    }
}

fn apply(condition: &Condition, fields: &Fields<'_>, how: Join, met: &mut [bool]) {
    match condition {
        Condition::Comparison(comparison) => compare(comparison, fields, how, met),
        Condition::And(children) if how == Join::And => {
            apply_all(children, fields, Join::And, met);
        }
        Condition::And(children) => {
            let mut all = vec![true; met.len()];
            apply_all(children, fields, Join::And, &mut all);
            join(Join::Or, &all, met);
        }
        Condition::Or(children) => {
            let mut any = vec![false; met.len()];
            apply_all(children, fields, Join::Or, &mut any);
            join(Join::And, &any, met);
        }
    }
}

fn join(how: Join, of_part: &[bool], met: &mut [bool]) {
    for (met, of_part) in met.iter_mut().zip(of_part) {
        match how {
            Join::And => *met &= of_part,
            Join::Or => *met |= of_part,
        }
    }
}

fn compare(comparison: &Comparison, fields: &Fields<'_>, how: Join, met: &mut [bool]) {
    let Some(cells) = fields.get(comparison.field).and_then(Option::as_ref) else {
        met.fill(false);
        return;
    };
    for (cell, met) in met.iter_mut().enumerate() {
        // Where the cell's own value cannot change the result, it is not looked at.
        if *met == (how == Join::And) {
            *met = cells.is_valid(cell) && comparison.is_met(cells.value(cell));
        }
    }
}

impl Comparison {
    fn is_met(&self, value: &[u8]) -> bool {
        match &self.test {
            Test::In(members) => members.contains(value),
            Test::NotIn(members) => !members.contains(value),
            Test::Order(operator, other) => operator.holds(self.kind.order(value, other)),
        }
    }
}

impl Operator {
    /// Whether values in this order pass; NaN is in no order with any value.
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
        }
    }
}

impl Kind {
    fn order(self, one: &[u8], other: &[u8]) -> Option<Ordering> {
        let first = |text: &[u8]| text.first().map_or(0, |byte| byte.cast_signed());
        match self {
            Self::Text => Some(one.cmp(other)),
            Self::Character => Some(first(one).cmp(&first(other))),
            Self::Number(number) => number_order(number, word(one), word(other)),
        }
    }
}

/// The first eight bytes as a little-endian number, with zeros for missing ones.
fn word(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(wide)
}

/// The order of the numbers in the low bytes of two words.
fn number_order(number: Number, one: u64, other: u64) -> Option<Ordering> {
    let signed = |bits: u32| {
        let extended = |word: u64| (word << (64 - bits)).cast_signed() >> (64 - bits);
        Some(extended(one).cmp(&extended(other)))
    };
    match number {
        Number::I8 => signed(8),
        Number::I16 => signed(16),
        Number::I32 => signed(32),
        Number::I64 => signed(64),
        Number::U8 | Number::U16 | Number::U32 | Number::U64 => Some(one.cmp(&other)),
        Number::F32 => f32::from_bits(one as u32).partial_cmp(&f32::from_bits(other as u32)),
        Number::F64 => f64::from_bits(one).partial_cmp(&f64::from_bits(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(field: usize, operator: Operator, value: i32) -> Condition {
        let test = Test::Order(operator, value.to_le_bytes().to_vec());
        Condition::Comparison(Comparison { field, test, kind: Kind::Number(Number::I32) })
    }

    fn bytes(values: &[i32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn kept(condition: &Condition, fields: &Fields<'_>, n_cells: usize) -> Vec<bool> {
        let mut kept = vec![true; n_cells];
        keep_matching(condition, fields, &mut kept);
        kept
    }

    #[test]
    fn numbers_compare_by_their_type() {
        let order = |number, one: &[u8], other: &[u8]| Kind::Number(number).order(one, other);
        assert_eq!(order(Number::I8, &[0xff], &[1]), Some(Ordering::Less));
        assert_eq!(order(Number::U8, &[0xff], &[1]), Some(Ordering::Greater));
        let nan = f32::NAN.to_le_bytes();
        assert_eq!(order(Number::F32, &nan, &nan), None);
        assert!(Operator::NotEqual.holds(None) && !Operator::Equal.holds(None));
        let zeros = [0.0_f64, -0.0].map(f64::to_le_bytes);
        assert_eq!(order(Number::F64, &zeros[0], &zeros[1]), Some(Ordering::Equal));
        assert_eq!(Kind::Text.order(b"ab", b"abc"), Some(Ordering::Less));
        assert_eq!(Kind::Text.order(b"\xff", b"a"), Some(Ordering::Greater));
        assert_eq!(Kind::Character.order(b"\xff", b"a"), Some(Ordering::Less));
    }

    #[test]
    fn nulls_and_missing_fields_meet_nothing() {
        let stored = bytes(&[1, 5, 9]);
        let cells = FieldCells { validity: Some(&[1, 0, 1]), ..FieldCells::fixed(&stored, 4) };
        let fields = [Some(cells), None];
        let small = || number(0, Operator::Less, 7);
        assert_eq!(kept(&small(), &fields, 3), [true, false, false]);
        let large = || number(0, Operator::GreaterOrEqual, 7);
        assert_eq!(kept(&large(), &fields, 3), [false, false, true]);
        let either = Condition::Or(vec![small(), large()]);
        assert_eq!(kept(&either, &fields, 3), [true, false, true]);
        let missing = || number(1, Operator::NotEqual, 0);
        assert!(kept(&Condition::Or(vec![missing(), small()]), &fields, 3)[0]);
        assert_eq!(kept(&Condition::Or(vec![small(), missing()]), &fields, 3), [false; 3]);
    }

    #[test]
    fn later_cells_stay() {
        let stored = bytes(&[1, 5, 9, 9]);
        let fields = [Some(FieldCells::fixed(&stored, 4))];
        let condition = number(0, Operator::Less, 7);
        let mut kept = [true, false, true, true];
        keep_matching_or_later(&condition, (&[1, 1, 1, 4], 3), &fields, &mut kept);
        assert_eq!(kept, [true, false, false, true]);
    }
}
