//! Reads little-endian fields from untrusted bytes: every step is checked, and reading past the end
//! is a [`Fault`].

use crate::error::Fault;

#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], Fault> {
        let taken =
            self.at.checked_add(len).and_then(|end| self.bytes.get(self.at..end)).ok_or_else(
                || {
                    Fault::at(
                        self.at,
                        format!(
                            "{what} needs {len} bytes, but {} are left",
                            self.bytes.len().saturating_sub(self.at)
                        ),
                    )
                },
            )?;
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Fault> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N, what)?);
        Ok(out)
    }

    pub(crate) fn u8(&mut self, what: &str) -> Result<u8, Fault> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    /// A flag stored as one byte.
    pub(crate) fn flag(&mut self, what: &str) -> Result<bool, Fault> {
        self.u8(what).map(|byte| byte != 0)
    }

    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, Fault> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self, what: &str) -> Result<i32, Fault> {
        self.array(what).map(i32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &str) -> Result<u64, Fault> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub(crate) fn f64(&mut self, what: &str) -> Result<f64, Fault> {
        self.array(what).map(f64::from_le_bytes)
    }

    /// A name, after its length as a u32.
    pub(crate) fn name(&mut self, what: &str) -> Result<String, Fault> {
        let len = self.u32(what)? as usize;
        self.text(len, what)
    }

    pub(crate) fn text(&mut self, len: usize, what: &str) -> Result<String, Fault> {
        let at = self.at;
        let bytes = self.take(len, what)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| Fault::at(at, format!("{what} is not UTF-8")))
    }

    /// Reads `n` u64s, without allocating more than the bytes that are present.
    pub(crate) fn u64s(&mut self, n: u64, what: &str) -> Result<Vec<u64>, Fault> {
        let len = usize::try_from(n).ok().and_then(|n| n.checked_mul(8));
        let len = len.ok_or_else(|| Fault::at(self.at, format!("{n} {what} cannot be")))?;
        let bytes = self.take(len, what)?;
        Ok(bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_past_the_end_are_faults() {
        let mut cursor = Cursor::new(&[1, 0, 0, 0, 9]);
        assert_eq!(cursor.u32("count").unwrap(), 1);
        assert_eq!(cursor.u64("size").unwrap_err().at, 4);
        assert_eq!(cursor.u8("flag").unwrap(), 9);
        assert!(cursor.take(usize::MAX, "data").is_err());
        assert!(cursor.u64s(u64::MAX, "offsets").is_err());
    }
}
