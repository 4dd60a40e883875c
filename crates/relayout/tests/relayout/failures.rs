//! Impossible requests end in a clear error, and leave nothing behind.

use std::ops::ControlFlow;

use relayout::{CodecChoice, Codecs, Error, RelayoutEvent, RelayoutSpec, relayout};

use crate::small::{lay_out, names, open, read_x, rows, watched, write};

fn packed() -> CodecChoice {
    CodecChoice::Named(Codecs::named("packed", "packed").unwrap())
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    write(&from, &rows(50, 40, 5), 40);
    let default = RelayoutSpec::default;
    let rate = |storage_bytes_per_second| CodecChoice::Measured { storage_bytes_per_second };
    for (spec, part) in [
        (RelayoutSpec { chunk_rows: 0, ..default() }, "chunk is 0"),
        (RelayoutSpec { chunk_rows: u64::MAX, ..default() }, "chunk is"),
        (RelayoutSpec { memory_bytes: 7, ..default() }, "memory"),
        (RelayoutSpec { codec: rate(0.0), ..default() }, "storage"),
        (RelayoutSpec { codec: rate(f64::NAN), ..default() }, "storage"),
        (RelayoutSpec { measurement: "ATAC".into(), ..default() }, "ATAC"),
        (RelayoutSpec { layer: "normalized".into(), ..default() }, "normalized"),
        (RelayoutSpec { joinid_column: "name".into(), shuffle_seed: Some(1), ..default() }, "name"),
    ] {
        let error = lay_out(&from, &to, &spec).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(names(folder.path()), ["from"]);
    }
    let error = lay_out(&from, &from, &default()).unwrap_err();
    assert!(
        matches!(error, Error::Destination(soma_io::DestinationError::Exists { .. })),
        "{error:?}"
    );
    let source = open(&from).unwrap();
    let remote = relayout(&source, "s3://bucket/x", &default(), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(remote, Err(Error::NoTemporary { .. })), "{remote:?}");
}

#[test]
fn what_is_read_is_never_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("to.partial");
    let temporary = folder.path().join("other.temporary");
    let rows = rows(50, 40, 5);
    for from in [&inner, &temporary.with_extension("temporary.partial")] {
        write(from, &rows, 40);
    }
    let replace = RelayoutSpec { existing: soma_io::REPLACE_EXPERIMENT, ..RelayoutSpec::default() };
    let there = names(folder.path());
    for (from, to, spec) in [
        ("to.partial", "to", RelayoutSpec::default()),
        ("to.partial", "to.partial", replace.clone()),
        ("to.partial", "to.partial/../to.partial/", replace),
        ("to.partial", "to.partial/inner", RelayoutSpec::default()),
        ("other.temporary.partial", "other", RelayoutSpec::default()),
        (
            "other.temporary.partial",
            "elsewhere/other",
            RelayoutSpec { temporary: Some(folder.path().to_owned()), ..RelayoutSpec::default() },
        ),
    ] {
        let [from, to] = [from, to].map(|name| folder.path().join(name));
        let error = lay_out(&from, &to, &spec).unwrap_err();
        assert!(
            matches!(error, Error::Destination(soma_io::DestinationError::SourceAtRisk { .. })),
            "{to:?}: {error}"
        );
        let there_now = names(folder.path());
        assert!(there_now.iter().filter(|name| *name != "elsewhere").eq(&there), "{there_now:?}");
        assert_eq!(read_x(&from, soma_io::ReaderChoice::Native), rows);
    }
}

#[test]
fn the_users_own_folder_beside_the_new_experiment_stays() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let rows = rows(50, 40, 5);
    write(&from, &rows, 40);
    for name in ["to.partial", "to.temporary.partial"] {
        let own = folder.path().join(name);
        write(&own, &rows, 40);
        let error = lay_out(&from, &to, &RelayoutSpec::default()).unwrap_err();
        assert!(
            matches!(error, Error::Destination(soma_io::DestinationError::NotOurs { .. })),
            "{error}"
        );
        assert_eq!(read_x(&own, soma_io::ReaderChoice::Native), rows);
        assert_eq!(names(folder.path()), ["from", name]);
        std::fs::remove_dir_all(own).unwrap();
    }
}

#[test]
fn whatever_happens_to_a_temporary_file_ends_in_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    write(&from, &rows(3_000, 900, 250), 900);
    let spec = RelayoutSpec {
        shuffle_seed: Some(1),
        codec: packed(),
        memory_bytes: 4 << 20,
        ..RelayoutSpec::default()
    };
    let attempt = folder.path().join("to.temporary.partial/experiment/attempt-1");
    let changes: [fn(&std::path::Path); 3] = [
        |path| std::fs::remove_file(path).unwrap(),
        |path| std::fs::File::options().write(true).open(path).unwrap().set_len(7).unwrap(),
        |path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes.extend_from_within(..);
            std::fs::write(path, bytes).unwrap();
        },
    ];
    for change in changes {
        let mut is_changed = false;
        let failed = watched(&from, &to, &spec, &mut |event| {
            let RelayoutEvent::Scattered { spilled, .. } = event else { return };
            if spilled.n_writes > 0 && !is_changed {
                is_changed = true;
                change(&attempt.join(&names(&attempt)[0]));
            }
        });
        assert!(
            is_changed && matches!(failed, Err(Error::Temporary { .. } | Error::File { .. })),
            "{failed:?}"
        );
        assert_eq!(names(folder.path()), ["from"]);
    }
}

#[test]
fn a_codec_that_would_lose_values_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    let mut rows = rows(50, 40, 5);
    rows[17] = vec![(3, 1.0), (4, 2.5)];
    write(&from, &rows, 40);
    for shuffle_seed in [None, Some(1)] {
        let spec = RelayoutSpec { codec: packed(), shuffle_seed, ..RelayoutSpec::default() };
        let error = lay_out(&from, &to, &spec).unwrap_err();
        assert!(matches!(error, Error::NotWhole { joinid: 17, .. }), "{error:?}");
        assert_eq!(names(folder.path()), ["from"]);
    }
}

#[test]
fn whoever_watches_can_end_it_at_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    write(&from, &rows(300, 40, 5), 40);
    let spec = RelayoutSpec { shuffle_seed: Some(1), codec: packed(), ..RelayoutSpec::default() };
    let source = open(&from).unwrap();
    let mut n_events = 0;
    loop {
        let mut left = n_events;
        let mut last = String::new();
        let ended =
            relayout(&source, to.to_str().unwrap(), &spec, &mut |event: RelayoutEvent<'_>| {
                last = format!("{event:?}");
                left -= 1;
                if left < 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        if ended.is_ok() {
            break;
        }
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?} at {last}");
        assert_eq!(names(folder.path()), ["from"], "{last}");
        n_events += 1;
    }
    assert!(n_events >= 5, "{n_events}");
    assert_eq!(names(folder.path()), ["from", "to"]);
}

#[test]
fn two_at_once_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
    write(&from, &rows(300, 40, 5), 40);
    let spec = RelayoutSpec { codec: packed(), ..RelayoutSpec::default() };
    let source = open(&from).unwrap();
    relayout(&source, to.to_str().unwrap(), &spec, &mut |_| {
        let second = lay_out(&from, &to, &spec);
        assert!(
            matches!(second, Err(Error::Destination(soma_io::DestinationError::Busy { .. }))),
            "{second:?}"
        );
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(names(folder.path()), ["from", "to"]);
}
