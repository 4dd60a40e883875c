//! The command `ranks`: several ranks load their parts of one store at the same time.
//!
//! Each rank is a measured process with a consumer. All open the data, begin together, and share
//! the cells. The report has their rate together and the accelerator utilisation of each. The ranks
//! are started here, in one number or in a search for the largest number that has enough
//! utilisation, or by a launcher, which starts the command once for each rank (`launched`).

mod args;
mod launched;
mod outcome;
mod search;
mod summary;
mod together;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use bench_report::{
    EPOCHS_FILE, EpochRecord, HostInfo, LEAST_UTILIZATION, ReportOptions, summarize, write_report,
};
use bench_run::{
    Display, INTERRUPTED_EXIT_CODE, PageCache, Rows, Session, UsageError, grouped, pairs,
    print_line, print_message, run_info, warm,
};
use grid_point::{Data, Opened, Point};
use loader::World;

pub(crate) use args::RanksArgs;

use args::Ranks;
use together::Ended;

/// Runs the ranks and prints their tables; as a rank of a launcher other than 0, takes part and
/// prints nothing.
///
/// Fails if a setting is invalid, a rank fails or does not come, or the ranks do not deliver each
/// cell once. Rows that were written before stay.
pub(crate) fn run(args: &RanksArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let world = World::from_environment().map_err(|error| UsageError::from_error(&error.into()))?;
    let ranks = args.which(world)?;
    let (mut data, point) = args.resolve()?;
    let metadata =
        pairs("-M/--metadata", &args.metadata).map_err(|error| UsageError::from_error(&error))?;
    if let Ranks::Launched(world) = ranks
        && world.rank != 0
    {
        return launched::run(args, world, &data, &point);
    }
    let host = HostInfo::gather();
    let name = format!("{}-ranks", data.name());
    let folder = args.results_flags.folder(args.results.as_deref(), &host, &name)?;
    data = data.or_example(args.quiet)?;
    let mut servers = args.link.servers(&host)?;
    if let Some(servers) = &mut servers {
        data = data.over(servers)?;
    }
    if !matches!(ranks, Ranks::Launched(_)) {
        data = data.with_names()?;
    }
    let session = Session::begin(Display::counting("runs of ranks", args.quiet))?;
    let revision = args.results_flags.revision.as_deref();
    let run = run_info(revision, &metadata, &host, arguments)?;
    let mut measuring = Measuring {
        args,
        session,
        rows: Rows::new(folder, run, host),
        data,
        point,
        world: match ranks {
            Ranks::Launched(world) => Some(world),
            Ranks::Here(_) | Ranks::Search { .. } => None,
        },
        opened: None,
        records: Vec::new(),
        n_runs: 0,
    };
    measuring.prepare_cache();
    if let Some(servers) = &servers {
        measuring.session.display.line(&format!("the data is read {}", servers.describe()));
    }
    let measured = measuring.measure_all(ranks);
    measuring.session.display.finish();
    // What was measured is shown even if the run ended early.
    let shown = measuring.close();
    if let Err(Stopped::Interrupted) = measured {
        print_message!("interrupted: {} rows are kept", measuring.rows.n_rows);
        return Ok(ExitCode::from(INTERRUPTED_EXIT_CODE));
    }
    measured.map_err(Stopped::into_error)?;
    shown?;
    Ok(ExitCode::SUCCESS)
}

/// Why no further ranks are measured.
#[derive(Debug)]
enum Stopped {
    Interrupted,
    Failed(anyhow::Error),
}

impl Stopped {
    fn into_error(self) -> anyhow::Error {
        match self {
            Self::Interrupted => bench_run::Interrupted.into(),
            Self::Failed(error) => error,
        }
    }
}

impl From<anyhow::Error> for Stopped {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// A running measurement of ranks, by the process that writes their rows.
struct Measuring<'a> {
    args: &'a RanksArgs,
    session: Session,
    rows: Rows,
    data: Data,
    point: Point,
    /// The ranks of a launcher, of which this process is rank 0; `None` if it starts all itself.
    world: Option<World>,
    /// Facts about the data, once a rank has opened it.
    opened: Option<Opened>,
    records: Vec<EpochRecord>,
    n_runs: u64,
}

impl Measuring<'_> {
    /// Reads the data into the page cache, unless it is to be cold or other machines read it, too.
    fn prepare_cache(&mut self) {
        if self.args.cold.is_some() {
            return;
        }
        let state = match self.world {
            Some(_) => PageCache::Unknown("ranks on several machines may read the data".to_owned()),
            None => warm(self.data.folders().as_deref()),
        };
        if let PageCache::Unknown(why) = &state {
            self.session.display.line(&format!("the page cache is left as it is: {why}"));
        }
        self.session.cache = state.name();
    }

    /// Brings the page cache to its state before each run.
    fn restore_cache(&mut self) {
        let folders = self.data.folders();
        match self.args.cold {
            None => self.session.warm_again(folders.as_deref()),
            Some(how) => self.session.cache = self.session.cool(folders.as_deref(), how),
        }
    }

    fn measure_all(&mut self, ranks: Ranks) -> Result<(), Stopped> {
        match ranks {
            Ranks::Here(n) => self.measure(n).map(drop),
            Ranks::Launched(world) => self.measure(world.size).map(drop),
            Ranks::Search { most, least } => self.search(most, least),
        }
    }

    /// Searches the largest number of ranks of which each has the utilisation.
    fn search(&mut self, most: u64, least: f64) -> Result<(), Stopped> {
        // Nothing is known of the data before the first rank has opened it.
        let mut first = Some(self.measure_utilization(1)?);
        let n_cells = self.opened.as_ref().map_or(0, |opened| opened.n_cells);
        let most_with_two = n_cells.saturating_sub(1) / self.point.spec.pipeline.batch_rows;
        let most_tried = most.min(most_with_two.max(1));
        let found = search::largest(most_tried, &mut |n| {
            let utilization = match first.take() {
                Some(utilization) => utilization,
                None => self.measure_utilization(n)?,
            };
            Ok::<_, Stopped>(least <= utilization)
        })?;
        if found == Some(most_tried) && most_tried < most {
            self.session.display.line(&format!(
                "with more than {most_tried} ranks each has one batch of the {} cells, and no utilisation",
                grouped(n_cells)
            ));
        }
        Ok(())
    }

    /// Measures `n` ranks; returns the least utilisation of one of them.
    fn measure_utilization(&mut self, n: u64) -> Result<f64, Stopped> {
        let records = self.measure(n)?;
        let points = summarize(&records);
        let ranks = points.first().and_then(|point| point.ranks.as_ref());
        let least = ranks.and_then(|ranks| ranks.least_utilization);
        let least = least.context(
            "an epoch of a rank has a single batch, so that there is no utilisation: take smaller \
             batches or more cells",
        )?;
        Ok(least.median)
    }

    /// Measures `n` ranks and keeps their rows.
    fn measure(&mut self, n: u64) -> Result<Vec<EpochRecord>, Stopped> {
        self.restore_cache();
        let mut records = match self.run_together(n)? {
            Ended::Done(records) => records,
            Ended::Interrupted => return Err(Stopped::Interrupted),
            Ended::Failed { message, record } => {
                if let Some(mut record) = record {
                    self.rows.keep(&mut record)?;
                    self.records.push(*record);
                }
                return Err(Stopped::Failed(anyhow::Error::msg(message)));
            }
        };
        self.rows.keep_all(&mut records)?;
        self.announce(n, &records);
        self.records.extend(records.iter().cloned());
        self.n_runs += 1;
        self.session.display.position(self.n_runs);
        Ok(records)
    }

    /// Prints a line about the ranks that were measured.
    fn announce(&self, n: u64, records: &[EpochRecord]) {
        let points = summarize(records);
        let Some(ranks) = points.first().and_then(|point| point.ranks.as_ref()) else { return };
        let rate = ranks.samples_per_sec.map_or(0.0, |rate| rate.median);
        let least = ranks.least_utilization.map_or_else(String::new, |least| {
            format!(", AU {:.1} % or more", 100.0 * least.median)
        });
        let rate = grouped(rate.round() as u64);
        self.session.display.line(&format!("{n} ranks: {rate} samples/s together{least}"));
    }

    /// Prints the tables and writes the report.
    fn close(&self) -> anyhow::Result<()> {
        if self.rows.n_rows == 0 {
            return Ok(());
        }
        if self.args.json {
            for point in summarize(&self.records) {
                let line = serde_json::to_string(&point).context("cannot write down a point")?;
                print_line!("{line}");
            }
        } else {
            let least = self.args.least_au.unwrap_or(LEAST_UTILIZATION);
            print_line!("{}", summary::tables(&self.records, least));
        }
        let folder = &self.rows.folder.path;
        let files = write_report(folder, &ReportOptions::default()).with_context(|| {
            format!("{} rows are kept, the report of them is not whole", self.rows.n_rows)
        })?;
        let epochs = folder.join(EPOCHS_FILE);
        ensure!(epochs.exists(), "{} is gone", epochs.display());
        let named = [&epochs, &files.page, &files.readme];
        for path in named.into_iter().chain(&files.ranks) {
            self.session.print_path(path, self.args.json);
        }
        Ok(())
    }
}
