//! Tests of meetings with real connections, and processes that only echo.

use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use bench_report::HostInfo;

use super::*;
use crate::process::ProcessSpec;
use crate::ranks::{RankZero, RanksEnd, follow_rank_zero, gather_ranks};
use crate::secrets::Secrets;

const LONG: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(200);
static NEVER: AtomicBool = AtomicBool::new(false);

fn host() -> HostInfo {
    HostInfo { hostname: "here".to_owned(), ..HostInfo::default() }
}

/// A process of a rank that is ready, begins, answers and ends.
fn echo(script: &str) -> ProcessSpec<'static> {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let secrets = Secrets::in_task("", &std::collections::BTreeMap::new(), Vec::new());
    ProcessSpec::new(command, &0, secrets).unwrap()
}

const WELL: &str = r#"read order; echo '"Ready"'; read begin; [ "$begin" = begin ] || exit 4
    echo '{"Answer":7}'; echo '"Done"'"#;

/// Joins a meeting as a rank and runs this script.
fn rank(
    folder: &Path,
    of: (u64, u64),
    settings: &'static str,
    script: &'static str,
) -> JoinHandle<anyhow::Result<RanksEnd>> {
    let folder = folder.to_owned();
    thread::spawn(move || {
        let zero = RankZero::join(&folder, &host(), of, settings, (LONG, &NEVER))?;
        follow_rank_zero::<u32>(zero.unwrap(), echo(script), &NEVER)
    })
}

type Events = (Sender<(u64, RankEvent<u32>)>, Receiver<(u64, RankEvent<u32>)>);

/// Opens a meeting; rank 0 is played by the test, which has a sender of its own.
fn open(folder: &Path, n: u64) -> (Meeting, Events) {
    let (sender, events) = channel();
    let settings = (n, "same".to_owned());
    (Meeting::open(folder, "here", settings, sender.clone()).unwrap(), (sender, events))
}

#[test]
fn ranks_meet_begin_and_end() {
    let folder = tempfile::tempdir().unwrap();
    // A file that an earlier run left, at a port where nobody listens.
    let old = Place { hostname: "here".to_owned(), port: 1, key: "old".to_owned() };
    old.write(folder.path()).unwrap();
    let ranks = [1, 2].map(|of| rank(folder.path(), (of, 3), "same", WELL));
    let (meeting, (zero, events)) = open(folder.path(), 3);
    zero.send((0, RankEvent::Ready)).unwrap();
    let mut seen = Vec::new();
    let mut start = || {
        meeting.start();
        zero.send((0, RankEvent::Done)).unwrap();
    };
    let end = gather_ranks(3, &events, LONG, &NEVER, &mut start, &mut |of, event| {
        seen.push((of, event));
        Ok(())
    });
    assert_eq!(end.unwrap(), RanksEnd::Done);
    for of in [1, 2] {
        let came = RankEvent::Came(Box::new(host()));
        let mine = seen.iter().filter(|(rank, _)| *rank == of).map(|(_, event)| event);
        let mine: Vec<_> = mine.collect();
        assert_eq!(mine, [&came, &RankEvent::Ready, &RankEvent::Answer(7), &RankEvent::Done]);
    }
    meeting.end(None);
    for rank in ranks {
        assert_eq!(rank.join().unwrap().unwrap(), RanksEnd::Done);
    }
    assert!(!Place::file(folder.path()).exists());
}

#[test]
fn a_rank_that_dies_ends_the_others_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (meeting, (_zero, events)) = open(folder.path(), 3);
    let dying = rank(folder.path(), (1, 3), "same", "read order; kill -9 $$");
    let waiting = rank(folder.path(), (2, 3), "same", WELL);
    let end = loop {
        if let (rank, RankEvent::Failed { message, .. }) = events.recv_timeout(LONG).unwrap() {
            break (rank, message);
        }
    };
    assert_eq!(end.0, 1);
    assert!(end.1.contains("killed (signal 9)"), "{}", end.1);
    meeting.end(Some(format!("rank 1 of 3: {}", end.1)));
    for rank in [dying, waiting] {
        let error = rank.join().unwrap().unwrap_err().to_string();
        assert!(error.starts_with("rank 1 of 3: killed"), "{error}");
    }
}

#[test]
fn a_rank_that_never_comes_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (meeting, (zero, events)) = open(folder.path(), 3);
    let one = rank(folder.path(), (1, 3), "same", WELL);
    while !matches!(events.recv_timeout(LONG).unwrap(), (1, RankEvent::Ready)) {}
    for rank in [0, 1] {
        zero.send((rank, RankEvent::Ready)).unwrap();
    }
    let mut start = || panic!("rank 2 is not there");
    let end = gather_ranks(3, &events, SHORT, &NEVER, &mut start, &mut |_, _| Ok(())).unwrap();
    let RanksEnd::Failed { failure, .. } = end else { panic!("{end:?}") };
    assert_eq!(failure.message, "of 3 ranks, ranks 2 never came within 0.2 s");
    meeting.end(Some(failure.message.clone()));
    assert_eq!(one.join().unwrap().unwrap_err().to_string(), failure.message);
}

#[test]
fn rank_zero_that_ends_or_never_comes_ends_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (meeting, (_zero, events)) = open(folder.path(), 2);
    let one = rank(folder.path(), (1, 2), "same", WELL);
    while !matches!(events.recv_timeout(LONG).unwrap(), (1, RankEvent::Ready)) {}
    drop(meeting);
    let error = one.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("rank 0 ended"), "{error}");
    let nobody = RankZero::join(folder.path(), &host(), (1, 2), "same", (SHORT, &NEVER));
    let error = nobody.unwrap_err().to_string();
    assert!(error.contains("found no rank 0 within 0.2 s"), "{error}");
}

#[test]
fn ranks_that_do_not_belong_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (of, settings, expect) in [
        ((1, 3), "same", "one of 3 ranks"),
        ((0, 2), "same", "two processes are rank 0"),
        ((2, 2), "same", "there is no rank 2"),
        ((1, 2), "other", "other settings"),
    ] {
        let (meeting, (_zero, events)) = open(folder.path(), 2);
        let joined = RankZero::join(folder.path(), &host(), of, settings, (LONG, &NEVER));
        let error = joined.unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
        let (_, event) = events.recv_timeout(LONG).unwrap();
        assert!(event.is_end(), "{event:?}");
        drop(meeting);
    }
}

#[test]
fn strangers_are_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    let (meeting, (_zero, events)) = open(folder.path(), 2);
    let place = Place::read(folder.path()).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(Place::file(folder.path())).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    let mut stream = TcpStream::connect(("127.0.0.1", place.port)).unwrap();
    let introduction = Introduction {
        key: "guessed".to_owned(),
        rank: 1,
        world_size: 2,
        settings: "same".to_owned(),
        host: host(),
    };
    write_message(&mut stream, &introduction).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "");
    assert!(events.try_recv().is_err());
    drop(meeting);
}
