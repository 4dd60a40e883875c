//! Counts of a link's server during an epoch, requested by the measured process.

use bench_report::Measured;
use link::LinkCounts;

use super::access::LinkAccess;

/// Counts from the start of a measured process, epoch by epoch.
#[derive(Debug)]
pub struct LinkMeter {
    access: LinkAccess,
    /// When the process began.
    start: LinkCounts,
    /// When the first epoch began, and then when the last one ended.
    before: LinkCounts,
    /// Requests before the first epoch, until a row has them.
    open_requests: Option<u64>,
    has_epochs: bool,
}

impl LinkMeter {
    /// Begins before the data is opened.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn start(access: &LinkAccess) -> anyhow::Result<Self> {
        let start = access.counts()?;
        let access = access.clone();
        Ok(Self { access, start, before: start, open_requests: None, has_epochs: false })
    }

    /// Begins an epoch. A later epoch has begun when the one before ended: its first blocks may be
    /// read between the two.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn begin_epoch(&mut self) -> anyhow::Result<()> {
        if !self.has_epochs {
            self.before = self.access.counts()?;
            self.open_requests = Some(self.before.since(&self.start).requests);
        }
        self.has_epochs = true;
        Ok(())
    }

    /// Returns the counts of the epoch, which has just ended.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn end_epoch(&mut self) -> anyhow::Result<LinkCounts> {
        let now = self.access.counts()?;
        let used = now.since(&self.before);
        self.before = now;
        Ok(used)
    }

    /// Enters the counts of an epoch, whose time is known, beside their floors; with the first
    /// epoch also the requests before it. `share` is the share of the stored bytes that the epoch
    /// needed, if known.
    pub fn enter(&mut self, used: &LinkCounts, share: Option<f64>, measured: &mut Measured) {
        self.access.enter_counts(used, share, measured);
        measured.link_open_requests = self.open_requests.take();
    }
}
