//! Output of `tune`: the best candidates, the proposal, and predicted beside measured figures.
//!
//! The proposal includes the command that repeats it.

use std::fmt::Write as _;

use bench_run::{TableStyle, grouped, text_table};
use bytesize::ByteSize;
use serde_json::{Map, Value, json};

use crate::model::{Anchored, CostModel, Work};
use crate::proposal::{Candidate, Goal, MEMORY_MARGIN, frontier};
use crate::survey::Facts;
use crate::verification::{Compared, ENTROPY_WITHIN, MEMORY_WITHIN, SPEED_WITHIN, Verification};

/// Most rows in a table of candidates.
const MOST_SHOWN: usize = 8;

/// The proposal and the candidates it was chosen from.
pub(super) struct Proposal<'a> {
    pub(super) facts: &'a Facts,
    /// Settings of all runs, by name.
    pub(super) fixed: Vec<(&'static str, Value)>,
    /// The proposal as users write it.
    pub(super) written: Vec<(&'static str, String)>,
    /// The label and the entropy of a perfect shuffle's batches in bits.
    pub(super) label: Option<(&'a str, f64)>,
    pub(super) goal: Goal,
    pub(super) predicted: &'a Anchored,
    pub(super) candidates: &'a [Candidate],
    pub(super) chosen: Candidate,
}

impl Proposal<'_> {
    /// Returns the candidates that no other beats in both figures.
    ///
    /// The first list weighs speed against memory among those that are random enough, the second
    /// speed against entropy among those that fit. The first always contains the proposal.
    fn frontiers(&self) -> [Vec<Candidate>; 2] {
        let all = || self.candidates.iter().copied();
        let speed = |one: &Candidate| one.samples_per_sec;
        let random = all().filter(|one| one.is_random_enough(&self.goal));
        let fitting = all().filter(|one| one.fits(&self.goal));
        let mut frontiers = [
            frontier(random, |one| one.peak_bytes, speed, MOST_SHOWN),
            frontier(fitting, |one| -one.entropy_bits, speed, MOST_SHOWN),
        ];
        if !frontiers[0].contains(&self.chosen) {
            frontiers[0].push(self.chosen);
            frontiers[0].sort_by(|one, other| one.peak_bytes.total_cmp(&other.peak_bytes));
        }
        frontiers
    }

    /// Formats the tables and the proposal.
    pub(super) fn text(&self) -> String {
        let [by_memory, by_entropy] = self.frontiers();
        let mut text = String::new();
        let memory = size(self.goal.memory_bytes);
        let enough = match self.label {
            Some((label, perfect)) => {
                let (bits, share) = (self.goal.bits, 100.0 * self.goal.bits / perfect);
                format!(
                    "with {bits:.3} bits of {label} or more ({share:.1} % of a perfect shuffle's {perfect:.3})"
                )
            }
            None => "however random it is".to_owned(),
        };
        // Writing to a string cannot fail.
        let _written =
            write!(text, "Speed against memory, {enough}:\n{}\n", self.table(&by_memory));
        if self.label.is_some() {
            let percent = 100.0 * MEMORY_MARGIN;
            let _written = write!(
                text,
                "\nSpeed against entropy, within {memory} less {percent:.0} %:\n{}\n",
                self.table(&by_entropy)
            );
        }
        let one = &self.chosen;
        let named = |(name, value): &(&str, Value)| match value {
            Value::String(value) => format!(", {name} {value}"),
            value => format!(", {name} {value}"),
        };
        let fixed: String = self.fixed.iter().map(named).collect();
        let _written = write!(
            text,
            "\nproposal: {}, {} ahead{fixed}: {} samples/s, {} MB at the peak{} are predicted\n",
            one.spec,
            one.prefetch_blocks,
            grouped(one.samples_per_sec.round() as u64),
            megabytes(one.peak_bytes),
            self.label.map_or_else(String::new, |_| format!(", {:.3} bits", one.entropy_bits)),
        );
        for (_, line) in &self.written {
            let _written = writeln!(text, "  {line}");
        }
        text
    }

    fn table(&self, candidates: &[Candidate]) -> String {
        let header =
            ["", "chunks x rows", "ahead", "samples/s", "peak MB", "entropy", "fits", "runs"];
        let rows = candidates.iter().map(|one| {
            let is_chosen = *one == self.chosen;
            [
                if is_chosen { "→" } else { "" }.to_owned(),
                one.spec.to_string(),
                one.prefetch_blocks.to_string(),
                grouped(one.samples_per_sec.round() as u64),
                megabytes(one.peak_bytes),
                self.label.map_or_else(|| "–".to_owned(), |_| format!("{:.3}", one.entropy_bits)),
                if one.fits(&self.goal) { "yes" } else { "no" }.to_owned(),
                if one.n_runs == 0 { String::new() } else { one.n_runs.to_string() },
            ]
        });
        text_table(TableStyle::Terminal, &header, &header[..1], rows)
    }

    /// Returns the model, the candidates and the proposal as JSON objects.
    pub(super) fn json(&self) -> Vec<Value> {
        let [by_memory, by_entropy] = self.frontiers();
        let all = [("speed and memory", by_memory), ("speed and entropy", by_entropy)];
        let mut lines = vec![model(self.predicted)];
        for (of, candidates) in all {
            for one in candidates {
                lines.push(json!({
                    "kind": "candidate", "frontier": of, "settings": one, "fits": one.fits(&self.goal),
                    "random_enough": one.is_random_enough(&self.goal),
                }));
            }
        }
        let proposal = json!({
            "kind": "proposal",
            "settings": self.chosen,
            "batch_rows": self.facts.batch_rows,
            "label": self.label.map(|(label, _)| label),
            "perfect_bits": self.label.map(|(_, bits)| bits),
            "wanted_bits": self.goal.bits,
            "memory_bytes": self.goal.memory_bytes,
        });
        let mut proposal = proposal.as_object().cloned().unwrap_or_default();
        let written = self.written.iter().map(|(name, line)| (*name, json!(line)));
        let all = self.fixed.iter().cloned().chain(written);
        proposal.extend(all.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>());
        lines.push(Value::Object(proposal));
        lines
    }
}

fn model(predicted: &Anchored) -> Value {
    let model: &CostModel = &predicted.model;
    let [chunk, row, unit, fresh] = model.read.coefficients;
    let [epoch, cut] = model.cut.coefficients;
    let memory = &model.memory;
    let [process, block_row, largest] = memory.beside.coefficients;
    let decoding = match model.work {
        Work::Bytes(decoding) => json!({
            "unit_rows": decoding.unit_rows,
            "tile_rows": decoding.tile_rows,
            "bytes_of_a_row_at_first": decoding.bytes[0],
            "bytes_of_a_row": decoding.bytes[1],
            "error": decoding.error,
        }),
        Work::Rows { unit_rows } => json!({ "unit_rows": unit_rows }),
    };
    json!({
        "kind": "model",
        "decoding": decoding,
        "read_secs": {
            "chunk": chunk, "row": row, "unit_of_decoding": unit,
            "row_of_fresh_memory": fresh, "error": model.read.error,
        },
        "cut_secs": { "epoch": epoch, "row": cut, "error": model.cut.error },
        "overlap": model.overlap,
        "memory_bytes": {
            "process": process, "row_of_a_block": memory.known.least_row_bytes + block_row, "row_of_the_largest_block": largest,
            "batch": memory.known.batch_bytes, "batches": memory.known.n_batches,
            "opening": predicted.opening_bytes, "error": memory.beside.error,
        },
    })
}

/// Formats the verification as a table and a verdict.
pub(super) fn verified(found: &Verification, memory_bytes: f64) -> String {
    let header = ["", "predicted", "measured", "ratio", "within"];
    let mut rows = Vec::new();
    let within = |one: &Compared, bound: String| {
        if one.within { bound } else { format!("NOT {bound}") }
    };
    let mut line = |name: &str, one: &Compared, format: &dyn Fn(f64) -> String, bound: String| {
        rows.push([
            name.to_owned(),
            format(one.predicted),
            format(one.measured),
            format!("{:.2}", one.ratio()),
            within(one, bound),
        ]);
    };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let rate = |value: f64| grouped(value.round() as u64);
    line("samples/s", &found.samples_per_sec, &rate, percent(SPEED_WITHIN));
    let is_less = found.peak_bytes.is_less(MEMORY_WITHIN);
    let memory = if is_less { "less".to_owned() } else { percent(MEMORY_WITHIN) };
    line("peak MB", &found.peak_bytes, &megabytes, memory);
    if let Some(entropy) = &found.entropy_bits {
        let bits = |value: f64| format!("{value:.3}");
        line("entropy, bits", entropy, &bits, format!("{ENTROPY_WITHIN} bit"));
    }
    let table = text_table(TableStyle::Terminal, &header, &header[..1], rows);
    let measured = match (found.is_whole, found.n_runs) {
        (true, 1) => "an epoch".to_owned(),
        (true, runs) => format!("{runs} epochs, their medians"),
        (false, 1) => "the beginning of an epoch".to_owned(),
        (false, runs) => format!("{runs} beginnings of an epoch, their medians"),
    };
    let verdict = match (found.holds(), found.fits) {
        (true, _) if is_less => "as predicted, with less memory".to_owned(),
        (true, _) => "as predicted".to_owned(),
        (false, true) => {
            "NOT as predicted: on a machine that does other work meanwhile, try again".to_owned()
        }
        (false, false) => format!("it needs MORE than {}: give --memory less", size(memory_bytes)),
    };
    format!("Verified by {measured}, {} rows: {verdict}\n{table}", grouped(found.n_rows))
}

/// Returns the verification as a JSON object.
pub(super) fn verified_json(found: &Verification) -> Value {
    json!({ "kind": "verification", "holds": found.holds(), "figures": found })
}

fn megabytes(bytes: f64) -> String {
    format!("{:.0}", bytes / 1e6)
}

fn size(bytes: f64) -> ByteSize {
    ByteSize(bytes.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verification::Figures;

    #[test]
    fn less_memory_than_predicted_is_said_and_no_failure() {
        let predicted = Figures { samples_per_sec: 1000.0, peak_bytes: 1e9, entropy_bits: None };
        let text = |peak_bytes: f64| {
            let run = Figures { peak_bytes, ..predicted };
            verified(&Verification::new(&predicted, &[run], (10, true), 2e9), 2e9)
        };
        let less = text(5e8);
        assert!(less.contains("as predicted, with less memory") && !less.contains("NOT"), "{less}");
        assert!(text(1e9).contains(": as predicted\n"), "{}", text(1e9));
        assert!(text(1.2e9).contains("NOT as predicted"), "{}", text(1.2e9));
    }
}
