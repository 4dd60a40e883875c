//! Formats a row as a line of text.

use bench_report::{EpochRecord, GridPoint, Measured, Status, grouped};

use crate::limits::format_rate;

/// Formats a record as a line. `n_repeats` is the number of times that the run measures each point.
pub fn format_row(record: &EpochRecord, n_repeats: u64) -> String {
    let GridPoint { chunk_method, chunks_per_block, chunk_size, .. } = &record.point;
    let measured = &record.measured;
    let round = measured
        .repeat
        .filter(|_| n_repeats > 1)
        .map_or_else(String::new, |repeat| format!(" ({} of {n_repeats})", repeat + 1));
    let name = format!("{chunk_method} {chunks_per_block}x{chunk_size}{round}");
    let gigabytes = peak(measured);
    match (measured.status, measured.samples_per_sec) {
        (Status::Ok, Some(rate)) => {
            let epoch = measured
                .epoch
                .filter(|epoch| *epoch != 0)
                .map_or_else(String::new, |epoch| format!(" epoch {epoch}"));
            let rate = grouped(rate.round() as u64);
            let (read, entropy) = (read_rate(record), entropy(record));
            format!("{name}{epoch}: {rate} samples/s{gigabytes}{read}{entropy}")
        }
        (status, _) => format!(
            "{name}: {}{gigabytes}: {}",
            status.name(),
            measured.message.clone().unwrap_or_default()
        ),
    }
}

/// Formats the read rate under a limit, and a warning about it.
fn read_rate(record: &EpochRecord) -> String {
    let measured = &record.measured;
    let Some(rate) = measured.io_bytes_per_sec else { return String::new() };
    let warning = measured.message.as_ref().map_or_else(String::new, |text| format!(" ({text})"));
    format!(", read at {}{warning}", format_rate(rate))
}

/// Formats the first label's entropy, which shows how random the order was.
fn entropy(record: &EpochRecord) -> String {
    let first = record.measured.order_entropy.first();
    match first.map(|one| (&one.label, one.mean, one.expected)) {
        Some((label, Some(mean), Some(expected))) => {
            format!(", {label} entropy {mean:.2} of {expected:.2} bits expected")
        }
        _ => String::new(),
    }
}

/// Formats the peak memory of the process, and of the epoch if it differs after rounding.
fn peak(measured: &Measured) -> String {
    let gigabytes = |bytes: u64| format!("{:.2} GB", bytes as f64 / 1e9);
    let Some(process) = measured.max_mem.map(gigabytes) else { return String::new() };
    match measured.epoch_max_mem.map(gigabytes) {
        Some(epoch) if epoch != process => format!(", {process} peak ({epoch} in the epoch)"),
        _ => format!(", {process} peak"),
    }
}

#[cfg(test)]
mod tests {
    use bench_report::OrderEntropy;

    use super::*;

    fn record(method: &str, form: &str) -> EpochRecord {
        let mut record = EpochRecord::default();
        record.point.chunk_method = method.into();
        record.point.form = form.into();
        (record.point.chunks_per_block, record.point.chunk_size) = (128, 64);
        record.measured.status = Status::Ok;
        record.measured.samples_per_sec = Some(12_345.6);
        record.measured.max_mem = Some(1_234_000_000);
        record
    }

    fn cell_types() -> OrderEntropy {
        OrderEntropy {
            label: "cell_type".into(),
            mean: Some(3.41),
            expected: Some(3.42),
            ..OrderEntropy::default()
        }
    }

    #[test]
    fn records_are_formatted_as_a_line() {
        let mut record = record("native", "dense");
        assert_eq!(format_row(&record, 1), "native 128x64: 12,346 samples/s, 1.23 GB peak");
        record.measured.epoch = Some(2);
        assert_eq!(format_row(&record, 1), "native 128x64 epoch 2: 12,346 samples/s, 1.23 GB peak");
        record.measured.epoch_max_mem = Some(1_231_000_000);
        assert!(format_row(&record, 1).ends_with(", 1.23 GB peak"));
        record.measured.epoch_max_mem = Some(380_000_000);
        assert!(format_row(&record, 1).ends_with(", 1.23 GB peak (0.38 GB in the epoch)"));
        record.measured.epoch_max_mem = None;
        record.measured.order_entropy = vec![cell_types()];
        let with_entropy = format_row(&record, 1);
        assert!(
            with_entropy.ends_with("1.23 GB peak, cell_type entropy 3.41 of 3.42 bits expected"),
            "{with_entropy}"
        );
        record.measured = Measured::failed(Status::Oom, "killed");
        assert_eq!(format_row(&record, 1), "native 128x64: oom: killed");
        record.measured.repeat = Some(1);
        assert_eq!(format_row(&record, 3), "native 128x64 (2 of 3): oom: killed");
    }
}
