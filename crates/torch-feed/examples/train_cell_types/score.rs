//! Scores of a classification.

/// Counts of cells by true and by predicted class.
#[derive(Debug)]
pub(crate) struct Confusion {
    n_classes: usize,
    /// `n_classes` counts for each true class.
    counts: Vec<u64>,
}

impl Confusion {
    pub(crate) fn new(n_classes: usize) -> Self {
        Self { n_classes, counts: vec![0; n_classes * n_classes] }
    }

    /// Counts cells with their true and predicted classes.
    ///
    /// # Panics
    /// A class is not below the number of classes.
    pub(crate) fn add(&mut self, truth: &[i64], predicted: &[i64]) {
        for (&truth, &predicted) in truth.iter().zip(predicted) {
            let (truth, predicted) = (truth as usize, predicted as usize);
            assert!(truth < self.n_classes && predicted < self.n_classes, "a class that is not");
            self.counts[truth * self.n_classes + predicted] += 1;
        }
    }

    fn count(&self, truth: usize, predicted: usize) -> u64 {
        self.counts[truth * self.n_classes + predicted]
    }

    /// The mean F1 (harmonic mean of precision and recall) over the classes of the counted cells. A
    /// class that was never predicted correctly counts 0. `None` without cells.
    pub(crate) fn macro_f1(&self) -> Option<f64> {
        let classes = 0..self.n_classes;
        let f1s: Vec<f64> = classes
            .clone()
            .filter_map(|class| {
                let n_true: u64 = classes.clone().map(|other| self.count(class, other)).sum();
                let n_given: u64 = classes.clone().map(|other| self.count(other, class)).sum();
                let found = self.count(class, class) as f64;
                (n_true > 0).then(|| 2.0 * found / (n_true + n_given) as f64)
            })
            .collect();
        (!f1s.is_empty()).then(|| f1s.iter().sum::<f64>() / f1s.len() as f64)
    }

    /// The share of cells whose class was predicted. `None` without cells.
    pub(crate) fn accuracy(&self) -> Option<f64> {
        let n_cells: u64 = self.counts.iter().sum();
        let found: u64 = (0..self.n_classes).map(|class| self.count(class, class)).sum();
        (n_cells > 0).then(|| found as f64 / n_cells as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cells: &[(i64, i64)], f1: Option<f64>, accuracy: Option<f64>) {
        let mut confusion = Confusion::new(4);
        // In several steps, as batches come.
        for cells in cells.chunks(3) {
            let (truth, predicted): (Vec<i64>, Vec<i64>) = cells.iter().copied().unzip();
            confusion.add(&truth, &predicted);
        }
        let near = |found: Option<f64>, wanted: Option<f64>| match (found, wanted) {
            (Some(found), Some(wanted)) => (found - wanted).abs() < 1e-12,
            (found, wanted) => found == wanted,
        };
        assert!(near(confusion.macro_f1(), f1), "{:?}", confusion.macro_f1());
        assert!(near(confusion.accuracy(), accuracy), "{:?}", confusion.accuracy());
    }

    #[test]
    fn every_class_counts_the_same() {
        check(&[(0, 0), (1, 1), (2, 2)], Some(1.0), Some(1.0));
        check(&[(0, 1), (1, 0)], Some(0.0), Some(0.0));
        // scikit-learn's f1_score with average="macro" gives the same: 6/7 and 2/3.
        check(
            &[(0, 0), (0, 0), (0, 0), (0, 1), (1, 1)],
            Some(f64::midpoint(6.0 / 7.0, 2.0 / 3.0)),
            Some(0.8),
        );
        // A large class predicted correctly, a small one missed: accuracy hides it.
        check(&[(0, 0), (0, 0), (0, 0), (3, 0)], Some((6.0 / 7.0) / 2.0), Some(0.75));
    }

    #[test]
    fn classes_that_no_cell_has_do_not_count() {
        // Class 2 was predicted for a cell, but is no cell's class: class 0 has recall 1/2,
        // precision 1.
        check(&[(0, 0), (0, 2)], Some(2.0 / 3.0), Some(0.5));
        check(&[], None, None);
    }

    #[test]
    #[should_panic(expected = "a class that is not")]
    fn a_class_beyond_is_a_fault() {
        Confusion::new(2).add(&[2], &[0]);
    }
}
