//! All that a measurement depends on, as a digest: rows that have the same are of the same thing, and need not be measured again.
//!
//! In it are the program itself, byte for byte; the data's files with their sizes and times of
//! change, and what was selected of them; the machine; the versions of the libraries; TileDB's
//! settings (those that may be secrets by name alone); and the settings of the point but its number
//! of epochs, since an epoch depends on none that comes later. Not in it are the results' folder,
//! what is only noted, and what is shown.

use std::hash::Hasher as _;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use bench_report::{HostInfo, Versions};
use serde::Serialize;
use twox_hash::XxHash3_64;

use crate::io_limit::{Holder, IoLimit};
use crate::job::{Data, Opened, Point};
use crate::{page_cache, secrets};

/// What all points of a sweep share.
#[derive(Debug)]
pub(crate) struct Conditions {
    shared: String,
}

impl Conditions {
    pub(crate) fn new(
        program: &Path,
        data: &Data,
        opened: &Opened,
        host: &HostInfo,
        versions: &Versions,
    ) -> anyhow::Result<Self> {
        let files = page_cache::files(data)
            .with_context(|| format!("cannot list the files of {}", data.uri))?;
        let files: Vec<_> = files
            .iter()
            .map(|file| (file.path.display().to_string(), file.bytes, file.changed.to_string()))
            .collect();
        let machine = (
            (&host.hostname, &host.cpu_model, host.n_cores, host.memory_bytes),
            (host.memory_limit_bytes, &host.kernel, &host.gpu),
        );
        // Without secrets: what is recorded must not be a means to guess them.
        let mut data = secrets::of_record(data);
        if let Some(IoLimit { by: Holder::Kernel(group), .. }) = &mut data.io_limit {
            // It has another name in each run.
            group.clear();
        }
        let shared = (digest_of_file(program)?, data, opened, machine, versions, files);
        Ok(Self { shared: digest(&shared)? })
    }

    /// The digest of a point, whose process is held to a limit by these means.
    pub(crate) fn of(&self, point: &Point, limit_by: Option<&str>) -> anyhow::Result<String> {
        let point = Point { n_epochs: 0, ..point.clone() };
        digest(&(&self.shared, point, limit_by))
    }
}

/// 16 hexadecimal digits of what `of` is written as.
pub(crate) fn digest(of: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string(of).context("cannot write down what a point depends on")?;
    let mut hasher = XxHash3_64::default();
    hasher.write(text.as_bytes());
    Ok(format!("{:016x}", hasher.finish()))
}

fn digest_of_file(path: &Path) -> anyhow::Result<String> {
    let what = || format!("cannot read the program {}", path.display());
    let mut file = std::fs::File::open(path).with_context(what)?;
    let (mut hasher, mut buffer) = (XxHash3_64::default(), vec![0; 1 << 20]);
    loop {
        let n_read = file.read(&mut buffer).with_context(what)?;
        if n_read == 0 {
            return Ok(format!("{:016x}", hasher.finish()));
        }
        hasher.write(&buffer[..n_read]);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::job::point_for_tests;

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
        let of = |conditions: &Conditions| conditions.of(&point, None).unwrap();
        let same = conditions(folder.path(), |_, _, _| {});
        assert_eq!(of(&same), of(&conditions(folder.path(), |_, _, _| {})));
        let held = |by: Holder| {
            let bytes_per_second = NonZeroU64::MIN;
            conditions(folder.path(), |data, _, _| {
                data.io_limit = Some(IoLimit { bytes_per_second, by: by.clone() });
            })
        };
        let [one, other] = ["/a", "/b"].map(|group| of(&held(Holder::Kernel(group.into()))));
        assert_eq!(one, other);
        let mut all = vec![
            of(&same),
            one,
            of(&held(Holder::Bucket)),
            same.of(&point, Some("cgroup")).unwrap(),
            same.of(&Point { seed: 3, ..point.clone() }, None).unwrap(),
            same.of(&Point { prefetch_batches: 9, ..point.clone() }, None).unwrap(),
            of(&conditions(folder.path(), |data, _, _| data.obs_filter = Some("nnz > 1".into()))),
            of(&conditions(folder.path(), |data, _, _| data.obs_columns.push("assay".into()))),
            of(&conditions(folder.path(), |data, _, _| {
                drop(data.config.insert("a".into(), "1".into()));
            })),
            of(&conditions(folder.path(), |_, opened, _| opened.total_nnz = 7)),
            of(&conditions(folder.path(), |_, _, host| host.n_cores = 99)),
        ];
        let by_key = |key: &str| {
            let set = |data: &mut Data| data.config.insert("rest.token".into(), key.into());
            of(&conditions(folder.path(), |data, _, _| drop(set(data))))
        };
        assert_eq!(by_key("one"), by_key("another"), "who signs in is no condition");
        all.push(by_key("one"));
        std::fs::write(folder.path().join("a"), "22").unwrap();
        all.push(of(&conditions(folder.path(), |_, _, _| {})));
        let n_all = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), n_all, "{all:?}");
        assert_eq!(same.of(&Point { n_epochs: 5, ..point.clone() }, None).unwrap(), of(&same));
    }
}
