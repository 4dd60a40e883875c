//! Work that goes on where an earlier run ended, and what must never be taken for such work.

use super::tests::{REPLACE, claim, content, end_like_a_killed_process, experiment, local, names};
use super::*;

#[test]
fn the_same_work_goes_on_and_other_work_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("data");
    let uri = target.to_str().unwrap();
    let resume = |task| Destination::resume(uri, Existing::Keep, &[], task).unwrap();

    let mut first = resume("import a");
    assert_eq!((first.resumed(), first.leftover()), (None, None));
    let written = PathBuf::from(first.uri());
    experiment(&written, "half");
    let stays = first.keep_unfinished().unwrap().to_owned();
    drop(first);
    assert!(!target.exists());
    assert_eq!(content(&written), "half");

    // A run that ends before it has added anything takes nothing away.
    for _ in 0..2 {
        let second = resume("import a");
        assert_eq!(second.resumed(), Some(stays.as_path()));
        assert_eq!((second.leftover(), content(&written).as_str()), (None, "half"));
        drop(second);
        assert_eq!(content(&written), "half");
    }
    // One that began it, and does not say that it may stay, leaves nothing.
    drop(claim(&target, Existing::Keep).unwrap());
    drop(resume("import a"));
    assert!(!stays.exists());

    // What other work left is removed, and so is what was begun without a task.
    for other in [Some("import b"), None] {
        let mut begun = match other {
            Some(task) => resume(task),
            None => claim(&target, Existing::Keep).unwrap(),
        };
        experiment(&written, "other");
        begun.keep_unfinished();
        drop(begun);
        let mut again = resume("import a");
        assert_eq!((again.resumed(), again.leftover()), (None, Some(stays.as_path())));
        assert!(!written.exists());
        experiment(&written, "half");
        again.keep_unfinished();
        drop(again);
        let fresh = claim(&target, Existing::Keep).unwrap();
        assert_eq!((fresh.resumed(), fresh.leftover()), (None, Some(stays.as_path())));
        assert!(!written.exists());
    }

    let mut begun = resume("import a");
    experiment(&written, "half");
    begun.keep_unfinished();
    drop(begun);
    let last = resume("import a");
    experiment(&written, "whole");
    last.publish().unwrap();
    assert_eq!((names(folder.path()), content(&target).as_str()), (vec!["data".into()], "whole"));
}

#[test]
fn work_that_takes_long_is_not_removed_by_other_work() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("data");
    let uri = target.to_str().unwrap();
    let resume = |task| Destination::resume_or_refuse(uri, Existing::Keep, &[], task);

    let mut first = resume("relayout a").unwrap();
    let written = PathBuf::from(first.uri());
    let progress = first.progress_file().unwrap();
    experiment(&written, "half");
    fs::write(&progress, "1").unwrap();
    let stays = first.keep_unfinished().unwrap().to_owned();
    drop(first);
    for _ in 0..2 {
        let error = resume("relayout b").unwrap_err();
        assert!(matches!(error, DestinationError::OtherTask { .. }), "{error}");
        assert!(error.to_string().contains(stays.to_str().unwrap()), "{error}");
    }
    let again = resume("relayout a").unwrap();
    assert_eq!((again.resumed(), content(&written).as_str()), (Some(stays.as_path()), "half"));
    assert_eq!(fs::read(&progress).unwrap(), b"1");
    again.publish().unwrap();
    // The record of the progress is gone.
    assert_eq!(names(folder.path()), ["data"]);
    assert!(!target.join("progress").exists());
}

#[test]
fn the_old_data_set_is_not_resumed_in_place_of_the_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("data");
    let uri = target.to_str().unwrap();
    experiment(&target, "old");
    let claim = local(Destination::resume(uri, REPLACE, &[], "import a").unwrap());
    experiment(Path::new(&claim.uri), "new");
    // What a run leaves that was killed after the exchange.
    claim.rename().unwrap();
    end_like_a_killed_process(claim);
    assert_eq!(content(&target), "new");
    let again = Destination::resume(uri, REPLACE, &[], "import a").unwrap();
    assert_eq!((again.resumed(), content(&target).as_str()), (None, "new"));
}

#[test]
fn work_that_was_being_published_is_not_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("data");
    let uri = target.to_str().unwrap();
    experiment(&target, "old");
    let mut begun = Destination::resume(uri, REPLACE, &[], "import a").unwrap();
    let written = PathBuf::from(begun.uri());
    experiment(&written, "new");
    let stays = begun.keep_unfinished().unwrap().to_owned();
    drop(begun);
    fs::rename(&target, stays.join("replaced")).unwrap();
    let again = Destination::resume(uri, REPLACE, &[], "import a").unwrap();
    assert_eq!(again.resumed(), None);
    assert_eq!(content(&target), "old");
    assert!(!written.exists());
}
