//! The command `tune` for cells. Crate `tune` chooses the settings; this says what cells are.

mod args;
mod cells;
mod survey;
mod written;

use std::ffi::OsString;
use std::process::ExitCode;

use bench_report::HostInfo;
use bench_run::{
    Display, INTERRUPTED_EXIT_CODE, Interrupted, Measuring, Session, UsageError, grouped,
    print_message, warm,
};
use grid_point::Opened;
use loader::ReaderChoice;

pub(crate) use args::TuneArgs;
pub(crate) use survey::{SUBCOMMAND, serve};

use cells::Cells;

/// Runs the command: surveys the cells, proposes settings, verifies them, and prints both.
///
/// Fails if the data cannot be opened, if nothing fits the goal, or if a verification run fails.
/// Returns a failing exit code after Ctrl-C, and with `--strict` if the run differs from the
/// prediction.
pub(crate) fn run(args: &TuneArgs, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let data = args.data().map_err(|error| UsageError::from_error(&error))?;
    let host = HostInfo::gather();
    let mut servers = args.link.servers(&host)?;
    let name = format!("tune-{}", data.name());
    let mut data = data.or_example(args.output.quiet)?;
    if let Some(servers) = &mut servers {
        data = data.over(servers)?;
    }
    data = data.with_names()?;
    let session = Session::begin(Display::counting("runs", args.output.quiet))?;
    let (opened, surveyed) = match survey::run(&session, args, &data) {
        Err(error) if error.is::<Interrupted>() => {
            print_message!("interrupted: nothing was measured");
            return Ok(ExitCode::from(INTERRUPTED_EXIT_CODE));
        }
        surveyed => surveyed?,
    };
    let mut measuring =
        Measuring::in_session(session, &args.output, &name, host.clone(), arguments)?;
    let session = &mut measuring.session;
    session.cache = warm(data.folders().as_deref()).name();
    if let Some(servers) = &servers {
        session.display.line(&format!("the data is read {}", servers.describe()));
    }
    let Opened { n_cells, n_genes, reader, why_not_native, .. } = &opened;
    let (cells, genes) = (grouped(*n_cells), grouped(*n_genes));
    session.display.line(&format!("{}: {cells} cells x {genes} genes", data.uri));
    if let Some(why) = why_not_native {
        session.display.line(&format!("reader of X: {reader}, because {why}"));
    }
    session.display.line(&format!("page cache: {}", session.cache));
    let program = session.program().to_owned();
    measuring.session.display.line(&format!("results: {}", measuring.folder().display()));
    let choice = reader.parse().unwrap_or(ReaderChoice::Auto);
    choice.name().clone_into(&mut data.reader);
    data.entropy_of = Some(surveyed.label.iter().map(|label| label.name.clone()).collect());
    let cells = Cells { args, data, opened, program, host };
    tune::run(cells, &surveyed, measuring, &args.tune)
}
