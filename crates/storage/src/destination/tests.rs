//! However a run ends, it leaves only complete data sets, and it removes no data of others.

use std::cell::RefCell;
use std::os::unix::fs::symlink;
use std::rc::Rc;

use super::*;

pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(super) fn claim(target: &Path, existing: Existing) -> Result<Destination, DestinationError> {
    Destination::claim(target.to_str().unwrap(), existing, &[])
}

/// Claims a destination and writes to it, then ends without cleaning up, like a killed process. The
/// lock ends with the file.
fn killed(target: &Path, existing: Existing, write: impl FnOnce(&Claim)) {
    let claim = local(claim(target, existing).unwrap());
    write(&claim);
    end_like_a_killed_process(claim);
}

pub(super) fn end_like_a_killed_process(claim: Claim) {
    let kept = claim.holding.folder().with_extension("kept");
    let folder = claim.holding.folder().to_owned();
    fs::rename(&folder, &kept).unwrap();
    drop(claim);
    fs::rename(&kept, &folder).unwrap();
}

/// A data set of the kind that may be replaced, and a file in its folder that identifies it.
pub(super) fn experiment(at: &Path, content: &str) {
    fs::create_dir_all(at.join("__group")).unwrap();
    fs::write(at.join("content"), content).unwrap();
}

pub(super) const REPLACE: Existing = Existing::Replace(Replaceable {
    what: "a folder with a group",
    check: |place| {
        let is_group = Path::new(place).join("__group").is_dir();
        if is_group { Ok(()) } else { Err(format!("{place} has none")) }
    },
});

pub(super) fn local(claimed: Destination) -> Claim {
    match claimed.0 {
        Place::Local(claim) => claim,
        Place::Remote { uri } => panic!("{uri} is not a local path"),
    }
}

pub(super) fn content(at: &Path) -> String {
    fs::read_to_string(at.join("content")).unwrap()
}

#[test]
fn what_was_written_gets_its_name_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/data");
    let claimed = claim(&target, Existing::Keep).unwrap();
    fs::create_dir_all(format!("{}/a", claimed.uri())).unwrap();
    fs::write(format!("{}/a/b", claimed.uri()), "12345").unwrap();
    assert!(!target.exists());
    assert_eq!(claimed.publish().unwrap(), Some(5));
    assert_eq!(names(target.parent().unwrap()), ["data"]);
    assert_eq!(names(&target), ["a"]);
    assert_eq!(fs::read_to_string(target.join("a/b")).unwrap(), "12345");
    let again = Destination::claim(&format!("file://{}", target.display()), Existing::Keep, &[]);
    assert!(
        matches!(again, Err(DestinationError::Exists { uri }) if uri == target.to_str().unwrap())
    );
    assert_eq!(names(target.parent().unwrap()), ["data"]);
}

#[test]
fn a_data_set_may_be_a_single_file() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("data.txt");
    let claimed = claim(&target, Existing::Keep).unwrap();
    fs::write(claimed.uri(), "12345").unwrap();
    assert_eq!(claimed.publish().unwrap(), Some(5));
    assert_eq!(names(folder.path()), ["data.txt"]);
    killed(&folder.path().join("other"), Existing::Keep, |claim| {
        fs::write(&claim.uri, "1").unwrap();
    });
    let claimed = claim(&folder.path().join("other"), Existing::Keep).unwrap();
    assert!(claimed.leftover().is_some());
    drop(claimed);
    assert_eq!(names(folder.path()), ["data.txt"]);
}

#[test]
fn a_failed_run_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let claimed = claim(&folder.path().join("x"), Existing::Keep).unwrap();
    fs::create_dir(claimed.uri()).unwrap();
    drop(claimed);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn writing_can_begin_anew() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    let claimed = claim(&target, Existing::Keep).unwrap();
    experiment(Path::new(claimed.uri()), "first");
    claimed.clear().unwrap();
    assert!(!Path::new(claimed.uri()).exists());
    let second = claim(&target, Existing::Keep);
    assert!(matches!(second, Err(DestinationError::Busy { .. })), "{second:?}");
    experiment(Path::new(claimed.uri()), "second");
    claimed.publish().unwrap();
    assert_eq!(content(&target), "second");
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn what_a_killed_run_left_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    killed(&target, Existing::Keep, |claim| experiment(&claim.holding.data(), "half"));
    assert_eq!(names(folder.path()), ["x.partial"]);
    let claimed = claim(&target, Existing::Keep).unwrap();
    assert_eq!(claimed.leftover(), Some(folder.path().join("x.partial").as_path()));
    assert!(!Path::new(claimed.uri()).exists());
    drop(claimed);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_run_killed_while_it_marked_its_folder_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    let partial = folder.path().join("x.partial");
    fs::create_dir(&partial).unwrap();
    drop(claim(&target, Existing::Keep).unwrap());
    for part in ["", "somafeed writes"] {
        fs::create_dir(&partial).unwrap();
        fs::write(partial.join("somafeed-unfinished"), part).unwrap();
        drop(claim(&target, Existing::Keep).unwrap());
        assert!(names(folder.path()).is_empty(), "{part:?}");
    }
}

#[test]
fn what_is_not_marked_stays() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    let partial = folder.path().join("x.partial");
    let refused = |what: &str| {
        let error = claim(&target, Existing::Keep).unwrap_err();
        assert!(
            matches!(&error, DestinationError::NotOurs { path, .. } if *path == partial),
            "{what}"
        );
        assert_eq!(names(folder.path()).first().unwrap(), "elsewhere", "{what}");
    };
    let elsewhere = folder.path().join("elsewhere");
    experiment(&elsewhere, "kept");
    experiment(&partial, "kept");
    refused("an experiment of the user's");
    let there = names(&elsewhere);
    assert_eq!((content(&partial), names(&partial)), ("kept".to_owned(), there.clone()));
    // The marker is another program's.
    fs::write(partial.join("somafeed-unfinished"), "mine").unwrap();
    refused("a file of the marker's name");
    assert_eq!(content(&partial), "kept");
    fs::write(partial.join("somafeed-unfinished"), "").unwrap();
    refused("an empty marker beside other files");
    assert_eq!(content(&partial), "kept");
    fs::remove_dir_all(&partial).unwrap();
    symlink(&elsewhere, &partial).unwrap();
    refused("a link");
    fs::remove_file(&partial).unwrap();
    fs::write(&partial, "kept").unwrap();
    refused("a file");
    assert_eq!(fs::read_to_string(&partial).unwrap(), "kept");
    assert_eq!((content(&elsewhere), names(&elsewhere)), ("kept".to_owned(), there));
}

#[test]
fn what_the_user_put_into_a_marked_folder_stays() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    killed(&target, Existing::Keep, |claim| experiment(&claim.holding.data(), "half"));
    fs::write(folder.path().join("x.partial/thesis"), "kept").unwrap();
    drop(claim(&target, Existing::Keep).unwrap());
    assert_eq!(names(&folder.path().join("x.partial")), ["thesis"]);
}

#[test]
fn a_source_is_never_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let partial = root.join("z.partial");
    let source = partial.join("experiment");
    experiment(&source, "kept");
    fs::create_dir(root.join("links")).unwrap();
    symlink(&partial, root.join("links/partial")).unwrap();
    symlink(&root, root.join("links/root")).unwrap();
    let target = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let check = |source: &str, place: &str, existing: Existing, relation: &str| {
        let error = Destination::claim(place, existing, &["s3://bucket/x", source]).unwrap_err();
        assert!(
            matches!(&error, DestinationError::SourceAtRisk { relation: found, .. } if *found == relation),
            "{source} to {place}: {error}"
        );
        assert_eq!(content(&root.join("z.partial/experiment")), "kept");
        assert_eq!(names(&root), ["links", "z.partial"]);
    };
    let (source, partial) = (source.to_str().unwrap(), partial.to_str().unwrap());
    let replace = REPLACE;
    // The source is the destination.
    check(source, source, replace, "is");
    check(source, &format!("{source}/"), replace, "is");
    check(&format!("file://{source}/"), &format!("{source}/../experiment"), replace, "is");
    check(source, &target("links/partial/experiment"), replace, "is");
    check(source, &format!("{source}/new"), Existing::Keep, "lies in");
    check(source, &format!("file://{source}/deep/er/new/"), Existing::Keep, "lies in");
    check(source, &target("links/root/z.partial/experiment/obs"), Existing::Keep, "lies in");
    // The source is the folder beside it.
    check(partial, &target("z"), Existing::Keep, "is");
    check(&format!("{partial}/."), &format!("file://{}", target("z")), Existing::Keep, "is");
    check(&target("links/partial"), &target("links/../z"), Existing::Keep, "is");
    check(source, &target("z"), Existing::Keep, "holds");
    check(&target("links/partial/experiment"), &target("links/root/z/"), Existing::Keep, "holds");
    // A file is a source, too.
    check(&format!("{source}/content"), &target("z"), Existing::Keep, "holds");
    // Neighbours are apart.
    let apart = [source, partial, &target("links"), "s3://bucket/new", "/nowhere"];
    drop(Destination::claim(&target("new"), Existing::Keep, &apart).unwrap());
    drop(Destination::claim(&target("z.partial/new"), Existing::Keep, &[source]).unwrap());
}

#[test]
fn the_experiment_that_a_source_lies_in_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    experiment(&target, "kept");
    experiment(&target.join("inner"), "kept");
    let source = target.join("inner");
    let target = target.to_str().unwrap();
    let error = Destination::claim(target, REPLACE, &[source.to_str().unwrap()]).unwrap_err();
    assert!(matches!(error, DestinationError::SourceAtRisk { relation: "holds", .. }), "{error}");
    assert_eq!(content(&source), "kept");
}

#[test]
fn a_source_within_a_file_is_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.h5ad");
    fs::write(&file, "").unwrap();
    let source = file.join("obs/index");
    let check = |place: &Path| check_apart(&[source.to_str().unwrap()], &[place.to_str().unwrap()]);
    check(&folder.path().join("y")).unwrap();
    for (place, relation) in [(&*file, "is"), (folder.path(), "holds")] {
        match check(place) {
            Err(DestinationError::SourceAtRisk { relation: found, .. }) => {
                assert_eq!(found, relation);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn addresses_are_compared_by_their_names() {
    let check = |source: &str, place: &str| {
        check_apart(&[source], &[place]).err().map(|error| match error {
            DestinationError::SourceAtRisk { relation, .. } => relation,
            other => panic!("{other}"),
        })
    };
    let place = "s3://bucket/a/b";
    for (source, relation) in [
        ("s3://bucket/a/b/", Some("is")),
        ("s3://bucket/a//b", Some("is")),
        ("s3://bucket/a/b/c", Some("holds")),
        ("s3://bucket/a", Some("lies in")),
        ("s3://bucket/a/bc", None),
        ("s3://bucket/c", None),
        ("gs://bucket/a/b", None),
        ("/a/b", None),
    ] {
        assert_eq!(check(source, place), relation, "{source}");
    }
    // Google Cloud Storage has two scheme names.
    for (source, place) in
        [("gs://bucket/a", "gcs://bucket/a"), ("gcs://bucket/a", "gs://bucket/a")]
    {
        assert_eq!(check(source, place), Some("is"), "{source}");
        assert_eq!(check(&format!("{source}/b"), place), Some("holds"), "{source}");
    }
    let claimed = Destination::claim(place, Existing::Keep, &["s3://bucket/a"]);
    assert!(matches!(claimed, Err(DestinationError::SourceAtRisk { .. })), "{claimed:?}");
}

#[test]
fn two_runs_do_not_write_the_same_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    let first = claim(&target, Existing::Keep).unwrap();
    fs::create_dir(first.uri()).unwrap();
    let second = claim(&target, Existing::Keep);
    assert!(matches!(second, Err(DestinationError::Busy { .. })), "{second:?}");
    assert!(Path::new(first.uri()).exists());
    first.publish().unwrap();
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn claims_that_come_and_go_exclude_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    let n_inside = std::sync::atomic::AtomicU32::new(0);
    let n_claimed = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    match claim(&target, Existing::Keep) {
                        Ok(claimed) => {
                            use std::sync::atomic::Ordering::SeqCst;
                            assert_eq!(n_inside.fetch_add(1, SeqCst), 0);
                            fs::create_dir(claimed.uri()).unwrap();
                            n_claimed.fetch_add(1, SeqCst);
                            n_inside.fetch_sub(1, SeqCst);
                        }
                        Err(DestinationError::Busy { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    assert!(n_claimed.into_inner() > 0);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_file_in_the_way_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let error = claim(&folder.path().join("file/x"), Existing::Keep).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
}

#[test]
fn a_place_must_have_a_name() {
    let folder = tempfile::tempdir().unwrap();
    for place in [Path::new("/"), &folder.path().join("..")] {
        let error = claim(place, Existing::Keep).unwrap_err();
        assert!(matches!(error, DestinationError::NoName { .. }), "{error}");
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn addresses_are_written_to_directly() {
    let claimed = Destination::claim("s3://bucket/x", Existing::Keep, &[]).unwrap();
    assert_eq!(claimed.uri(), "s3://bucket/x");
    assert_eq!(claimed.publish().unwrap(), None);
}

#[test]
fn all_is_on_the_disk_before_it_gets_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    let claimed = local(claim(&target, Existing::Keep).unwrap());
    let (holding, written) = (claimed.holding.folder().to_owned(), claimed.holding.data());
    for made in ["__group", "obs"] {
        fs::create_dir_all(written.join(made)).unwrap();
    }
    fs::write(written.join("content"), "new").unwrap();
    fs::write(written.join("obs/cells"), "1").unwrap();
    fs::write(written.join("__group/members"), "2").unwrap();
    let synced = Rc::new(RefCell::new(Vec::new()));
    let note = Rc::clone(&synced);
    let synced_renames = Rc::new(RefCell::new(Vec::new()));
    let renames = Rc::clone(&synced_renames);
    let n_bytes = claimed.publish(&mut |path| {
        // The renames are synced last.
        if let Ok(path) = path.strip_prefix(&written) {
            assert!(!target.exists());
            note.borrow_mut().push(path.to_owned());
        } else {
            assert!(target.exists() && note.borrow().len() == 6);
            renames.borrow_mut().push(path.to_owned());
        }
        disk::sync(path)
    });
    assert_eq!(n_bytes.unwrap(), 5);
    let synced = synced.borrow();
    let place = |name: &str| {
        synced.iter().position(|path| path == Path::new(name)).unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(synced.len(), 6);
    assert!(place("obs/cells") < place("obs") && place("obs") < place(""));
    assert!(place("__group/members") < place("__group") && place("__group") < place(""));
    assert!(place("content") < place(""));
    assert_eq!(*synced_renames.borrow(), [folder.path(), holding.as_path()]);
}

#[test]
fn new_folders_are_on_the_disk_with_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let synced = |path: &str| {
        let mut synced = Vec::new();
        create_folders(&root.join(path), &mut |path| {
            synced.push(path.to_owned());
            disk::sync(path)
        })
        .unwrap();
        assert!(root.join(path).is_dir());
        synced
    };
    assert_eq!(synced("a/b/c"), [root.join("a/b"), root.join("a"), root.to_owned()]);
    assert!(synced("a/b").is_empty());
    assert_eq!(synced("a/b/d"), [root.join("a/b")]);
}

#[test]
fn the_old_experiment_stays_while_the_disk_may_not_have_the_new_ones_name() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    experiment(&target, "old");
    let claimed = local(claim(&target, REPLACE).unwrap());
    let exchanged = claimed.holding.data();
    experiment(&exchanged, "new");
    let failed = claimed.publish(&mut |path| {
        if path == folder.path() { Err(io::Error::other("the disk is gone")) } else { Ok(()) }
    });
    assert!(failed.unwrap_err().to_string().contains("the disk is gone"));
    assert_eq!((content(&target), content(&exchanged)), ("new".to_owned(), "old".to_owned()));
    // The next run sees that the disk has it, and cleans up.
    drop(claim(&target, REPLACE).unwrap());
    assert_eq!(content(&target), "new");
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn what_does_not_reach_the_disk_gets_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    experiment(&target, "old");
    let claimed = local(claim(&target, REPLACE).unwrap());
    experiment(&claimed.holding.data(), "new");
    let failed = claimed.publish(&mut |path| {
        if path.ends_with("__group") { Err(io::Error::other("the disk is gone")) } else { Ok(()) }
    });
    assert!(failed.unwrap_err().to_string().contains("the disk is gone"));
    assert_eq!(content(&target), "old");
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn what_is_replaced_stays_until_the_new_one_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    experiment(&target, "old");
    let failed = claim(&target, REPLACE).unwrap();
    experiment(Path::new(failed.uri()), "new");
    drop(failed);
    assert_eq!(content(&target), "old");
    let whole = claim(&target, REPLACE).unwrap();
    experiment(Path::new(whole.uri()), "new");
    assert_eq!(content(&target), "old");
    whole.publish().unwrap();
    assert_eq!(content(&target), "new");
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn where_folders_cannot_be_exchanged_a_killed_run_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    experiment(&target, "old");
    let claimed = local(claim(&target, REPLACE).unwrap());
    experiment(&claimed.holding.data(), "new");
    claimed.rename_in_two_steps().unwrap();
    assert_eq!(content(&target), "new");
    claimed.sync_renames(&mut disk::sync).unwrap();
    drop(claimed);
    assert_eq!(names(folder.path()), ["x"]);
    // The run is killed after the first step.
    killed(&target, REPLACE, |claim| {
        fs::rename(&target, claim.holding.replaced()).unwrap();
        experiment(&claim.holding.data(), "newer");
    });
    let marker = folder.path().join("x.partial/somafeed-unfinished");
    let marker = fs::read_to_string(marker).unwrap();
    assert!(marker.contains("`replaced`") && marker.contains("may be the only copy"), "{marker}");
    let next = claim(&target, REPLACE).unwrap();
    assert_eq!(content(&target), "new");
    assert!(next.leftover().is_some());
    drop(next);
    assert_eq!(names(folder.path()), ["x"]);
    // Killed after the second step was synced; the new experiment stays, or is moved elsewhere.
    for is_moved in [false, true] {
        killed(&target, REPLACE, |claim| {
            experiment(&claim.holding.data(), "newer");
            claim.rename_in_two_steps().unwrap();
            claim.sync_renames(&mut disk::sync).unwrap();
        });
        if is_moved {
            fs::rename(&target, folder.path().join("y")).unwrap();
        }
        drop(claim(&target, REPLACE).unwrap());
        assert_eq!(target.exists(), !is_moved);
        assert_eq!(content(&folder.path().join(if is_moved { "y" } else { "x" })), "newer");
        assert_eq!(names(folder.path()).len(), 1);
    }
}

#[test]
fn what_was_set_aside_goes_only_if_its_successor_is_known_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    let replaced = folder.path().join("x.partial/replaced");
    // This holds for any state of the note on disk.
    for note in [None, Some(""), Some("The new")] {
        experiment(&target, "old");
        killed(&target, REPLACE, |claim| {
            fs::rename(&target, claim.holding.replaced()).unwrap();
            if let Some(note) = note {
                fs::write(claim.holding.folder().join("published"), note).unwrap();
            }
        });
        experiment(&target, "somebody else's");
        for _ in 0..2 {
            let refused = claim(&target, REPLACE).unwrap_err();
            assert!(matches!(refused, DestinationError::SetAside { .. }), "{refused}");
            assert!(refused.to_string().contains("x.partial/replaced"), "{refused}");
            assert_eq!(content(&target), "somebody else's");
            assert_eq!(content(&replaced), "old");
        }
        fs::remove_dir_all(&target).unwrap();
        drop(claim(&target, REPLACE).unwrap());
        assert_eq!(content(&target), "old");
        assert_eq!(names(folder.path()), ["x"]);
        fs::remove_dir_all(&target).unwrap();
    }
}

#[test]
fn a_run_that_cannot_take_the_second_step_leaves_both() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    experiment(&target, "old");
    let claimed = local(claim(&target, REPLACE).unwrap());
    fs::rename(&target, claimed.holding.replaced()).unwrap();
    experiment(&target, "somebody else's");
    drop(claimed);
    assert_eq!(content(&target), "somebody else's");
    assert_eq!(content(&folder.path().join("x.partial/replaced")), "old");
}

#[test]
fn where_the_second_step_fails_the_old_experiment_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    experiment(&target, "old");
    let claimed = local(claim(&target, REPLACE).unwrap());
    // Nothing is there to be renamed.
    claimed.rename_in_two_steps().unwrap_err();
    assert!(!target.exists());
    drop(claimed);
    assert_eq!(content(&target), "old");
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn only_what_may_be_replaced_is() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    let refused = |place: &str, why: &str| {
        let refused = Destination::claim(place, REPLACE, &[]).unwrap_err();
        assert!(matches!(refused, DestinationError::Irreplaceable { .. }), "{refused}");
        let refused = refused.to_string();
        assert!(refused.contains(why) && refused.contains("choose another place"), "{refused}");
    };
    refused("s3://bucket/x", "object store");
    experiment(&target.join("inner"), "kept");
    refused(target.to_str().unwrap(), "only a folder with a group is replaced, and");
    assert_eq!(content(&target.join("inner")), "kept");
    assert_eq!(names(folder.path()), ["x"]);
    let link = folder.path().join("link");
    symlink(target.join("inner"), &link).unwrap();
    refused(link.to_str().unwrap(), "link");
    assert_eq!(names(folder.path()), ["link", "x"]);
}
