//! Delete conditions in tiledbsoma 2.3.0's form.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `0 <= soma_joinid <= 2`, in format 22.
const JOINIDS: [&str; 3] = [
    "160000004c000000000000004c00000000000000040100000000000000001200000000000100010000000105",
    "000000010100000001000000000000004c000000280000001000000000000000010000004c00000028000000",
    "780163606462800046066e20a3383f37313e2b3f332f3385032a01a3189970288099000066a60948",
];

/// `0 <= soma_dim_0 <= 2`, in format 22.
const ROWS: [&str; 3] = [
    "160000004b000000000000004a00000000000000040100000000000000001200000000000100010000000105",
    "000000010100000001000000000000004a000000270000001000000000000000010000004a00000027000000",
    "780163606462800046062e20a3383f37313e253337de80032a0ea31899b0cbc3f403002a6e07de",
];

/// Deletes rows 0, 1 and 2 of obs or var.
pub(crate) fn delete_first_joinids(frame: &Path) {
    delete(frame, &JOINIDS.concat());
}

/// Deletes all values of rows 0, 1 and 2 of a layer of X.
pub(crate) fn delete_first_rows(layer: &Path) {
    delete(layer, &ROWS.concat());
}

/// Commits a condition with the present time.
fn delete(array: &Path, condition: &str) {
    let byte = |at: usize| u8::from_str_radix(&condition[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..condition.len()).step_by(2).map(byte).collect();
    // Later than the writes, and earlier than the reads.
    std::thread::sleep(Duration::from_millis(3));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let name = format!("__{now}_{now}_2cf268f36ecc99f3a93cb1b8797ee75a_22.del");
    fs::write(array.join("__commits").join(name), bytes).unwrap();
    std::thread::sleep(Duration::from_millis(3));
}
