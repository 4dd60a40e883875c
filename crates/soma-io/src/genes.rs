//! Selects genes, the columns of X, and maps them to the columns of a result.

use std::ops::Range;

use crate::Error;

/// The genes of a read, by joinid. A gene's column in the result is its position in the selection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum GeneSelection {
    /// Every gene.
    #[default]
    All,
    /// A range of joinids.
    Range(Range<u64>),
    /// A list of distinct joinids in any order.
    List(Vec<u64>),
}

/// Minimum number of genes between two listed ones for which reading skips them. A tile of the
/// Census's layout has this many columns, so skipping fewer would gain nothing.
#[cfg(feature = "libtiledb")]
const WORTH_SKIPPING: u64 = 2048;

impl GeneSelection {
    /// Number of columns of the selection in an array with `x_columns` columns. Fails if a gene is
    /// not among those, or occurs twice.
    pub fn n_columns(&self, x_columns: u64) -> Result<usize, Error> {
        let outside = |joinid: u64| Error::Genes {
            problem: format!("gene {joinid} was requested, but there are {x_columns} genes"),
        };
        let n_columns = match self {
            Self::All => x_columns,
            Self::Range(range) if range.is_empty() => 0,
            Self::Range(range) if range.end > x_columns => return Err(outside(range.end - 1)),
            Self::Range(range) => range.end - range.start,
            Self::List(genes) => {
                let mut sorted = genes.clone();
                sorted.sort_unstable();
                if let Some(last) = sorted.last().filter(|last| **last >= x_columns) {
                    return Err(outside(*last));
                }
                if let Some([gene, _]) = sorted.array_windows().find(|[gene, next]| gene == next) {
                    return Err(Error::Genes { problem: format!("gene {gene} occurs twice") });
                }
                genes.len() as u64
            }
        };
        usize::try_from(n_columns)
            .ok()
            .filter(|n_columns| u32::try_from(*n_columns).is_ok())
            .ok_or_else(|| Error::Genes {
                problem: format!("{n_columns} genes are more than {} at once", u32::MAX),
            })
    }

    /// The ranges of joinids to read, both ends included; `None` for all. A list is covered by few
    /// ranges, so [`Self::index`] must look up the genes that were read.
    #[cfg(feature = "libtiledb")]
    pub(crate) fn inclusive(&self) -> Option<Vec<(i64, i64)>> {
        match self {
            Self::All => None,
            Self::Range(range) => Some(vec![(range.start as i64, range.end as i64 - 1)]),
            Self::List(genes) => {
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

    /// The joinid of the gene in a column of the result.
    pub(crate) fn joinid(&self, column: u32) -> u64 {
        match self {
            Self::All => column.into(),
            Self::Range(range) => range.start + u64::from(column),
            Self::List(list) => list[column as usize],
        }
    }

    /// Makes an index that finds the column of a gene.
    pub(crate) fn index(&self) -> GeneIndex {
        match self {
            Self::All => GeneIndex::From(0),
            Self::Range(range) => GeneIndex::From(range.start as i64),
            Self::List(genes) => {
                let mut sorted: Vec<(u64, u32)> = genes.iter().copied().zip(0..).collect();
                sorted.sort_unstable();
                GeneIndex::Sorted(sorted)
            }
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
    fn selections_are_counted_and_checked() {
        assert_eq!(GeneSelection::All.n_columns(7).unwrap(), 7);
        assert_eq!(GeneSelection::Range(2..5).n_columns(7).unwrap(), 3);
        assert_eq!(GeneSelection::Range(5..5).n_columns(3).unwrap(), 0);
        assert_eq!(GeneSelection::List(vec![6, 0]).n_columns(7).unwrap(), 2);
        for selection in [GeneSelection::Range(2..8), GeneSelection::List(vec![7, 0])] {
            assert!(
                selection.n_columns(7).unwrap_err().to_string().contains("gene 7 was requested")
            );
        }
        assert!(
            GeneSelection::List(vec![3, 3])
                .n_columns(7)
                .unwrap_err()
                .to_string()
                .contains("occurs twice")
        );
        assert!(GeneSelection::All.n_columns(1 << 40).is_err());
    }

    #[test]
    fn a_list_is_covered_by_few_ranges() {
        let selection = GeneSelection::List(vec![9000, 5, 2, 100]);
        assert_eq!(selection.inclusive(), Some(vec![(2, 100), (9000, 9000)]));
        let index = selection.index();
        assert_eq!(
            [9000, 5, 2, 100, 50].map(|gene| index.column(gene)),
            [Some(0), Some(1), Some(2), Some(3), None]
        );
    }
}
