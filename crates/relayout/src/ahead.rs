//! Makes rows in a separate thread while earlier ones are written.

use std::sync::mpsc::sync_channel;
use std::thread;

use soma_io::CsrBuffers;

use crate::Error;

/// Buffers in circulation: one being filled, one waiting, one being used.
pub(crate) const BUFFERS: usize = 3;

/// Calls `make` in a separate thread until it has no more rows, and `take` on this thread with each
/// result, in order. `make` fills a buffer that is no longer in use. If either fails, the other
/// stops; the thread has ended when this returns.
pub(crate) fn ahead(
    mut make: impl FnMut(CsrBuffers) -> Result<Option<CsrBuffers>, Error> + Send,
    mut take: impl FnMut(&CsrBuffers) -> Result<(), Error>,
) -> Result<(), Error> {
    thread::scope(|scope| {
        let (full_out, full_in) = sync_channel(1);
        let (empty_out, empty_in) = sync_channel(BUFFERS);
        for _ in 0..BUFFERS {
            // The channel has room for all of them, and its other end is still here.
            drop(empty_out.send(CsrBuffers::default()));
        }
        let making = move || {
            for buffer in empty_in {
                let Some(made) = make(buffer)? else { break };
                // The receiver is gone because `take` failed; its error says why.
                if full_out.send(made).is_err() {
                    break;
                }
            }
            Ok(())
        };
        let builder = thread::Builder::new().name("relayout-read".to_owned());
        let maker =
            builder.spawn_scoped(scope, making).map_err(|source| Error::Thread { source })?;
        let mut taken = Ok(());
        for made in full_in {
            taken = take(&made);
            if taken.is_err() {
                break;
            }
            // The maker has ended if it has made everything.
            drop(empty_out.send(made));
        }
        drop(empty_out);
        let made = maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        taken.and(made)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f32) -> CsrBuffers {
        CsrBuffers { row_offsets: vec![0, 1], columns: vec![0], values: vec![value], n_columns: 1 }
    }

    #[test]
    fn all_that_is_made_is_taken_in_order() {
        let mut numbers = 0_u8..50;
        let mut taken = Vec::new();
        let make = |_| Ok(numbers.next().map(|number| row(number.into())));
        ahead(make, |made| {
            taken.push(made.values[0]);
            Ok(())
        })
        .unwrap();
        assert!(taken.into_iter().eq((0_u8..50).map(f32::from)));
    }

    #[test]
    fn an_error_of_either_side_ends_both() {
        let mut n_made = 0;
        let failed = ahead(
            |_| {
                n_made += 1;
                if n_made < 5 { Ok(Some(row(0.0))) } else { Err(Error::Interrupted) }
            },
            |_| Ok(()),
        );
        assert!(matches!(failed, Err(Error::Interrupted)));
        let mut n_taken = 0;
        let failed = ahead(
            |_| Ok(Some(row(0.0))),
            |_| {
                n_taken += 1;
                if n_taken < 3 { Ok(()) } else { Err(Error::Interrupted) }
            },
        );
        assert!(matches!(failed, Err(Error::Interrupted)));
        assert_eq!(n_taken, 3);
    }
}
