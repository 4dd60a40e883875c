//! Conditions: trees of comparisons, as a delete commit stores them.
//!
//! Specification: `format_spec/delete_commit_file.md`. Sets are not in it: the offsets of their
//! values follow the values (`query/deletes_and_updates/serialization.cc`). The stored condition is
//! the negation of the one by which cells are deleted: cells that meet it stay. Values of
//! enumerated attributes are codes, because libtiledb looks names up before it writes the
//! condition.

use std::collections::HashSet;

use crate::cursor::Cursor;
use crate::datatype::{Datatype, Number};
use crate::error::Fault;
use crate::schema::{Schema, VARIABLE};

/// The most levels of a tree. Each AND or OR within another one takes a level.
const MAX_DEPTH: usize = 256;

/// A condition, with its fields as indices: the dimensions first, then the attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    Comparison(Comparison),
    And(Vec<Self>),
    Or(Vec<Self>),
}

/// A comparison of a field with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) field: usize,
    pub(crate) test: Test,
    /// How values are compared.
    pub(crate) kind: Kind,
}

/// The test that a cell's value must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Test {
    Order(Operator, Vec<u8>),
    In(HashSet<Vec<u8>>),
    NotIn(HashSet<Vec<u8>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// How the values of a field are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Number(Number),
    /// Byte by byte; the shorter of two that are otherwise equal is the lesser.
    Text,
    /// By the first character alone, as libtiledb compares characters of fixed number.
    Character,
}

/// Why a stored condition is not evaluated here.
#[derive(Debug)]
pub(crate) enum Refusal {
    Damaged(Fault),
    /// libtiledb refuses such conditions, or defines no result.
    Invalid(String),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Damaged(fault)
    }
}

impl Condition {
    /// Parses the unfiltered tile of a delete commit, for an array with `schema`.
    pub(crate) fn parse(bytes: &[u8], schema: &Schema) -> Result<Self, Refusal> {
        node(&mut Cursor::new(bytes), schema, MAX_DEPTH)
    }

    /// Calls `each` with the index of every field that is compared.
    pub(crate) fn fields(&self, each: &mut impl FnMut(usize)) {
        match self {
            Self::Comparison(comparison) => each(comparison.field),
            Self::And(children) | Self::Or(children) => {
                for child in children {
                    child.fields(each);
                }
            }
        }
    }
}

fn node(cursor: &mut Cursor<'_>, schema: &Schema, depth: usize) -> Result<Condition, Refusal> {
    let at = cursor.at();
    match cursor.u8("the type of a condition's node")? {
        0 => expression(cursor, schema, depth),
        1 => comparison(cursor, schema).map(Condition::Comparison),
        other => Err(Fault::at(at, format!("a condition's node of type {other}")).into()),
    }
}

fn expression(
    cursor: &mut Cursor<'_>,
    schema: &Schema,
    depth: usize,
) -> Result<Condition, Refusal> {
    let depth = depth
        .checked_sub(1)
        .ok_or_else(|| Refusal::Invalid(format!("it has more than {MAX_DEPTH} levels")))?;
    let at = cursor.at();
    let combine = match cursor.u8("how a condition's nodes are combined")? {
        0 => Condition::And,
        1 => Condition::Or,
        2 => return Err(Refusal::Invalid("it negates a condition".to_owned())),
        other => return Err(Fault::at(at, format!("a combination of type {other}")).into()),
    };
    let n_children = cursor.u64("the number of a condition's nodes")?;
    if n_children < 2 {
        return Err(Refusal::Invalid(format!("it combines {n_children} conditions")));
    }
    let mut children = Vec::new();
    for _ in 0..n_children {
        children.push(node(cursor, schema, depth)?);
    }
    Ok(combine(children))
}

fn comparison(cursor: &mut Cursor<'_>, schema: &Schema) -> Result<Comparison, Refusal> {
    let at = cursor.at();
    let operator = cursor.u8("a comparison's operator")?;
    let name = cursor.name("the name of a condition's field")?;
    let value = bytes(cursor, "a condition's value")?;
    let field = Field::find(schema, &name)?;
    let order = |operator| {
        field.check_value(value)?;
        Ok::<_, Refusal>(Test::Order(operator, value.to_vec()))
    };
    let test = match operator {
        0 => order(Operator::Less)?,
        1 => order(Operator::LessOrEqual)?,
        2 => order(Operator::Greater)?,
        3 => order(Operator::GreaterOrEqual)?,
        4 => order(Operator::Equal)?,
        5 => order(Operator::NotEqual)?,
        6 => Test::In(field.members(cursor, value)?),
        7 => Test::NotIn(field.members(cursor, value)?),
        other => return Err(Fault::at(at, format!("a comparison of type {other}")).into()),
    };
    Ok(Comparison { field: field.idx, test, kind: field.kind })
}

/// Bytes after their length.
fn bytes<'a>(cursor: &mut Cursor<'a>, what: &str) -> Result<&'a [u8], Fault> {
    let len = cursor.u64(what)?;
    cursor.take(usize::try_from(len).unwrap_or(usize::MAX), what)
}

/// A field that can be compared.
struct Field<'a> {
    idx: usize,
    name: &'a str,
    kind: Kind,
    /// Bytes of a cell; `None` if it may have any number.
    cell_bytes: Option<usize>,
    is_enumerated: bool,
}

impl<'a> Field<'a> {
    /// The field with this name; refuses the types that libtiledb does not compare.
    fn find(schema: &Schema, name: &'a str) -> Result<Self, Refusal> {
        let dimensions = schema.dimensions.iter();
        let dimensions = dimensions.map(|one| (&one.name, one.datatype, one.values_per_cell, None));
        let attributes = schema
            .attributes
            .iter()
            .map(|one| (&one.name, one.datatype, one.values_per_cell, one.enumeration.as_deref()));
        let mut fields = dimensions.chain(attributes).enumerate();
        let Some((idx, (_, datatype, values_per_cell, enumeration))) =
            fields.find(|(_, (of_field, ..))| *of_field == name)
        else {
            return Err(Refusal::Invalid(format!("the array has no field `{name}`")));
        };
        let refused = || {
            let datatype = datatype.name();
            Refusal::Invalid(format!("field `{name}` of type {datatype} cannot be compared"))
        };
        let kind = Kind::for_datatype(datatype, values_per_cell).ok_or_else(refused)?;
        let value_bytes = datatype.size().ok_or_else(refused)?;
        let cell_bytes = (values_per_cell != VARIABLE)
            .then(|| value_bytes.saturating_mul(values_per_cell as usize));
        Ok(Self { idx, name, kind, cell_bytes, is_enumerated: enumeration.is_some() })
    }

    /// Fails if the field's cells cannot be compared with `value`. A null is stored like an empty
    /// text.
    fn check_value(&self, value: &[u8]) -> Result<(), Refusal> {
        let Kind::Number(number) = self.kind else { return Ok(()) };
        if value.len() == number.size() {
            return Ok(());
        }
        let (name, n_bytes) = (self.name, value.len());
        Err(Refusal::Invalid(format!("field `{name}` is compared with {n_bytes} bytes")))
    }

    /// Reads the places of a set's values, and returns the values.
    fn members(&self, cursor: &mut Cursor<'_>, data: &[u8]) -> Result<HashSet<Vec<u8>>, Refusal> {
        let invalid = |what: &str| Refusal::Invalid(format!("a set for `{}` {what}", self.name));
        let offsets = bytes(cursor, "the places of a set's values")?;
        let (offsets, rest) = offsets.as_chunks::<8>();
        if data.is_empty() || offsets.is_empty() || !rest.is_empty() {
            return Err(invalid("has no values"));
        }
        let place =
            |offset: &[u8; 8]| usize::try_from(u64::from_le_bytes(*offset)).unwrap_or(usize::MAX);
        let ends = offsets.iter().skip(1).map(place).chain([data.len()]);
        let mut members = HashSet::new();
        for (start, end) in offsets.iter().map(place).zip(ends) {
            let member = data.get(start..end).ok_or_else(|| invalid("has values out of place"))?;
            let is_other_size = self.cell_bytes.is_some_and(|bytes| bytes != member.len());
            if is_other_size && !self.is_enumerated {
                return Err(invalid("has values of another size"));
            }
            members.insert(member.to_vec());
        }
        Ok(members)
    }
}

impl Kind {
    /// How libtiledb compares values of this type; `None` if it does not.
    fn for_datatype(datatype: Datatype, values_per_cell: u32) -> Option<Self> {
        match datatype.0 {
            // Characters, ASCII and UTF-8.
            4 if values_per_cell != VARIABLE => Some(Self::Character),
            4 | 11 | 12 => Some(Self::Text),
            // Other texts, "any" and blobs.
            13..=17 | 40 | 42 | 43 => None,
            _ if values_per_cell != 1 => None,
            _ => datatype.number().map(Self::Number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Attribute, Dimension};

    fn schema() -> Schema {
        let dimension = |name: &str| Dimension {
            name: name.to_owned(),
            datatype: Datatype::INT64,
            values_per_cell: 1,
            filters: Vec::new(),
            domain: Some((0, 9)),
            extent: None,
        };
        let attribute = |name: &str, datatype, values_per_cell| Attribute {
            name: name.to_owned(),
            datatype,
            values_per_cell,
            filters: Vec::new(),
            nullable: false,
            fill: None,
            fill_is_valid: true,
            enumeration: None,
        };
        Schema {
            version: 22,
            allows_duplicates: false,
            is_dense: false,
            orders: (0, 0),
            capacity: 10,
            coords_filters: Vec::new(),
            offsets_filters: Vec::new(),
            validity_filters: Vec::new(),
            dimensions: vec![dimension("row")],
            attributes: vec![
                attribute("text", Datatype::UTF8, VARIABLE),
                attribute("pair", Datatype::INT32, 2),
            ],
            current_domain: None,
            enumerations: Vec::new(),
        }
    }

    fn value(operator: u8, name: &str, value: &[u8], offsets: &[u64]) -> Vec<u8> {
        let mut out = vec![1, operator];
        out.extend((name.len() as u32).to_le_bytes());
        out.extend(name.as_bytes());
        out.extend((value.len() as u64).to_le_bytes());
        out.extend(value);
        if operator >= 6 {
            out.extend((offsets.len() as u64 * 8).to_le_bytes());
            out.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
        }
        out
    }

    fn expression(combination: u8, children: &[Vec<u8>]) -> Vec<u8> {
        let mut out = vec![0, combination];
        out.extend((children.len() as u64).to_le_bytes());
        out.extend(children.concat());
        out
    }

    #[test]
    fn trees_come_back() {
        let five = 5_i64.to_le_bytes();
        let stored =
            expression(0, &[value(3, "row", &five, &[]), value(7, "text", b"B cellT", &[0, 6, 6])]);
        let found = Condition::parse(&stored, &schema()).unwrap();
        let Condition::And(children) = &found else { panic!("{found:?}") };
        let Condition::Comparison(row) = &children[0] else { panic!("{found:?}") };
        assert_eq!((row.field, row.kind), (0, Kind::Number(Number::I64)));
        assert_eq!(row.test, Test::Order(Operator::GreaterOrEqual, five.to_vec()));
        let Condition::Comparison(text) = &children[1] else { panic!("{found:?}") };
        let names = [&b"B cell"[..], b"", b"T"].map(<[u8]>::to_vec);
        assert_eq!((text.field, &text.test), (1, &Test::NotIn(HashSet::from(names))));
        let mut fields = Vec::new();
        found.fields(&mut |field| fields.push(field));
        assert_eq!(fields, [0, 1]);
    }

    #[test]
    fn what_cannot_be_evaluated_is_refused() {
        let row = || value(4, "row", &5_i64.to_le_bytes(), &[]);
        let nested = (0..=MAX_DEPTH)
            .fold(row(), |inner, level| expression((level % 2) as u8, &[row(), inner]));
        for invalid in [
            value(4, "row", &5_i32.to_le_bytes(), &[]),
            value(4, "row", &[], &[]),
            value(4, "pair", &5_i64.to_le_bytes(), &[]),
            value(4, "gone", &5_i64.to_le_bytes(), &[]),
            value(6, "row", &[0; 12], &[0, 8]),
            value(6, "text", b"", &[]),
            value(6, "text", b"abc", &[2, 1]),
            expression(0, &[row()]),
            expression(2, &[row(), row()]),
            nested,
        ] {
            let found = Condition::parse(&invalid, &schema());
            assert!(matches!(found, Err(Refusal::Invalid(_))), "{found:?}");
        }
    }

    #[test]
    fn damage_is_an_error() {
        let stored =
            expression(1, &[value(4, "text", b"a", &[]), value(6, "text", b"ab", &[0, 1])]);
        for len in 0..stored.len() {
            let found = Condition::parse(&stored[..len], &schema());
            assert!(matches!(found, Err(Refusal::Damaged(_))), "{len}: {found:?}");
        }
        for (at, byte) in [(0, 2), (1, 3), (11, 8)] {
            let mut damaged = stored.clone();
            damaged[at] = byte;
            let found = Condition::parse(&damaged, &schema());
            assert!(matches!(found, Err(Refusal::Damaged(_))), "{at}: {found:?}");
        }
    }
}
