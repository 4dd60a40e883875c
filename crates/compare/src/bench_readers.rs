//! `bench-readers`: the native reader and libtiledb read the same rows in turn. Both must read the
//! same values.

mod args;
mod link_table;
mod reads;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, bail};
use bench_report::{HostInfo, Measured, ProcessMeter, Spread};
use bench_run::{
    Display, Ended, INTERRUPTED_EXIT_CODE, LinkAccess, Order, ProcessSpec, Session, TableStyle,
    UsageError, grouped, print_line, print_message, text_table, warm,
};
use grid_point::{Data, DataSource};
use serde::{Deserialize, Serialize};
use soma_io::{
    CsrBuffers, Experiment, GeneSelection, Matrix, OpenOptions, ReaderChoice, RowRanges, XReader,
};

pub use args::BenchReadersArgs;
use link_table::ReaderCounts;
use reads::ReadKind;

/// The subcommand of the program that runs [`serve`].
pub const SUBCOMMAND: &str = "bench-readers-task";

/// The task of a process whose memory is measured.
#[derive(Serialize, Deserialize)]
struct ReadTask {
    data: Data,
    kind: ReadKind,
    /// Seed of the random rows.
    seed: u64,
}

const HEADER: [&str; 9] = [
    "read",
    "reads x rows",
    "libtiledb rows/s",
    "native rows/s",
    "ratio",
    "first ratio (native rows/s)",
    "decoded / wanted",
    "libtiledb MB",
    "native MB",
];

const LEGEND: &str = "\
Rows per second into CSR: the median of the repetitions (the least to the most). Ratio: native to libtiledb, repetition by repetition.
First ratio: the reads right after opening. The repetitions come after both have read all of the array once, which leaves the native
reader its row indices.
MB: the most memory that opening and the reads of two repetitions took, in a process of their own that keeps one CSR.";

/// Compares the readers and prints the table. Fails if the values they read differ.
pub fn run(args: &BenchReadersArgs) -> anyhow::Result<ExitCode> {
    let kinds = kinds(&args.reads)?;
    if args.repetitions == 0 {
        return Err(UsageError::new("--repetitions must be 1 or more").into());
    }
    let host = HostInfo::gather();
    let mut servers = args.link.servers(&host)?;
    let mut data = args.data.data()?.or_example(args.quiet)?;
    if let Some(servers) = &mut servers {
        data = data.over(servers)?;
    }
    data = data.with_names()?;
    let display = Display::new(kinds.len() as u64, "kinds of reads", args.quiet);
    let mut session = Session::begin(display)?;
    let x = open(&data)?;
    session.cache = warm(data.folders().as_deref()).name();
    announce(&x, &data, &host, session.cache)?;
    if let Some(servers) = &servers {
        print_line!("read {}", servers.describe());
    }
    let (mut rows, mut asked) = (Vec::new(), Vec::new());
    for (kind, done) in kinds.iter().zip(1..) {
        session.display.now(kind.to_string());
        let link = data.link.as_ref();
        let Some(compared) = compare(&x, *kind, args, link, &session)? else { break };
        let peak = |choice| peak_bytes(&session, &data, choice, *kind, args.seed);
        let Some(libtiledb) = peak(ReaderChoice::Libtiledb)? else { break };
        let Some(native) = peak(ReaderChoice::Native)? else { break };
        rows.push(compared.row(*kind, libtiledb, native));
        asked.extend(link_table::rows(*kind, &compared.sides));
        session.display.position(done);
    }
    session.display.finish();
    print_line!("{}\n{LEGEND}", table(&HEADER, 1, &rows));
    if !asked.is_empty() {
        print_line!("\n{}\n{}", table(&link_table::HEADER, 2, &asked), link_table::LEGEND);
    }
    if rows.len() < kinds.len() {
        print_message!("interrupted");
        return Ok(ExitCode::from(INTERRUPTED_EXIT_CODE));
    }
    Ok(ExitCode::SUCCESS)
}

fn kinds(typed: &[String]) -> anyhow::Result<Vec<ReadKind>> {
    let default = ReadKind::DEFAULT.map(str::to_owned);
    let typed = if typed.is_empty() { &default } else { typed };
    typed
        .iter()
        .map(|text| {
            text.trim().parse().map_err(|error| UsageError::new(format!("--reads {error}")).into())
        })
        .collect()
}

fn open(data: &Data) -> anyhow::Result<Matrix> {
    let DataSource { uri, config } = data.source()?;
    let options = OpenOptions { config, ..OpenOptions::default() };
    Ok(Experiment::open(uri.full(), &options)?.measurement(&data.measurement)?.x(&data.layer)?)
}

fn announce(x: &Matrix, data: &Data, host: &HostInfo, cache: &str) -> anyhow::Result<()> {
    let (n_rows, n_columns) = x.shape();
    print_line!(
        "{}/{} of {}: {} cells x {} genes, {} values; page cache {}; {}",
        data.measurement,
        data.layer,
        data.uri,
        grouped(n_rows),
        grouped(n_columns),
        grouped(x.nnz()?),
        cache,
        host.host,
    );
    Ok(())
}

/// Result of the repetitions of one kind of read.
struct Compared {
    n_reads: usize,
    n_rows: u64,
    /// Rows per second in each repetition, of libtiledb and the native reader.
    rates: Vec<[f64; 2]>,
    first: [f64; 2],
    nnz: u64,
    cells_decoded: u64,
    /// Counts of the link's server for each reader in the repetitions; empty without a link.
    sides: Vec<ReaderCounts>,
}

impl Compared {
    fn row(&self, kind: ReadKind, libtiledb_bytes: u64, native_bytes: u64) -> Vec<String> {
        let format = |values: &mut dyn Iterator<Item = f64>, digits: usize| {
            let number = |value: f64| match digits {
                0 => grouped(value.round() as u64),
                _ => format!("{value:.digits$}"),
            };
            Spread::from_values(values).map_or_else(String::new, |spread| spread.format_by(number))
        };
        let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
        vec![
            kind.to_string(),
            format!("{} x {}", self.n_reads, grouped(self.n_rows / self.n_reads.max(1) as u64)),
            format(&mut self.rates.iter().map(|[libtiledb, _]| *libtiledb), 0),
            format(&mut self.rates.iter().map(|[_, native]| *native), 0),
            format(&mut self.rates.iter().map(|[libtiledb, native]| native / libtiledb), 1),
            format!(
                "{:.1} ({})",
                self.first[1] / self.first[0],
                grouped(self.first[1].round() as u64)
            ),
            format!("{:.2}", self.cells_decoded as f64 / self.nnz.max(1) as f64),
            megabytes(libtiledb_bytes),
            megabytes(native_bytes),
        ]
    }
}

/// Reads the same rows with both readers in turn. Fails if their values differ; returns `None`
/// after Ctrl-C.
fn compare(
    x: &Matrix,
    kind: ReadKind,
    args: &BenchReadersArgs,
    link: Option<&LinkAccess>,
    session: &Session,
) -> anyhow::Result<Option<Compared>> {
    // Opened anew for each kind, so that no kind profits from the state that another one left.
    let mut sides = [Side::open(x, ReaderChoice::Libtiledb)?, Side::open(x, ReaderChoice::Native)?];
    let mut compared = Compared {
        n_reads: 0,
        n_rows: 0,
        rates: Vec::new(),
        first: [0.0; 2],
        nnz: 0,
        cells_decoded: 0,
        sides: Vec::new(),
    };
    if link.is_some() {
        compared.sides = vec![ReaderCounts::new("libtiledb"), ReaderCounts::new("native")];
    }
    for repetition in 0..=args.repetitions {
        let reads = kind.reads(x.shape().0, args.seed, repetition)?;
        if reads.is_empty() {
            bail!("{} has no rows to read", x.uri());
        }
        for side in &mut sides {
            side.secs = 0.0;
        }
        link.map_or(Ok(()), LinkAccess::restart_faults)?;
        for (rows, idx) in reads.iter().zip(repetition..) {
            if session.is_stopped() {
                return Ok(None);
            }
            // The readers alternate: the second one finds caches as the first one left them.
            for side in [idx % 2, (idx + 1) % 2].map(|side| side as usize) {
                let before = link.map(LinkAccess::counts).transpose()?;
                let decoded = sides[side].read(rows)?;
                compared.cells_decoded += decoded.unwrap_or(0);
                if let Some((link, before)) = link.zip(before)
                    && 0 < repetition
                {
                    compared.sides[side].add(&link.counts()?.since(&before), sides[side].last_secs);
                }
            }
            same(&sides, rows)?;
            compared.nnz += sides[1].csr.nnz() as u64;
        }
        compared.n_reads = reads.len();
        compared.n_rows = reads.iter().map(RowRanges::n_rows).sum();
        let rates = [0, 1].map(|side: usize| compared.n_rows as f64 / sides[side].secs);
        if repetition > 0 {
            compared.rates.push(rates);
            continue;
        }
        compared.first = rates;
        // Both read the whole array once before the repetitions, like in the epochs after the
        // first: the native reader then has its row indices.
        if kind != ReadKind::Whole {
            for rows in ReadKind::Whole.reads(x.shape().0, args.seed, 0)? {
                for side in &mut sides {
                    side.read(&rows)?;
                }
            }
        }
    }
    Ok(Some(compared))
}

/// A reader and its buffers.
struct Side {
    reader: Arc<dyn XReader>,
    csr: CsrBuffers,
    secs: f64,
    /// Seconds of the last read.
    last_secs: f64,
}

impl Side {
    fn open(x: &Matrix, choice: ReaderChoice) -> anyhow::Result<Self> {
        Ok(Self {
            reader: x.reader(choice)?,
            csr: CsrBuffers::default(),
            secs: 0.0,
            last_secs: 0.0,
        })
    }

    fn read(&mut self, rows: &RowRanges) -> anyhow::Result<Option<u64>> {
        let start = Instant::now();
        let stats = self.reader.read_csr(rows, &GeneSelection::All, &mut self.csr)?;
        self.last_secs = start.elapsed().as_secs_f64();
        self.secs += self.last_secs;
        Ok(stats.values_decoded)
    }
}

/// Fails if two reads of the same rows differ in a bit.
fn same(sides: &[Side; 2], rows: &RowRanges) -> anyhow::Result<()> {
    let [libtiledb, native] = sides.each_ref().map(|side| &side.csr);
    if libtiledb.n_rows() != native.n_rows() || libtiledb.n_columns != native.n_columns {
        bail!("the readers' results have different shapes");
    }
    for (row, joinid) in rows.iter().enumerate() {
        let (left, right) = (libtiledb.row(row), native.row(row));
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        if left.0 != right.0 || bits(left.1) != bits(right.1) {
            bail!("the readers differ in the row of cell {joinid}");
        }
    }
    Ok(())
}

/// Measures the memory that a process needs to open X and read, in bytes; `None` after Ctrl-C.
fn peak_bytes(
    session: &Session,
    data: &Data,
    choice: ReaderChoice,
    kind: ReadKind,
    seed: u64,
) -> anyhow::Result<Option<u64>> {
    let data = Data { reader: choice.name().to_owned(), ..data.clone() };
    let (secrets, link) = (data.secrets(), data.link.clone());
    let order = Order { cache: session.cache.to_owned(), task: ReadTask { data, kind, seed } };
    let process = ProcessSpec::new(session.command(SUBCOMMAND), &order, secrets)?.over(link);
    let mut peak = None;
    let ended = session.run(&format!("{kind} by {choice}"), process, &mut |bytes: u64| {
        peak = Some(bytes);
        Ok(())
    })?;
    match ended {
        Ended::Done { .. } => Ok(peak),
        Ended::Interrupted => Ok(None),
        Ended::Failed(failure) => bail!("reading {kind} with {choice}: {}", failure.message),
    }
}

/// Reads an order from stdin, performs it and reports on stdout.
pub fn serve() -> anyhow::Result<()> {
    bench_run::serve(
        |task: &ReadTask| task.data.secrets(),
        |order, reporter| reporter.answer(read(&order.task)?),
    )
}

/// Opens X, reads two repetitions, and returns the growth of memory at its peak, in bytes.
fn read(ReadTask { data, kind, seed }: &ReadTask) -> anyhow::Result<u64> {
    let meter = ProcessMeter::start()?;
    let mut measured = Measured::default();
    let x = open(data)?;
    let mut side = Side::open(&x, data.reader.parse()?)?;
    for repetition in 0..2 {
        for rows in kind.reads(x.shape().0, *seed, repetition)? {
            side.read(&rows)?;
        }
    }
    meter.finish(&mut measured)?;
    let (peak, before) = (measured.epoch_peak_bytes(), measured.start_mem_bytes);
    peak.zip(before)
        .map(|(peak, before)| peak.saturating_sub(before))
        .context("the process's memory is not known")
}

fn table(header: &[&str], n_words: usize, rows: &[Vec<String>]) -> String {
    text_table(TableStyle::Markdown, header, &header[..n_words], rows)
}
