//! Arrays and groups that could not be written whole: they are none, and the call can be repeated.

use std::path::Path;
use std::sync::Arc;

use storage::{LocalStorage, Storage};
use tiledb::{Attribute, Datatype, Enumeration, EnumerationValues, Group, ObjectType, Schema};
use tiledb_native::{
    Error, GroupMember, create_array, object_type, write_array_metadata, write_group,
};

use super::{TIME, metadata, schema, tree};
use crate::differential::written::context;

fn kind_of(at: &Path) -> Option<ObjectType> {
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(at));
    object_type(&storage).unwrap()
}

/// A file in the way makes a write fail. Nothing is then an array or a group, and without the file
/// the same call succeeds.
#[test]
fn what_failed_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let [array, group, fresh] = ["array", "group", "fresh"].map(|name| folder.path().join(name));
    let schema = Schema {
        enumerations: vec![Enumeration::of_strings("kinds", ["a", "b"])],
        ..schema(vec![Attribute::new("a", Datatype::Int8)])
    };
    let members = [GroupMember::inside("obs", ObjectType::Array)];
    let write = |at: &Path| {
        if at == array {
            create_array(at, &schema, TIME)
        } else {
            write_group(at, &members, &metadata(), TIME)
        }
    };
    for (at, obstacle) in [(&array, "__labels"), (&group, "__meta")] {
        std::fs::create_dir(at).unwrap();
        std::fs::write(at.join(obstacle), b"in the way").unwrap();
        let failed = write(at).unwrap_err();
        assert!(matches!(failed, Error::Storage(_)), "{failed}");
        assert_eq!(kind_of(at), None, "{obstacle}");
        std::fs::remove_file(at.join(obstacle)).unwrap();
        write(at).unwrap();
    }
    assert_eq!(
        (kind_of(&array), kind_of(&group)),
        (Some(ObjectType::Array), Some(ObjectType::Group))
    );
    create_array(fresh.join("array"), &schema, TIME).unwrap();
    write_group(fresh.join("group"), &members, &metadata(), TIME).unwrap();
    assert_eq!(tree(&array), tree(&fresh.join("array")));
    assert_eq!(tree(&group), tree(&fresh.join("group")));
}

#[test]
fn a_group_has_no_metadata_of_an_incomplete_one_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("group");
    // A killed call leaves metadata where there is no group.
    write_array_metadata(&at, &[("stale", 1_i64.into())], TIME).unwrap();
    write_group(&at, &[], &metadata(), TIME).unwrap();
    let group = Group::open(&context(), at.to_str().unwrap(), None).unwrap();
    assert_eq!(group.metadata().unwrap().len(), metadata().len());
    let array = folder.path().join("array");
    create_array(&array, &schema(vec![Attribute::new("a", Datatype::Int8)]), TIME).unwrap();
    let refused = write_group(&array, &[], &[], TIME).unwrap_err();
    assert!(matches!(refused, Error::Group { .. }), "{refused}");
    assert_eq!(kind_of(&array), Some(ObjectType::Array));
    // What is not metadata is not removed.
    let other = folder.path().join("other");
    std::fs::create_dir_all(other.join("__meta")).unwrap();
    std::fs::write(other.join("__meta/notes.txt"), b"mine").unwrap();
    let refused = write_group(&other, &[], &[], TIME).unwrap_err();
    assert!(refused.to_string().contains("__meta"), "{refused}");
    assert_eq!(std::fs::read(other.join("__meta/notes.txt")).unwrap(), b"mine");
}

/// The values are memory that is never touched.
#[test]
fn an_enumeration_that_could_not_be_read_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let attribute =
        Attribute { enumeration: Some("kinds".into()), ..Attribute::new("a", Datatype::Int8) };
    for values in [
        EnumerationValues::VarSized(vec![vec![0; 1 << 30]]),
        EnumerationValues::Fixed(vec![0; (1 << 30) + 1]),
    ] {
        let (name, datatype) = ("kinds".to_owned(), Datatype::Blob);
        let enumeration = Enumeration { name, datatype, ordered: false, values };
        let schema = Schema { enumerations: vec![enumeration], ..schema(vec![attribute.clone()]) };
        let refused = create_array(folder.path().join("array"), &schema, TIME).unwrap_err();
        assert!(refused.to_string().contains("kinds"), "{refused}");
        assert!(refused.to_string().contains("more than the 1073741824"), "{refused}");
    }
}
