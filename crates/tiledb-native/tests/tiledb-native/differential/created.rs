//! Arrays and groups created by this crate: their files have the content of those that libtiledb
//! makes, except for times and random names, and libtiledb reads the same from them.

mod incomplete;

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tiledb::{
    Array, ArrayType, Attribute, CellOrder, Datatype, Dimension, Enumeration, EnumerationValues,
    Filter, Group, MetadataValue, ObjectType, Schema,
};
use tiledb_native::{Error, GroupMember, create_array, write_array_metadata, write_group};

use crate::differential::metadata::generic_file;
use crate::differential::written::context;

/// The time of everything that this crate writes.
const TIME: u64 = 9;

/// The files and folders below `folder`, with each time and random name as `x`.
fn tree(folder: &Path) -> Vec<String> {
    fn walk(folder: &Path, prefix: &str, out: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let name = match name.rsplit_once('_') {
                Some((_, end)) if name.len() > 32 && end.len() < 4 => format!("x_{end}"),
                _ if name.len() > 32 => "x".to_owned(),
                _ => name.to_owned(),
            };
            let name = format!("{prefix}/{name}");
            if path.is_dir() {
                walk(&path, &name, out);
            }
            out.push(name);
        }
    }
    let mut out = Vec::new();
    walk(folder, "", &mut out);
    out.sort();
    out
}

/// The only file in a folder.
fn only_file(folder: &Path) -> PathBuf {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.is_file()).collect();
    let file = files.pop().unwrap();
    assert!(files.is_empty(), "{files:?}");
    file
}

/// The content of a generic tile that is the only file of a folder, with the names of other files
/// in it, which are random, as zeros.
fn content(folder: &Path) -> Vec<u8> {
    let mut bytes = generic_file(&only_file(folder));
    let starts: Vec<usize> = (0..bytes.len().saturating_sub(36))
        .filter(|at| {
            let name = &bytes[*at..*at + 36];
            name.starts_with(b"__")
                && name.ends_with(b"_0")
                && name[2..34].iter().all(u8::is_ascii_hexdigit)
        })
        .collect();
    for start in starts {
        bytes[start..start + 36].fill(0);
    }
    bytes
}

fn dimension(filters: Vec<Filter>) -> Dimension {
    Dimension {
        name: "soma_joinid".into(),
        datatype: Datatype::Int64,
        domain: Some((0, 999)),
        tile_extent: Some(100),
        filters,
    }
}

fn schema(attributes: Vec<Attribute>) -> Schema {
    Schema {
        array_type: ArrayType::Sparse,
        dimensions: vec![dimension(vec![Filter::DoubleDelta(None), Filter::Zstd(19)])],
        attributes,
        tile_order: CellOrder::RowMajor,
        cell_order: CellOrder::RowMajor,
        capacity: 500,
        allows_duplicates: true,
        offsets_filters: vec![Filter::DoubleDelta(None), Filter::BitWidthReduction],
        coords_filters: Vec::new(),
        validity_filters: Vec::new(),
        current_domain: Some(vec![(0, 17)]),
        enumerations: Vec::new(),
    }
}

/// Creates the array with libtiledb and with this crate, and compares all files.
#[track_caller]
fn compare(schema: &Schema) {
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
    create_array(&ours, schema, TIME).unwrap();
    let context = context();
    Array::create(&context, theirs.to_str().unwrap(), schema).unwrap();
    assert_eq!(tree(&ours), tree(&theirs));
    let [of_ours, of_theirs] = [&ours, &theirs].map(|array| array.join("__schema"));
    assert_eq!(content(&of_ours), content(&of_theirs), "{schema:?}");
    if !schema.enumerations.is_empty() {
        let [ours, theirs] = [of_ours, of_theirs].map(|folder| folder.join("__enumerations"));
        assert_eq!(content(&ours), content(&theirs), "{schema:?}");
    }
    let open = |at: &Path| Array::open(&context, at.to_str().unwrap(), None).unwrap();
    let (ours, theirs) = (open(&ours), open(&theirs));
    assert_eq!(ours.schema(), theirs.schema());
    for enumeration in &schema.enumerations {
        assert_eq!(ours.enumeration(&enumeration.name).unwrap(), *enumeration);
    }
}

const FIXED: [Datatype; 16] = [
    Datatype::Int8,
    Datatype::UInt8,
    Datatype::Int16,
    Datatype::UInt16,
    Datatype::Int32,
    Datatype::UInt32,
    Datatype::Int64,
    Datatype::UInt64,
    Datatype::Float32,
    Datatype::Float64,
    Datatype::Bool,
    Datatype::DateTimeSecond,
    Datatype::DateTimeMillisecond,
    Datatype::DateTimeMicrosecond,
    Datatype::DateTimeNanosecond,
    Datatype::Char,
];

#[test]
fn attributes_of_every_type() {
    let fixed = FIXED.iter().enumerate().map(|(idx, datatype)| Attribute {
        nullable: idx % 2 == 0,
        var_sized: false,
        values_per_cell: if idx == 5 { 3 } else { 1 },
        ..Attribute::new(&format!("fixed_{idx}"), *datatype)
    });
    let texts = [Datatype::StringUtf8, Datatype::StringAscii, Datatype::Blob, Datatype::Char];
    let texts = texts.iter().enumerate().map(|(idx, datatype)| Attribute {
        nullable: idx % 2 == 1,
        ..Attribute::new(&format!("text_{idx}"), *datatype)
    });
    compare(&schema(fixed.chain(texts).collect()));
    compare(&schema(Vec::new()));
}

#[test]
fn every_filter() {
    let numbers = [
        Filter::None,
        Filter::Gzip(5),
        Filter::Zstd(-1),
        Filter::Zstd(19),
        Filter::Lz4(-1),
        Filter::Rle,
        Filter::Bzip2(3),
        Filter::DoubleDelta(None),
        Filter::DoubleDelta(Some(Datatype::Int64)),
        Filter::BitWidthReduction,
        Filter::BitWidthReductionWithin(1000),
        Filter::BitShuffle,
        Filter::ByteShuffle,
        Filter::PositiveDelta,
        Filter::ChecksumMd5,
        Filter::ChecksumSha256,
        Filter::Xor,
        Filter::Delta(None),
        Filter::Delta(Some(Datatype::Int64)),
    ];
    let number = |filter: &Filter| Attribute {
        filters: vec![*filter],
        ..Attribute::new("a", Datatype::Int64)
    };
    for filter in &numbers {
        compare(&schema(vec![number(filter)]));
        let every = vec![*filter];
        compare(&Schema {
            dimensions: vec![dimension(every.clone())],
            coords_filters: every.clone(),
            ..schema(vec![Attribute::new("a", Datatype::Int8)])
        });
    }
    let scale = Filter::ScaleFloat { byte_width: 2, factor: 0.5, offset: -3.0 };
    let float = Attribute { filters: vec![scale], ..Attribute::new("a", Datatype::Float64) };
    let text = Attribute {
        filters: vec![Filter::Dictionary],
        ..Attribute::new("b", Datatype::StringAscii)
    };
    compare(&Schema {
        offsets_filters: vec![Filter::PositiveDelta, Filter::Zstd(3)],
        validity_filters: vec![Filter::Zstd(4)],
        ..schema(vec![float, text])
    });
}

#[test]
fn orders_domains_and_extents() {
    let matrix = |datatype: Datatype, extent: Option<i128>| {
        let dimension = |name: &str| Dimension {
            name: name.into(),
            datatype,
            domain: Some((0, 99)),
            tile_extent: extent,
            filters: Vec::new(),
        };
        Schema {
            dimensions: vec![dimension("row"), dimension("column")],
            current_domain: None,
            offsets_filters: Vec::new(),
            allows_duplicates: false,
            ..schema(vec![Attribute::new("value", Datatype::Float32)])
        }
    };
    for datatype in [Datatype::Int64, Datatype::UInt64, Datatype::Int32, Datatype::UInt8] {
        compare(&matrix(datatype, Some(7)));
    }
    for order in [CellOrder::ColumnMajor, CellOrder::Hilbert] {
        compare(&Schema { cell_order: order, ..matrix(Datatype::Int64, None) });
    }
    compare(&Schema { tile_order: CellOrder::ColumnMajor, ..matrix(Datatype::Int64, Some(100)) });
    let mut signed = schema(vec![Attribute::new("value", Datatype::Float32)]);
    signed.dimensions[0].domain = Some((-50, i128::from(i64::MAX) - 101));
    signed.current_domain = Some(vec![(-50, 7)]);
    compare(&signed);
}

#[test]
fn enumerations_of_any_values() {
    let values = |values: &[&str]| {
        EnumerationValues::VarSized(values.iter().map(|value| value.as_bytes().to_vec()).collect())
    };
    let floats = [1.5_f64, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let long: Vec<String> = (0..20_000).map(|idx| format!("value {idx}")).collect();
    for (datatype, ordered, values) in [
        (Datatype::StringUtf8, false, values(&["B cell", "", "T cell ä"])),
        (Datatype::StringAscii, true, values(&["a"])),
        (Datatype::StringUtf8, false, values(&[])),
        (Datatype::Float64, true, EnumerationValues::Fixed(floats)),
        (Datatype::UInt8, false, EnumerationValues::Fixed(vec![3, 1, 2])),
        (Datatype::StringUtf8, false, values(&long.iter().map(String::as_str).collect::<Vec<_>>())),
    ] {
        let enumeration = Enumeration { name: "kinds".into(), datatype, ordered, values };
        let attribute = Attribute {
            enumeration: Some("kinds".into()),
            ..Attribute::new("kind", Datatype::Int32)
        };
        compare(&Schema { enumerations: vec![enumeration], ..schema(vec![attribute]) });
    }
}

#[test]
fn schemas_that_libtiledb_refuses_are_refused() {
    let kind = |datatype| Attribute {
        enumeration: Some("kinds".into()),
        ..Attribute::new("kind", datatype)
    };
    let kinds = |n: usize| Enumeration::of_strings("kinds", (0..n).map(|idx| idx.to_string()));
    let with = |enumeration: Enumeration, datatype| Schema {
        enumerations: vec![enumeration],
        ..schema(vec![kind(datatype)])
    };
    let with_dimension = |change: fn(&mut Dimension)| {
        let mut schema = schema(vec![Attribute::new("a", Datatype::Int8)]);
        schema.current_domain = None;
        change(&mut schema.dimensions[0]);
        schema
    };
    let a = || Attribute::new("a", Datatype::Int8);
    let cases = [
        (schema(vec![a(), a()]), "twice"),
        (schema(vec![Attribute::new("soma_joinid", Datatype::Int8)]), "twice"),
        (schema(vec![Attribute::new("__a", Datatype::Int8)]), "__a"),
        (schema(vec![kind(Datatype::Int8)]), "no enumeration"),
        (with(kinds(127), Datatype::Int8), "too few codes"),
        (with(kinds(3), Datatype::Float32), "one integer"),
        (with(Enumeration::of_strings("kinds", ["a", "a"]), Datatype::Int8), "twice"),
        (Schema { capacity: 0, ..schema(vec![a()]) }, "at least one cell"),
        (Schema { current_domain: Some(vec![(0, 1000)]), ..schema(vec![a()]) }, "1000"),
        (Schema { current_domain: Some(vec![]), ..schema(vec![a()]) }, "0 dimensions"),
        (with_dimension(|dimension| dimension.domain = Some((0, i64::MAX.into()))), "tile earlier"),
        (with_dimension(|dimension| dimension.tile_extent = Some(1001)), "1001"),
        (with_dimension(|dimension| dimension.domain = Some((5, 4))), "before it begins"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (idx, (schema, part)) in cases.iter().enumerate() {
        let at = folder.path().join(idx.to_string());
        let refused = create_array(&at, schema, TIME).unwrap_err();
        assert!(matches!(refused, Error::Schema { .. }), "{refused:?}");
        assert!(refused.to_string().contains(part), "{refused}");
        assert!(!at.exists());
        let context = context();
        assert!(Array::create(&context, at.to_str().unwrap(), schema).is_err(), "{part}");
    }
    let at = folder.path().join("twice");
    create_array(&at, &schema(vec![a()]), TIME).unwrap();
    let refused = create_array(&at, &schema(vec![a()]), TIME).unwrap_err();
    assert!(refused.to_string().contains("already"), "{refused}");
}

fn metadata() -> Vec<(&'static str, MetadataValue)> {
    let bytes = |datatype, n_values, bytes: &[u8]| MetadataValue::Bytes {
        datatype,
        n_values,
        bytes: bytes.to_vec(),
    };
    vec![
        ("soma_object_type", "SOMAExperiment".into()),
        ("empty", "".into()),
        ("number", (-5_i64).into()),
        ("float", MetadataValue::Float(0.25)),
        ("list", bytes(Datatype::Int32, 2, &[1, 0, 0, 0, 2, 0, 0, 0])),
        ("blob", bytes(Datatype::Blob, 3, &[7, 0, 9])),
    ]
}

#[test]
fn groups_and_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
    let context = context();
    for at in [&ours, &theirs] {
        create_array(at.join("obs"), &schema(vec![Attribute::new("a", Datatype::Int8)]), TIME)
            .unwrap();
        write_group(at.join("ms"), &[], &[], TIME).unwrap();
    }
    let array = ours.join("obs");
    write_array_metadata(&array, &metadata(), TIME).unwrap();
    let members = [
        GroupMember::inside("obs", ObjectType::Array),
        GroupMember::inside("ms", ObjectType::Group),
    ];
    write_group(&ours, &members, &metadata(), TIME).unwrap();
    let uri = theirs.to_str().unwrap();
    Group::create(&context, uri).unwrap();
    let group = Group::open_for_writing(&context, uri).unwrap();
    let open =
        Array::open_for_writing(&context, theirs.join("obs").to_str().unwrap(), None).unwrap();
    for (name, value) in metadata() {
        group.put_metadata(name, &value).unwrap();
        open.put_metadata(name, &value).unwrap();
    }
    open.close().unwrap();
    group.add_relative("obs").unwrap();
    group.add_relative("ms").unwrap();
    group.close().unwrap();
    assert_eq!(tree(&ours), tree(&theirs));
    for place in ["__group", "__meta", "obs/__meta"] {
        let [ours, theirs] = [&ours, &theirs].map(|at| content(&at.join(place)));
        assert_eq!(ours, theirs, "{place}");
    }
    let read = |at: &Path| Group::open(&context, at.to_str().unwrap(), None).unwrap();
    assert_eq!(read(&ours).metadata().unwrap(), read(&theirs).metadata().unwrap());
    assert_eq!(read(&ours).members().unwrap().len(), 2);
    assert!(read(&ours.join("ms")).members().unwrap().is_empty());
    let array = Array::open(&context, array.to_str().unwrap(), None).unwrap();
    assert_eq!(array.metadata().unwrap().len(), metadata().len());
    let refused = write_group(&ours, &members, &[], TIME).unwrap_err();
    assert!(matches!(refused, Error::Group { .. }), "{refused:?}");
    let twice = [members[0].clone(), members[0].clone()];
    let refused = write_group(ours.join("new"), &twice, &[], TIME).unwrap_err();
    assert!(refused.to_string().contains("twice"), "{refused}");
    let wrong = [("wrong", MetadataValue::Integer(1 << 64))];
    let refused = write_array_metadata(ours.join("obs"), &wrong, TIME).unwrap_err();
    assert!(matches!(refused, Error::Metadata { .. }), "{refused:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_schema(
        n_attributes in 0_usize..6,
        picks in prop::collection::vec((0..FIXED.len() - 1, any::<bool>(), any::<bool>()), 6),
        bounds in (-1000_i64..1000, 1_i64..5000, 1_i64..300),
        (capacity, allows_duplicates) in (1_u64..100_000, any::<bool>()),
    ) {
        let attribute = |(idx, (kind, nullable, text)): (usize, &(usize, bool, bool))| Attribute {
            nullable: *nullable,
            filters: vec![Filter::ByteShuffle, Filter::Zstd(9)],
            ..Attribute::new(&format!("a{idx}"), if *text { Datatype::StringUtf8 } else { FIXED[*kind] })
        };
        let (first, n, extent) = bounds;
        let mut schema = schema(picks.iter().take(n_attributes).enumerate().map(attribute).collect());
        schema.dimensions[0].domain = Some((first.into(), (first + n - 1).into()));
        schema.dimensions[0].tile_extent = Some(extent.min(n).into());
        schema.current_domain = Some(vec![(first.into(), (first + n / 2).min(first + n - 1).into())]);
        compare(&Schema { capacity, allows_duplicates, ..schema });
    }
}
