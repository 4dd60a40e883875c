//! Digest of a measurement's conditions. Rows with the same digest are of the same measurement,
//! which need not be repeated.
//!
//! It covers the program, byte for byte; the data's files with their sizes and modification times,
//! and the selection; the machine; the versions of the libraries; TileDB's settings (only the names
//! of those that may be secret); and the settings of the point except its number of epochs, since
//! an epoch does not depend on later ones. It does not cover the results folder, metadata and
//! output.

use std::path::Path;

use bench_report::{HostInfo, Versions};
use bench_run::{DataFile, Holder, IoLimit, digest, digest_of_program};

use crate::data::{Data, Opened};
use crate::point::Point;

/// Conditions that all points of a sweep share.
#[derive(Debug)]
pub struct Conditions {
    shared: String,
}

impl Conditions {
    /// Reads the program and lists the data's files. Fails if that is not possible.
    pub fn new(
        program: &Path,
        data: &Data,
        opened: &Opened,
        host: &HostInfo,
        versions: &Versions,
    ) -> anyhow::Result<Self> {
        let files: Vec<_> = data.files()?.iter().map(DataFile::identity).collect();
        let machine = (
            (&host.hostname, &host.cpu_model, host.n_cores, host.memory_bytes),
            (host.memory_limit_bytes, &host.kernel, &host.gpu),
        );
        // Without secrets, so that nobody can guess them from a recorded digest.
        let mut data = data.without_secrets();
        if let Some(IoLimit { by: Holder::Kernel(group), .. }) = &mut data.io_limit {
            // The group has another name in each run.
            group.clear();
        }
        // Its server has another port in each run.
        data.link = data.link.map(|link| link.without_address());
        let shared = (digest_of_program(program)?, data, opened, machine, versions, files);
        Ok(Self { shared: digest(&shared)? })
    }

    /// Returns the digest of a point; `limit_by` is the way in which its memory is limited.
    pub fn digest(&self, point: &Point, limit_by: Option<&str>) -> anyhow::Result<String> {
        let point = Point { n_epochs: 0, ..point.clone() };
        digest(&(&self.shared, point, limit_by))
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use bench_run::LinkAccess;
    use loader::{BlockForm, LoaderSpec};

    use super::*;
    use crate::point::point_for_tests;

    fn conditions(
        uri: &Path,
        change: impl FnOnce(&mut Data, &mut Opened, &mut HostInfo),
    ) -> Conditions {
        let mut data = Data { uri: uri.to_str().unwrap().into(), ..Data::default() };
        let (mut opened, mut host) = (Opened::default(), HostInfo::default());
        change(&mut data, &mut opened, &mut host);
        let program = std::env::current_exe().unwrap();
        Conditions::new(&program, &data, &opened, &host, &Versions::default()).unwrap()
    }

    #[test]
    fn whatever_changes_what_is_measured_changes_the_digest() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "1").unwrap();
        let point = point_for_tests();
        let digest_of = |conditions: &Conditions| conditions.digest(&point, None).unwrap();
        let same = conditions(folder.path(), |_, _, _| {});
        assert_eq!(digest_of(&same), digest_of(&conditions(folder.path(), |_, _, _| {})));
        let held = |by: Holder| {
            let bytes_per_second = NonZeroU64::MIN;
            conditions(folder.path(), |data, _, _| {
                data.io_limit = Some(IoLimit { bytes_per_second, by: by.clone() });
            })
        };
        let [one, other] = ["/a", "/b"].map(|group| digest_of(&held(Holder::Kernel(group.into()))));
        assert_eq!(one, other);
        let over = |link: &str, address: &str| {
            conditions(folder.path(), |data, _, _| {
                data.link = Some(LinkAccess {
                    link: link.into(),
                    address: address.into(),
                    ..LinkAccess::default()
                });
            })
        };
        assert_eq!(
            digest_of(&over("30ms", "127.0.0.1:1")),
            digest_of(&over("30ms", "127.0.0.1:2"))
        );
        let with = |change: fn(&mut LoaderSpec)| {
            let mut point = point.clone();
            change(&mut point.spec);
            same.digest(&point, None).unwrap()
        };
        let mut all = vec![
            digest_of(&same),
            one,
            digest_of(&held(Holder::Bucket)),
            same.digest(&point, Some("cgroup")).unwrap(),
            with(|spec| spec.pipeline.seed = 3),
            with(|spec| spec.pipeline.prefetch_batches = 9),
            with(|spec| spec.block_form = BlockForm::Dense),
            digest_of(&conditions(folder.path(), |data, _, _| {
                data.obs_filter = Some("nnz > 1".into());
            })),
            digest_of(&conditions(folder.path(), |data, _, _| {
                data.obs_columns.push("assay".into());
            })),
            digest_of(&conditions(folder.path(), |data, _, _| {
                drop(data.config.insert("a".into(), "1".into()));
            })),
            digest_of(&conditions(folder.path(), |_, opened, _| opened.total_nnz = 7)),
            digest_of(&over("30ms", "127.0.0.1:1")),
            digest_of(&over("31ms", "127.0.0.1:1")),
            digest_of(&conditions(folder.path(), |_, _, host| host.n_cores = 99)),
        ];
        let by_key = |key: &str| {
            let set = |data: &mut Data| data.config.insert("rest.token".into(), key.into());
            digest_of(&conditions(folder.path(), |data, _, _| drop(set(data))))
        };
        assert_eq!(by_key("one"), by_key("another"), "who signs in is no condition");
        all.push(by_key("one"));
        std::fs::write(folder.path().join("a"), "22").unwrap();
        all.push(digest_of(&conditions(folder.path(), |_, _, _| {})));
        let n_all = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), n_all, "{all:?}");
        assert_eq!(
            same.digest(&Point { n_epochs: 5, ..point.clone() }, None).unwrap(),
            digest_of(&same)
        );
    }
}
