//! Tests of the listing of an array's folders.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use storage::LocalStorage;

use super::*;

const UUID: &str = "70f1b2c0f0669ba097275f1a0db8dd1c";

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Checks the paths of the fragments that count at `timestamp` in a folder with `files`.
#[track_caller]
fn check(files: &[(&str, &str)], timestamp: u64, expect: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &format!("__schema/__1_1_{UUID}"), b"");
    for (path, text) in files {
        write(folder.path(), &path.replace("UUID", UUID), text.replace("UUID", UUID).as_bytes());
    }
    let files = Files::new(Arc::new(LocalStorage::new(folder.path())));
    let directory = Directory::load(&files, timestamp).unwrap();
    let paths: Vec<_> =
        directory.fragments.iter().map(|fragment| fragment.path.replace(UUID, "UUID")).collect();
    assert_eq!(paths, expect);
}

#[test]
fn commits_of_both_layouts() {
    let files = [
        ("__commits/__3_3_UUID_22.wrt", ""),
        ("__fragments/__9_9_UUID_22/d0.tdb", ""),
        ("__2_2_UUID_11.ok", ""),
        ("__8_8_UUID_11/d0.tdb", ""),
    ];
    check(&files, u64::MAX, &["__2_2_UUID_11", "__fragments/__3_3_UUID_22"]);
    check(&files, 2, &["__2_2_UUID_11"]);
    check(&files, 1, &[]);
}

#[test]
fn consolidated_commits_and_what_ignore_files_take_back() {
    let con = "__commits/__1_1_UUID_22.wrt\n__2_2_UUID_11.ok\n__commits/__3_3_UUID_22.wrt\n";
    let files = [
        ("__commits/__1_3_UUID_22.con", con),
        ("__commits/__3_3_UUID_22.ign", "__commits/__3_3_UUID_22.wrt\n"),
        ("__commits/__1_1_UUID_22.wrt", ""),
    ];
    check(&files, u64::MAX, &["__fragments/__1_1_UUID_22", "__2_2_UUID_11"]);
}

/// The order decides between cells of equal place and time, so it must be libtiledb's.
#[test]
fn fragments_of_one_time_in_the_order_of_their_commits() {
    let con = "__commits/__3_3_UUID_22.wrt\n";
    let files = [
        ("__3_3_UUID_11.ok", ""),
        ("__commits/__3_3_UUID_21.wrt", ""),
        ("__commits/__3_3_UUID_22.wrt", ""),
        ("__commits/__3_3_UUID_23.wrt", ""),
        ("__commits/__2_2_UUID_22.wrt", ""),
        ("__commits/__3_3_UUID_22.con", con),
    ];
    let expect = [
        "__fragments/__2_2_UUID_22",
        "__3_3_UUID_11",
        "__fragments/__3_3_UUID_22",
        "__fragments/__3_3_UUID_21",
        "__fragments/__3_3_UUID_23",
    ];
    check(&files, u64::MAX, &expect);
}

#[test]
fn vacuum_files_hide_what_was_consolidated() {
    let vac = "__fragments/__1_1_UUID_22\nfile:///elsewhere/array/__fragments/__2_2_UUID_22\n";
    let files = [
        ("__commits/__1_1_UUID_22.wrt", ""),
        ("__commits/__2_2_UUID_22.wrt", ""),
        ("__commits/__1_2_UUID_22.wrt", ""),
        ("__commits/__1_2_UUID_22.vac", vac),
    ];
    check(&files, u64::MAX, &["__fragments/__1_2_UUID_22"]);
    // Within the consolidated fragment's times, its cells' own times decide.
    check(&files, 1, &["__fragments/__1_2_UUID_22"]);
    check(&files, 0, &[]);
}

/// Consolidated fragments of format 14 have no cell times, so they count only from their last time
/// on.
#[test]
fn cells_of_format_14_have_no_times() {
    let files = [
        ("__commits/__1_1_UUID_14.wrt", ""),
        ("__commits/__2_2_UUID_14.wrt", ""),
        ("__commits/__1_2_UUID_14.wrt", ""),
        ("__commits/__1_2_UUID_14.vac", "__fragments/__1_1_UUID_14\n__fragments/__2_2_UUID_14\n"),
    ];
    check(&files, 1, &["__fragments/__1_1_UUID_14"]);
    check(&files, 2, &["__fragments/__1_2_UUID_14"]);
}

#[test]
fn vacuum_files_of_the_old_layout() {
    let files = [
        ("__1_1_UUID_10.ok", ""),
        ("__2_2_UUID_10.ok", ""),
        ("__1_2_UUID_10.ok", ""),
        ("__1_2_UUID_10.vac", "file:///old/place/__1_1_UUID_10\nfile:///old/place/__2_2_UUID_10\n"),
    ];
    check(&files, u64::MAX, &["__1_2_UUID_10"]);
    check(&files, 1, &["__1_1_UUID_10"]);
}

#[test]
fn conditions_count_from_their_time_on() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &format!("__schema/__1_1_{UUID}"), b"");
    let (delete, update) = (format!("__5_5_{UUID}_22.del"), format!("__7_7_{UUID}_22.upd"));
    let files = Files::new(Arc::new(LocalStorage::new(folder.path())));
    let load = |time| Directory::load(&files, time).unwrap();
    write(folder.path(), &format!("__commits/{delete}"), b"");
    assert_eq!(load(6).deletes, Vec::new(), "there are no cells");
    write(folder.path(), &format!("__commits/__1_1_{UUID}_22.wrt"), b"");
    write(folder.path(), &format!("__commits/{update}"), b"");
    let mut list = format!("__commits/{delete}\n").into_bytes();
    list.extend(2_u64.to_le_bytes());
    list.extend(b"\n\n");
    assert_eq!((load(4).deletes, load(6).obstacle), (Vec::new(), None));
    assert!(matches!(load(7).obstacle, Some(Unsupported::UpdateConditions { .. })));
    let alone = load(6).deletes;
    assert_eq!((alone.len(), alone[0].time, &alone[0].tile), (1, 5, &None));
    write(folder.path(), &format!("__commits/__5_5_{UUID}_22.con"), &list);
    let listed = load(6).deletes;
    assert_eq!((listed.len(), &listed[0].name), (1, &delete));
    assert_eq!(listed[0].tile.as_deref(), Some(&b"\n\n"[..]));
    assert_eq!(listed[0].offset, list.len() as u64 - 2);
}

#[test]
fn conditions_are_found_wherever_commits_have_them() {
    let has = |files: &[(&str, &str)], timestamp| {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(
                folder.path(),
                &path.replace("UUID", UUID),
                text.replace("UUID", UUID).as_bytes(),
            );
        }
        has_conditions(Arc::new(LocalStorage::new(folder.path())), timestamp).unwrap()
    };
    assert!(!has(&[("__commits/__1_1_UUID_22.wrt", "")], None));
    for suffix in ["del", "upd"] {
        let alone = format!("__commits/__5_5_UUID_22.{suffix}");
        assert!(has(&[(&alone, "")], None) && has(&[(&alone, "")], Some(5)));
        assert!(!has(&[(&alone, "")], Some(4)));
        let text = format!("__commits/__1_1_UUID_22.wrt\n{alone}\n\u{2}\0\0\0\0\0\0\0\n\n");
        let consolidated = ("__commits/__1_5_UUID_22.con", text.as_str());
        assert!(has(&[consolidated], None) && !has(&[consolidated], Some(4)));
        // Fragments are revoked when they are vacuumed; deletes are not.
        let ignored = ("__commits/__1_5_UUID_22.ign", alone.as_str());
        assert!(has(&[consolidated, ignored], None));
    }
}

#[test]
fn the_latest_schema_of_the_time() {
    let folder = tempfile::tempdir().unwrap();
    for time in [5, 7] {
        write(folder.path(), &format!("__schema/__{time}_{time}_{UUID}"), b"");
    }
    write(folder.path(), "__schema/__enumerations/x", b"");
    let files = Files::new(Arc::new(LocalStorage::new(folder.path())));
    let latest = |time| Directory::load(&files, time).unwrap().latest_schema;
    assert_eq!([latest(1), latest(5), latest(6), latest(7), latest(u64::MAX)], [0, 0, 0, 1, 1]);
}

#[test]
fn a_condition_inside_a_consolidated_commits_file() {
    let mut bytes = b"__commits/__1_1_x.wrt\n__commits/__2_2_x.del\n".to_vec();
    bytes.extend(3_u64.to_le_bytes());
    bytes.extend(b"\n\n\n__commits/__3_3_x.wrt\n");
    assert_eq!(consolidated_lines(&bytes).unwrap().len(), 3);
    let len = bytes.len();
    bytes[len - 34..len - 26].fill(0xff);
    assert!(consolidated_lines(&bytes).is_err());
}
