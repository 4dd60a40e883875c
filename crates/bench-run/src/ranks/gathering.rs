//! Waits until all ranks are ready, lets them begin, and until all are done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use bench_report::Status;

use super::message::RankEvent;
use crate::process::Failure;

/// Interval at which the user's wish to stop and the deadline are checked.
const GLANCE: Duration = Duration::from_millis(50);

/// How a run of ranks ended.
#[derive(Debug, PartialEq, Eq)]
pub enum RanksEnd {
    /// All ranks are done.
    Done,
    /// A rank failed, died, or was not ready in time. The others have to be ended.
    Failed {
        /// The rank.
        rank: u64,
        /// Why, with the rank and the number of ranks in its message.
        failure: Failure,
    },
    /// The user interrupted it.
    Interrupted,
}

/// State of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is known of it.
    Absent,
    /// It is preparing its task.
    Preparing,
    /// It waits for the start, or has begun.
    Ready,
    Done,
}

/// Waits for `world_size` ranks, calls `start` once when all are ready, and waits until all are
/// done. Passes every event to `on_event`, with its rank, and fails if that fails. The ranks must
/// be ready `within` this time from now.
pub fn gather_ranks<Answer>(
    world_size: u64,
    events: &Receiver<(u64, RankEvent<Answer>)>,
    within: Duration,
    interrupted: &AtomicBool,
    start: &mut dyn FnMut(),
    on_event: &mut dyn FnMut(u64, RankEvent<Answer>) -> anyhow::Result<()>,
) -> anyhow::Result<RanksEnd> {
    let mut states = vec![State::Absent; world_size as usize];
    let (mut has_begun, ready_by) = (false, Instant::now() + within);
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(RanksEnd::Interrupted);
        }
        let late = (!has_begun && ready_by <= Instant::now()).then(|| late(&states, within));
        if let Some((rank, message)) = late {
            let failure = Failure { status: Status::Error, message, peak_bytes: None };
            return Ok(RanksEnd::Failed { rank, failure });
        }
        let (rank, event) = match events.recv_timeout(GLANCE) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => continue,
            // Each rank's thread says how the rank ended before it drops its sender.
            Err(RecvTimeoutError::Disconnected) => {
                ensure!(interrupted.load(Ordering::Relaxed), "the ranks ended without a word");
                return Ok(RanksEnd::Interrupted);
            }
        };
        let Some(state) = states.get_mut(rank as usize) else { continue };
        match &event {
            RankEvent::Failed { status, message, peak_bytes } => {
                let message = format!("rank {rank} of {world_size}: {message}");
                let failure = Failure { status: *status, message, peak_bytes: *peak_bytes };
                // Ctrl-C reaches the ranks' processes, too, and may end them before this checks.
                if interrupted.load(Ordering::Relaxed) {
                    return Ok(RanksEnd::Interrupted);
                }
                return Ok(RanksEnd::Failed { rank, failure });
            }
            RankEvent::Done => *state = State::Done,
            RankEvent::Ready => *state = State::Ready,
            _ if *state == State::Absent => *state = State::Preparing,
            _ => {}
        }
        on_event(rank, event)?;
        if !has_begun && states.iter().all(|state| *state == State::Ready) {
            has_begun = true;
            start();
        }
        if states.iter().all(|state| *state == State::Done) {
            return Ok(RanksEnd::Done);
        }
    }
}

/// The first rank that is not ready, and a message about all of them.
fn late(states: &[State], within: Duration) -> (u64, String) {
    let ranks_in = |wanted: State| -> Vec<u64> {
        let numbered = states.iter().zip(0..);
        numbered.filter(|(state, _)| **state == wanted).map(|(_, rank)| rank).collect()
    };
    let (absent, preparing) = (ranks_in(State::Absent), ranks_in(State::Preparing));
    let list = |ranks: &[u64]| ranks.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let words = [(&absent, "never came"), (&preparing, "were not ready to begin")];
    let words = words.into_iter().filter(|(ranks, _)| !ranks.is_empty());
    let words: Vec<String> =
        words.map(|(ranks, what)| format!("ranks {} {what}", list(ranks))).collect();
    let first = absent.iter().chain(&preparing).min().copied().unwrap_or(0);
    let (n, secs) = (states.len(), within.as_secs_f64());
    (first, format!("of {n} ranks, {} within {secs} s", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const LONG: Duration = Duration::from_hours(1);

    fn gather(
        world_size: u64,
        events: Vec<(u64, RankEvent<u32>)>,
        within: Duration,
    ) -> (RanksEnd, usize, usize) {
        let (sender, receiver) = channel();
        for event in events {
            sender.send(event).unwrap();
        }
        let (mut n_starts, mut n_events) = (0, 0);
        let end = gather_ranks(
            world_size,
            &receiver,
            within,
            &AtomicBool::new(false),
            &mut || n_starts += 1,
            &mut |_, _| {
                n_events += 1;
                Ok(())
            },
        );
        (end.unwrap(), n_starts, n_events)
    }

    #[test]
    fn all_begin_once_and_end() {
        let events = vec![
            (1, RankEvent::Ready),
            (0, RankEvent::Answer(1)),
            (0, RankEvent::Ready),
            (0, RankEvent::Done),
            (1, RankEvent::Answer(2)),
            (1, RankEvent::Done),
        ];
        assert_eq!(gather(2, events, LONG), (RanksEnd::Done, 1, 6));
    }

    #[test]
    fn one_that_fails_ends_all_with_its_reason() {
        let events = vec![(0, RankEvent::Ready), (1, RankEvent::lost("killed"))];
        let (end, n_starts, _) = gather(2, events, LONG);
        let RanksEnd::Failed { rank, failure } = end else { panic!("{end:?}") };
        assert_eq!((rank, failure.message.as_str(), n_starts), (1, "rank 1 of 2: killed", 0));
    }

    #[test]
    fn ranks_that_do_not_come_or_stay_busy_are_named_in_time() {
        let events = vec![(0, RankEvent::Ready), (2, RankEvent::Answer(1))];
        let (end, n_starts, _) = gather(4, events, Duration::from_millis(60));
        let RanksEnd::Failed { rank, failure } = end else { panic!("{end:?}") };
        assert_eq!((rank, n_starts), (1, 0));
        let expected =
            "of 4 ranks, ranks 1, 3 never came, ranks 2 were not ready to begin within 0.06 s";
        assert_eq!(failure.message, expected);
    }

    #[test]
    fn an_interrupt_ends_the_wait() {
        let (_sender, receiver) = channel::<(u64, RankEvent<u32>)>();
        let (interrupted, mut start) = (AtomicBool::new(true), || {});
        let end = gather_ranks(1, &receiver, LONG, &interrupted, &mut start, &mut |_, _| Ok(()));
        assert_eq!(end.unwrap(), RanksEnd::Interrupted);
    }
}
