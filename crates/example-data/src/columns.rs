//! The columns of obs and var of a generated experiment, with the Census's names.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray,
};
use soma_io::{ColumnKind, ColumnSpec};

use crate::Error;
use crate::model::{
    ASSAYS, CELL_TYPES, Cell, DEVELOPMENT_STAGES, DISEASES, Dataset, ETHNICITIES, FEATURE_TYPES,
    Model, SEXES, SUSPENSION_TYPES, TISSUES,
};

/// A categorical column: its values, and the value of a cell.
struct Category {
    name: &'static str,
    values: ArrayRef,
    code: fn(&Vocabulary, &Dataset, &Cell) -> usize,
}

/// Positions of words among the values of their columns, for words that cells do not store
/// themselves.
struct Vocabulary {
    assays: Vec<&'static str>,
    /// For each general tissue, the position of its first tissue among all tissues.
    first_tissue: Vec<usize>,
}

/// Builds the rows of obs.
pub(crate) struct ObsColumns {
    vocabulary: Vocabulary,
    categories: Vec<Category>,
}

impl std::fmt::Debug for ObsColumns {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_list()
            .entries(self.categories.iter().map(|category| category.name))
            .finish()
    }
}

impl ObsColumns {
    pub(crate) fn new(model: &Model) -> Self {
        let mut assays: Vec<&'static str> = Vec::new();
        for (assay, _) in ASSAYS {
            if !assays.contains(&assay) {
                assays.push(assay);
            }
        }
        let first_tissue = TISSUES
            .iter()
            .scan(0, |first, (_, tissues)| {
                *first += tissues.len();
                Some(*first - tissues.len())
            })
            .collect();
        let vocabulary = Vocabulary { assays, first_tissue };
        let categories = categories(model, &vocabulary);
        Self { vocabulary, categories }
    }

    /// The columns, in their order.
    pub(crate) fn specs(&self) -> Vec<ColumnSpec> {
        let categories = self.categories.iter().map(|category| {
            let values = strings(&category.values);
            ColumnSpec::new(category.name, ColumnKind::Categorical { values, ordered: false })
        });
        let others = [
            ("is_primary_data", ColumnKind::Bool),
            ("observation_joinid", ColumnKind::Text),
            ("raw_sum", ColumnKind::Float64),
            ("nnz", ColumnKind::Int64),
            ("raw_mean_nnz", ColumnKind::Float64),
            ("raw_variance_nnz", ColumnKind::Float64),
            ("n_measured_vars", ColumnKind::Int64),
        ];
        categories.chain(others.map(|(name, kind)| ColumnSpec::new(name, kind))).collect()
    }

    /// The rows of obs for `cells`.
    pub(crate) fn batch(&self, model: &Model, cells: &[Cell]) -> Result<RecordBatch, Error> {
        let dataset = |cell: &Cell| &model.datasets[cell.dataset];
        let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
        for category in &self.categories {
            let codes: Int32Array = cells
                .iter()
                .map(|cell| Some((category.code)(&self.vocabulary, dataset(cell), cell) as i32))
                .collect();
            let array = DictionaryArray::<Int32Type>::try_new(codes, Arc::clone(&category.values))
                .map_err(|source| Error::Arrow { frame: "obs", source })?;
            columns.push((category.name, Arc::new(array)));
        }
        let floats = |value: fn(&Cell) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(cells.iter().map(value)))
        };
        let primary: BooleanArray =
            cells.iter().map(|cell| Some(dataset(cell).is_primary_data)).collect();
        let joinids =
            StringArray::from_iter_values(cells.iter().map(|cell| &cell.observation_joinid));
        let nnz = Int64Array::from_iter_values(cells.iter().map(|cell| cell.nnz as i64));
        let measured =
            Int64Array::from_iter_values(cells.iter().map(|cell| dataset(cell).n_measured as i64));
        columns.extend([
            ("is_primary_data", Arc::new(primary) as ArrayRef),
            ("observation_joinid", Arc::new(joinids)),
            ("raw_sum", floats(|cell| cell.raw_sum)),
            ("nnz", Arc::new(nnz)),
            ("raw_mean_nnz", floats(mean)),
            ("raw_variance_nnz", floats(variance)),
            ("n_measured_vars", Arc::new(measured)),
        ]);
        RecordBatch::try_from_iter(columns).map_err(|source| Error::Arrow { frame: "obs", source })
    }
}

fn mean(cell: &Cell) -> f64 {
    cell.raw_sum / cell.nnz as f64
}

/// The sample variance of the non-zero values, like in the Census; 0 if there is a single value.
fn variance(cell: &Cell) -> f64 {
    if cell.nnz < 2 {
        return 0.0;
    }
    let deviations = cell.sum_of_squares - cell.raw_sum * cell.raw_sum / cell.nnz as f64;
    deviations / (cell.nnz - 1) as f64
}

fn categories(model: &Model, vocabulary: &Vocabulary) -> Vec<Category> {
    fn category<T: AsRef<str>>(
        name: &'static str,
        values: impl IntoIterator<Item = T>,
        code: fn(&Vocabulary, &Dataset, &Cell) -> usize,
    ) -> Category {
        Category { name, values: Arc::new(StringArray::from_iter_values(values)), code }
    }
    let donors = || model.datasets.iter().flat_map(|dataset| &dataset.donors);
    vec![
        category("dataset_id", model.datasets.iter().map(|dataset| &dataset.id), |_, _, cell| {
            cell.dataset
        }),
        category("assay", &vocabulary.assays, |vocabulary, dataset, cell| {
            let assay = ASSAYS[dataset.donors[cell.donor].assay].0;
            vocabulary.assays.iter().position(|known| *known == assay).unwrap_or(0)
        }),
        category("cell_type", CELL_TYPES.map(|cell_type| cell_type.name), |_, _, cell| cell.kind),
        category(
            "cell_type_ontology_term_id",
            CELL_TYPES.map(|cell_type| cell_type.ontology_term_id),
            |_, _, cell| cell.kind,
        ),
        category("tissue_general", TISSUES.map(|(general, _)| general), |_, dataset, cell| {
            dataset.donors[cell.donor].tissue_general
        }),
        category(
            "tissue",
            TISSUES.iter().flat_map(|(_, tissues)| *tissues),
            |vocabulary, dataset, cell| {
                let donor = &dataset.donors[cell.donor];
                vocabulary.first_tissue[donor.tissue_general] + donor.tissue
            },
        ),
        category("donor_id", donors().map(|donor| &donor.name), |_, dataset, cell| {
            dataset.first_donor + cell.donor
        }),
        category("disease", DISEASES, |_, dataset, cell| dataset.donors[cell.donor].disease),
        category("sex", SEXES, |_, dataset, cell| dataset.donors[cell.donor].sex),
        category("self_reported_ethnicity", ETHNICITIES, |_, dataset, cell| {
            dataset.donors[cell.donor].ethnicity
        }),
        category("development_stage", DEVELOPMENT_STAGES, |_, dataset, cell| {
            dataset.donors[cell.donor].development_stage
        }),
        category("suspension_type", SUSPENSION_TYPES, |_, dataset, cell| {
            let suspension = ASSAYS[dataset.donors[cell.donor].assay].1;
            SUSPENSION_TYPES.iter().position(|known| *known == suspension).unwrap_or(0)
        }),
    ]
}

fn strings(values: &ArrayRef) -> Vec<String> {
    use arrow_array::cast::AsArray as _;
    values.as_string::<i32>().iter().flatten().map(str::to_owned).collect()
}

/// The columns of var.
pub(crate) fn var_specs() -> Vec<ColumnSpec> {
    let types = FEATURE_TYPES.map(str::to_owned).to_vec();
    [
        ("feature_id", ColumnKind::Text),
        ("feature_name", ColumnKind::Text),
        ("feature_type", ColumnKind::Categorical { values: types, ordered: false }),
        ("feature_length", ColumnKind::Int64),
        ("nnz", ColumnKind::Int64),
        ("n_measured_obs", ColumnKind::Int64),
    ]
    .map(|(name, kind)| ColumnSpec::new(name, kind))
    .to_vec()
}

/// The rows of var; `gene_nnz` is the number of cells that have each gene.
pub(crate) fn var_batch(model: &Model, gene_nnz: &[u64]) -> Result<RecordBatch, Error> {
    let genes = 0..model.genes.n_genes();
    let integers = |value: &dyn Fn(usize) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(genes.clone().map(value)))
    };
    let texts = |value: &dyn Fn(usize) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(genes.clone().map(value)))
    };
    RecordBatch::try_from_iter([
        // In the form of Ensembl's identifiers, in a range that Ensembl does not use.
        ("feature_id", texts(&|gene| format!("ENSG9{gene:010}"))),
        ("feature_name", texts(&|gene| format!("SYN{}", gene + 1))),
        ("feature_type", texts(&|gene| model.genes.feature_type(gene).to_owned())),
        ("feature_length", integers(&|gene| model.genes.feature_length(gene))),
        ("nnz", integers(&|gene| gene_nnz[gene] as i64)),
        ("n_measured_obs", integers(&|gene| model.n_measured_obs(gene) as i64)),
    ])
    .map_err(|source| Error::Arrow { frame: "var", source })
}
