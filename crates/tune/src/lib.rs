//! Proposes chunk size, chunks per block and blocks read ahead, for any kind of samples, and
//! verifies the proposal.
//!
//! The inputs are an amount of memory and how random batches must be; a short probe measures the
//! machine.
//!
//! A kind of samples is a [`Tunable`]: a workload whose points can have these settings. Its program
//! surveys the data ([`Surveyed`]): its size, what is known of memory, and how random each
//! candidate would be. `probe` measures a few short runs, each like a point of a sweep (`runs`);
//! the coefficients of the cost `model` are fitted to them. The model predicts all candidates;
//! `proposal` chooses one, runs it and chooses again, until the choice is one that was run. Then
//! the proposal is run once more and compared with the prediction (`verification`). Model, survey
//! and proposal are pure: only `runs` starts processes. docs/tune.md derives the model.

mod args;
mod model;
#[cfg(test)]
mod planted_samples;
mod probe;
mod proposal;
mod report;
mod runs;
mod survey;
mod tunable;
mod verification;

use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::{EPOCHS_FILE, ReportOptions, write_report};
use bench_run::{
    INTERRUPTED_EXIT_CODE, Interrupted, Measuring, UsageError, print_line, print_message,
};

pub use args::{HELP, TuneFlags, Wanted};
pub use model::KnownMemory;
pub use runs::Runs;
pub use survey::{Facts, Surveyed, SurveyedLabel};
pub use tunable::{RunSettings, Tunable};

use model::{Probe, RunShape};
use proposal::{Goal, Refinement};
use report::Proposal;
use verification::{Figures, Verification};

/// Seconds a verification takes at most: a longer epoch is cut off.
const VERIFY_SECS: f64 = 120.0;

/// Proposes settings for surveyed samples, verifies them, and prints both.
///
/// Returns a failing exit code after Ctrl-C, and with `--strict` if the run differs from the
/// prediction.
///
/// # Errors
/// No shuffle has the entropy asked for, nothing fits the goal, or a verification run fails.
pub fn run<K: Tunable>(
    kind: K,
    surveyed: &Surveyed,
    measuring: Measuring,
    flags: &TuneFlags,
) -> anyhow::Result<ExitCode> {
    let mut runs = Runs::new(kind, measuring);
    let outcome = tune(&mut runs, flags, surveyed);
    runs.finish();
    match outcome {
        Err(error) if error.is::<Interrupted>() => {
            print_message!("interrupted: {} rows are kept in {}", runs.n_rows(), runs.folder());
            Ok(ExitCode::from(INTERRUPTED_EXIT_CODE))
        }
        outcome => outcome,
    }
}

fn tune<K: Tunable>(
    runs: &mut Runs<K>,
    flags: &TuneFlags,
    surveyed: &Surveyed,
) -> anyhow::Result<ExitCode> {
    let goal = goal(flags, surveyed)?;
    let facts = &surveyed.facts;
    let observed = probe::measure(runs, flags, facts)?;
    let mut refinement = Refinement::new(surveyed, goal, observed);
    refine(runs, facts, &mut refinement)?;
    let chosen = refinement.proposal()?;
    let settings = RunSettings {
        spec: chosen.spec,
        prefetch_blocks: chosen.prefetch_blocks,
        max_batches: None,
    };
    let proposal = Proposal {
        facts,
        fixed: runs.kind.fixed(),
        written: runs.kind.written(&settings),
        label: surveyed.label.as_ref().map(|label| (label.name.as_str(), label.perfect_bits)),
        goal,
        predicted: refinement.anchored(),
        candidates: refinement.candidates(),
        chosen,
    };
    if flags.json {
        proposal.json().iter().for_each(|line| print_line!("{line}"));
    } else {
        print_line!("{}", proposal.text());
    }
    let verified = if flags.no_verify { None } else { Some(verify(runs, &proposal)?) };
    if let Some(found) = &verified {
        if flags.json {
            print_line!("{}", report::verified_json(found));
        } else {
            print_line!("{}", report::verified(found, goal.memory_bytes));
        }
    }
    close(&runs.measuring, flags)?;
    let fails = flags.strict && verified.is_some_and(|found| !found.holds());
    if fails {
        print_message!("error: the run came out otherwise than predicted");
    }
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Converts the goal to bytes and bits. Fails if no shuffle reaches the entropy asked for.
fn goal(flags: &TuneFlags, surveyed: &Surveyed) -> anyhow::Result<Goal> {
    let memory_bytes = flags.memory.as_u64() as f64;
    let Some(label) = &surveyed.label else { return Ok(Goal { memory_bytes, bits: 0.0 }) };
    let bits = flags.entropy.bits(label.perfect_bits);
    if label.perfect_bits < bits {
        return Err(UsageError::new(format!(
            "--entropy {bits:.3} bits of {} is more than the {:.3} of a perfect shuffle: ask for less, or for a share as 99%",
            label.name, label.perfect_bits
        ))
        .into());
    }
    Ok(Goal { memory_bytes, bits })
}

/// Runs the chosen candidate until the choice is final. Passes over a candidate whose run fails,
/// most likely for memory. Fails with that run's error if nothing else fits, or after Ctrl-C.
fn refine<K: Tunable>(
    runs: &mut Runs<K>,
    facts: &Facts,
    refinement: &mut Refinement<'_>,
) -> anyhow::Result<()> {
    let mut failure = None;
    loop {
        let next = match (refinement.next(), failure.take()) {
            (Ok(Some(next)), _) => next,
            (Ok(None), _) => return Ok(()),
            // The failed run explains more than the lack of another candidate.
            (Err(_), Some(failure)) => return Err(failure),
            (Err(nothing), None) => return Err(nothing.into()),
        };
        let (settings, run) = probe::run_of(facts, refinement.probe(&next));
        match probe::repeat(runs, &settings, "refinement") {
            Ok(records) => {
                refinement.ran(&next, records.iter().map(|record| probe::observation(record, run)));
            }
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                runs.say(&format!("warning: passed over: {error:#}"));
                refinement.failed(&next);
                failure = Some(error);
            }
        }
    }
}

/// Runs the proposal for an epoch, or for two minutes of a longer one, and compares.
fn verify<K: Tunable>(runs: &mut Runs<K>, proposal: &Proposal<'_>) -> anyhow::Result<Verification> {
    let (one, known, facts) = (&proposal.chosen, proposal.predicted, proposal.facts);
    let epoch = RunShape::epoch(facts.n_rows, one.spec, one.prefetch_blocks);
    let share = VERIFY_SECS / known.elapsed(&epoch);
    let most_blocks =
        if share < 1.0 { ((share * epoch.n_blocks() as f64) as u64).max(2) } else { u64::MAX };
    let probe = Probe { spec: one.spec, prefetch_blocks: one.prefetch_blocks, most_blocks };
    let (settings, run) = probe::run_of(facts, probe);
    let records = probe::repeat(runs, &settings, "verification")?;
    let predicted = Figures {
        samples_per_sec: known.samples_per_sec(&run),
        peak_bytes: known.peak_bytes(&run).0,
        entropy_bits: proposal.label.map(|_| one.entropy_bits),
    };
    let found: Vec<Figures> =
        records.iter().map(|record| Figures::measured(&record.measured)).collect();
    let rows = records.first().and_then(|record| record.measured.n_rows).unwrap_or(0);
    let whole = !run.is_cut_off();
    Ok(Verification::new(&predicted, &found, (rows, whole), proposal.goal.memory_bytes))
}

/// Writes the report of the rows beside them and prints the paths.
fn close(measuring: &Measuring, flags: &TuneFlags) -> anyhow::Result<()> {
    let folder = measuring.folder();
    let files = write_report(folder, &ReportOptions::default())
        .context("the rows are kept, the report of them is not whole")?;
    for path in [&folder.join(EPOCHS_FILE), &files.page] {
        measuring.session.print_path(path, flags.json);
    }
    Ok(())
}
