//! Proposes chunk size, chunks per block, blocks read ahead and reader, and verifies the proposal.
//!
//! The inputs are an amount of memory and how random batches must be; a short probe measures the
//! machine.
//!
//! `survey` predicts how random each candidate would be. `probe` measures a few short runs, each
//! like a point of a sweep (`runs`); the coefficients of the cost `model` are fitted to them. The
//! model predicts all candidates; `proposal` chooses one, runs it and chooses again, until the
//! choice is one that was run. Then the proposal is run once more and compared with the prediction
//! (`verification`). Model and proposal are pure: only `runs` and `survey` start processes.
//! docs/tune.md derives the model.

mod args;
mod model;
mod probe;
mod proposal;
mod report;
mod runs;
mod survey;
mod verification;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::{EPOCHS_FILE, ReportOptions, write_report};
use bench_run::{INTERRUPTED_EXIT_CODE, Interrupted, UsageError, print_line, print_message};
use grid_point::{Data, share_with_libtiledb};
use loader::ReaderChoice;

pub use args::TuneArgs;
pub use survey::{SUBCOMMAND, serve};

use args::Wanted;
use model::{Probe, RunShape};
use proposal::{Goal, Refinement};
use report::Proposal;
use runs::Runs;
use survey::Surveyed;
use verification::{Figures, Verification};

/// Seconds a verification takes at most: a longer epoch is cut off.
const VERIFY_SECS: f64 = 120.0;

/// Runs the command: proposes settings, verifies them, and prints both.
///
/// Fails if the data cannot be opened, if nothing fits the goal, or if a verification run fails.
/// Returns a failing exit code after Ctrl-C, and with `--strict` if the run differs from the
/// prediction.
pub fn run(args: &TuneArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let data = data(args).map_err(|error| UsageError::from_error(&error))?;
    let (mut runs, surveyed) = match Runs::begin(args, arguments, data) {
        Err(error) if error.is::<Interrupted>() => {
            print_message!("interrupted: nothing was measured");
            return Ok(ExitCode::from(INTERRUPTED_EXIT_CODE));
        }
        begun => begun?,
    };
    let outcome = tune(&mut runs, args, &surveyed);
    runs.finish();
    match outcome {
        Err(error) if error.is::<Interrupted>() => {
            print_message!(
                "interrupted: {} rows are kept in {}",
                runs.rows.n_rows,
                runs.rows.folder.path.display()
            );
            Ok(ExitCode::from(INTERRUPTED_EXIT_CODE))
        }
        outcome => outcome,
    }
}

fn tune(runs: &mut Runs, args: &TuneArgs, surveyed: &Surveyed) -> anyhow::Result<ExitCode> {
    let goal = goal(args, surveyed)?;
    let probed = probe::measure(runs, args, surveyed)?;
    let known = probe::known_memory(args, &runs.opened, surveyed);
    let data = (runs.opened.n_cells, &surveyed.candidates[..]);
    let mut refinement = Refinement::new(data, goal, known, probed.observed);
    refine(runs, args, probed.reader, &mut refinement)?;
    let proposal = Proposal {
        args,
        data: &runs.data.clone(),
        reader: probed.reader,
        label: surveyed.label.as_ref().map(|label| (label.column.as_str(), label.perfect_bits)),
        goal,
        predicted: refinement.anchored(),
        candidates: refinement.candidates(),
        chosen: refinement.proposal()?,
    };
    if args.json {
        proposal.json().iter().for_each(|line| print_line!("{line}"));
    } else {
        print_line!("{}", proposal.text());
    }
    let verified = if args.no_verify { None } else { Some(verify(runs, &proposal)?) };
    if let Some(found) = &verified {
        if args.json {
            print_line!("{}", report::verified_json(found));
        } else {
            print_line!("{}", report::verified(found, goal.memory_bytes));
        }
    }
    close(runs, args)?;
    let fails = args.strict && verified.is_some_and(|found| !found.holds());
    if fails {
        print_message!("error: the run came out otherwise than predicted");
    }
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the data as typed; its URI is empty if the example is meant.
fn data(args: &TuneArgs) -> anyhow::Result<Data> {
    let entropy_of =
        if args.entropy == Wanted::Nothing { Vec::new() } else { vec![args.label.clone()] };
    let mut data = args.selection.apply(args.data.data()?)?;
    // libtiledb's default buffers exceed most memory goals.
    share_with_libtiledb(&mut data.config, args.memory.as_u64());
    Ok(Data {
        reader: ReaderChoice::from(args.reader).name().to_owned(),
        entropy_of: Some(entropy_of),
        ..data
    })
}

/// Converts the goal to bytes and bits. Fails if no shuffle reaches the entropy asked for.
fn goal(args: &TuneArgs, surveyed: &Surveyed) -> anyhow::Result<Goal> {
    let memory_bytes = args.memory.as_u64() as f64;
    let Some(label) = &surveyed.label else { return Ok(Goal { memory_bytes, bits: 0.0 }) };
    let bits = args.entropy.bits(label.perfect_bits);
    if label.perfect_bits < bits {
        return Err(UsageError::new(format!(
            "--entropy {bits:.3} bits of {} is more than the {:.3} of a perfect shuffle: ask for less, or for a share as 99%",
            label.column, label.perfect_bits
        ))
        .into());
    }
    Ok(Goal { memory_bytes, bits })
}

/// Runs the chosen candidate until the choice is final. Passes over a candidate whose run fails,
/// most likely for memory. Fails with that run's error if nothing else fits, or after Ctrl-C.
fn refine(
    runs: &mut Runs,
    args: &TuneArgs,
    reader: ReaderChoice,
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
        let (point, run) = probe::run_of(args, runs.opened.n_cells, refinement.probe(&next));
        match probe::repeat(runs, &point, reader, "refinement") {
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
fn verify(runs: &mut Runs, proposal: &Proposal<'_>) -> anyhow::Result<Verification> {
    let (one, known, n_rows) = (&proposal.chosen, proposal.predicted, runs.opened.n_cells);
    let epoch = RunShape::epoch(n_rows, one.spec, one.prefetch_blocks);
    let share = VERIFY_SECS / known.elapsed(&epoch);
    let most_blocks =
        if share < 1.0 { ((share * epoch.n_blocks() as f64) as u64).max(2) } else { u64::MAX };
    let probe = Probe { spec: one.spec, prefetch_blocks: one.prefetch_blocks, most_blocks };
    let (point, run) = probe::run_of(proposal.args, n_rows, probe);
    let records = probe::repeat(runs, &point, proposal.reader, "verification")?;
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
fn close(runs: &Runs, args: &TuneArgs) -> anyhow::Result<()> {
    let folder = &runs.rows.folder.path;
    let files = write_report(folder, &ReportOptions::default())
        .context("the rows are kept, the report of them is not whole")?;
    for path in [&folder.join(EPOCHS_FILE), &files.page] {
        runs.session.print_path(path, args.json);
    }
    Ok(())
}
