//! Threads that make parts, which come in their order.

use std::sync::mpsc::sync_channel;
use std::thread;

use crate::Error;

/// Makes the parts `0..n_parts` in `n_threads` threads (0 for one per processor) and passes them to
/// `take` on the calling thread, in their order. At most two parts a thread are made and not taken.
///
/// # Errors
/// The first error of `make`, in the order of parts, or of `take`; or a thread does not start.
pub(super) fn in_order<T: Send>(
    n_parts: u64,
    n_threads: usize,
    make: impl Fn(u64) -> Result<T, Error> + Sync,
    take: &mut dyn FnMut(u64, T) -> Result<(), Error>,
) -> Result<(), Error> {
    let n_threads = bench_run::n_threads(n_threads, n_parts);
    thread::scope(|scope| {
        let mut made = Vec::with_capacity(n_threads);
        for first in 0..n_threads {
            // A part waits here while its thread makes the next one.
            let (sender, receiver) = sync_channel(1);
            let make = &make;
            let run = move || {
                for part in (first as u64..n_parts).step_by(n_threads) {
                    // Nobody receives after an error.
                    if sender.send(make(part)).is_err() {
                        return;
                    }
                }
            };
            let named = thread::Builder::new().name(format!("sequences-{first}"));
            named.spawn_scoped(scope, run).map_err(|source| Error::Thread { source })?;
            made.push(receiver);
        }
        for (part, receiver) in (0..n_parts).zip(made.iter().cycle()) {
            // A thread that ended early has panicked; joining it passes that on.
            let Ok(made) = receiver.recv() else { break };
            take(part, made?)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_once_and_in_order() {
        for (n_parts, n_threads) in [(0, 3), (1, 3), (50, 1), (50, 4), (7, 0)] {
            let mut taken = Vec::new();
            let take = &mut |part, made| {
                taken.push((part, made));
                Ok(())
            };
            in_order(n_parts, n_threads, |part| Ok(part * 10), take).unwrap();
            let expected: Vec<(u64, u64)> = (0..n_parts).map(|part| (part, part * 10)).collect();
            assert_eq!(taken, expected);
        }
    }

    #[test]
    fn an_error_ends_all_threads() {
        let make = |part| if part == 5 { Err(Error::Interrupted) } else { Ok(part) };
        let mut n_taken = 0;
        let outcome = in_order(1_000_000, 3, make, &mut |_, _| {
            n_taken += 1;
            Ok(())
        });
        assert!(matches!(outcome, Err(Error::Interrupted)));
        assert_eq!(n_taken, 5);
        let outcome = in_order(1_000_000, 3, Ok, &mut |_, _| Err(Error::Interrupted));
        assert!(matches!(outcome, Err(Error::Interrupted)));
    }
}
