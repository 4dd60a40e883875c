//! Reads results that an earlier version of the program wrote, from the repository's results.

use std::path::Path;

use bench_report::{append, read};

#[test]
fn results_from_before_a_column_are_read_and_added_to() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/2026-11-21-vm-example");
    let before = read(&kept).unwrap();
    assert!(!before.is_empty());
    // Written before entropy was measured; everything else is present.
    assert!(before.iter().all(|record| record.measured.order_entropy.is_empty()));
    assert!(before.iter().all(|record| record.measured.samples_per_sec.is_some()));
    // Their peak is the epoch's: the process's was not kept then.
    let peaks = |record: &bench_report::EpochRecord| {
        (record.measured.epoch_max_mem, record.measured.epoch_peak_bytes())
    };
    assert!(before.iter().all(|record| peaks(record) == (None, record.measured.max_mem)));

    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(kept.join("epochs.parquet"), folder.path().join("epochs.parquet")).unwrap();
    append(folder.path(), &before[..1]).unwrap();
    let after = read(folder.path()).unwrap();
    assert_eq!((&after[..before.len()], &after[before.len()..]), (&before[..], &before[..1]));
}
