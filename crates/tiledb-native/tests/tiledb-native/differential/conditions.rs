//! Random conditions by which cells are deleted.

use tiledb::{Attribute, Comparison, Condition, Datatype, Schema};

use super::histories::draw::Draw;

const COMPARISONS: [Comparison; 6] = [
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
    Comparison::Equal,
    Comparison::NotEqual,
];

/// A condition on the fields of `schema`; `coordinates` and `numbers` are likely values of the
/// dimensions and the attributes.
pub(super) fn condition(
    draw: &mut Draw,
    schema: &Schema,
    coordinates: &[u64],
    numbers: &[i128],
) -> Condition {
    if draw.chance(25) {
        // Whole rows, as tiledbsoma deletes those of an axis.
        let rows = Schema { dimensions: schema.dimensions[..1].to_vec(), ..schema.clone() };
        let rows = Schema { attributes: Vec::new(), ..rows };
        let both = [0, 1].map(|_| leaf(draw, &rows, (coordinates, numbers)));
        let [one, other] = both;
        return if draw.chance(50) { one.and(other) } else { one };
    }
    tree(draw, schema, (coordinates, numbers), 3)
}

fn tree(draw: &mut Draw, schema: &Schema, values: (&[u64], &[i128]), depth: usize) -> Condition {
    if depth == 0 || draw.chance(60) {
        return leaf(draw, schema, values);
    }
    let left = tree(draw, schema, values, depth - 1);
    let right = tree(draw, schema, values, depth - 1);
    if draw.chance(50) { left.and(right) } else { left.or(right) }
}

fn leaf(draw: &mut Draw, schema: &Schema, (coordinates, numbers): (&[u64], &[i128])) -> Condition {
    // libtiledb does not compare blobs.
    let attributes: Vec<&Attribute> =
        schema.attributes.iter().filter(|one| one.datatype != Datatype::Blob).collect();
    let is_coordinate = attributes.is_empty() || draw.chance(40);
    let value = |draw: &mut Draw| {
        if is_coordinate {
            i128::from(draw.pick(coordinates))
        } else {
            draw.pick(numbers) + i128::from(draw.within(0..3)) - 1
        }
    };
    let (name, datatype) = if is_coordinate {
        let dimension = &schema.dimensions[draw.below(schema.dimensions.len())];
        (&dimension.name, dimension.datatype)
    } else {
        let attribute = attributes[draw.below(attributes.len())];
        (&attribute.name, attribute.datatype)
    };
    let n_members = if draw.chance(30) { draw.within(1..6) } else { 1 };
    let values: Vec<i128> = (0..n_members).map(|_| value(draw)).collect();
    if datatype.is_string() {
        return text(draw, name, n_members as usize);
    }
    number(draw, name, datatype, &values)
}

/// Texts like those that are written: letters that follow each other, or none.
fn text(draw: &mut Draw, name: &str, n_members: usize) -> Condition {
    let texts: Vec<String> = (0..n_members)
        .map(|_| {
            let (first, len) = (draw.within(97..120) as u8, draw.below(9));
            (0..len).map(|idx| char::from(first + (idx % 3) as u8)).collect()
        })
        .collect();
    // libtiledb does not take a set of empty texts alone.
    if n_members == 1 || texts.iter().all(String::is_empty) {
        return Condition::text(name, draw.pick(&COMPARISONS), &texts[0]);
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Condition::text_members(name, draw.chance(50), &texts)
}

fn number(draw: &mut Draw, name: &str, datatype: Datatype, values: &[i128]) -> Condition {
    macro_rules! typed {
        ($rust:ty) => {{
            let values: Vec<$rust> = values.iter().map(|value| *value as $rust).collect();
            if values.len() == 1 {
                Condition::new(name, draw.pick(&COMPARISONS), values[0])
            } else {
                Condition::members(name, draw.chance(50), &values)
            }
        }};
    }
    macro_rules! floats {
        ($rust:ty) => {{
            let special =
                [<$rust>::NAN, -<$rust>::NAN, -0.0, 0.0, <$rust>::INFINITY, -<$rust>::INFINITY];
            let is_special: Vec<bool> = values.iter().map(|_| draw.chance(30)).collect();
            let floats = values.iter().zip(is_special).map(|(value, is_special)| {
                if is_special { draw.pick(&special) } else { *value as $rust }
            });
            let values: Vec<$rust> = floats.collect();
            if values.len() == 1 {
                Condition::new(name, draw.pick(&COMPARISONS), values[0])
            } else {
                Condition::members(name, draw.chance(50), &values)
            }
        }};
    }
    match datatype {
        Datatype::Int8 => typed!(i8),
        Datatype::UInt8 | Datatype::Bool => typed!(u8),
        Datatype::Int16 => typed!(i16),
        Datatype::UInt16 => typed!(u16),
        Datatype::Int32 => typed!(i32),
        Datatype::UInt32 => typed!(u32),
        Datatype::UInt64 => typed!(u64),
        Datatype::Float32 => floats!(f32),
        Datatype::Float64 => floats!(f64),
        _ => typed!(i64),
    }
}
