//! The cells with their labels, split into training and held-out parts.

use std::sync::Arc;

use loader::encode::{Encoder as _, Encoders, LabelEncoder, Rules};
use loader::{Dataset, DatasetSpec, split};
use soma_io::{Experiment, OpenOptions};

use crate::Failure;
use crate::arguments::Arguments;

/// All cells, with the code of each one's label.
#[derive(Debug)]
pub(crate) struct Labeled {
    dataset: Dataset,
    label: String,
    n_classes: usize,
}

/// The cells of one seed's run.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) train: Dataset,
    pub(crate) held_out: Dataset,
}

impl Labeled {
    /// Opens the cells of the experiment on the command line.
    pub(crate) fn open(arguments: &Arguments) -> Result<Self, Failure> {
        let Arguments { experiment, measurement, layer, label, .. } = arguments;
        let opened = Experiment::open(experiment, &OpenOptions::default()).map_err(|error| {
            format!(
                "{error}; `cargo xtask generate {experiment}` makes an experiment to try this on"
            )
        })?;
        let wanted = DatasetSpec {
            measurement: Some(measurement.clone()),
            layer: Some(layer.clone()),
            obs_columns: vec![label.clone()],
            ..DatasetSpec::default()
        };
        let dataset = Dataset::from_experiment(&opened, &wanted)?;
        // Fitted on all cells, so that a class means the same in every part and run.
        let column =
            dataset.obs().column_by_name(label).ok_or("obs lacks the label that was selected")?;
        let encoder = LabelEncoder::fit(label, column, Rules::default())?;
        let n_classes = encoder.n_classes().ok_or("the labels of obs are finitely many")?;
        let dataset = dataset.with_encoders(&Encoders::new(vec![Arc::new(encoder)])?)?;
        Ok(Self { dataset, label: label.clone(), n_classes })
    }

    /// The obs column, which also names the codes.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Number of labels.
    pub(crate) fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// A summary for the user.
    pub(crate) fn describe(&self) -> String {
        let (n_cells, n_genes) = (self.dataset.n_rows(), self.dataset.n_columns());
        format!("{n_cells} cells x {n_genes} genes, {} of {}", self.n_classes, self.label)
    }

    /// Splits the cells, holding out the same share of each label.
    pub(crate) fn parts(&self, held_out: f64, seed: u64) -> Result<Parts, Failure> {
        let labels = self.dataset.groups(&[&self.label])?;
        let parts = split::stratified(&labels, &[1.0 - held_out, held_out], seed)?;
        let [train, held_out] = &parts[..] else { return Err("two shares give two parts".into()) };
        Ok(Parts { train: self.dataset.part(train)?, held_out: self.dataset.part(held_out)? })
    }
}
