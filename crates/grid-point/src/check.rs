//! Opens the data once, in a process of its own, to check it before a command measures.

use anyhow::bail;
use bench_run::{Ended, Order, ProcessSpec, Session};

use crate::SUBCOMMAND;
use crate::data::{Data, Opened};
use crate::point::Point;
use crate::task::{PointAnswer, PointTask, PointWork};

/// Opens the data in a process of its own and checks that every point can be loaded. Fails if that
/// process fails. After Ctrl-C, the facts may be empty.
pub fn check(session: &Session, data: &Data, points: &[Point]) -> anyhow::Result<Opened> {
    let work = PointWork::Check(points.to_vec());
    let process = point_process(session, data, work)?;
    let mut facts = None;
    let ended = session.run("opening", process, &mut |answer| {
        if let PointAnswer::Opened(opened) = answer {
            facts = Some(opened);
        }
        Ok(())
    })?;
    match (ended, facts) {
        (Ended::Failed(failure), _) => bail!(failure.message),
        (Ended::Done { .. }, None) => bail!("{} could not be opened", data.uri),
        (_, facts) => Ok(facts.unwrap_or_default()),
    }
}

/// Returns a process that does `work` on the data. Fails if the task cannot be serialized.
pub fn point_process(
    session: &Session,
    data: &Data,
    work: PointWork,
) -> anyhow::Result<ProcessSpec<'static>> {
    let task = PointTask { data: data.clone(), work };
    let order = Order { cache: session.cache.to_owned(), task };
    let process = ProcessSpec::new(session.command(SUBCOMMAND), &order, data.secrets())?;
    Ok(process.over(data.link.clone()))
}
