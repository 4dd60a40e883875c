//! Maps the genes of a selection to the columns of a result.

use crate::GeneSelection;

/// Minimum number of genes between two listed ones for which reading skips them. A tile of the
/// Census's layout has this many columns, so skipping fewer would gain nothing.
#[cfg(feature = "libtiledb")]
const WORTH_SKIPPING: u64 = 2048;

/// The ranges of joinids to read, both ends included; `None` for all. A list is covered by few
/// ranges, so a [`GeneIndex`] must look up the genes that were read.
#[cfg(feature = "libtiledb")]
pub(crate) fn inclusive(genes: &GeneSelection) -> Option<Vec<(i64, i64)>> {
    match genes {
        GeneSelection::All => None,
        GeneSelection::Range(range) => Some(vec![(range.start as i64, range.end as i64 - 1)]),
        GeneSelection::List(genes) => {
            let mut sorted = genes.clone();
            sorted.sort_unstable();
            let mut ranges: Vec<(i64, i64)> = Vec::new();
            for gene in sorted {
                match ranges.last_mut() {
                    Some(last) if gene - last.1 as u64 <= WORTH_SKIPPING => {
                        last.1 = gene as i64;
                    }
                    _ => ranges.push((gene as i64, gene as i64)),
                }
            }
            Some(ranges)
        }
    }
}

/// Maps joinids of genes to columns of the result.
pub(crate) enum GeneIndex {
    /// Consecutive genes from this one on.
    From(i64),
    /// Joinids with their columns, ascending.
    Sorted(Vec<(u64, u32)>),
}

impl GeneIndex {
    /// Makes an index that finds the column of a gene.
    pub(crate) fn new(genes: &GeneSelection) -> Self {
        match genes {
            GeneSelection::All => Self::From(0),
            GeneSelection::Range(range) => Self::From(range.start as i64),
            GeneSelection::List(genes) => {
                let mut sorted: Vec<(u64, u32)> = genes.iter().copied().zip(0..).collect();
                sorted.sort_unstable();
                Self::Sorted(sorted)
            }
        }
    }

    /// The column of a gene; `None` if it was read only because it lies between selected ones.
    pub(crate) fn column(&self, joinid: i64) -> Option<u32> {
        match self {
            Self::From(start) => u32::try_from(joinid - start).ok(),
            Self::Sorted(genes) => {
                let joinid = u64::try_from(joinid).ok()?;
                genes.binary_search_by_key(&joinid, |(gene, _)| *gene).ok().map(|at| genes[at].1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_covered_by_few_ranges() {
        let selection = GeneSelection::List(vec![9000, 5, 2, 100]);
        assert_eq!(inclusive(&selection), Some(vec![(2, 100), (9000, 9000)]));
        let index = GeneIndex::new(&selection);
        assert_eq!(
            [9000, 5, 2, 100, 50].map(|gene| index.column(gene)),
            [Some(0), Some(1), Some(2), Some(3), None]
        );
    }
}
