//! Several experiments as one data set, their genes aligned by what a column of var calls them.

use std::collections::HashMap;

use arrow_array::{RecordBatch, UInt32Array};
use soma_io::Experiment;

use crate::dataset::Dataset;
use crate::error::{Error, open};
use crate::selection::{DatasetSpec, Selected, project, selected, take_or_null, texts};

/// Which genes several experiments are given when they become one data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneJoin {
    /// Those that all of them have, in the order of the first.
    Intersection,
    /// Those that any of them has, in the order in which they first come. Zero where an experiment does not have one.
    Union,
}

/// The genes that one experiment takes part with.
struct OfOne {
    /// By name: the joinid, and the row of `rows`.
    places: HashMap<String, (u64, u32)>,
    /// The names in the order of the columns.
    names: Vec<String>,
    /// The wanted var columns.
    rows: RecordBatch,
}

impl Dataset {
    /// Several experiments as one data set, their genes aligned by a var column (as `feature_id`, which the Census keeps from
    /// release to release). Each specification says which cells and genes of its experiment take part, by whichever column;
    /// genes named there that the experiment does not have do not take part. [`Dataset::var`] has of each gene the row of the
    /// first experiment that it is of. See [`Dataset::concat`].
    ///
    /// # Errors
    /// As those of [`Dataset::from_experiment`] and [`Dataset::concat`]; a gene that an experiment has twice; an intersection in
    /// which no gene is.
    pub fn from_experiments(
        experiments: &[(&Experiment, DatasetSpec)],
        gene_column: &str,
        join: GeneJoin,
    ) -> Result<Self, Error> {
        let of_each = experiments
            .iter()
            .map(|(experiment, spec)| OfOne::new(experiment, spec, gene_column))
            .collect::<Result<Vec<_>, _>>()?;
        let lists: Vec<&[String]> = of_each.iter().map(|one| one.names.as_slice()).collect();
        let names = joined(&lists, join);
        if names.is_empty() && lists.iter().all(|names| !names.is_empty()) {
            return Err(Error::NoCommonGenes { column: gene_column.to_owned() });
        }
        let var = var_of(&names, &of_each)?;
        let datasets = experiments
            .iter()
            .zip(&of_each)
            .map(|((experiment, spec), one)| {
                let place = |name: &String| one.places.get(name).map(|(joinid, _)| *joinid);
                let genes = names.iter().map(place).collect();
                let rows = var.clone();
                Self::with_genes(experiment, spec, |_| Ok(Selected { genes, rows }))
            })
            .collect::<Result<Vec<_>, _>>()?;
        Self::concat(&datasets)
    }
}

impl OfOne {
    fn new(experiment: &Experiment, spec: &DatasetSpec, gene_column: &str) -> Result<Self, Error> {
        let measurement = experiment
            .measurement(&spec.measurement)
            .map_err(open(format!("measurement {:?}", spec.measurement)))?;
        let wanted: Vec<&str> = spec.var_columns.iter().map(String::as_str).collect();
        let mut columns = wanted.clone();
        if !columns.contains(&gene_column) {
            columns.push(gene_column);
        }
        let Selected { genes, rows } = selected(&measurement, &spec.genes, &columns)?;
        let mut places = HashMap::with_capacity(genes.len());
        let mut names = Vec::with_capacity(genes.len());
        for (row, (name, gene)) in (0..).zip(texts(&rows, gene_column)?.into_iter().zip(genes)) {
            let (Some(name), Some(joinid)) = (name, gene) else { continue };
            if places.insert(name.clone(), (joinid, row)).is_some() {
                return Err(Error::GeneTwice { column: gene_column.to_owned(), name });
            }
            names.push(name);
        }
        let rows =
            project(&rows, &wanted).map_err(|source| Error::Columns { of: "var", source })?;
        Ok(Self { places, names, rows })
    }
}

/// The names that the experiments are given; none comes twice in one of the lists.
fn joined(of_each: &[&[String]], join: GeneJoin) -> Vec<String> {
    let mut n_having: HashMap<&str, usize> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for name in of_each.iter().copied().flatten() {
        *n_having.entry(name).or_insert_with(|| {
            order.push(name);
            0
        }) += 1;
    }
    let least = match join {
        GeneJoin::Union => 1,
        GeneJoin::Intersection => of_each.len(),
    };
    order.into_iter().filter(|name| n_having[name] >= least).map(str::to_owned).collect()
}

/// The var rows of these genes, each of the first experiment that has it.
fn var_of(names: &[String], of_each: &[OfOne]) -> Result<RecordBatch, Error> {
    let parts: Vec<&RecordBatch> = of_each.iter().map(|one| &one.rows).collect();
    let rows = crate::obs::concat(&parts)?;
    let places = names.iter().map(|name| {
        let mut n_before = 0;
        of_each.iter().find_map(|one| {
            let place = one.places.get(name).map(|(_, row)| n_before + row);
            n_before += one.rows.num_rows() as u32;
            place
        })
    });
    take_or_null(&rows, &places.collect::<UInt32Array>())
        .map_err(|source| Error::Columns { of: "var", source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn genes_are_joined_in_the_order_in_which_they_come() {
        let of_each = [names("b a c"), names("c d b"), names("e b c")];
        let of_each: Vec<&[String]> = of_each.iter().map(Vec::as_slice).collect();
        assert_eq!(joined(&of_each, GeneJoin::Intersection), names("b c"));
        assert_eq!(joined(&of_each, GeneJoin::Union), names("b a c d e"));
        assert!(joined(&[&names("a"), &names("b")], GeneJoin::Intersection).is_empty());
    }
}
