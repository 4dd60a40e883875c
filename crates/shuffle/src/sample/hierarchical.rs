//! Batches with rows of every domain, from different subjects.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use super::{ClassSets, Draw, Error, Sampling, check_size, reserved};
use crate::labels::LabelNumbers;
use crate::random::{SampleDecision, SampleSeed, below, permute};
use crate::stop::{STOP_ROWS, Stopped, begin_rows, ranges, sort};

/// Composes batches that have every domain, the remainder by chance, and few rows per subject.
///
/// Rows belong to domains (for instance cameras), and in each domain to subjects. A batch is drawn
/// in rounds. Each round takes one row of every domain: first a subject of the domain, then a row
/// that the subject has in the domain, each with equal probability and with replacement. If the
/// domains do not divide the batch, the last round takes as many domains as there is room for, all
/// selections equally likely; so each domain has `batch_rows / n_domains` rows in a batch, rounded
/// down or up. The rows of a batch are in random order.
///
/// With `classes`, each round first draws a class, and then takes only rows that have it, and
/// subjects with such rows. So the rows of a round have a class in common.
///
/// This is the rule of htc's `HierarchicalSampler` and `hierarchical_bootstrapping`
/// ([sampler], [draws]), with two differences: htc draws whole rounds and keeps random rows of
/// them, so that a batch can lack a domain; and it draws a class's rows from all domains of a
/// subject.
///
/// [sampler]: https://github.com/IMSY-DKFZ/htc/blob/main/htc/models/common/HierarchicalSampler.py
/// [draws]: https://github.com/IMSY-DKFZ/htc/blob/main/htc/cpp/hierarchical_bootstrapping.h
#[derive(Debug, Clone, Copy)]
pub struct Hierarchical<'a> {
    /// Domain of each row; any codes will do. If all rows have the same, each batch has rows of
    /// different subjects, or classes, only.
    pub domains: &'a [u32],
    /// Subject of each row; any codes will do. A subject may have rows in several domains.
    pub subjects: &'a [u32],
    /// Classes of each row, and how to draw one per round. Each class must have a row in each
    /// domain; rows without a class never come. `None` draws from all rows.
    pub classes: Option<(&'a ClassSets, ClassDraw)>,
    /// Rows of a batch, at least the number of domains. Must divide the global batch; if it also
    /// divides a rank's batch, each rank has every domain in each batch.
    pub batch_rows: u64,
    /// Batches of an epoch, of `batch_rows` rows each.
    pub n_batches: u64,
}

/// How a class is drawn for a round of [`Hierarchical`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClassDraw {
    /// Each class with equal probability.
    Uniform,
    /// The class that the fewest rows of the epoch have so far; of several, each with equal
    /// probability. A row counts for all of its classes. Rare classes come as often as possible,
    /// although a class that most rows have still comes more often.
    LeastDrawn,
}

/// The tables of a [`Hierarchical`] sampler: 4 bytes per row, or per class of a row, and 4 bytes
/// per subject.
#[derive(Debug, PartialEq)]
pub(super) struct Hierarchy {
    batch_rows: u64,
    n_batches: u64,
    n_domains: u32,
    classes: Classes,
    /// Rows by class, domain and subject.
    rows: Vec<u32>,
    /// Where the rows of each subject, in each domain of each class, begin in `rows`; and the end.
    subjects: Vec<u32>,
    /// Where the subjects of each domain of each class begin in `subjects`; and the end.
    domains: Vec<u32>,
}

#[derive(Debug, PartialEq)]
enum Classes {
    /// All rows are in a single class.
    None,
    Uniform {
        n_classes: u32,
    },
    LeastDrawn(ClassSets),
}

/// Place of a row in the tables: number of its domain and class, code of its subject, row.
type Entry = (u64, u32, u32);

impl Sampling {
    /// Composes `n_batches` batches with rows of every domain, in the order of
    /// [`Order::Listed`](crate::Order::Listed).
    ///
    /// ```
    /// use shuffle::sample::{Hierarchical, Sampling};
    ///
    /// // Two cameras, three subjects.
    /// let (domains, subjects) = (&[0, 0, 0, 1, 1], &[10, 10, 11, 12, 12]);
    /// let (classes, batch_rows, n_batches) = (None, 4, 3);
    /// let sampling = Sampling::hierarchical(&Hierarchical {
    ///     domains, subjects, classes, batch_rows, n_batches
    /// })?;
    /// for batch in sampling.rows(42, 0)?.chunks(4) {
    ///     assert_eq!(batch.iter().filter(|row| domains[**row as usize] == 1).count(), 2);
    /// }
    /// # Ok::<(), shuffle::sample::Error>(())
    /// ```
    ///
    /// # Errors
    /// There are no rows; lists differ in length; a batch has fewer rows than there are domains; no
    /// row has a class, or a class has no row in a domain; there are 2^32 rows or more.
    pub fn hierarchical(spec: &Hierarchical<'_>) -> Result<Self, Error> {
        let (n_rows, n_batches) = (spec.domains.len(), spec.n_batches);
        let n_samples = spec.batch_rows.saturating_mul(n_batches);
        check_size(n_rows, n_samples)?;
        let hierarchy = Hierarchy::new(spec)?;
        Ok(Self { n_rows: n_rows as u64, n_samples, draw: Draw::Batches(Arc::new(hierarchy)) })
    }
}

impl Hierarchy {
    fn new(spec: &Hierarchical<'_>) -> Result<Self, Error> {
        let Hierarchical { domains, subjects, classes, batch_rows, n_batches } = *spec;
        let n_rows = domains.len();
        let sets = classes.map(|(sets, _)| sets);
        for (what, n_found) in
            [("a subject", subjects.len()), ("classes", sets.map_or(n_rows, ClassSets::n_rows))]
        {
            if n_found != n_rows {
                return Err(Error::UnequalLists { first: "a domain", n_rows, what, n_found });
            }
        }
        if n_rows == 0 {
            return Err(Error::NoRows { n_samples: batch_rows.saturating_mul(n_batches) });
        }
        let mut domain_of = domains.to_vec();
        let codes = number(&mut domain_of)?;
        let n_domains = codes.len() as u64;
        if batch_rows < n_domains {
            return Err(Error::FewerRowsThanDomains { batch_rows, n_domains });
        }
        let (entries, n_classes) = match sets {
            None => (entries(&domain_of, subjects)?, 1),
            Some(sets) => {
                (entries_of_classes(sets, n_domains, &domain_of, subjects)?, sets.n_classes())
            }
        };
        if n_classes == 0 {
            return Err(Error::NoClasses { n_rows });
        }
        if let Some((sets, group)) = sets.zip(missing(&entries, n_classes as u64 * n_domains)) {
            let class = sets.code((group / n_domains) as u32);
            return Err(Error::ClassNotInDomain {
                class,
                domain: codes[(group % n_domains) as usize],
            });
        }
        let classes = match classes {
            None => Classes::None,
            Some((_, ClassDraw::Uniform)) => Classes::Uniform { n_classes: n_classes as u32 },
            Some((sets, ClassDraw::LeastDrawn)) => Classes::LeastDrawn(sets.clone()),
        };
        Ok(Self { batch_rows, n_batches, classes, ..Self::of_entries(&entries, n_domains as u32) })
    }

    /// Makes the tables of sorted entries.
    fn of_entries(entries: &[Entry], n_domains: u32) -> Self {
        let (mut domains, mut subjects) = (Vec::new(), Vec::new());
        let mut rows = Vec::with_capacity(entries.len());
        for of_domain in entries.chunk_by(|a, b| a.0 == b.0) {
            domains.push(subjects.len() as u32);
            for of_subject in of_domain.chunk_by(|a, b| a.1 == b.1) {
                subjects.push(rows.len() as u32);
                rows.extend(of_subject.iter().map(|entry| entry.2));
            }
        }
        domains.push(subjects.len() as u32);
        subjects.push(rows.len() as u32);
        let classes = Classes::None;
        Self { batch_rows: 0, n_batches: 0, n_domains, classes, rows, subjects, domains }
    }

    pub(super) fn batch_rows(&self) -> u64 {
        self.batch_rows
    }

    /// The rows of all batches of an epoch.
    pub(super) fn draw(&self, seed: SampleSeed) -> Result<Vec<u32>, Error> {
        let mut generator = seed.generator(SampleDecision::Batches);
        let mut rows: Vec<u32> = reserved((self.batch_rows * self.n_batches) as usize)?;
        let mut n_drawn = match &self.classes {
            Classes::LeastDrawn(sets) => vec![0_u32; sets.n_classes()],
            Classes::None | Classes::Uniform { .. } => Vec::new(),
        };
        let mut domains: Vec<u32> = (0..self.n_domains).collect();
        for _ in 0..self.n_batches {
            begin_rows(self.batch_rows as usize)?;
            let start = rows.len();
            let end = start + self.batch_rows as usize;
            while rows.len() < end {
                let n_wanted = domains.len().min(end - rows.len());
                if n_wanted < domains.len() {
                    permute(&mut generator, &mut domains);
                }
                let class = self.class(&mut generator, &n_drawn);
                for domain in &domains[..n_wanted] {
                    let row = self.row(&mut generator, class, *domain);
                    if let Classes::LeastDrawn(sets) = &self.classes {
                        sets.of_row(row as usize)
                            .iter()
                            .for_each(|class| n_drawn[*class as usize] += 1);
                    }
                    rows.push(row);
                }
            }
            permute(&mut generator, &mut rows[start..]);
        }
        Ok(rows)
    }

    /// Draws a round's class.
    fn class(&self, generator: &mut ChaCha8Rng, n_drawn: &[u32]) -> u32 {
        match self.classes {
            Classes::None => 0,
            Classes::Uniform { n_classes } => below(generator, n_classes.into()) as u32,
            Classes::LeastDrawn(_) => {
                let least = n_drawn.iter().min();
                let candidates = || (0..).zip(n_drawn).filter(|(_, n)| Some(*n) == least);
                let chosen = below(generator, candidates().count() as u64);
                candidates().nth(chosen as usize).map_or(0, |(class, _)| class)
            }
        }
    }

    /// Draws a row of a domain that has a class.
    fn row(&self, generator: &mut ChaCha8Rng, class: u32, domain: u32) -> u32 {
        let place = class as usize * self.n_domains as usize + domain as usize;
        let subject = between(generator, &self.domains[place..]);
        self.rows[between(generator, &self.subjects[subject..])]
    }

    pub(super) fn write_to(&self, sink: &mut dyn FnMut(&[u8])) {
        sink(match self.classes {
            Classes::None => b"hierarchy",
            Classes::Uniform { .. } => b"uniform  ",
            Classes::LeastDrawn(_) => b"least    ",
        });
        sink(&self.batch_rows.to_le_bytes());
        sink(&self.n_domains.to_le_bytes());
        // The tables say which classes a row has.
        for table in [&self.domains, &self.subjects, &self.rows] {
            sink(&(table.len() as u64).to_le_bytes());
            for entry in table {
                sink(&entry.to_le_bytes());
            }
        }
    }
}

/// Draws a position from the first entry of a table up to the second.
fn between(generator: &mut ChaCha8Rng, table: &[u32]) -> usize {
    (table[0] + below(generator, (table[1] - table[0]).into()) as u32) as usize
}

fn entries(domain_of: &[u32], subjects: &[u32]) -> Result<Vec<Entry>, Stopped> {
    let mut entries: Vec<Entry> = Vec::with_capacity(domain_of.len());
    for rows in ranges(domain_of.len() as u64) {
        let entry = |row: u64| (domain_of[row as usize].into(), subjects[row as usize], row as u32);
        entries.extend(rows?.map(entry));
    }
    sort(&mut entries)?;
    Ok(entries)
}

fn entries_of_classes(
    sets: &ClassSets,
    n_domains: u64,
    domain_of: &[u32],
    subjects: &[u32],
) -> Result<Vec<Entry>, Stopped> {
    let mut entries = Vec::with_capacity(sets.n_entries());
    for rows in ranges(domain_of.len() as u64) {
        for row in rows? {
            let (domain, subject) = (domain_of[row as usize], subjects[row as usize]);
            let place = |class: &u32| u64::from(*class) * n_domains + u64::from(domain);
            let classes = sets.of_row(row as usize).iter();
            entries.extend(classes.map(|class| (place(class), subject, row as u32)));
        }
    }
    sort(&mut entries)?;
    Ok(entries)
}

/// The first of `n_places` places that no entry has.
fn missing(entries: &[Entry], n_places: u64) -> Option<u64> {
    let places = entries.chunk_by(|a, b| a.0 == b.0).map(|of_place| of_place[0].0);
    let n_present = (0..).zip(places).take_while(|(expected, place)| expected == place).count();
    Some(n_present as u64).filter(|first| *first < n_places)
}

/// Replaces codes by numbers in the order of the codes. Returns the code of each number.
pub(super) fn number(labels: &mut [u32]) -> Result<Vec<u32>, Stopped> {
    let numbers = LabelNumbers::assign(labels)?;
    for piece in labels.chunks_mut(STOP_ROWS) {
        begin_rows(piece.len())?;
        for label in piece.iter_mut() {
            *label = numbers.of_label(*label) as u32;
        }
    }
    Ok(numbers.labels())
}
