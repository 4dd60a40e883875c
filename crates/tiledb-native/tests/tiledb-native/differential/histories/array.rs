//! Random arrays, made by libtiledb in a random order of writes and upkeep.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use tiledb::{
    Array, Context, Datatype, Error, Evolution, FragmentInfo, Schema, WriteColumn, WriteOrder,
    WriteQuery,
};

use super::draw::Draw;
use super::schema::{DATA, DIMENSIONS, another, schema, within};
use crate::differential::conditions::condition;
use crate::differential::written::Numbers;

/// Upper bounds of an array's times, of which one is drawn. Small bounds make equal times likely;
/// times of one and of two digits matter because names are sorted as text.
const LAST_TIMES: [u64; 4] = [3, 6, 11, 14];

/// An array with its history.
pub(super) struct History<'a> {
    context: &'a Context,
    uri: String,
    /// Times at which it changed.
    pub(super) times: BTreeSet<u64>,
    /// The history, a line for each step.
    pub(super) log: String,
    /// Whether values are small whole numbers.
    are_counts: bool,
    last_time: u64,
    /// Places of written cells, to which later writes return.
    places: Vec<(u64, u64)>,
    n_written: i32,
    pub(super) n_steps: u64,
    pub(super) n_refused: u64,
}

/// Whether to print each step before it runs, to find the one in which libtiledb crashes.
pub(in crate::differential) fn is_traced() -> bool {
    std::env::var_os("SOMAFEED_RANDOM_TRACE").is_some()
}

impl<'a> History<'a> {
    /// Makes an array at `at` with a random history. Steps that libtiledb refuses are logged and
    /// skipped.
    ///
    /// # Errors
    /// libtiledb refuses the schema.
    pub(super) fn make(draw: &mut Draw, context: &'a Context, at: &Path) -> Result<Self, Error> {
        let schema = schema(draw);
        let (are_counts, created) = (draw.chance(40), draw.within(0..4));
        let uri = at.to_str().unwrap().to_owned();
        let log = format!("created at {created}: {schema:?}\n");
        if is_traced() {
            print!("{log}");
        }
        Array::create(context, &uri, &schema)?;
        // The time of a schema is in the name of its file.
        let folder = at.join("__schema");
        for entry in std::fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if let Some((_, uuid)) = name.rsplit_once('_').filter(|_| name != "__enumerations") {
                let named = folder.join(format!("__{created}_{created}_{uuid}"));
                std::fs::rename(folder.join(&name), named).unwrap();
            }
        }
        let mut history = Self {
            context,
            uri,
            times: BTreeSet::from([created]),
            log,
            are_counts,
            last_time: draw.pick(&LAST_TIMES),
            places: Vec::new(),
            n_written: 0,
            n_steps: 0,
            n_refused: 0,
        };
        for step in 0..=draw.below(10) {
            let (what, done) = history.step(draw, step);
            let line = match done {
                Ok(()) => what,
                Err(error) => {
                    history.n_refused += 1;
                    format!("{what}: refused, {error}")
                }
            };
            history.n_steps += 1;
            if is_traced() {
                println!("{line}");
            }
            writeln!(history.log, "{line}").unwrap();
        }
        Ok(history)
    }

    fn step(&mut self, draw: &mut Draw, step: usize) -> (String, Result<(), Error>) {
        let kind = if step == 0 { 0 } else { draw.below(100) };
        match kind {
            0..42 => self.write(draw),
            42..56 => self.consolidate(draw),
            56..68 => self.consolidate_some(draw),
            68..78 => {
                let mode =
                    draw.pick(&["fragments", "fragments", "fragments", "commits", "fragment_meta"]);
                let context = self.context.with(&[("sm.vacuum.mode", mode.to_owned())]).unwrap();
                (format!("vacuum {mode}"), Array::vacuum(&context, &self.uri))
            }
            78..84 => {
                let mode = draw.pick(&["commits", "commits", "fragment_meta"]);
                let parameters = [("sm.consolidation.mode", mode.to_owned())];
                let done = Array::consolidate_with(self.context, &self.uri, &parameters);
                (format!("consolidate {mode}"), done)
            }
            84..91 => self.delete(draw),
            _ => self.evolve(draw),
        }
    }

    fn time(&mut self, draw: &mut Draw) -> u64 {
        let time = draw.within(1..self.last_time);
        self.times.insert(time);
        time
    }

    /// The schema for writing.
    fn latest(&self) -> Result<Schema, Error> {
        let array = Array::open_for_writing(self.context, &self.uri, None)?;
        Ok(array.schema().clone())
    }

    fn write(&mut self, draw: &mut Draw) -> (String, Result<(), Error>) {
        let time = self.time(draw);
        let array = match Array::open_for_writing(self.context, &self.uri, Some(time)) {
            Ok(array) => Arc::new(array),
            Err(error) => return ("open for a write".to_owned(), Err(error)),
        };
        let schema = array.schema().clone();
        let mut places = self.places(draw, &schema);
        draw.shuffle(&mut places);
        let what = format!("write {} cells at {time}: {places:?}", places.len());
        if places.is_empty() {
            return (what, Ok(()));
        }
        let done = self.write_places(draw, &array, &schema, &places);
        (what, done)
    }

    /// Places to write to: scattered, in stretches of rows, or written before.
    fn places(&mut self, draw: &mut Draw, schema: &Schema) -> Vec<(u64, u64)> {
        let bounds: Vec<(u64, u64)> = (0..2)
            .map(|idx| {
                let current = schema.current_domain.as_ref().map(|bounds| bounds[idx]);
                let (low, high) = current.or(schema.dimensions[idx].domain).unwrap();
                (low as u64, high as u64 + 1)
            })
            .collect();
        let n = draw.pick(&[1, 3, 10, 30, 60, 120]);
        let (rows, columns) = (bounds[0].0..bounds[0].1, bounds[1].0..bounds[1].1);
        let mut places = Vec::new();
        let first = draw.within(rows.clone());
        let step = draw.within(1..5);
        let mut next = (first, draw.within(columns.clone()));
        let is_strewn = draw.chance(50);
        let again = draw.pick(&[0, 20, 90]);
        for _ in 0..n {
            if !self.places.is_empty() && draw.chance(again) {
                places.push(draw.pick(&self.places));
            } else if is_strewn {
                places.push((draw.within(rows.clone()), draw.within(columns.clone())));
            } else if next.0 < rows.end {
                places.push(next);
                next.1 += step;
                if next.1 >= columns.end || draw.chance(5) {
                    next = (
                        next.0 + 1,
                        columns.start + draw.within(0..step).min(columns.end - columns.start - 1),
                    );
                }
            }
        }
        places.retain(|(row, column)| rows.contains(row) && columns.contains(column));
        if !schema.allows_duplicates {
            places.sort_unstable();
            places.dedup();
        }
        self.places.extend(&places);
        places
    }

    fn write_places(
        &mut self,
        draw: &mut Draw,
        array: &Arc<Array>,
        schema: &Schema,
        places: &[(u64, u64)],
    ) -> Result<(), Error> {
        let n = places.len();
        let values: BTreeMap<&str, (Vec<u64>, Vec<u8>)> = schema
            .attributes
            .iter()
            .map(|attribute| {
                let offsets = (0..n as u64).map(|cell| 2 * cell).collect();
                let validity = (0..n).map(|_| u8::from(draw.chance(70))).collect();
                (attribute.name.as_str(), (offsets, validity))
            })
            .collect();
        let text = b"ab".repeat(n);
        let start = self.n_written;
        self.n_written += n as i32;
        let are_counts = self.are_counts;
        let numbers: Vec<i128> = (start..self.n_written).map(|cell| self.number(cell)).collect();
        let coordinates = [0, 1].map(|idx| {
            let coordinate =
                |place: &(u64, u64)| i128::from(if idx == 0 { place.0 } else { place.1 });
            Numbers::new(schema.dimensions[idx].datatype, places.iter().map(coordinate))
        });
        let attributes: Vec<Option<Numbers>> = schema
            .attributes
            .iter()
            .map(|attribute| {
                // Floats are written as quarters: whole ones are counts.
                let factor =
                    if are_counts && attribute.datatype == Datatype::Float32 { 4 } else { 1 };
                let values = numbers.iter().map(|value| value * factor);
                (!attribute.var_sized).then(|| Numbers::new(attribute.datatype, values))
            })
            .collect();
        let mut columns =
            vec![coordinates[0].column(DIMENSIONS[0]), coordinates[1].column(DIMENSIONS[1])];
        for (attribute, of) in schema.attributes.iter().zip(&attributes) {
            let (offsets, validity) = &values[attribute.name.as_str()];
            let column = match of {
                Some(of) => of.column(&attribute.name),
                None => WriteColumn::var_sized(&attribute.name, &text, offsets),
            };
            columns.push(if attribute.nullable { column.with_validity(validity) } else { column });
        }
        let mut write = WriteQuery::new(array, WriteOrder::Unordered)?;
        write.submit(&columns)?;
        write.finish()
    }

    fn consolidate(&self, draw: &mut Draw) -> (String, Result<(), Error>) {
        let mut parameters = Vec::new();
        if draw.chance(40) {
            let (a, b) = (draw.within(0..15), draw.within(0..15));
            parameters.push(("sm.consolidation.timestamp_start", a.min(b).to_string()));
            parameters.push(("sm.consolidation.timestamp_end", a.max(b).to_string()));
        }
        if draw.chance(15) {
            parameters
                .push(("sm.consolidation.max_fragment_size", draw.within(200..4000).to_string()));
        }
        if draw.chance(20) {
            parameters.push(("sm.consolidation.purge_deleted_cells", "true".to_owned()));
        }
        if draw.chance(15) {
            parameters.push(("sm.consolidation.steps", "2".to_owned()));
            parameters.push(("sm.consolidation.step_min_frags", "2".to_owned()));
            parameters.push(("sm.consolidation.step_max_frags", "2".to_owned()));
        }
        let done = Array::consolidate_with(self.context, &self.uri, &parameters);
        (format!("consolidate {parameters:?}"), done)
    }

    fn consolidate_some(&self, draw: &mut Draw) -> (String, Result<(), Error>) {
        let names = self.latest().and_then(|schema| {
            let fragments =
                FragmentInfo::load(self.context, &self.uri)?.fragments(&schema.dimensions)?;
            Ok(fragments
                .iter()
                .filter_map(|fragment| fragment.uri.rsplit('/').next().map(str::to_owned))
                .collect::<Vec<_>>())
        });
        let mut names = match names {
            Ok(names) => names,
            Err(error) => return ("list fragments".to_owned(), Err(error)),
        };
        names.retain(|_| draw.chance(60));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (
            format!("consolidate {names:?}"),
            Array::consolidate_fragments(self.context, &self.uri, &names),
        )
    }

    fn delete(&mut self, draw: &mut Draw) -> (String, Result<(), Error>) {
        let time = self.time(draw);
        let schema = match self.latest() {
            Ok(schema) => schema,
            Err(error) => return ("read a schema".to_owned(), Err(error)),
        };
        let coordinates: Vec<u64> =
            self.places.iter().flat_map(|(row, column)| [*row, *column]).collect();
        let last = self.n_written.max(1) as u64;
        let numbers: Vec<i128> = (0..8).map(|_| self.number(draw.within(0..last) as i32)).collect();
        if coordinates.is_empty() {
            return ("delete nothing".to_owned(), Ok(()));
        }
        let condition = condition(draw, &schema, &coordinates, &numbers);
        let done = Array::delete(self.context, &self.uri, Some(time), &condition);
        (format!("delete at {time}: {condition:?}"), done)
    }

    /// The value of the cell that was written after `n_before` others.
    fn number(&self, n_before: i32) -> i128 {
        i128::from(if self.are_counts { n_before % 100 } else { n_before * 7 - 300 })
    }

    fn evolve(&mut self, draw: &mut Draw) -> (String, Result<(), Error>) {
        let time = self.time(draw);
        let schema = match self.latest() {
            Ok(schema) => schema,
            Err(error) => return ("read a schema".to_owned(), Err(error)),
        };
        let mut evolution = Evolution { timestamp: Some(time), ..Evolution::default() };
        if let Some(current) = schema.current_domain.as_ref().filter(|_| draw.chance(85)) {
            let grown = current.iter().zip(&schema.dimensions).map(|((low, high), dimension)| {
                let (first, last) = dimension.domain.unwrap();
                (
                    if draw.chance(80) { *low } else { within(draw, (first, *low)) },
                    within(draw, (*high, last)),
                )
            });
            evolution.current_domain = Some(grown.collect());
        } else if schema.attributes.len() > 1 && draw.chance(80) {
            let names: Vec<&str> =
                schema.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
            let extra = names.iter().find(|name| **name != DATA).filter(|_| draw.chance(80));
            evolution.dropped.push((*extra.unwrap_or(&names[0])).to_owned());
        } else if draw.chance(70) {
            return self.write(draw);
        } else {
            // libtiledb crashes when it consolidates fragments without an attribute of variable
            // size.
            evolution.added.push(another(draw, "added", &[Datatype::Int32, Datatype::Float64]));
        }
        (format!("{evolution:?}"), Array::evolve(self.context, &self.uri, &evolution))
    }
}
