//! The process of a rank, followed by a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use anyhow::{Context as _, ensure};
use serde::de::DeserializeOwned;

use super::message::RankEvent;
use crate::process::{Ended, ProcessSpec, StartSignal};

/// A rank's process on this machine. Dropping it kills the process.
#[derive(Debug)]
pub struct RankProcess {
    start: StartSignal,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RankProcess {
    /// Starts the process and passes its events to `send` until it has ended, which is the last
    /// event; `send` returns whether somebody still listens. Fails if there is no thread to follow
    /// it.
    pub fn spawn<Answer: DeserializeOwned>(
        mut process: ProcessSpec<'static>,
        send: impl Fn(RankEvent<Answer>) -> bool + Send + 'static,
    ) -> anyhow::Result<Self> {
        let (start, stop) = (StartSignal::default(), Arc::new(AtomicBool::new(false)));
        process.start = Some(start.clone());
        let stop_thread = Arc::clone(&stop);
        let follow = move || {
            let ended = process.run(&stop_thread, &mut |event| {
                let heard = RankEvent::from_event(event).is_none_or(&send);
                ensure!(heard, "the command has ended");
                Ok(())
            });
            let end = match ended {
                Ok(Ended::Done { .. }) => RankEvent::Done,
                Ok(Ended::Failed(failure)) => RankEvent::failed(failure),
                // The caller that interrupted it needs no event.
                Ok(Ended::Interrupted) => return,
                Err(error) => RankEvent::lost(format!("{error:#}")),
            };
            send(end);
        };
        let thread = Builder::new().name("rank".to_owned()).spawn(follow);
        let thread = thread.context("cannot start a thread that follows a rank")?;
        Ok(Self { start, stop, thread: Some(thread) })
    }

    /// Lets the process begin.
    pub fn start(&self) {
        self.start.give();
    }
}

impl Drop for RankProcess {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported when it happened.
            let _panicked = thread.join();
        }
    }
}
