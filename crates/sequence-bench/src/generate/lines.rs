//! The lines of Dragon's generator.

/// Letters of a line, unless fewer bytes are left.
const LINE_LETTERS: u64 = 1024;

/// Bytes by which a full line lowers the number of bytes that are left: the letters and the line
/// break, but not the name.
const LINE_BYTES: u64 = LINE_LETTERS + 1;

/// The lines that Dragon's generator writes for a size.
///
/// One half of the size is DNA, the other one RNA. Each line takes 1,024 letters, or as many as
/// bytes are left of its half if those are fewer, and lowers the bytes that are left by the number
/// of letters and one more; the comma and the name are not counted. Line `n`, from 1, is named
/// `design_id_n`, over both halves.
///
/// ```
/// use sequence_bench::generate::DragonLines;
///
/// let lines = DragonLines::gigabytes(0.125);
/// assert_eq!(lines.n_lines(), 130_946);
/// assert_eq!((lines.n_letters(0), lines.n_letters(130_945)), (1024, 64));
/// assert_eq!(DragonLines::gigabytes(0.25).n_lines(), 261_890);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DragonLines {
    half_bytes: u64,
}

impl DragonLines {
    /// The lines for a size of `gigabytes * 2^30` bytes, without its fraction, as the original
    /// counts.
    pub fn gigabytes(gigabytes: f64) -> Self {
        Self::bytes((gigabytes * 2_f64.powi(30)) as u64)
    }

    /// The lines for a size in bytes.
    pub fn bytes(n_bytes: u64) -> Self {
        Self { half_bytes: n_bytes / 2 }
    }

    /// The number of lines of both halves.
    pub fn n_lines(self) -> u64 {
        2 * self.lines_of_half()
    }

    /// The number of letters of a line, from 0; 0 if there is no such line.
    pub fn n_letters(self, line: u64) -> u64 {
        let of_half = self.lines_of_half();
        if of_half == 0 {
            return 0;
        }
        let left = self.half_bytes.saturating_sub((line % of_half) * LINE_BYTES);
        if line < 2 * of_half { left.min(LINE_LETTERS) } else { 0 }
    }

    /// Whether a line is RNA, which the second half is.
    pub fn is_rna(self, line: u64) -> bool {
        self.lines_of_half() <= line
    }

    fn lines_of_half(self) -> u64 {
        self.half_bytes.div_ceil(LINE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The letters of each line by the rule as it stands: bytes that are left, line by line.
    fn by_the_rule(n_bytes: u64) -> Vec<u64> {
        let mut lines = Vec::new();
        for _half in 0..2 {
            let mut left = i64::try_from(n_bytes / 2).unwrap();
            while 0 < left {
                let letters = left.min(1024);
                lines.push(letters as u64);
                left -= letters + 1;
            }
        }
        lines
    }

    proptest! {
        #[test]
        fn lines_follow_the_rule(n_bytes in 0_u64..40_000) {
            let lines = DragonLines::bytes(n_bytes);
            let expected = by_the_rule(n_bytes);
            prop_assert_eq!(lines.n_lines(), expected.len() as u64);
            for (line, n_letters) in (0..).zip(&expected) {
                prop_assert_eq!(lines.n_letters(line), *n_letters);
                prop_assert_eq!(lines.is_rna(line), expected.len() as u64 / 2 <= line);
            }
            prop_assert_eq!(lines.n_letters(lines.n_lines()), 0);
        }
    }

    #[test]
    fn sizes_of_the_example_have_its_numbers_of_lines() {
        for (gigabytes, n_lines) in [(0.125, 130_946), (0.25, 261_890)] {
            let lines = DragonLines::gigabytes(gigabytes);
            assert_eq!(lines.n_lines(), n_lines);
            assert_eq!(by_the_rule((gigabytes * 2_f64.powi(30)) as u64).len() as u64, n_lines);
        }
        let lines = DragonLines::gigabytes(0.125);
        // The last line of each half is short.
        assert_eq!([65_471, 65_472, 65_473].map(|line| lines.n_letters(line)), [1024, 64, 1024]);
        assert_eq!(lines.n_letters(130_945), 64);
    }
}
