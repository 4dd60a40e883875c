//! A rank other than 0 of those that a launcher started: takes part, and leaves rows and report to
//! rank 0.

use std::process::ExitCode;

use anyhow::Context as _;
use bench_report::HostInfo;
use bench_run::{
    Display, INTERRUPTED_EXIT_CODE, PageCache, RankZero, RanksEnd, Session, cool, follow_rank_zero,
};
use grid_point::{Data, Point, PointAnswer};
use loader::World;

use super::RanksArgs;
use super::together::{rank_process, settings_digest};

/// Joins rank 0, runs this rank's process, and returns when the run is over. Fails if the run
/// fails.
pub(super) fn run(
    args: &RanksArgs,
    world: World,
    data: &Data,
    point: &Point,
) -> anyhow::Result<ExitCode> {
    let mut session = Session::begin(Display::counting("runs", true))?;
    session.cache = match args.cold {
        Some(how) => cool(data.folders().as_deref(), how).name(),
        None => PageCache::Unknown(String::new()).name(),
    };
    let folder = args.results.as_deref().context("a rank needs the folder of rank 0")?;
    let settings = settings_digest(&session, data, point)?;
    let World { rank, size: world_size } = world;
    let patience = (args.start_within(), session.interrupted());
    let host = HostInfo::gather();
    let joined = RankZero::join(folder, &host, (rank, world_size), &settings, patience)?;
    let Some(zero) = joined else { return Ok(ExitCode::from(INTERRUPTED_EXIT_CODE)) };
    let process = rank_process(&session, data, point, world)?;
    match follow_rank_zero::<PointAnswer>(zero, process, session.interrupted())? {
        RanksEnd::Interrupted => Ok(ExitCode::from(INTERRUPTED_EXIT_CODE)),
        RanksEnd::Done | RanksEnd::Failed { .. } => Ok(ExitCode::SUCCESS),
    }
}
