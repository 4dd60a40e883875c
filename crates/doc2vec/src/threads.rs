//! Threads that train beside the caller, each on word vectors of its own.
//!
//! Threads that write to the same rows, as word2vec's and gensim's do, make the processors exchange
//! the memory of each row; a small vocabulary makes that the main cost. With copies that are merged
//! at fixed places the result also does not depend on timing.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::document::{Rules, WordRows};
use crate::error::Error;
use crate::part::Part;

/// A part to train on, and the word vectors to train, both returned trained.
#[derive(Debug, Default)]
pub(crate) struct Work<const N: usize> {
    pub(crate) part: Part<N>,
    pub(crate) words: WordRows<N>,
}

/// A thread that trains on one part at a time. Joined when it is dropped.
#[derive(Debug)]
pub(crate) struct TrainingThread<const N: usize> {
    name: String,
    /// None once the thread should end.
    orders: Option<Sender<Work<N>>>,
    results: Receiver<Work<N>>,
    handle: Option<JoinHandle<()>>,
}

impl<const N: usize> TrainingThread<N> {
    /// Starts the thread.
    pub(crate) fn start(number: usize, rules: Arc<Rules>) -> Result<Self, Error> {
        let name = format!("doc2vec-{number}");
        let (orders, ordered) = channel::<Work<N>>();
        let (finished, results) = channel();
        let train_all = move || {
            for mut work in ordered {
                work.part.train(&rules, &mut work.words);
                // Nobody receives if the trainer is being dropped.
                if finished.send(work).is_err() {
                    return;
                }
            }
        };
        let handle = thread::Builder::new()
            .name(name.clone())
            .spawn(train_all)
            .map_err(|source| Error::StartThread { name: name.clone(), source })?;
        Ok(Self { name, orders: Some(orders), results, handle: Some(handle) })
    }

    /// Hands over work; [`finish`](Self::finish) returns it.
    pub(crate) fn begin(&self, work: Work<N>) -> Result<(), Error> {
        let sent = self.orders.as_ref().map(|orders| orders.send(work).is_ok());
        if sent == Some(true) { Ok(()) } else { Err(self.ended()) }
    }

    /// Waits for the work that was handed over.
    pub(crate) fn finish(&self) -> Result<Work<N>, Error> {
        self.results.recv().map_err(|_| self.ended())
    }

    fn ended(&self) -> Error {
        Error::ThreadEnded { name: self.name.clone() }
    }
}

impl<const N: usize> Drop for TrainingThread<N> {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(handle) = self.handle.take() {
            // A panic was reported when its work did not return.
            drop(handle.join());
        }
    }
}
