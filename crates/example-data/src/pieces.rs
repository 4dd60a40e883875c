//! Pieces that several threads make and one thread consumes in order.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::Error;

/// Calls `make` for `0..n_pieces` on `n_threads` threads, and `take` with the results, in order, on
/// this one.
///
/// Thread `i` makes pieces `i`, `i + n_threads` and so on. Each thread has at most one finished
/// piece and one in progress, so at most `2 * n_threads` exist beside the one that `take` has. If
/// `take` fails, the threads end after their current piece.
pub(crate) fn in_order<T: Send>(
    n_pieces: u64,
    n_threads: usize,
    make: impl Fn(u64) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), Error>,
) -> Result<(), Error> {
    let n_threads = (n_threads as u64).min(n_pieces).max(1);
    thread::scope(|scope| {
        let mut receivers: Vec<Receiver<T>> = Vec::new();
        for first in 0..n_threads {
            let (sender, receiver) = sync_channel(1);
            let make = &make;
            thread::Builder::new()
                .name(format!("generate-{first}"))
                .spawn_scoped(scope, move || {
                    for piece_idx in (first..n_pieces).step_by(n_threads as usize) {
                        // The receiver is gone because `take` failed.
                        if sender.send(make(piece_idx)).is_err() {
                            return;
                        }
                    }
                })
                .map_err(|source| Error::Thread { source })?;
            receivers.push(receiver);
        }
        for piece_idx in 0..n_pieces {
            match receivers[(piece_idx % n_threads) as usize].recv() {
                Ok(piece) => take(piece)?,
                // The thread panicked; the scope propagates that when it joins.
                Err(_) => break,
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn pieces_come_in_order_whatever_the_number_of_threads() {
        for n_threads in [1, 2, 3, 8] {
            for n_pieces in [0, 1, 2, 7, 50] {
                let mut squares = Vec::new();
                in_order(
                    n_pieces,
                    n_threads,
                    |piece| piece * piece,
                    |square| {
                        squares.push(square);
                        Ok(())
                    },
                )
                .unwrap();
                assert_eq!(squares, (0..n_pieces).map(|piece| piece * piece).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_slow_taker_holds_the_makers_back() {
        let made = AtomicU64::new(0);
        let mut n_taken = 0;
        in_order(
            100,
            3,
            |_| made.fetch_add(1, Ordering::SeqCst),
            |_| {
                n_taken += 1;
                thread::sleep(std::time::Duration::from_millis(1));
                assert!(made.load(Ordering::SeqCst) <= n_taken + 2 * 3);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(n_taken, 100);
    }

    #[test]
    fn a_failure_ends_the_makers() {
        let made = AtomicU64::new(0);
        let result = in_order(
            1_000_000,
            4,
            |piece| {
                made.fetch_add(1, Ordering::SeqCst);
                piece
            },
            |piece| match piece {
                10 => Err(Error::Size { what: "piece", value: piece, least: 0, most: 9 }),
                _ => Ok(()),
            },
        );
        assert!(matches!(result, Err(Error::Size { value: 10, .. })));
        assert!(made.load(Ordering::SeqCst) < 30);
    }
}
