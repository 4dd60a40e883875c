//! What a link's server does during an epoch, asked for by the measured process.

use bench_report::Measured;
use link::LinkCounts;

use super::access::LinkAccess;

/// Counts from the start of a measured process, epoch by epoch.
#[derive(Debug)]
pub struct LinkMeter {
    access: LinkAccess,
    /// When the process began.
    start: LinkCounts,
    /// When the epoch began.
    before: LinkCounts,
    has_epochs: bool,
}

impl LinkMeter {
    /// Begins before the data is opened.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn start(access: &LinkAccess) -> anyhow::Result<Self> {
        let start = access.counts()?;
        Ok(Self { access: access.clone(), start, before: start, has_epochs: false })
    }

    /// Begins an epoch.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn begin_epoch(&mut self) -> anyhow::Result<()> {
        self.before = self.access.counts()?;
        Ok(())
    }

    /// Returns the counts of the epoch, which has just ended.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn end_epoch(&self) -> anyhow::Result<LinkCounts> {
        Ok(self.access.counts()?.since(&self.before))
    }

    /// Enters the counts of an epoch, whose time is known, beside their floors; with the first
    /// epoch also the requests before it. `share` is the share of the stored bytes that the epoch
    /// needed, if known.
    pub fn enter(&mut self, used: &LinkCounts, share: Option<f64>, measured: &mut Measured) {
        self.access.enter_counts(used, share, measured);
        if !self.has_epochs {
            measured.link_open_requests = Some(self.before.since(&self.start).requests);
        }
        self.has_epochs = true;
    }
}
