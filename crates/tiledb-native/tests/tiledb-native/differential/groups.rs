//! Groups, metadata and enumerations, written by libtiledb and read by both.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use storage::{LocalStorage, Storage};
use tiledb::{
    Array as TiledbArray, Attribute, Context, Datatype, Enumeration, EnumerationValues,
    Group as TiledbGroup, MetadataValue, ObjectType,
};
use tiledb_native::{ArrayDescription, Error, Group, GroupMember, object_type};

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

/// A member as both readers have it: name, absolute URI, kind. A member without a name has its URI
/// as name, as stored or absolute.
type Named = (String, String, Option<ObjectType>);

/// Compares the group at `at` at `timestamp`.
#[track_caller]
fn check_group(context: &Context, at: &Path, timestamp: Option<u64>) -> Group {
    let ours = Group::open(storage(at), timestamp).unwrap();
    let theirs = TiledbGroup::open(context, at.to_str().unwrap(), timestamp).unwrap();
    let root = format!("file://{}/", at.to_str().unwrap());
    let name = |name: &str| name.strip_prefix(&root).unwrap_or(name).to_owned();
    let members = theirs.members().unwrap().into_iter();
    let mut expected: Vec<Named> =
        members.map(|member| (name(&member.name), member.uri, member.kind)).collect();
    let place = |(name, uri, _): &Named| (name.clone(), uri.clone());
    expected.sort_by_key(place);
    let absolute = |member: &GroupMember| {
        if member.is_relative { format!("{root}{}", member.uri) } else { member.uri.clone() }
    };
    let members = ours.members().iter();
    let mut found: Vec<Named> =
        members.map(|member| (name(&member.name), absolute(member), member.kind)).collect();
    found.sort_by_key(place);
    assert_eq!(found, expected, "at {timestamp:?}");
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

/// The time, in milliseconds since 1970, after which everything written is later.
fn now() -> u64 {
    let millis = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let now = millis();
    while millis() <= now {
        std::thread::sleep(Duration::from_millis(1));
    }
    now
}

/// Changes a group, and returns a time after that.
fn change(context: &Context, at: &Path, change: impl FnOnce(&TiledbGroup)) -> u64 {
    let group = TiledbGroup::open_for_writing(context, at.to_str().unwrap()).unwrap();
    change(&group);
    group.close().unwrap();
    now()
}

/// Members by relative and absolute URIs, with and without names, removed and added again.
#[test]
fn members_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let [at, outside] = ["group", "outside"].map(|name| folder.path().join(name));
    let context = context();
    for group in [at.clone(), at.join("ms"), at.join("obs")] {
        TiledbGroup::create(&context, group.to_str().unwrap()).unwrap();
    }
    for array in [&at.join("X"), &outside] {
        plain((4, 4), vec![vec![(1, 2, 3)]]).write(array);
    }
    let [outside, ms] = [outside, at.join("ms")].map(|path| path.to_str().unwrap().to_owned());
    let mut times = vec![now()];
    let mut changed = |by: &dyn Fn(&TiledbGroup)| -> Vec<String> {
        times.push(change(&context, &at, by));
        let group = check_group(&context, &at, None);
        group.members().iter().map(|member| member.name.clone()).collect()
    };
    let all = changed(&|group| {
        group.add_relative("X").unwrap();
        group.add_member("obs", true, None).unwrap();
        group.add_member(&outside, false, Some("elsewhere")).unwrap();
        group.add_member(&ms, false, None).unwrap();
        group.add_member("absent", true, Some("later")).unwrap();
    });
    assert_eq!(all, ["X", "elsewhere", &format!("file://{ms}"), "later", "obs"]);
    let left = changed(&|group| {
        group.remove_member("obs").unwrap();
        group.remove_member("elsewhere").unwrap();
    });
    assert_eq!(left, ["X", &format!("file://{ms}"), "later"]);
    let left = changed(&|group| {
        group.remove_member("X").unwrap();
        group.remove_member(&ms).unwrap();
    });
    assert_eq!(left, ["later"]);
    let again = changed(&|group| {
        group.add_member("ms", true, Some("X")).unwrap();
        group.add_member("obs", true, None).unwrap();
        group.add_member(&outside, false, None).unwrap();
    });
    assert_eq!(again, ["X", &format!("file://{outside}"), "later", "obs"]);
    let group = check_group(&context, &at, None);
    let kinds: Vec<_> = group.members().iter().map(|member| member.kind).collect();
    let (group, array) = (Some(ObjectType::Group), Some(ObjectType::Array));
    assert_eq!(kinds, [group, array, None, group]);
    for time in times {
        check_group(&context, &at, Some(time));
    }
}

/// Metadata of a group, written several times, consolidated, vacuumed, and written again.
#[test]
fn metadata_of_a_group_are_consolidated() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("group");
    let (context, uri) = (context(), at.to_str().unwrap());
    TiledbGroup::create(&context, uri).unwrap();
    let mut times = vec![now()];
    let put = |entries: &[(&str, MetadataValue)]| {
        change(&context, &at, |group| {
            for (key, value) in entries {
                group.put_metadata(key, value).unwrap();
            }
        })
    };
    let check = |times: &[u64], what: &str| {
        assert!(at.join("__meta").is_dir(), "{what}");
        for time in times {
            check_group(&context, &at, Some(*time));
        }
        check_group(&context, &at, None).metadata().len()
    };
    times.push(put(&values()));
    times.push(put(&[("text", MetadataValue::from(8)), ("more", MetadataValue::from("x"))]));
    times.push(put(&[("more", MetadataValue::from("y"))]));
    let n_values = values().len() + 1;
    assert_eq!(check(&times, "written"), n_values);
    TiledbGroup::consolidate_metadata(&context, uri).unwrap();
    assert_eq!(check(&times, "consolidated"), n_values);
    TiledbGroup::vacuum_metadata(&context, uri).unwrap();
    assert_eq!(check(&times, "vacuumed"), n_values);
    times.push(put(&[("last", MetadataValue::from(1))]));
    assert_eq!(check(&times, "appended"), n_values + 1);
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
