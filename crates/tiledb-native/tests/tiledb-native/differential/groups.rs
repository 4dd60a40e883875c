//! Groups, metadata and enumerations, written by libtiledb and read by both.

use std::path::Path;
use std::sync::Arc;

use storage::{LocalStorage, Storage};
use tiledb::{
    Array as TiledbArray, Attribute, Context, Datatype, Enumeration, EnumerationValues,
    Group as TiledbGroup, MetadataValue, ObjectType,
};
use tiledb_native::{ArrayDescription, Error, Group, object_type};

use super::written::{context, plain};

fn storage(at: &Path) -> Arc<dyn Storage> {
    Arc::new(LocalStorage::new(at))
}

/// Values of every kind that metadata have.
fn values() -> Vec<(&'static str, MetadataValue)> {
    let bytes = |datatype, n_values, bytes: &[u8]| MetadataValue::Bytes {
        datatype,
        n_values,
        bytes: bytes.to_vec(),
    };
    vec![
        ("text", MetadataValue::from("SOMAExperiment")),
        ("none", MetadataValue::from("")),
        ("umlaut \u{e4}", MetadataValue::from("\u{1f9ec} DNA")),
        ("integer", MetadataValue::from(-5)),
        ("float", MetadataValue::Float(0.1)),
        ("flag", bytes(Datatype::Bool, 1, &[1])),
        ("list", bytes(Datatype::Int64, 2, &[7; 16])),
        ("small", bytes(Datatype::UInt16, 3, &[1, 0, 2, 0, 3, 0])),
        ("blob", bytes(Datatype::Blob, 5, b"\0\xff\x01\x02\x03")),
        ("ascii", bytes(Datatype::StringAscii, 3, b"abc")),
        ("date", bytes(Datatype::DateTimeMillisecond, 1, &[9; 8])),
    ]
}

/// Compares the group at `at` at `timestamp`.
fn check_group(context: &Context, at: &Path, timestamp: Option<u64>) -> Group {
    let ours = Group::open(storage(at), timestamp).unwrap();
    let theirs = TiledbGroup::open(context, at.to_str().unwrap(), timestamp).unwrap();
    let mut members = theirs.members().unwrap();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    let named: Vec<_> = members.iter().map(|member| (member.name.as_str(), member.kind)).collect();
    let found: Vec<_> =
        ours.members().iter().map(|member| (member.name.as_str(), member.kind)).collect();
    assert_eq!(found, named, "at {timestamp:?}");
    for (member, theirs) in ours.members().iter().zip(&members) {
        assert!(member.is_relative && theirs.uri.ends_with(&member.uri), "{member:?}, {theirs:?}");
    }
    assert_eq!(ours.metadata(), theirs.metadata().unwrap(), "at {timestamp:?}");
    ours
}

#[test]
fn groups_have_their_members_and_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("group");
    let (context, uri) = (context(), at.to_str().unwrap());
    assert_eq!(object_type(&storage(&at)).unwrap(), None);
    TiledbGroup::create(&context, uri).unwrap();
    assert_eq!(object_type(&storage(&at)).unwrap(), Some(ObjectType::Group));
    assert!(check_group(&context, &at, None).members().is_empty());
    plain((4, 4), vec![vec![(1, 2, 3)]]).write(&at.join("X"));
    assert_eq!(object_type(&storage(&at.join("X"))).unwrap(), Some(ObjectType::Array));
    for name in ["obs", "ms"] {
        TiledbGroup::create(&context, at.join(name).to_str().unwrap()).unwrap();
    }
    for names in [&["ms"][..], &["X", "obs"]] {
        let group = TiledbGroup::open_for_writing(&context, uri).unwrap();
        for name in names {
            group.add_relative(name).unwrap();
        }
        group.put_metadata("members", &MetadataValue::from(names.len() as i64)).unwrap();
        group.close().unwrap();
    }
    assert_eq!(check_group(&context, &at, None).members().len(), 3);
    assert!(check_group(&context, &at, Some(5)).members().is_empty());
    let group = TiledbGroup::open_for_writing(&context, uri).unwrap();
    for (key, value) in values() {
        group.put_metadata(key, &value).unwrap();
    }
    group.close().unwrap();
    assert_eq!(check_group(&context, &at, None).metadata().len(), values().len() + 1);
}

/// Metadata of an array at several times, consolidated, and vacuumed.
#[test]
fn metadata_of_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("array");
    let (context, uri) = (context(), at.to_str().unwrap());
    plain((4, 4), Vec::new()).write(&at);
    let check = |what: &str| {
        for timestamp in (0..8).map(Some).chain([None]) {
            let ours = ArrayDescription::open(storage(&at), timestamp).unwrap();
            let theirs = TiledbArray::open(&context, uri, timestamp).unwrap();
            let found = ours.metadata().unwrap();
            assert_eq!(found, theirs.metadata().unwrap(), "{what}, at {timestamp:?}");
        }
    };
    let put = |time: u64, entries: &[(&str, MetadataValue)]| {
        let array = TiledbArray::open_for_writing(&context, uri, Some(time)).unwrap();
        for (key, value) in entries {
            array.put_metadata(key, value).unwrap();
        }
        array.close().unwrap();
    };
    check("without any");
    put(1, &values());
    put(3, &[("text", MetadataValue::from(8)), ("more", MetadataValue::from("x"))]);
    put(5, &[("more", MetadataValue::from("y"))]);
    check("written");
    for mode in ["consolidated", "vacuumed", "appended"] {
        let upkeep = context
            .with(&[
                ("sm.consolidation.mode", "array_meta".to_owned()),
                ("sm.vacuum.mode", "array_meta".to_owned()),
            ])
            .unwrap();
        match mode {
            "consolidated" => TiledbArray::consolidate(&upkeep, uri).unwrap(),
            "vacuumed" => TiledbArray::vacuum(&upkeep, uri).unwrap(),
            _ => put(6, &[("text", MetadataValue::from("later"))]),
        }
        check(mode);
    }
}

#[test]
fn enumerations_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("array");
    let (context, uri) = (context(), at.to_str().unwrap());
    let named = |name: &str, datatype, values| Enumeration {
        name: name.to_owned(),
        datatype,
        ordered: name == "ordered",
        values,
    };
    let numbers: Vec<u8> = [3_i64, -1, 4].iter().flat_map(|value| value.to_le_bytes()).collect();
    let enumerations = vec![
        Enumeration::of_strings("texts", ["B cell", "", "T \u{e4} cell"]),
        Enumeration::of_strings("none", [""; 0]),
        Enumeration::of_strings("empty text", [""]),
        named("ordered", Datatype::Int64, EnumerationValues::Fixed(numbers)),
        named("flags", Datatype::Bool, EnumerationValues::Fixed(vec![0, 1])),
    ];
    let mut schema = plain((4, 4), Vec::new()).schema();
    for enumeration in &enumerations {
        schema.attributes.push(Attribute {
            enumeration: Some(enumeration.name.clone()),
            ..Attribute::new(&format!("of {}", enumeration.name), Datatype::Int32)
        });
    }
    schema.enumerations.clone_from(&enumerations);
    TiledbArray::create(&context, uri, &schema).unwrap();
    let ours = ArrayDescription::open(storage(&at), None).unwrap();
    let theirs = TiledbArray::open(&context, uri, None).unwrap();
    assert_eq!(ours.schema(), theirs.schema());
    for enumeration in &enumerations {
        let found = ours.enumeration(&enumeration.name).unwrap();
        assert_eq!(found, theirs.enumeration(&enumeration.name).unwrap());
        assert_eq!(&found, enumeration);
    }
    let missing = ours.enumeration("absent").unwrap_err();
    assert!(matches!(missing, Error::NoEnumeration { .. }), "{missing}");
}

#[test]
fn places_without_a_group_or_an_array_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let error = Group::open(storage(folder.path()), None).unwrap_err();
    assert!(matches!(error, Error::NotAGroup { .. }), "{error}");
    let error = ArrayDescription::open(storage(folder.path()), None).unwrap_err();
    assert!(matches!(error, Error::NotAnArray { .. }), "{error}");
    let at = folder.path().join("array");
    plain((4, 4), Vec::new()).write(&at);
    let error = Group::open(storage(&at), None).unwrap_err();
    assert!(matches!(error, Error::NotAGroup { .. }), "{error}");
}
