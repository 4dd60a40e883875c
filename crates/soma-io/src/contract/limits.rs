//! Checks counts, memory and times.

use super::requests::Request;
use crate::{CsrBuffers, GeneSelection, ReadForm, ReadStats, XReader};

const KEPT_BYTES: u64 = 1 << 20;
/// Holders that no other code chooses.
const FIRST_HOLDER: u64 = u64::MAX - 1;
const SECOND_HOLDER: u64 = u64::MAX - 2;
/// A number of values that no array has; working bytes must not overflow on it.
const MANY_VALUES: u64 = 1 << 50;

pub(super) fn check_counts(reader: &dyn XReader, expected: &CsrBuffers) {
    let name = reader.name();
    assert!(!name.is_empty(), "a reader without a name");
    assert_eq!(reader.n_rows(), expected.n_rows() as u64, "rows of `{name}`");
    assert_eq!(reader.n_columns(), expected.n_columns as u64, "columns of `{name}`");
    let nnz = reader.nnz().unwrap_or_else(|error| panic!("values of `{name}`: {error}"));
    let least = expected.nnz() as u64;
    assert!(nnz.is_none_or(|nnz| nnz >= least), "`{name}` says {nnz:?} of {least} values");
    let most = reader.most_nnz().unwrap_or_else(|error| panic!("most values of `{name}`: {error}"));
    assert!(most.is_none_or(|most| most >= nnz.unwrap_or(least)), "`{name}`: {most:?}, {nnz:?}");
    let some = GeneSelection::Range(0..reader.n_columns().min(1));
    let list = GeneSelection::List((0..reader.n_columns().min(1)).collect());
    for form in [ReadForm::Csr, ReadForm::Coo] {
        for genes in [&GeneSelection::All, &some, &list] {
            let bytes = [0, 1, 1 + least, 2 + 2 * least, MANY_VALUES]
                .map(|nnz| reader.working_bytes(nnz, genes, form));
            assert!(bytes.is_sorted(), "`{name}` takes less memory for more values: {bytes:?}");
        }
    }
}

/// Fails unless the reader reports times for all forms of read or for none.
pub(super) fn check_times(reader: &dyn XReader, request: &Request) {
    let Request { rows, genes } = request;
    let mut stats: Vec<ReadStats> = Vec::new();
    stats.extend(reader.read_csr(rows, genes, &mut CsrBuffers::default()).ok());
    stats.extend(reader.read_coo(rows, genes, &mut |_| Ok(())).ok());
    stats.extend(reader.read_packed(rows, genes, &mut crate::PackedCsr::default()).ok());
    let timed: Vec<bool> = stats.iter().map(|stats| stats.times.is_some()).collect();
    let name = reader.name();
    assert!(timed.windows(2).all(|pair| pair[0] == pair[1]), "`{name}` times some: {stats:?}");
    for times in stats.iter().filter_map(|stats| stats.times) {
        assert!(times.decode.wall.as_secs() < 3600 && times.fetch.wall.as_secs() < 3600);
    }
}

/// Fails unless kept values stay within their limit while `check_all` reads.
pub(super) fn check_kept(reader: &dyn XReader, mut check_all: impl FnMut()) {
    // The limits of two holders add up.
    for (first, second) in [(KEPT_BYTES, 0), (KEPT_BYTES / 2, KEPT_BYTES / 64), (0, 1000), (0, 0)] {
        reader.keep_decoded(FIRST_HOLDER, first);
        reader.keep_decoded(SECOND_HOLDER, second);
        check_all();
        let (kept, limit) = (reader.decoded_bytes(), first + second);
        assert!(kept <= limit, "`{}` keeps {kept} of {limit} bytes", reader.name());
    }
}
