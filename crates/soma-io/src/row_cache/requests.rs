//! The pages that the rows of a read lie in.

use std::ops::Range;

use crate::row_cache::page::bits;

/// The rows that a read wants of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageRequest {
    /// The page's number in the matrix.
    pub(crate) page: u64,
    /// Bit `i` is set if row `i` of the page is wanted.
    pub(crate) rows: u64,
    /// The position of the first of them among all rows of the read.
    pub(crate) first: usize,
}

impl PageRequest {
    pub(crate) fn n_rows(&self) -> usize {
        self.rows.count_ones() as usize
    }

    /// The positions of the rows in the read.
    pub(crate) fn positions(&self) -> Range<usize> {
        self.first..self.first + self.n_rows()
    }
}

/// Cuts ascending rows into pages.
pub(crate) fn requests(rows: &[Range<u64>], page_rows: u64) -> Vec<PageRequest> {
    let mut requests: Vec<PageRequest> = Vec::new();
    let mut position = 0;
    for range in rows {
        let mut start = range.start;
        while start < range.end {
            let page = start / page_rows;
            let first_row = page * page_rows;
            let end = range.end.min(first_row.saturating_add(page_rows));
            let mask = u64::MAX >> (u64::from(u64::BITS) - (end - start)) << (start - first_row);
            match requests.last_mut() {
                Some(last) if last.page == page => last.rows |= mask,
                _ => requests.push(PageRequest { page, rows: mask, first: position }),
            }
            position += (end - start) as usize;
            start = end;
        }
    }
    requests
}

/// The rows of these requests, as ranges.
pub(crate) fn ranges<'a>(
    requests: impl Iterator<Item = &'a PageRequest>,
    page_rows: u64,
) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for request in requests {
        for bit in bits(request.rows) {
            let row = request.page * page_rows + u64::from(bit);
            match ranges.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                _ => ranges.push(row..row + 1),
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pages_have_the_rows_in_their_order(
            gaps in prop::collection::vec((0_u64..90, 1_u64..200), 0..12),
            page_rows in prop::sample::select(vec![1_u64, 2, 32, 64]),
        ) {
            let mut end = 0;
            let mut rows: Vec<Range<u64>> = Vec::new();
            for (gap, len) in gaps {
                rows.push(end + gap..end + gap + len);
                end += gap + len;
            }
            let all: Vec<u64> = rows.iter().cloned().flatten().collect();
            let requests = requests(&rows, page_rows);
            prop_assert!(requests.is_sorted_by(|a, b| a.page < b.page));
            let mut found = Vec::new();
            for request in &requests {
                prop_assert_eq!(request.first, found.len());
                found.extend(bits(request.rows).map(|bit| request.page * page_rows + u64::from(bit)));
                prop_assert_eq!(request.positions().end, found.len());
            }
            prop_assert_eq!(&found, &all);
            let again: Vec<u64> = ranges(requests.iter(), page_rows).into_iter().flatten().collect();
            prop_assert_eq!(again, all);
        }
    }
}
