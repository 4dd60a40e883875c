//! What the epochs of a point say: means over timed epochs, then mean and deviation over
//! repetitions.

use bench_report::{MeanStd, Measured, Rounds, Status};
use bench_run::MeasuredEpoch;

use crate::bench::{DECODE, Floor, PLAIN_READ, Point, STORED_FORM};
use crate::curves::Curve;
use crate::statistics::mean;

/// The figures of a point over its repetitions.
#[derive(Debug)]
pub(crate) struct Summary<'a> {
    pub(crate) point: &'a Point,
    /// Seconds of an epoch.
    pub(crate) secs: Option<MeanStd>,
    /// Share in which the device computed, 0 to 1; `None` without a device.
    pub(crate) utilization: Option<MeanStd>,
    /// Accelerator utilisation: the same without the first batch; `None` without a device.
    pub(crate) accelerator_utilization: Option<MeanStd>,
    pub(crate) cubes_per_sec: Option<MeanStd>,
    /// Share in which the host waited for a batch.
    pub(crate) stall_share: Option<MeanStd>,
    pub(crate) first_batch_secs: Option<MeanStd>,
    /// CPU seconds of the process for each cube.
    pub(crate) cpu_secs_per_cube: Option<MeanStd>,
    /// Mean load of the machine's cores, 0 to 1.
    pub(crate) core_load: Option<MeanStd>,
    /// Bytes of the process's peak memory since it began.
    pub(crate) peak_bytes: Option<MeanStd>,
    pub(crate) pinned_bytes: Option<MeanStd>,
    /// Bytes read, and cubes delivered, in an epoch.
    pub(crate) bytes_read: Option<MeanStd>,
    pub(crate) n_cubes: Option<MeanStd>,
    pub(crate) curve: Option<Curve>,
    /// State of the page cache in the timed epochs; several if they differ.
    pub(crate) cache: String,
    /// The first error.
    pub(crate) failure: Option<String>,
}

impl<'a> Summary<'a> {
    /// Summarizes the records of point `idx`, without the first `warmup` epochs of each repetition.
    pub(crate) fn from_records(
        (idx, point): (usize, &'a Point),
        records: &[MeasuredEpoch],
        warmup: u64,
    ) -> Self {
        let all: Vec<&MeasuredEpoch> = records.iter().filter(|of| of.point == Some(idx)).collect();
        let timed: Vec<&MeasuredEpoch> = all
            .iter()
            .copied()
            .filter(|of| of.record.measured.status == Status::Ok)
            .filter(|of| of.record.measured.epoch.is_some_and(|epoch| warmup <= epoch))
            .collect();
        let repetitions = Rounds::from_records(timed.iter().map(|of| &of.record));
        let over = |figure: &dyn Fn(&Measured) -> Option<f64>| {
            repetitions.mean_std(&|record| figure(&record.measured))
        };
        let busy: Vec<Vec<&[f64]>> = repetitions
            .records()
            .map(|epochs| epochs.iter().map(|of| of.measured.device_busy.as_slice()).collect())
            .collect();
        let mut caches: Vec<&str> = timed.iter().map(|of| of.record.point.cache.as_str()).collect();
        caches.sort_unstable();
        caches.dedup();
        let failed = all.iter().find(|of| of.record.measured.status != Status::Ok);
        let per_cube = |of: &Measured| Some(of.cpu_secs? / of.n_rows.filter(|n| 0 < *n)? as f64);
        Self {
            point,
            secs: over(&|of| of.elapsed),
            utilization: over(&|of| of.device_busy_share),
            accelerator_utilization: over(&|of| of.accelerator_utilization),
            cubes_per_sec: over(&|of| of.samples_per_sec),
            stall_share: over(&|of| of.stall_share),
            first_batch_secs: over(&|of| of.time_to_first_batch_secs),
            cpu_secs_per_cube: over(&per_cube),
            core_load: over(&|of| mean(&of.core_loads)),
            peak_bytes: over(&|of| of.max_mem.map(|bytes| bytes as f64)),
            pinned_bytes: over(&|of| of.pinned_bytes.map(|bytes| bytes as f64)),
            bytes_read: over(&|of| of.bytes_read.map(|bytes| bytes as f64)),
            n_cubes: over(&|of| of.n_rows.map(|n| n as f64)),
            curve: Curve::from_repetitions(&busy),
            cache: caches.join(", "),
            failure: failed.map(|of| {
                let Measured { status, message, .. } = &of.record.measured;
                format!("{}: {}", status.name(), message.as_deref().unwrap_or_default())
            }),
        }
    }
}

/// The least seconds of an epoch, by what bounds it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct FloorSecs {
    /// Reading its bytes at the limit or, without one, at the rate of a plain read of its files.
    pub(crate) disk: Option<f64>,
    /// Decoding its cubes, with the threads that load and at most the machine's cores.
    pub(crate) decoder: Option<f64>,
    /// The compute of the device: the stand-in's, or training steps on a batch that is there.
    pub(crate) device: Option<f64>,
}

impl FloorSecs {
    /// The floors of a point, from the floors' records and the point's own counts.
    pub(crate) fn estimate(
        summary: &Summary<'_>,
        records: &[MeasuredEpoch],
        n_cores: usize,
    ) -> Self {
        let point = summary.point;
        let form = point.settings.form.name();
        let floor = |name: &str| {
            let mut of_name = records.iter().map(|of| &of.record).filter(|record| {
                record.point.chunk_method == name
                    && record.point.settings.get(STORED_FORM) == Some(form)
            });
            of_name.find(|record| record.measured.status == Status::Ok).map(|of| &of.measured)
        };
        let limit = point.io_limit.as_ref().map(|limit| limit.bytes_per_second.get() as f64);
        let plain = || {
            let read = floor(PLAIN_READ)?;
            Some(read.bytes_read? as f64 / read.elapsed.filter(|secs| 0.0 < *secs)?)
        };
        let n_cubes = summary.n_cubes.map(|n| n.mean);
        let decode = || floor(DECODE)?.samples_per_sec;
        let steps = || {
            let steps = Floor::steps_of(point)?;
            let ok =
                records.iter().map(|of| &of.record).filter(|of| of.measured.status == Status::Ok);
            let rate = ok
                .filter(|of| steps.is_measured_by(&of.point))
                .find_map(|of| of.measured.samples_per_sec);
            Some(1.0 / rate.filter(|rate| 0.0 < *rate)?)
        };
        let settings = &point.settings;
        let threads = (settings.batches_at_once() * settings.threads_of_batch()).max(1);
        let threads = threads.min(n_cores.max(1)) as f64;
        Self {
            disk: summary.bytes_read.zip(limit.or_else(plain)).map(|(n, rate)| n.mean / rate),
            decoder: n_cubes.zip(decode()).map(|(n, rate)| n / rate / threads),
            device: n_cubes
                .zip(point.consumer.secs_per_cube().or_else(steps))
                .map(|(n, of)| n * of),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use bench_report::{EpochRecord, GridPoint, Settings};
    use bench_run::{Holder, IoLimit};

    use super::*;
    use crate::bench::{Consumer, Strategy, point_for_tests};
    use crate::device::DeviceSpec;

    fn epoch(repeat: u64, number: u64, elapsed: f64) -> MeasuredEpoch {
        let measured = Measured {
            status: Status::Ok,
            repeat: Some(repeat),
            epoch: Some(number),
            elapsed: Some(elapsed),
            cpu_secs: Some(6.0),
            n_rows: Some(12),
            bytes_read: Some(4_000_000),
            core_loads: vec![0.5, 1.0],
            device_busy: vec![0.5; 6],
            ..Measured::default()
        };
        let record = EpochRecord { measured, ..EpochRecord::default() };
        MeasuredEpoch { point: Some(3), record }
    }

    fn floor(name: &str, measured: Measured) -> MeasuredEpoch {
        let point = GridPoint {
            chunk_method: name.to_owned(),
            settings: Settings::default().with(STORED_FORM, "raw16"),
            ..GridPoint::default()
        };
        let measured = Measured { status: Status::Ok, ..measured };
        MeasuredEpoch {
            point: None,
            record: EpochRecord { point, measured, ..EpochRecord::default() },
        }
    }

    #[test]
    fn epochs_are_averaged_first_and_repetitions_then() {
        let mut records: Vec<MeasuredEpoch> =
            [(0, 0, 99.0), (0, 1, 2.0), (0, 2, 4.0), (1, 0, 99.0), (1, 1, 4.0), (1, 2, 6.0)]
                .map(|(repeat, number, secs)| epoch(repeat, number, secs))
                .into();
        records.push(MeasuredEpoch { point: Some(2), ..epoch(0, 1, 1000.0) });
        let point = point_for_tests(Strategy::Fp16);
        let summary = Summary::from_records((3, &point), &records, 1);
        assert_eq!(summary.secs.unwrap(), MeanStd::from_values(&[3.0, 5.0]).unwrap());
        assert_eq!(summary.cpu_secs_per_cube.unwrap().mean, 0.5);
        assert_eq!(summary.core_load.unwrap().mean, 0.75);
        assert_eq!(summary.curve.as_ref().unwrap().mean, [0.5, 0.5]);
        assert_eq!((summary.failure, summary.utilization), (None, None));
    }

    #[test]
    fn a_failure_is_named_and_the_others_count() {
        let mut failed = epoch(1, 0, 1.0);
        failed.record.measured = Measured::failed(Status::Oom, "killed");
        let point = point_for_tests(Strategy::Fp16);
        let records = [epoch(0, 0, 2.0), failed];
        let summary = Summary::from_records((3, &point), &records, 0);
        assert_eq!(summary.secs.unwrap(), MeanStd { mean: 2.0, std: None });
        assert_eq!(summary.failure.as_deref(), Some("oom: killed"));
    }

    #[test]
    fn floors_follow_from_bytes_threads_and_the_step() {
        let mut records = vec![epoch(0, 0, 9.0)];
        records.push(floor(
            PLAIN_READ,
            Measured { bytes_read: Some(8_000_000), elapsed: Some(1.0), ..Measured::default() },
        ));
        records.push(floor(DECODE, Measured { samples_per_sec: Some(3.0), ..Measured::default() }));
        let device =
            DeviceSpec { step_millis: 60.0, full_batch: 6, copy_rate: 1, copies_beside: false };
        let mut point = point_for_tests(Strategy::Fp16);
        point.consumer = Consumer::StandIn(device);
        let floors = |point: &Point, n_cores| {
            FloorSecs::estimate(&Summary::from_records((3, point), &records, 0), &records, n_cores)
        };
        // Six workers: on two cores, two threads of 3 cubes a second each.
        let found = floors(&point, 2);
        assert_eq!((found.disk, found.decoder), (Some(0.5), Some(2.0)));
        assert!((found.device.unwrap() - 0.12).abs() < 1e-12);
        assert_eq!(floors(&point, 8).decoder, Some(12.0 / 3.0 / 6.0));
        let bytes_per_second = NonZeroU64::new(1_000_000).unwrap();
        point.io_limit = Some(IoLimit { bytes_per_second, by: Holder::Bucket });
        assert_eq!(floors(&point, 2).disk, Some(4.0));
        point.settings.form = images::Form::Dat;
        assert_eq!(floors(&point, 2).decoder, None);
    }
}
