//! What cannot be ends in an error that says so, and leaves nothing.

use std::ops::ControlFlow;

use relayout::{CodecChoice, Codecs, Error, RelayoutEvent, RelayoutSpec, relayout};

use crate::small::{lay_out, names, open, rows, write};

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
    assert!(matches!(error, Error::Experiment(soma_io::Error::Exists { .. })), "{error:?}");
    let source = open(&from).unwrap();
    let remote = relayout(&source, "s3://bucket/x", &default(), &mut |_| ControlFlow::Continue(()));
    assert!(matches!(remote, Err(Error::NoTemporary { .. })), "{remote:?}");
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
            matches!(second, Err(Error::Experiment(soma_io::Error::Busy { .. }))),
            "{second:?}"
        );
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(names(folder.path()), ["from", "to"]);
}
