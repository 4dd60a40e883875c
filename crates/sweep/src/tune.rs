//! `tune`: chunk size, chunks per block, blocks read ahead and reader for an amount of memory and a randomness of the batches.
//!
//! `survey` says how random each of the `candidates` would be. A `probe` of a few short runs, each measured as a point of a sweep is
//! (`session`), gives the coefficients of a model of the cost (`cost` and `memory`, with `run_shape` for what a run reads, `decoding` for
//! what it decodes, `observation` for what was measured and `least_squares` to fit them); the model predicts all candidates, `proposal`
//! chooses, and the choice is run and chosen again until it stands (`refinement`), with what was measured so far correcting the
//! predictions (`anchored`). Then the proposal is run once more and compared with what was predicted (`verification`). docs/tune.md
//! derives the model.

mod anchored;
mod args;
mod candidates;
mod cost;
mod decoding;
mod least_squares;
mod memory;
mod observation;
#[cfg(test)]
mod planted;
mod probe;
mod proposal;
mod refinement;
mod report;
mod run_shape;
mod session;
mod survey;
mod verification;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::{EPOCHS_FILE, write_report};

pub(crate) use args::TuneArgs;
pub(crate) use survey::{SurveyJob, Surveyed, look as survey};

use crate::config::{self, UsageError};
use crate::job::Data;
use crate::{example, interrupt, summary};
use args::Wanted;
use probe::Probe;
use proposal::Goal;
use refinement::Refinement;
use report::Proposal;
use run_shape::RunShape;
use session::{Interrupted, Session};
use verification::{Figures, Verification};

/// A proposal whose epoch would take longer is verified by the beginning of one.
const VERIFY_SECS: f64 = 120.0;

/// Proposes, verifies, and prints.
pub(crate) fn run(args: &TuneArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::watch();
    let usage = |error: anyhow::Error| UsageError::new(format!("{error:#}"));
    let mut data = data(args).map_err(usage)?;
    if args.uri.is_none() {
        let example = example::ensure(args.quiet)?;
        data.uri = example.to_str().context("the path of the cache is not UTF-8")?.into();
    }
    let (mut session, surveyed) = match Session::begin(args, arguments, data, interrupted) {
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("interrupted: nothing was measured");
            return Ok(ExitCode::from(interrupt::EXIT_CODE));
        }
        begun => begun?,
    };
    let outcome = tune(&mut session, args, &surveyed);
    session.finish();
    match outcome {
        Err(error) if error.is::<Interrupted>() => {
            eprintln!(
                "interrupted: {} rows are kept in {}",
                session.n_rows,
                session.folder.path.display()
            );
            Ok(ExitCode::from(interrupt::EXIT_CODE))
        }
        outcome => outcome,
    }
}

fn tune(
    session: &mut Session<'_>,
    args: &TuneArgs,
    surveyed: &Surveyed,
) -> anyhow::Result<ExitCode> {
    let goal = goal(args, surveyed)?;
    let probed = probe::measure(session, args, surveyed)?;
    let known = probe::known_memory(args, &session.opened, surveyed);
    let data = (session.opened.n_cells, &surveyed.candidates[..]);
    let mut refinement = Refinement::new(data, goal, known, probed.observed);
    refine(session, args, &probed.reader, &mut refinement)?;
    let proposal = Proposal {
        args,
        data: &session.data.clone(),
        reader: &probed.reader,
        label: surveyed.label.as_ref().map(|found| (found.column.as_str(), found.perfect_bits)),
        goal,
        predicted: refinement.anchored(),
        candidates: refinement.candidates(),
        chosen: refinement.proposal()?,
    };
    if args.json {
        proposal.json().iter().for_each(|line| println!("{line}"));
    } else {
        println!("{}", proposal.text());
    }
    let verified = if args.no_verify { None } else { Some(verify(session, &proposal)?) };
    if let Some(found) = &verified {
        if args.json {
            println!("{}", report::verified_json(found));
        } else {
            println!("{}", report::verified(found, goal.memory_bytes));
        }
    }
    close(session, args)?;
    let fails = args.strict && verified.is_some_and(|found| !found.holds());
    if fails {
        eprintln!("error: the run came out otherwise than predicted");
    }
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The data; its URI is empty where the example is meant.
fn data(args: &TuneArgs) -> anyhow::Result<Data> {
    let entropy_of =
        if args.entropy == Wanted::Nothing { Vec::new() } else { vec![args.label.clone()] };
    let mut config = config::pairs("--config", &args.config)?;
    // Left to itself it takes more than most budgets have.
    config::share_with_libtiledb(&mut config, args.memory.as_u64());
    Ok(Data {
        uri: args.uri.clone().unwrap_or_default(),
        config,
        measurement: args.measurement.clone(),
        layer: args.layer.clone(),
        reader: config::reader(args.reader).name().to_owned(),
        cells: config::cells(args.start, args.end)?,
        n_genes: (args.n_vars != 0).then_some(args.n_vars),
        obs_columns: Vec::new(),
        entropy_of: Some(entropy_of),
        obs_filter: args.obs_filter.clone(),
        var_filter: args.var_filter.clone(),
        totals: None,
        io_limit: None,
    })
}

/// What is wanted, in numbers. What no shuffle gives is refused before anything is measured.
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

/// Runs what is chosen until the choice stands. One that fails, for memory most likely, is passed over.
fn refine(
    session: &mut Session<'_>,
    args: &TuneArgs,
    reader: &str,
    refinement: &mut Refinement<'_>,
) -> anyhow::Result<()> {
    let mut failure = None;
    loop {
        let next = match (refinement.next(), failure.take()) {
            (Ok(Some(next)), _) => next,
            (Ok(None), _) => return Ok(()),
            // That nothing else fits is no news then.
            (Err(_), Some(failure)) => return Err(failure),
            (Err(nothing), None) => return Err(nothing.into()),
        };
        let (point, run) = probe::run_of(args, session.opened.n_cells, refinement.probe(&next));
        match probe::repeat(session, &point, reader, "refinement") {
            Ok(records) => {
                refinement.ran(&next, records.iter().map(|record| probe::observation(record, run)));
            }
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                session.say(&format!("warning: passed over: {error:#}"));
                refinement.failed(&next);
                failure = Some(error);
            }
        }
    }
}

/// Runs the proposal: an epoch, or as much of one as two minutes have.
fn verify(session: &mut Session<'_>, proposal: &Proposal<'_>) -> anyhow::Result<Verification> {
    let (one, known, n_rows) = (&proposal.chosen, proposal.predicted, session.opened.n_cells);
    let epoch = RunShape::epoch(n_rows, one.spec, one.prefetch_blocks);
    let share = VERIFY_SECS / known.elapsed(&epoch);
    let most_blocks =
        if share < 1.0 { ((share * epoch.n_blocks() as f64) as u64).max(2) } else { u64::MAX };
    let probe = Probe { spec: one.spec, prefetch_blocks: one.prefetch_blocks, most_blocks };
    let (point, run) = probe::run_of(proposal.args, n_rows, probe);
    let records = probe::repeat(session, &point, proposal.reader, "verification")?;
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

/// The report of the rows, beside them.
fn close(session: &Session<'_>, args: &TuneArgs) -> anyhow::Result<()> {
    let folder = &session.folder.path;
    let files = write_report(folder, &summary::report_options(&[]))
        .context("the rows are kept, the report of them is not whole")?;
    for path in [&folder.join(EPOCHS_FILE), &files.page] {
        if args.json {
            session.say(&path.display().to_string());
        } else {
            println!("{}", path.display());
        }
    }
    Ok(())
}
