//! Faults between the readers and the store: temporary ones are overcome, permanent ones are errors
//! that name the failure, in time.

use std::time::Duration;

use soma_io::{Config, Error, Experiment, OpenOptions, ReaderChoice};

use crate::s3::places::{READERS, Stored, every_cell, in_time, reader_of, text};
use test_storage::What;
use test_storage::{PRIVATE, PUBLIC};

/// The folder with X's files.
const X_FILES: &str = "ms/RNA/X/raw/__fragments/";
const X: &str = "ms/RNA/X/raw";

/// Runs `work` for each reader and fault in parallel, each with its own server.
fn each(stored: &Stored, faults: &[What], work: impl Fn(&Stored, ReaderChoice, &What) + Sync) {
    std::thread::scope(|scope| {
        for choice in READERS {
            for what in faults {
                let (stored, work) = (stored.beside(), &work);
                scope.spawn(move || work(&stored, choice, what));
            }
        }
    });
}

#[test]
fn what_passes_is_got_over() {
    let passing = [
        What::Status(500),
        What::Status(503),
        What::HangUp,
        What::CutBody,
        What::StallBody,
        What::Silence,
        What::SlowBody(Duration::from_millis(10)),
    ];
    each(&Stored::new(PRIVATE), &passing, |stored, choice, what| {
        let times = if matches!(what, What::StallBody | What::Silence) { 1 } else { 3 };
        let reader = stored.reader(choice).unwrap();
        drop(stored.server.seen());
        stored.server.fault(X_FILES, times, what.clone());
        let cells = in_time(|| every_cell(&*reader));
        let cells = cells.unwrap_or_else(|error| panic!("{choice}: {what:?}: {}", text(&error)));
        assert!(cells == stored.cells(), "{choice}: {what:?}: other cells");
        // A body that is only slow is not requested again.
        let least = if matches!(what, What::SlowBody(_)) { times } else { times + 1 };
        assert!(least <= stored.server.seen().len(), "{choice}: {what:?}: not met");
    });
}

#[test]
fn a_server_that_comes_back_is_waited_for() {
    let stored = Stored::new(PRIVATE);
    let mut config = stored.server.config();
    config.insert("vfs.s3.connect_max_tries".to_owned(), "12".to_owned());
    for choice in READERS {
        let reader = reader_of(&stored.open(config.clone()).unwrap(), choice).unwrap();
        stored.server.refuse(Duration::from_millis(100));
        let cells = in_time(|| every_cell(&*reader));
        let cells = cells.unwrap_or_else(|error| panic!("{choice}: {}", text(&error)));
        assert!(cells == stored.cells(), "{choice}");
    }
}

/// Few tries, for permanent faults.
fn impatient(stored: &Stored) -> Config {
    let mut config = stored.server.config();
    config.insert("vfs.s3.connect_max_tries".to_owned(), "1".to_owned());
    config.insert("soma.request_limit_ms".to_owned(), "1500".to_owned());
    config
}

#[test]
fn what_lasts_is_an_error_that_names_the_file() {
    let lasting = [
        What::Status(403),
        What::Status(404),
        What::Status(503),
        What::HangUp,
        What::CutBody,
        What::StallBody,
        What::Silence,
        // 16 pauses are longer than a request may take; each is shorter than the wait for a byte.
        What::SlowBody(Duration::from_millis(300)),
    ];
    each(&Stored::new(PRIVATE), &lasting, |stored, choice, what| {
        let reader = || reader_of(&stored.open(impatient(stored)).unwrap(), choice).unwrap();
        let opened = reader();
        stored.server.fault(X_FILES, usize::MAX, what.clone());
        match (choice, what, in_time(|| every_cell(&*opened))) {
            (_, _, Err(error)) => {
                let error = text(&error);
                let names_it = error.contains("s3://private/atlas/experiment/ms/RNA/X/raw");
                assert!(names_it, "{choice}: {what:?}: {error}");
            }
            // libtiledb has no time limit while bytes arrive.
            (ReaderChoice::Libtiledb, What::SlowBody(_), Ok(cells)) => {
                assert!(cells == stored.cells());
            }
            _ => panic!("{choice}: {what:?}: no error"),
        }
        stored.server.heal();
        // A failed read leaves nothing behind: the next one succeeds.
        assert!(every_cell(&*reader()).unwrap() == stored.cells(), "{choice}: after {what:?}");
    });
}

/// While X is opened, every request from the n-th on fails, for each n: X is never smaller or empty
/// because of that.
#[test]
fn an_array_that_cannot_be_listed_is_not_empty() {
    let faults = [What::Status(500), What::Status(404), What::CutBody];
    each(&Stored::new(PRIVATE), &faults, |stored, choice, what| {
        for after in 0.. {
            let experiment = stored.open(impatient(stored)).unwrap();
            let measurement = experiment.measurement("RNA").unwrap();
            stored.server.fault_after(X, after, usize::MAX, what.clone());
            let read = in_time(|| every_cell(&*measurement.x("raw")?.reader(choice)?));
            stored.server.heal();
            match read {
                // Fewer requests than that were needed.
                Ok(cells) if cells == stored.cells() => break,
                Ok(_) => panic!("{choice}: {what:?} after {after}: other cells"),
                Err(error) => assert!(!text(&error).is_empty()),
            }
        }
    });
}

#[test]
fn an_experiment_behind_lasting_faults_is_an_error() {
    let stored = Stored::new(PUBLIC);
    for what in [What::Status(403), What::Status(503), What::HangUp, What::Silence] {
        stored.server.fault("", usize::MAX, what.clone());
        let error = text(&in_time(|| stored.open(impatient(&stored))).unwrap_err());
        assert!(error.contains("s3://public/atlas/experiment"), "{what:?}: {error}");
        stored.server.heal();
    }
    // Nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut config = stored.server.config();
    config.insert("vfs.s3.endpoint_override".to_owned(), format!("127.0.0.1:{port}"));
    let error = text(&in_time(|| stored.open(config)).unwrap_err());
    assert!(error.contains("s3://public/atlas/experiment"), "{error}");
}

#[test]
fn faults_at_random_end_in_the_cells_or_an_error() {
    let stored = Stored::new(PRIVATE);
    std::thread::scope(|scope| {
        for choice in READERS {
            let stored = stored.beside();
            scope.spawn(move || {
                let n_read =
                    (0..8).filter(|&seed| is_read_in_trouble(&stored, choice, seed)).count();
                assert!(n_read > 0, "{choice} got over none");
            });
        }
    });
}

fn is_read_in_trouble(stored: &Stored, choice: ReaderChoice, seed: u64) -> bool {
    stored.server.trouble(seed, 8);
    let read = in_time(|| every_cell(&*stored.reader(choice)?));
    stored.server.heal();
    match read {
        Ok(cells) => {
            assert!(cells == stored.cells(), "{choice}: seed {seed}: other cells");
            true
        }
        Err(error) => {
            assert!(!text(&error).is_empty());
            false
        }
    }
}

/// Unusable parameters are rejected by name, before a request.
#[test]
fn parameters_are_refused_by_name() {
    let stored = Stored::new(PRIVATE);
    let server = &stored.server;
    for (name, value) in [("soma.retry_limit_ms", "soon"), ("soma.request_limit_ms", "0")] {
        let mut config = server.config();
        config.insert(name.to_owned(), value.to_owned());
        let options = OpenOptions { config, ..OpenOptions::default() };
        let error = Experiment::open(&stored.uri(), &options).unwrap_err();
        let Error::Storage(storage::Error::Parameter { name: found, .. }) = &error else {
            panic!("{error}")
        };
        assert_eq!(found, name);
    }
    let mut config = server.config();
    config.insert("vfs.s3.custom_headers.x-tenant".to_owned(), "ada".to_owned());
    let experiment = stored.open(config).unwrap();
    let error = reader_of(&experiment, ReaderChoice::Native).unwrap_err();
    assert!(
        matches!(&error, Error::NotNative { reason, .. } if reason.contains("custom_headers")),
        "{error}"
    );
    let reader = reader_of(&experiment, ReaderChoice::Auto).unwrap();
    assert_eq!(reader.name(), "libtiledb");
    assert!(reader.why_not_native().unwrap().contains("x-tenant"), "{:?}", reader.why_not_native());
    assert_eq!(every_cell(&*reader).unwrap(), stored.cells());
}
