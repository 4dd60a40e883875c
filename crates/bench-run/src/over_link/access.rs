//! How a process reads a folder that is served over a link.

use std::collections::BTreeMap;

use bench_report::{GridPoint, LINK, LINK_CORES, LINK_FAULTS, Measured, Settings};
use link::{BUCKET, COUNTS_PATH, LinkCounts, LinkFaults, LinkSpec, client_settings};
use serde::{Deserialize, Serialize};

use crate::usage_error::UsageError;

/// A folder that a server gives over a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkAccess {
    /// Latency and rates, as a `link::LinkSpec` is written.
    pub link: String,
    /// Faults, as `link::LinkFaults` are written; `None` without.
    pub faults: Option<String>,
    /// Name of the served folder in the bucket: the same for the same folder, and another one for
    /// another, since a cache may keep files by their names. (An experiment that is a whole bucket
    /// has no name, which not every reader takes.)
    pub name: String,
    /// Host and port of the server; another one in each run.
    pub address: String,
    /// Cores that the server has for itself; `None` if it shares those of the measured process.
    pub cores: Option<u64>,
    /// Bytes in the files that an epoch over all samples needs, if known.
    pub stored_bytes: Option<u64>,
}

impl LinkAccess {
    /// The bucket of every server.
    pub const BUCKET: &str = BUCKET;

    /// The address of the folder in the way of S3.
    pub fn uri(&self) -> String {
        format!("s3://{}/{}", Self::BUCKET, self.name)
    }

    /// The address at which the server gives its counts.
    pub fn counts_uri(&self) -> String {
        format!("http://{}{COUNTS_PATH}", self.address)
    }

    /// Asks the server for its counts; the most requests under way begin anew.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn counts(&self) -> anyhow::Result<LinkCounts> {
        Ok(LinkCounts::take(&self.address)?)
    }

    /// Makes the server's faults start again, so that the next measured process meets the same
    /// faults as the one before. Does nothing over a link without faults.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn restart_faults(&self) -> anyhow::Result<()> {
        if self.faults.is_some() {
            LinkFaults::restart(&self.address)?;
        }
        Ok(())
    }

    /// Adds the settings of TileDB that read from the server to `config`.
    ///
    /// # Errors
    /// `config` has one of them already.
    pub fn configure(&self, config: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
        for (name, value) in client_settings(&self.address) {
            if config.insert(name.to_owned(), value).is_some() {
                let message = format!("--link sets {name} itself: leave out --config {name}");
                return Err(UsageError::new(message).into());
            }
        }
        Ok(())
    }

    /// The same without the server's address: the conditions of a measurement.
    #[must_use]
    pub fn without_address(&self) -> Self {
        Self { address: String::new(), ..self.clone() }
    }

    /// Enters the link in the settings of a row.
    pub fn enter(&self, point: &mut GridPoint) {
        point.settings.set_all(
            Settings::default()
                .with(LINK, &self.link)
                .with_some(LINK_FAULTS, self.faults.as_ref())
                .with_some(LINK_CORES, self.cores),
        );
    }

    /// Enters an epoch's counts beside their floors. `share` is the share of the stored bytes that
    /// the epoch needed, if known.
    pub fn enter_counts(&self, used: &LinkCounts, share: Option<f64>, measured: &mut Measured) {
        let spec: LinkSpec = self.link.parse().unwrap_or_default();
        measured.link_requests = Some(used.requests);
        measured.link_bytes = Some(used.bytes_sent);
        measured.link_connections = Some(used.connections);
        measured.link_most_under_way = Some(used.most_under_way);
        measured.link_faults_met = self.faults.as_ref().map(|_| used.faults);
        let needed = self.stored_bytes.zip(share.filter(|share| (0.0..=1.0).contains(share)));
        measured.link_needed_bytes = needed.map(|(bytes, share)| (bytes as f64 * share) as u64);
        measured.link_bytes_floor_secs = measured
            .link_needed_bytes
            .zip(spec.total_bytes_per_sec)
            .map(|(bytes, rate)| bytes as f64 / rate.get() as f64);
        let rounds = used.requests as f64 / used.most_under_way.max(1) as f64;
        measured.link_latency_floor_secs = Some(rounds * spec.latency.as_secs_f64());
        let elapsed = measured.elapsed.filter(|secs| 0.0 < *secs);
        measured.link_server_cpu_share = elapsed.map(|secs| used.cpu_secs / secs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> LinkAccess {
        LinkAccess {
            link: "30ms,90MB/s,1GB/s".into(),
            address: "127.0.0.1:9".into(),
            stored_bytes: Some(4_000_000_000),
            ..LinkAccess::default()
        }
    }

    #[test]
    fn settings_are_added_and_not_replaced() {
        let mut config = BTreeMap::from([("soma.x".to_owned(), "1".to_owned())]);
        access().configure(&mut config).unwrap();
        assert_eq!((config["vfs.s3.endpoint_override"].as_str(), config.len()), ("127.0.0.1:9", 6));
        let error = access().configure(&mut config).unwrap_err().to_string();
        assert!(error.contains("leave out --config vfs.s3."), "{error}");
    }

    #[test]
    fn counts_come_with_their_floors() {
        let used = LinkCounts {
            requests: 100,
            bytes_sent: 9,
            most_under_way: 20,
            cpu_secs: 3.0,
            ..LinkCounts::default()
        };
        let mut measured = Measured { elapsed: Some(6.0), ..Measured::default() };
        access().enter_counts(&used, Some(0.5), &mut measured);
        assert_eq!(measured.link_needed_bytes, Some(2_000_000_000));
        assert_eq!(measured.link_bytes_floor_secs, Some(2.0));
        assert_eq!(measured.link_latency_floor_secs, Some(0.15));
        assert_eq!(measured.link_server_cpu_share, Some(0.5));
        assert_eq!(measured.link_faults_met, None);
        access().enter_counts(&used, None, &mut measured);
        assert_eq!((measured.link_needed_bytes, measured.link_bytes_floor_secs), (None, None));
    }
}
