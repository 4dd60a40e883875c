//! Applies `--io-limit` to a reader: chooses the native reader's token bucket or the kernel's
//! limit, and measures the read rate.

use bench_run::{Address, Holder, IoLimit, KernelLimit, LimitBy, Rate, UsageError, Version};
use soma_io::ReaderChoice;

/// A limit that is in force until this is dropped.
#[derive(Debug)]
pub struct IoLimitInForce {
    /// The limit.
    pub limit: IoLimit,
    /// Reason for the means that enforce it.
    pub why: String,
    group: Option<KernelLimit>,
}

impl IoLimitInForce {
    /// Returns the version of the control group that processes join; `None` for the bucket.
    pub fn group_version(&self) -> Option<Version> {
        self.group.as_ref().map(KernelLimit::version)
    }
}

/// Decides what enforces a rate for the data at `uri`. Fails if nothing can enforce it.
pub fn decide(
    rate: Rate,
    by: LimitBy,
    reader: ReaderChoice,
    uri: &Address,
) -> anyhow::Result<IoLimitInForce> {
    let bytes_per_second = rate.bytes_per_second();
    let kernel = || KernelLimit::make(uri.local_path().as_deref(), bytes_per_second);
    let by_bucket = |why: &str| IoLimitInForce {
        limit: IoLimit { bytes_per_second, by: Holder::Bucket },
        why: why.to_owned(),
        group: None,
    };
    let by_kernel = |group: KernelLimit, why: &str| IoLimitInForce {
        limit: IoLimit { bytes_per_second, by: Holder::Kernel(group.folder().to_owned()) },
        why: why.to_owned(),
        group: Some(group),
    };
    let usage = |message: String| anyhow::Error::from(UsageError::new(message));
    match (by, reader) {
        (LimitBy::Bucket, ReaderChoice::Libtiledb) => Err(usage(
            "--io-limit-by bucket does not hold libtiledb, whose reads it does not see: take --reader native, or --io-limit-by kernel"
                .to_owned(),
        )),
        (LimitBy::Bucket, _) => Ok(by_bucket("as asked for")),
        (LimitBy::Auto, ReaderChoice::Libtiledb) => match kernel() {
            Ok(group) => Ok(by_kernel(group, "for libtiledb's reads are not seen by a bucket")),
            Err(why) => Err(usage(format!(
                "--io-limit cannot hold --reader libtiledb, whose reads a bucket does not see, for the kernel's limit cannot be had: {why}; take --reader native"
            ))),
        },
        (LimitBy::Auto, _) => {
            Ok(by_bucket("which counts what the reader asks for, in the page cache or not"))
        }
        (LimitBy::Kernel, _) => match kernel() {
            Ok(group) => Ok(by_kernel(group, "as asked for; what is in the page cache is free")),
            Err(why) => Err(usage(format!("--io-limit-by kernel cannot be had: {why}"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use bench_report::{Measured, Status};
    use bench_run::LimitMeter;

    use super::*;

    #[test]
    fn libtiledb_is_not_held_by_a_bucket() {
        let rate = "1MB/s".parse().unwrap();
        let error =
            decide(rate, LimitBy::Bucket, ReaderChoice::Libtiledb, &"x".into()).unwrap_err();
        assert!(error.to_string().contains("take --reader native"), "{error}");
        // Data in a store is not on a device that the kernel could limit.
        for by in [LimitBy::Auto, LimitBy::Kernel] {
            let error = decide(rate, by, ReaderChoice::Libtiledb, &"s3://b/x".into()).unwrap_err();
            assert!(error.to_string().contains("not on a disk of this machine"), "{error}");
        }
        let decided = decide(rate, LimitBy::Auto, ReaderChoice::Auto, &"s3://b/x".into()).unwrap();
        assert_eq!(decided.limit.to_string(), "1.0 MB/s by bucket");
    }

    #[test]
    fn a_row_has_what_was_read() {
        let bytes_per_second = NonZeroU64::new(1_000_000).unwrap();
        let limit = IoLimit { bytes_per_second, by: Holder::Bucket };
        let bucket = limit.bucket().unwrap();
        let mut measured = Measured::from_batches(&[], 0.0);
        let meter = LimitMeter::start(&limit, Some(&bucket)).unwrap();
        meter.finish(&mut measured, 0.0).unwrap();
        assert_eq!((measured.io_bytes, measured.io_bytes_per_sec), (Some(0), None));
        assert_eq!((measured.status, measured.message), (Status::Ok, None));
    }
}
