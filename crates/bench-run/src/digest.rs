//! Digests of the conditions of a measurement. Rows with the same digest need not be measured
//! again.

use std::hash::Hasher as _;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use twox_hash::XxHash3_64;

/// Returns the hash of the serialized `conditions`, as 16 hexadecimal digits. Fails if they cannot
/// be serialized.
pub fn digest(conditions: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string(conditions)
        .context("cannot serialize the conditions of a measurement")?;
    let mut hasher = XxHash3_64::default();
    hasher.write(text.as_bytes());
    Ok(format!("{:016x}", hasher.finish()))
}

/// Returns the hash of a program's bytes, as 16 hexadecimal digits. Fails if the file cannot be
/// read.
pub fn digest_of_program(path: &Path) -> anyhow::Result<String> {
    let cannot = || format!("cannot read the program {}", path.display());
    let mut file = std::fs::File::open(path).with_context(cannot)?;
    let (mut hasher, mut buffer) = (XxHash3_64::default(), vec![0; 1 << 20]);
    loop {
        let n_read = file.read(&mut buffer).with_context(cannot)?;
        if n_read == 0 {
            return Ok(format!("{:016x}", hasher.finish()));
        }
        hasher.write(&buffer[..n_read]);
    }
}
