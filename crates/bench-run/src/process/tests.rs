//! Tests of processes that end in every way, and of all kinds of events.

use super::*;
use crate::order::Order;
use std::collections::BTreeMap;
use std::time::Instant;

/// Number of cells and a message.
type Answer = (u64, String);

fn process(command: Command) -> ProcessSpec<'static> {
    let order = Order { cache: "warm".to_owned(), task: () };
    ProcessSpec::new(command, &order, secrets()).unwrap()
}

fn secrets() -> Secrets {
    Secrets::in_task("s3://ada:hunter22@b/x", &BTreeMap::new(), Vec::new())
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn run_script(script: &str) -> (Ended, Vec<Event<Answer>>) {
    let mut events = Vec::new();
    let ended = process(shell(script)).run(&AtomicBool::new(false), &mut |event| {
        events.push(event);
        Ok(())
    });
    (ended.unwrap(), events)
}

#[track_caller]
fn fails(script: &str, status: Status, expect: &str) {
    match run_script(script).0 {
        Ended::Failed(failure) => {
            assert_eq!(failure.status, status, "{failure:?}");
            assert!(
                failure.message.contains(expect) && failure.message.lines().count() == 1,
                "{failure:?}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn events_come_in_order_and_noise_is_passed_over() {
    let script = r#"cat >/dev/null; echo noise; echo 3; echo '{"Answer":[3,"for hunter22"]}'
            echo '{"Progress":{"n_rows":1,"of_rows":3}}'; echo '"Done"'"#;
    let (ended, events) = run_script(script);
    assert!(matches!(ended, Ended::Done { .. }), "{ended:?}");
    assert_eq!(
        events,
        [Event::Answer((3, "for ***".to_owned())), Event::Progress { n_rows: 1, of_rows: 3 }]
    );
}

#[test]
fn the_order_comes_on_stdin() {
    let script = r#"grep -q '"cache":"warm"' && echo '"Done"'"#;
    let (ended, _) = run_script(script);
    assert!(matches!(ended, Ended::Done { .. }), "{ended:?}");
}

#[test]
fn every_end_has_its_row() {
    fails(
        r#"echo '{"Failed":{"message":"no such layer"}}'; exit 1"#,
        Status::Error,
        "no such layer",
    );
    fails(
        r#"echo '{"Failed":{"message":"torch: not enough memory"}}'; exit 1"#,
        Status::Oom,
        "not enough memory",
    );
    fails(
        r#"echo '{"Failed":{"message":"cannot get 655360000 bytes for a dense block of 8192 rows"}}'; exit 1"#,
        Status::Oom,
        "655360000",
    );
    fails("kill -9 $$", Status::Oom, "killed (signal 9)");
    fails("kill -11 $$", Status::Crashed, "signal 11 (segmentation fault)");
    fails(
        "echo 'memory allocation of 8 bytes failed' >&2; kill -6 $$",
        Status::Oom,
        "memory allocation of 8 bytes",
    );
    fails("exit 0", Status::Crashed, "without a result");
    fails("echo first >&2; echo last >&2; exit 3", Status::Crashed, "exit code 3: last");
    let panic = "echo \"thread 'main' panicked at x.rs:1:1:\" >&2; echo 'index out of bounds' >&2; echo 'note: run with' >&2; exit 101";
    fails(panic, Status::Crashed, "exit code 101: index out of bounds");
    fails("echo '\"Done\"'; kill -11 $$", Status::Crashed, "signal 11");
}

#[test]
fn peak_memory_of_a_killed_process_is_known() {
    let Ended::Failed(failure) = run_script("sleep 0.3; kill -9 $$").0 else {
        panic!("it ended well")
    };
    assert!(failure.peak_bytes.is_some_and(|bytes| 100_000 < bytes), "{failure:?}");
}

#[test]
fn an_interrupt_ends_the_process_soon() {
    let (interrupted, start) = (AtomicBool::new(false), Instant::now());
    let answers = process(shell("echo '{\"Answer\":[0,\"\"]}'; exec sleep 60"));
    let ended = answers.run(&interrupted, &mut |_: Event<Answer>| {
        interrupted.store(true, Ordering::Relaxed);
        Ok(())
    });
    assert_eq!(ended.unwrap(), Ended::Interrupted);
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn an_interrupt_ends_a_process_that_does_not_read_its_order() {
    let start = Instant::now();
    // The order is longer than a pipe's buffer.
    let command = shell("exec sleep 60");
    let process = ProcessSpec::new(command, &"x".repeat(1 << 20), secrets()).unwrap();
    let ended = process.run(&AtomicBool::new(true), &mut |_: Event<Answer>| Ok(()));
    assert_eq!(ended.unwrap(), Ended::Interrupted);
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn an_error_in_between_ends_the_process_and_is_handed_on() {
    let start = Instant::now();
    let answers = process(shell("echo '{\"Answer\":[0,\"\"]}'; exec sleep 60"));
    let ended = answers
        .run(&AtomicBool::new(false), &mut |_: Event<Answer>| anyhow::bail!("the disk is full"));
    assert_eq!(ended.unwrap_err().to_string(), "the disk is full");
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_program_that_cannot_start_is_an_error() {
    let missing = process(Command::new("/nonexistent/program"));
    let ended = missing.run(&AtomicBool::new(false), &mut |_: Event<Answer>| Ok(()));
    assert!(format!("{:#}", ended.unwrap_err()).contains("cannot start a process"));
}

#[test]
fn only_the_last_lines_are_kept() {
    let text = (0..1000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
    let kept = last_lines(text.as_bytes());
    assert_eq!(kept.lines().count(), LAST_LINES);
    assert!(kept.ends_with("line 999"));
}
