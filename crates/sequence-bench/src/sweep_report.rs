//! The table and the pictures of a sweep.

use std::path::PathBuf;

use anyhow::Context as _;
use bench_report::{
    Bar, BarChart, BarGroup, BarKind, Best, EPOCHS_FILE, EpochRecord, MeanStd, Measured, Rounds,
    Status, draw_bars, to_png, write_text,
};
use bench_run::{Measuring, grouped};

use crate::bench::{Form, StoreData};
use crate::published;
use crate::sweep_command::StorePoint;

/// What the columns of the table are.
pub(crate) const LEGEND: &str = "documents/s: sequences a second, the first batch included, mean ± standard deviation over \
    repetitions; MB/s of letters: 10^6 letters a second; real, user and system s: elapsed and processor seconds of an \
    epoch; peak MB: most memory of the process, in 10^6 bytes";

/// The results of a sweep.
pub(crate) struct Report<'a> {
    measuring: &'a Measuring,
    stores: &'a [StoreData],
    rows: Vec<Row<'a>>,
    has_published: bool,
}

/// The figures of a point: means over the timed epochs of each repetition.
struct Row<'a> {
    point: &'a StorePoint,
    rounds: Rounds<'a>,
    failure: Option<String>,
}

impl Row<'_> {
    fn figure(&self, of: impl Fn(&Measured) -> Option<f64>) -> Option<MeanStd> {
        self.rounds.mean_std(&|record| of(&record.measured))
    }

    fn documents_per_sec(&self) -> Option<MeanStd> {
        self.figure(|of| of.samples_per_sec)
    }

    /// Megabytes of letters a second.
    fn megabytes_per_sec(&self) -> Option<MeanStd> {
        let rate = |of: &Measured| {
            let secs = of.elapsed.filter(|secs| 0.0 < *secs)?;
            Some(of.bytes_needed? as f64 / 1e6 / secs)
        };
        self.figure(rate)
    }

    /// Where its bars belong.
    fn place(&self) -> (usize, Form) {
        (self.point.store, self.point.point.form)
    }
}

/// Colors of batch sizes, one after another.
const COLORS: [[u8; 3]; 6] = [
    [0x1F, 0x77, 0xB4],
    [0xFF, 0x7F, 0x0E],
    [0x2C, 0xA0, 0x2C],
    [0x94, 0x67, 0xBD],
    [0x8C, 0x56, 0x4B],
    [0x7F, 0x7F, 0x7F],
];

impl<'a> Report<'a> {
    pub(crate) fn new(
        measuring: &'a Measuring,
        (stores, points): (&'a [StoreData], &'a [StorePoint]),
        is_timed: &dyn Fn(&EpochRecord) -> bool,
        has_published: bool,
    ) -> Self {
        let row = |(idx, point)| {
            let of_point = measuring.records.iter().filter(move |of| of.point == Some(idx));
            let all: Vec<&EpochRecord> = of_point.map(|of| &of.record).collect();
            let failed = all.iter().find(|record| record.measured.status != Status::Ok);
            let failure = failed.map(|record| {
                let Measured { status, message, .. } = &record.measured;
                format!("{}: {}", status.name(), message.as_deref().unwrap_or_default())
            });
            Row {
                point,
                rounds: Rounds::from_records(all.into_iter().filter(|of| is_timed(of))),
                failure,
            }
        };
        let rows = points.iter().enumerate().map(row).collect();
        Self { measuring, stores, rows, has_published }
    }

    /// The table in Markdown, and the published one if it was asked for.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from(
            "| store | form | workers | batch | documents/s | million words/s | MB/s of letters \
             | real s | user s | system s | first batch s | peak MB |\n\
             | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        text.extend(self.rows.iter().map(|row| self.line(row)));
        if self.has_published {
            text.push('\n');
            text.push_str(&published::table());
        }
        text
    }

    /// A row of the table.
    fn line(&self, row: &Row<'_>) -> String {
        let number = |value: Option<MeanStd>, factor: f64, digits: usize| {
            value.map_or_else(String::new, |value| value.scaled(factor).format(digits))
        };
        let rate = match (row.documents_per_sec(), &row.failure) {
            (None, Some(failure)) => format!("failed: {}", failure.replace('|', "/")),
            (rate, Some(_)) => format!("{} (some failed)", number(rate, 1.0, 0)),
            (rate, None) => number(rate, 1.0, 0),
        };
        let point = &row.point.point;
        let cells = [
            self.stores[row.point.store].name(),
            point.form.name().to_owned(),
            point.workers.to_string(),
            point.batch.to_string(),
            rate,
            number(row.figure(|of| of.nnz_per_sec), 1e-6, 1),
            number(row.megabytes_per_sec(), 1.0, 0),
            number(row.figure(|of| of.elapsed), 1.0, 3),
            number(row.figure(|of| of.cpu_user_secs), 1.0, 2),
            number(row.figure(|of| of.cpu_system_secs), 1.0, 2),
            number(row.figure(|of| of.time_to_first_batch_secs), 1.0, 4),
            number(row.figure(|of| of.max_mem.map(|bytes| bytes as f64)), 1e-6, 0),
        ];
        format!("| {} |\n", cells.join(" | "))
    }

    /// Writes the README and the pictures beside the rows; returns the paths.
    pub(crate) fn write(&self) -> anyhow::Result<Vec<PathBuf>> {
        let folder = self.measuring.folder();
        let mut paths = vec![folder.join(EPOCHS_FILE)];
        let mut pictures = String::new();
        for (name, chart) in self.charts() {
            let svg = draw_bars(&chart)?;
            paths.push(write_text(folder, &format!("{name}.svg"), &svg)?);
            let png = folder.join(format!("{name}.png"));
            std::fs::write(&png, to_png(&svg)?)
                .with_context(|| format!("cannot write {}", png.display()))?;
            paths.push(png);
            pictures.extend(["![", &chart.title(), "](", &name, ".svg)\n\n"]);
        }
        paths.push(write_text(folder, "README.md", &self.page(&pictures))?);
        Ok(paths)
    }

    fn page(&self, pictures: &str) -> String {
        let first = self.measuring.first();
        let (command, host, cache) = (first.run.command, first.host.host, first.point.cache);
        let stores = self.stores.iter().map(|store| {
            let (n, letters) = (store.summary.n_sequences, store.summary.n_letters);
            format!("{}: {} sequences, {} letters", store.name(), grouped(n), grouped(letters))
        });
        let stores: Vec<String> = stores.collect();
        let words = self.rows.first().map(|row| row.point.point.words.describe());
        format!(
            "# Feeding sequences\n\n```sh\n{command}\n```\n\n{host}; {}; page cache {cache}. Words: \
             {}. Batches were dropped at once: these are the rates of the loader alone. Each point \
             ran in a process of its own; mean ± standard deviation (n - 1) over the means of \
             repetitions, the first batch included. Peak memory is that of the process. Words of \
             windows are targets. {LEGEND}.\n\n{}\n{pictures}",
            stores.join("; "),
            words.unwrap_or_default(),
            self.text(),
        )
    }

    /// Name and chart of each store and form.
    fn charts(&self) -> Vec<(String, BarChart)> {
        let mut places: Vec<(usize, Form)> = Vec::new();
        for place in self.rows.iter().map(Row::place) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places.into_iter().map(|place| self.chart(place)).collect()
    }

    /// Documents a second: a group for each number of workers, a bar for each batch size.
    fn chart(&self, (store, form): (usize, Form)) -> (String, BarChart) {
        let mut groups: Vec<BarGroup> = Vec::new();
        let mut batches: Vec<u64> = Vec::new();
        for row in self.rows.iter().filter(|row| row.place() == (store, form)) {
            let Some(value) = row.documents_per_sec() else { continue };
            let batch = row.point.point.batch;
            if !batches.contains(&batch) {
                batches.push(batch);
            }
            let color = batches.iter().position(|of| *of == batch).unwrap_or(0) % COLORS.len();
            let color = COLORS[color];
            let bar = Bar {
                color,
                is_light: false,
                kind: BarKind { name: format!("batches of {batch}"), color: Some(color) },
                value: value.scaled(1e-3),
                floors: Vec::new(),
                published: None,
            };
            let name = match row.point.point.workers {
                1 => "1 worker".to_owned(),
                workers => format!("{workers} workers"),
            };
            match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => group.bars.push(bar),
                None => groups.push(BarGroup { name, bars: vec![bar] }),
            }
        }
        let data = self.stores[store].name();
        let subject = format!("documents a second as {}, {data}", form.name());
        let file = match self.stores.len() {
            1 => form.name().to_owned(),
            _ => format!("{}-{}", form.name(), store + 1),
        };
        let notes = Vec::new();
        let (unit, best) = ("thousand documents/s", Best::Most("fastest"));
        (file, BarChart { subject, unit, best, notes, groups })
    }
}
