//! Blocks that a thread is fetching. Others that miss them wait for its bytes instead of fetching
//! them again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::block::BlockId;

/// The blocks under way of a storage.
#[derive(Debug, Default)]
pub(super) struct Flights {
    under_way: Mutex<HashMap<BlockId, Arc<Flight>>>,
}

/// A block under way.
#[derive(Debug, Default)]
pub(super) struct Flight {
    landed: Mutex<Landed>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum Landed {
    #[default]
    NotYet,
    Failed,
    With(Bytes),
}

/// The duty to fetch a block. Dropping it ends the flight; if no bytes were given, others fetch the
/// block themselves.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    flights: &'a Flights,
    id: BlockId,
    flight: Arc<Flight>,
}

/// Who fetches a block.
#[derive(Debug)]
pub(super) enum Fetcher<'a> {
    Us(Claim<'a>),
    Others(Arc<Flight>),
}

impl Flights {
    pub(super) fn assign(&self, id: BlockId) -> Fetcher<'_> {
        match self.under_way().entry(id) {
            Entry::Occupied(other) => Fetcher::Others(Arc::clone(other.get())),
            Entry::Vacant(free) => {
                let flight = Arc::clone(free.insert(Arc::default()));
                Fetcher::Us(Claim { flights: self, id, flight })
            }
        }
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<BlockId, Arc<Flight>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    /// Waits for the bytes; `None` if there will be none.
    pub(super) fn wait(&self) -> Option<Bytes> {
        let mut landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*landed {
                Landed::NotYet => {
                    landed = self.changed.wait(landed).unwrap_or_else(PoisonError::into_inner);
                }
                Landed::Failed => return None,
                Landed::With(bytes) => return Some(bytes.clone()),
            }
        }
    }

    fn land(&self, with: Landed) {
        let mut landed = self.landed.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*landed, Landed::NotYet) {
            *landed = with;
            self.changed.notify_all();
        }
    }
}

impl Claim<'_> {
    /// Gives the bytes to those who wait.
    pub(super) fn give(&self, bytes: Bytes) {
        self.flight.land(Landed::With(bytes));
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.flights.under_way().remove(&self.id);
        self.flight.land(Landed::Failed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fetches_and_the_others_have_what_it_got() {
        let flights = Flights::default();
        let id = BlockId { object: [1; 16], idx: 2 };
        let Fetcher::Us(claim) = flights.assign(id) else { panic!("nobody else was there") };
        let Fetcher::Others(flight) = flights.assign(id) else { panic!("it is claimed") };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| flight.wait());
            claim.give(Bytes::from_static(b"abc"));
            assert_eq!(waiting.join().unwrap().as_deref(), Some(&b"abc"[..]));
        });
        drop(claim);
        let Fetcher::Us(claim) = flights.assign(id) else { panic!("it has ended") };
        let Fetcher::Others(flight) = flights.assign(id) else { panic!("it is claimed") };
        drop(claim);
        assert_eq!(flight.wait(), None);
    }
}
