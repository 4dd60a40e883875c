//! Whatever ends a run, nothing of it stays but a whole experiment, and nothing of anybody else's
//! goes.

use std::cell::RefCell;
use std::os::unix::fs::symlink;
use std::rc::Rc;

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn claim(target: &Path, existing: Existing) -> Result<Destination, Error> {
    Destination::claim(target.to_str().unwrap(), existing, &[])
}

/// Claims and writes something, then ends without cleaning up, as a killed process does. The lock
/// goes with the file.
fn killed(target: &Path, existing: Existing, write: impl FnOnce(&Claim)) {
    let Destination(Place::Local(claim)) = claim(target, existing).unwrap() else {
        panic!("a local path")
    };
    write(&claim);
    let kept = claim.holding.folder().with_extension("kept");
    let folder = claim.holding.folder().to_owned();
    fs::rename(&folder, &kept).unwrap();
    drop(claim);
    fs::rename(&kept, &folder).unwrap();
}

/// A folder with something in it that looks like an experiment's.
fn experiment(at: &Path, content: &str) {
    fs::create_dir_all(at.join("__group")).unwrap();
    fs::write(at.join("content"), content).unwrap();
}

fn content(at: &Path) -> String {
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
    assert!(matches!(again, Err(Error::Exists { uri }) if uri == target.to_str().unwrap()));
    assert_eq!(names(target.parent().unwrap()), ["data"]);
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
    assert!(matches!(second, Err(Error::Busy { .. })), "{second:?}");
    experiment(Path::new(claimed.uri()), "second");
    claimed.publish().unwrap();
    assert_eq!(content(&target), "second");
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn what_a_killed_run_left_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    killed(&target, Existing::Keep, |claim| experiment(&claim.holding.experiment(), "half"));
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
        assert!(matches!(&error, Error::NotOurs { path, .. } if *path == partial), "{what}");
        assert_eq!(names(folder.path()).first().unwrap(), "elsewhere", "{what}");
    };
    let elsewhere = folder.path().join("elsewhere");
    experiment(&elsewhere, "kept");
    experiment(&partial, "kept");
    refused("an experiment of the user's");
    assert_eq!((content(&partial), names(&partial).len()), ("kept".to_owned(), 2));
    // A marker of another kind.
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
    assert_eq!((content(&elsewhere), names(&elsewhere).len()), ("kept".to_owned(), 2));
}

#[test]
fn what_the_user_put_into_a_marked_folder_stays() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    killed(&target, Existing::Keep, |claim| experiment(&claim.holding.experiment(), "half"));
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
            matches!(&error, Error::SourceAtRisk { relation: found, .. } if *found == relation),
            "{source} to {place}: {error}"
        );
        assert_eq!(content(&root.join("z.partial/experiment")), "kept");
        assert_eq!(names(&root), ["links", "z.partial"]);
    };
    let (source, partial) = (source.to_str().unwrap(), partial.to_str().unwrap());
    let replace = Existing::Replace;
    // The destination.
    check(source, source, replace, "is");
    check(source, &format!("{source}/"), replace, "is");
    check(&format!("file://{source}/"), &format!("{source}/../experiment"), replace, "is");
    check(source, &target("links/partial/experiment"), replace, "is");
    check(source, &format!("{source}/new"), Existing::Keep, "lies in");
    check(source, &format!("file://{source}/deep/er/new/"), Existing::Keep, "lies in");
    check(source, &target("links/root/z.partial/experiment/obs"), Existing::Keep, "lies in");
    // The folder beside it.
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
    let error =
        Destination::claim(target, Existing::Replace, &[source.to_str().unwrap()]).unwrap_err();
    assert!(matches!(error, Error::SourceAtRisk { relation: "holds", .. }), "{error}");
    assert_eq!(content(&source), "kept");
}

#[test]
fn addresses_are_compared_by_their_names() {
    let check = |source: &str, place: &str| check_apart(&[source], &[place]).err();
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
        let found = check(source, place).map(|error| match error {
            Error::SourceAtRisk { relation, .. } => relation,
            other => panic!("{other}"),
        });
        assert_eq!(found, relation, "{source}");
    }
    let claimed = Destination::claim(place, Existing::Keep, &["s3://bucket/a"]);
    assert!(matches!(claimed, Err(Error::SourceAtRisk { .. })), "{claimed:?}");
}

#[test]
fn two_runs_do_not_write_the_same_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    let first = claim(&target, Existing::Keep).unwrap();
    fs::create_dir(first.uri()).unwrap();
    let second = claim(&target, Existing::Keep);
    assert!(matches!(second, Err(Error::Busy { .. })), "{second:?}");
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
                        Err(Error::Busy { .. }) => {}
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
        assert!(matches!(error, Error::Address { .. }), "{error}");
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
    let Destination(Place::Local(claimed)) = claim(&target, Existing::Keep).unwrap() else {
        panic!("a local path")
    };
    let written = claimed.holding.experiment();
    experiment(&written, "new");
    fs::create_dir(written.join("obs")).unwrap();
    fs::write(written.join("obs/cells"), "1").unwrap();
    fs::write(written.join("__group/members"), "2").unwrap();
    let synced = Rc::new(RefCell::new(Vec::new()));
    let note = Rc::clone(&synced);
    let n_bytes = claimed.publish(&mut |path| {
        assert!(!target.exists());
        note.borrow_mut().push(path.strip_prefix(&written).unwrap().to_owned());
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
}

#[test]
fn what_does_not_reach_the_disk_gets_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    experiment(&target, "old");
    let Destination(Place::Local(claimed)) = claim(&target, Existing::Replace).unwrap() else {
        panic!("a local path")
    };
    experiment(&claimed.holding.experiment(), "new");
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
    let failed = claim(&target, Existing::Replace).unwrap();
    experiment(Path::new(failed.uri()), "new");
    drop(failed);
    assert_eq!(content(&target), "old");
    let whole = claim(&target, Existing::Replace).unwrap();
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
    let Destination(Place::Local(claimed)) = claim(&target, Existing::Replace).unwrap() else {
        panic!("a local path")
    };
    experiment(&claimed.holding.experiment(), "new");
    claimed.rename_in_two_steps().unwrap();
    assert_eq!(content(&target), "new");
    drop(claimed);
    assert_eq!(names(folder.path()), ["x"]);
    // Killed after the first step.
    killed(&target, Existing::Replace, |claim| {
        fs::rename(&target, claim.holding.replaced()).unwrap();
        experiment(&claim.holding.experiment(), "newer");
    });
    let next = claim(&target, Existing::Replace).unwrap();
    assert_eq!(content(&target), "new");
    assert!(next.leftover().is_some());
    drop(next);
    // Killed after the second.
    killed(&target, Existing::Replace, |claim| experiment(&claim.holding.replaced(), "older"));
    drop(claim(&target, Existing::Replace).unwrap());
    assert_eq!(content(&target), "new");
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn where_the_second_step_fails_the_old_experiment_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    experiment(&target, "old");
    let Destination(Place::Local(claimed)) = claim(&target, Existing::Replace).unwrap() else {
        panic!("a local path")
    };
    // Nothing is there to be renamed.
    claimed.rename_in_two_steps().unwrap_err();
    assert!(!target.exists());
    drop(claimed);
    assert_eq!(content(&target), "old");
    assert_eq!(names(folder.path()), ["x"]);
}

#[test]
fn only_an_experiment_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("thesis"), "").unwrap();
    for place in [target.to_str().unwrap(), "s3://bucket/x"] {
        let refused = Destination::claim(place, Existing::Replace, &[]).unwrap_err();
        assert!(matches!(refused, Error::Irreplaceable { .. }), "{refused}");
    }
    assert!(target.join("thesis").exists());
    assert_eq!(names(folder.path()), ["x"]);
}
