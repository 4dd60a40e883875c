//! Data sets of several experiments, with their genes aligned by a var column.

use std::collections::HashMap;

use arrow_array::{RecordBatch, UInt32Array};
use soma_io::{Experiment, Measurement};

use crate::dataset::Dataset;
use crate::error::{DatasetError, columns_error};
use crate::selection::{
    DatasetSpec, Genes, ModalitySpec, SelectedGenes, project, select_genes, take_or_null, texts,
};

/// The genes of a data set of several experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GeneJoin {
    /// Genes that all experiments have, in the order of the first.
    Intersection,
    /// Genes that any experiment has, in the order of their first occurrence. Values of genes that
    /// an experiment lacks are zero.
    Union,
}

/// The selected genes of one experiment.
struct ExperimentGenes {
    /// By name: the joinid, and the row of `rows`.
    places: HashMap<String, (u64, u32)>,
    /// The names, in the order of the selection.
    names: Vec<String>,
    /// The requested var columns.
    rows: RecordBatch,
    warning: Option<String>,
}

impl Dataset {
    /// Opens several experiments as one data set, with genes aligned by a var column, for example
    /// `feature_id`, whose values the Census keeps between releases.
    ///
    /// Each specification selects cells and genes of its experiment, by any column; named genes
    /// that the experiment lacks are ignored. [`Dataset::var`] has each gene's row in the first
    /// experiment that has the gene.
    ///
    /// # Errors
    /// Like [`Dataset::from_experiment`] and [`Dataset::concat`]; an experiment has two genes of
    /// one name; no gene is in the intersection.
    pub fn from_experiments(
        experiments: &[(&Experiment, DatasetSpec)],
        gene_column: &str,
        join: GeneJoin,
    ) -> Result<Self, DatasetError> {
        let x = AlignedGenes::new(experiments, None, gene_column, join)?;
        // Fewer modalities of a further experiment are an error of the concatenation.
        let counts = experiments.iter().map(|(_, spec)| spec.modalities.len());
        let modalities = (0..counts.min().unwrap_or(0))
            .map(|idx| AlignedGenes::new(experiments, Some(idx), gene_column, join))
            .collect::<Result<Vec<_>, _>>()?;
        let datasets = experiments
            .iter()
            .enumerate()
            .map(|(experiment_idx, (experiment, spec))| {
                Self::with_genes(experiment, spec, |measurement, modality| match modality {
                    None => Ok(x.of(experiment_idx)),
                    Some(idx) => match modalities.get(idx) {
                        Some(aligned) => Ok(aligned.of(experiment_idx)),
                        None => select_genes(measurement, &spec.modalities[idx].genes, &[]),
                    },
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self::concat(&datasets)?)
    }
}

/// The genes of X, or of a modality, of all experiments.
struct AlignedGenes {
    names: Vec<String>,
    of_each: Vec<ExperimentGenes>,
    var: RecordBatch,
}

impl AlignedGenes {
    /// Those of X, or of the modality with this index.
    fn new(
        experiments: &[(&Experiment, DatasetSpec)],
        modality: Option<usize>,
        gene_column: &str,
        join: GeneJoin,
    ) -> Result<Self, DatasetError> {
        let of_each = experiments
            .iter()
            .map(|(experiment, spec)| match modality {
                None => {
                    let measurement = spec.open_measurement(experiment)?;
                    let (genes, columns) = (&spec.genes, &spec.var_columns);
                    ExperimentGenes::new(&measurement, (genes, columns), gene_column)
                }
                Some(idx) => {
                    let (measurement, _) = spec.open_modality(experiment, idx)?;
                    let ModalitySpec { genes, var_columns: columns, .. } = &spec.modalities[idx];
                    ExperimentGenes::new(&measurement, (genes, columns), gene_column)
                }
            })
            .collect::<Result<Vec<_>, _>>()?;
        let lists: Vec<&[String]> = of_each.iter().map(|one| one.names.as_slice()).collect();
        let names = joined(&lists, join);
        if names.is_empty() && lists.iter().all(|names| !names.is_empty()) {
            return Err(DatasetError::NoCommonGenes { column: gene_column.to_owned() });
        }
        let var = var_of(&names, &of_each)?;
        Ok(Self { names, of_each, var })
    }

    /// Those of one experiment.
    fn of(&self, experiment: usize) -> SelectedGenes {
        let one = &self.of_each[experiment];
        let place = |name: &String| one.places.get(name).map(|(joinid, _)| *joinid);
        SelectedGenes {
            genes: self.names.iter().map(place).collect(),
            rows: self.var.clone(),
            warning: one.warning.clone(),
        }
    }
}

impl ExperimentGenes {
    fn new(
        measurement: &Measurement,
        (genes, var_columns): (&Genes, &[String]),
        gene_column: &str,
    ) -> Result<Self, DatasetError> {
        let requested: Vec<&str> = var_columns.iter().map(String::as_str).collect();
        let mut columns = requested.clone();
        if !columns.contains(&gene_column) {
            columns.push(gene_column);
        }
        let SelectedGenes { genes, rows, warning } = select_genes(measurement, genes, &columns)?;
        let mut places = HashMap::with_capacity(genes.len());
        let mut names = Vec::with_capacity(genes.len());
        for (row, (name, gene)) in
            (0..).zip(texts("var", &rows, gene_column)?.into_iter().zip(genes))
        {
            let (Some(name), Some(joinid)) = (name, gene) else { continue };
            if places.insert(name.clone(), (joinid, row)).is_some() {
                return Err(DatasetError::GeneTwice { column: gene_column.to_owned(), name });
            }
            names.push(name);
        }
        let rows = project(&rows, &requested).map_err(columns_error("var"))?;
        Ok(Self { places, names, rows, warning })
    }
}

/// The names of the joined genes. Each list has distinct names.
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

/// The var rows of these genes, each from the first experiment that has the gene.
fn var_of(names: &[String], of_each: &[ExperimentGenes]) -> Result<RecordBatch, DatasetError> {
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
    Ok(take_or_null(&rows, &places.collect::<UInt32Array>()).map_err(columns_error("var"))?)
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
