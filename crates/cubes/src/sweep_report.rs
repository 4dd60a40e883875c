//! The table and the figures of a sweep.

use std::path::PathBuf;

use anyhow::Context as _;
use bench_report::{
    Bar, BarChart, BarGroup, BarKind, Best, EPOCHS_FILE, Floor, MeanStd, draw_bars, to_png,
    write_text,
};
use bench_run::{Measuring, format_rate};

use crate::bench::{Consumer, Cubes, Point, Strategy};
use crate::device::TorchProcessor;
use crate::figures::{DECODER, DEVICE, DISK, NamedCurve, color, draw_curves};
use crate::published::{LIMIT, N_CUBES, NOTE, PUBLISHED};
use crate::summary::{FloorSecs, Summary};

/// What the columns of the table are.
pub(crate) const LEGEND: &str = "s an epoch: seconds, mean ± standard deviation over repetitions; floors: the least seconds that \
    disk, decoder and device need alone; device busy %: share of the epoch in which the device computed; AU %: the same \
    without the first batch (accelerator utilisation); host waits %: share in which the training thread waited for a \
    batch; CPU s a cube: processor seconds; cores busy %: of all cores; peak GB and pinned GB: most memory of the \
    process, and of it for the device's copies, in 10^9 bytes; read MB: 10^6 bytes read in an epoch";

/// The results of a sweep.
pub(crate) struct Report<'a> {
    measuring: &'a Measuring,
    n_cubes: u64,
    rows: Vec<Row<'a>>,
    has_published: bool,
}

/// A point's figures and its floors.
struct Row<'a> {
    summary: Summary<'a>,
    floors: FloorSecs,
}

impl Row<'_> {
    fn label(&self) -> &str {
        &self.summary.point.label
    }

    /// The limit's rate, as it is shown.
    fn limit(&self) -> Option<String> {
        let limit = self.summary.point.io_limit.as_ref()?;
        Some(format_rate(limit.bytes_per_second.get() as f64))
    }

    fn rate(&self) -> Option<u64> {
        self.summary.point.io_limit.as_ref().map(|limit| limit.bytes_per_second.get())
    }

    /// Whether it has the settings of its strategy alone.
    fn is_plain(&self) -> bool {
        self.summary.point.label == self.summary.point.strategy.label()
    }
}

impl<'a> Report<'a> {
    pub(crate) fn new(
        (measuring, cubes): (&'a Measuring, &Cubes),
        points: &'a [Point],
        warmup: u64,
        has_published: bool,
    ) -> Self {
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        let records = &measuring.records;
        let row = |(idx, point)| {
            let summary = Summary::from_records((idx, point), records, warmup);
            let floors = FloorSecs::estimate(&summary, records, n_cores);
            Row { summary, floors }
        };
        let rows = points.iter().enumerate().map(row).collect();
        Self { measuring, n_cubes: cubes.n_items, rows, has_published }
    }

    /// The table in Markdown: a row for each point.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from(
            "| strategy | read limit | s an epoch | floors: disk, decoder, device s | device busy % \
             | AU % | cubes/s | host waits % | first batch s | CPU s a cube | cores busy % | peak GB \
             | pinned GB | read MB | page cache |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: \
             | ---: | ---: | --- |\n",
        );
        text.extend(self.rows.iter().map(line));
        text
    }

    /// The two speed-up factors for each limit: against the published best strategy, and against
    /// the fastest that was measured.
    fn factors(&self) -> String {
        let mut rates: Vec<Option<u64>> = Vec::new();
        for row in &self.rows {
            if !rates.contains(&row.rate()) {
                rates.push(row.rate());
            }
        }
        rates.iter().filter_map(|rate| self.factors_at(*rate)).collect()
    }

    fn factors_at(&self, rate: Option<u64>) -> Option<String> {
        let secs = |row: &Row<'_>| row.summary.secs.map(|secs| secs.mean);
        let at = || self.rows.iter().filter(|row| row.rate() == rate);
        let plain_row = |strategy: Strategy| {
            at().find(|row| row.summary.point.strategy == strategy && row.is_plain())
        };
        let original = plain_row(Strategy::Original).and_then(secs)?;
        let best = at().filter(|row| secs(row).is_some()).min_by(|one, other| {
            secs(one).unwrap_or(f64::INFINITY).total_cmp(&secs(other).unwrap_or(f64::INFINITY))
        })?;
        let limit = best
            .limit()
            .map_or_else(|| "without a limit".to_owned(), |limit| format!("at {limit}"));
        let ring = plain_row(Strategy::RingBuffer).and_then(secs);
        let ring = ring.map_or_else(String::new, |ring| {
            format!("original / ring-buffer {:.2}, ", original / ring)
        });
        let to_best = original / secs(best)?;
        Some(format!("- {limit}: {ring}original / {} {to_best:.2}\n", best.label()))
    }

    /// Writes the README and the figures beside the rows; returns the paths.
    pub(crate) fn write(&self) -> anyhow::Result<Vec<PathBuf>> {
        let folder = self.measuring.folder();
        let mut paths = vec![folder.join(EPOCHS_FILE)];
        let mut pictures = String::new();
        for (name, title, svg) in self.figures()? {
            paths.push(write_text(folder, &format!("{name}.svg"), &svg)?);
            let png = folder.join(format!("{name}.png"));
            std::fs::write(&png, to_png(&svg)?)
                .with_context(|| format!("cannot write {}", png.display()))?;
            paths.push(png);
            pictures.extend(["![", &title, "](", name, ".svg)\n\n"]);
        }
        paths.push(write_text(folder, "README.md", &self.page(&pictures))?);
        Ok(paths)
    }

    fn page(&self, pictures: &str) -> String {
        let first = self.measuring.first();
        let (command, host) = (first.run.command, first.host.host);
        let device = self.device_sentences();
        let published = if self.has_published { format!("\n{NOTE}.\n") } else { String::new() };
        let factors = self.factors();
        let factors =
            if factors.is_empty() { factors } else { format!("Speed-up:\n\n{factors}\n") };
        format!(
            "# Feeding cubes\n\n```sh\n{command}\n```\n\n{host}; {} cubes. {device} Mean ± standard \
             deviation (n - 1) over the means of repetitions. Without a gap between epochs, an \
             epoch lasts from the end of the device's work on the epoch before to the end of its \
             own. Floors: the bytes that were read over the limit or, without one, over the rate \
             of a plain read; a decoder alone, times the threads that load (at most the cores); \
             the steps of the device. {LEGEND}.\n\n{}\n{factors}{pictures}{published}",
            self.n_cubes,
            self.table(),
        )
    }

    /// What took the batches. It is of the same kind for all points.
    fn device_sentences(&self) -> String {
        let consumers = self.rows.iter().filter_map(|row| row.summary.point.consumer.recorded());
        let mut consumers: Vec<String> = consumers.collect();
        consumers.sort();
        consumers.dedup();
        let consumers = consumers.join("; ");
        match self.rows.first().map(|row| row.summary.point.consumer) {
            None | Some(Consumer::None) => {
                "Batches were dropped at once: these are the rates of the loader alone.".to_owned()
            }
            Some(Consumer::StandIn(_)) => format!(
                "There was no GPU. A stand-in took the time of copies and steps and no CPU: \
                 {consumers}. Augmentation on the device was not executed; the published step time \
                 contains it."
            ),
            Some(Consumer::Torch(torch)) => {
                let shared = match torch.processor {
                    TorchProcessor::Cpu => {
                        " Training and loading shared the cores: this says nothing about a GPU."
                    }
                    TorchProcessor::Cuda(_) => "",
                };
                format!("A model was trained on the batches: {consumers}.{shared}")
            }
        }
    }

    /// The name of the device.
    fn device_name(&self) -> String {
        let name = self.rows.first().and_then(|row| row.summary.point.consumer.device_name());
        name.unwrap_or_else(|| "device".to_owned())
    }

    /// Name, title and SVG of each figure.
    fn figures(&self) -> anyhow::Result<Vec<(&'static str, String, String)>> {
        let mut figures = Vec::new();
        let mut bars = |name: &'static str, chart: BarChart| {
            let svg = draw_bars(&chart)?;
            figures.push((name, chart.title(), svg));
            anyhow::Ok(())
        };
        let has_device = self.rows.iter().any(|row| row.summary.utilization.is_some());
        bars("durations", self.durations())?;
        if has_device {
            bars("utilization", self.utilization())?;
            let (subject, curves) = self.curves();
            let svg = draw_curves(&subject, &curves)?;
            figures.push(("utilization-curves", subject, svg));
        } else {
            bars("rates", self.rates())?;
        }
        Ok(figures)
    }

    /// Figure 1.
    fn durations(&self) -> BarChart {
        let floors = |row: &Row<'_>| {
            let FloorSecs { disk, decoder, device } = row.floors;
            let all = [(DISK, disk), (DECODER, decoder), (DEVICE, device)];
            all.into_iter().filter_map(|(floor, secs)| Some((floor, secs?))).collect()
        };
        let published = |row: &Row<'_>| {
            let n_cubes = row.summary.n_cubes?.mean;
            Some(self.published(row)?.secs * n_cubes / N_CUBES as f64)
        };
        BarChart {
            subject: format!("duration of an epoch of {} cubes", self.n_cubes),
            unit: "s",
            best: Best::Least("fastest"),
            notes: self.notes(),
            groups: self.groups(|row| row.summary.secs, floors, published),
        }
    }

    /// Figure 3.
    fn utilization(&self) -> BarChart {
        let percent = |share: MeanStd| share.scaled(100.0);
        BarChart {
            subject: format!("mean utilisation of {}", self.device_name()),
            unit: "% of the time",
            best: Best::Most("busiest"),
            notes: self.notes(),
            groups: self.groups(
                |row| row.summary.utilization.map(percent),
                |_| Vec::new(),
                |row| Some(100.0 * self.published(row)?.utilization),
            ),
        }
    }

    /// The ceiling of the loader alone.
    fn rates(&self) -> BarChart {
        BarChart {
            subject: "cubes a second, dropped at once".to_owned(),
            unit: "cubes/s",
            best: Best::Most("fastest"),
            notes: Vec::new(),
            groups: self.groups(|row| row.summary.cubes_per_sec, |_| Vec::new(), |_| None),
        }
    }

    /// Figure 2: without a limit or, if all points have one, with the first.
    fn curves(&self) -> (String, Vec<NamedCurve>) {
        let first = self.rows.first().and_then(Row::rate);
        let has_none = self.rows.iter().any(|row| row.rate().is_none());
        let rate = if has_none { None } else { first };
        let rows = self.rows.iter().filter(|row| row.rate() == rate);
        let curves = rows.filter_map(|row| {
            let curve = row.summary.curve.clone()?;
            let color = color(row.summary.point.strategy);
            Some(NamedCurve { name: row.label().to_owned(), color, curve })
        });
        let limit = rate.map_or_else(
            || "no read limit".to_owned(),
            |rate| format!("reads limited to {}", format_rate(rate as f64)),
        );
        (format!("utilisation of {} over an epoch, {limit}", self.device_name()), curves.collect())
    }

    fn notes(&self) -> Vec<String> {
        if !self.has_published {
            return Vec::new();
        }
        NOTE.split("; ").flat_map(|part| part.split(". ")).map(str::to_owned).collect()
    }

    /// The published figures of a row: those of its strategy, with the published limit or without
    /// one. Rows with other limits have none.
    fn published(&self, row: &Row<'_>) -> Option<&'static crate::published::PublishedEpochs> {
        if !self.has_published || !row.is_plain() {
            return None;
        }
        let is_limited = match row.rate() {
            None => false,
            Some(LIMIT) => true,
            Some(_) => return None,
        };
        let strategy = row.summary.point.strategy;
        PUBLISHED.iter().find(|of| of.strategy == strategy).map(|of| of.epochs(is_limited))
    }

    /// A group of bars for each label, in the order of the rows; limited ones first.
    fn groups(
        &self,
        value: impl Fn(&Row<'_>) -> Option<MeanStd>,
        floors: impl Fn(&Row<'_>) -> Vec<(Floor, f64)>,
        published: impl Fn(&Row<'_>) -> Option<f64>,
    ) -> Vec<BarGroup> {
        let mut groups: Vec<BarGroup> = Vec::new();
        for row in &self.rows {
            let Some(value) = value(row) else { continue };
            let kind = row.limit().map_or_else(
                || "dark: no limit".to_owned(),
                |limit| format!("light: reads limited, {limit}"),
            );
            let bar = Bar {
                color: color(row.summary.point.strategy),
                is_light: row.rate().is_some(),
                kind: BarKind { name: kind, color: None },
                value,
                floors: floors(row),
                published: published(row),
            };
            let name = row.label();
            match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => group.bars.push(bar),
                None => groups.push(BarGroup { name: name.to_owned(), bars: vec![bar] }),
            }
        }
        for group in &mut groups {
            group.bars.sort_by_key(|bar| !bar.is_light);
        }
        groups
    }
}

/// A row of the table.
fn line(row: &Row<'_>) -> String {
    let Row { summary, floors } = row;
    let number = |value: Option<MeanStd>, factor: f64, digits: usize| {
        value.map_or_else(String::new, |value| value.scaled(factor).format(digits))
    };
    let floor =
        |secs: Option<f64>| secs.map_or_else(|| "-".to_owned(), |secs| format!("{secs:.2}"));
    let secs = match (&summary.secs, &summary.failure) {
        (None, Some(failure)) => format!("failed: {}", failure.replace('|', "/")),
        (Some(secs), Some(_)) => format!("{} (some failed)", secs.format(3)),
        (secs, None) => number(*secs, 1.0, 3),
    };
    let FloorSecs { disk, decoder, device } = floors;
    let cells = [
        row.label().to_owned(),
        row.limit().unwrap_or_else(|| "none".to_owned()),
        secs,
        [disk, decoder, device].map(|secs| floor(*secs)).join(", "),
        number(summary.utilization, 100.0, 1),
        number(summary.accelerator_utilization, 100.0, 1),
        number(summary.cubes_per_sec, 1.0, 2),
        number(summary.stall_share, 100.0, 1),
        number(summary.first_batch_secs, 1.0, 3),
        number(summary.cpu_secs_per_cube, 1.0, 3),
        number(summary.core_load, 100.0, 0),
        number(summary.peak_bytes, 1e-9, 2),
        number(summary.pinned_bytes, 1e-9, 2),
        number(summary.bytes_read, 1e-6, 0),
        summary.cache.clone(),
    ];
    format!("| {} |\n", cells.join(" | "))
}
