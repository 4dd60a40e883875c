//! The results of the runs: a table, a file of losses, and the picture.

use std::fs;
use std::path::Path;

use crate::Failure;
use crate::arguments::RowOrder;
use crate::picture;
use crate::run::Outcome;

/// Losses on either side of a loss, for the median that it is compared with.
const NEIGHBORS: usize = 10;

/// A finished run.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) order: RowOrder,
    pub(crate) seed: u64,
    pub(crate) outcome: Outcome,
}

/// Groups the runs by order, in the order of their completion.
pub(crate) fn by_order(finished: &[Finished]) -> Vec<(RowOrder, Vec<&Finished>)> {
    let mut groups: Vec<(RowOrder, Vec<&Finished>)> = Vec::new();
    for run in finished {
        match groups.iter_mut().find(|(order, _)| *order == run.order) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((run.order, vec![run])),
        }
    }
    groups
}

/// A line of Markdown for each order: means over the seeds, with their range.
pub(crate) fn table(finished: &[Finished]) -> String {
    let mut lines = vec![
        "| order | seeds | macro-F1 | range | accuracy | unsteadiness of the loss |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for (order, runs) in by_order(finished) {
        let figures =
            |figure: fn(&Outcome) -> f64| runs.iter().map(move |run| figure(&run.outcome));
        let mean = |figure: fn(&Outcome) -> f64| figures(figure).sum::<f64>() / runs.len() as f64;
        let f1 = |outcome: &Outcome| outcome.macro_f1;
        let least = figures(f1).fold(f64::INFINITY, f64::min);
        let most = figures(f1).fold(f64::NEG_INFINITY, f64::max);
        let unsteady = mean(|outcome| unsteadiness(&outcome.losses));
        lines.push(format!(
            "| {} | {} | {:.3} | {least:.3} to {most:.3} | {:.3} | {unsteady:.3} |",
            order.name(),
            runs.len(),
            mean(f1),
            mean(|outcome| outcome.accuracy),
        ));
    }
    lines.join("\n")
}

/// The mean distance of each loss from the median of its neighbors: the jumps of a curve, whatever
/// its trend.
pub(crate) fn unsteadiness(losses: &[f32]) -> f64 {
    let distance = |step: usize| {
        let around = step.saturating_sub(NEIGHBORS)..losses.len().min(step + NEIGHBORS + 1);
        let mut around = losses[around].to_vec();
        around.sort_by(f32::total_cmp);
        f64::from((losses[step] - around[around.len() / 2]).abs())
    };
    (0..losses.len()).map(distance).sum::<f64>() / losses.len().max(1) as f64
}

/// Writes `losses.csv` and `loss.svg` to a folder.
pub(crate) fn write(folder: &Path, finished: &[Finished]) -> Result<(), Failure> {
    let mut csv = vec!["order,seed,step,loss".to_owned()];
    for Finished { order, seed, outcome } in finished {
        for (step, loss) in outcome.losses.iter().enumerate() {
            csv.push(format!("{},{seed},{step},{loss}", order.name()));
        }
    }
    fs::create_dir_all(folder)?;
    let whole = |name: &str, text: String| -> Result<(), Failure> {
        let partial = folder.join(format!("{name}.partial"));
        fs::write(&partial, text)?;
        Ok(fs::rename(&partial, folder.join(name))?)
    };
    whole("losses.csv", csv.join("\n") + "\n")?;
    whole("loss.svg", picture::draw(finished)?)
}
