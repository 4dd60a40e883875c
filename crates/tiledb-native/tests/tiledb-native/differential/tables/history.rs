//! Random tables, made by libtiledb in a random order of writes and upkeep.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use tiledb::{
    Array, Attribute, Context, Error, Evolution, Filter, Schema, WriteColumn, WriteOrder,
    WriteQuery,
};

use super::schema::{DIMENSION, attribute, schema, unused_name};
use crate::differential::conditions::condition;
use crate::differential::histories::draw::Draw;
use crate::differential::histories::is_traced;
use crate::differential::written::Numbers;

/// Upper bounds of a table's times, of which one is drawn.
const LAST_TIMES: [u64; 3] = [4, 9, 14];

/// A table with its history.
pub(super) struct History<'a> {
    context: &'a Context,
    uri: String,
    /// Times at which it changed.
    pub(super) times: BTreeSet<u64>,
    /// The history, a line for each step.
    pub(super) log: String,
    last_time: u64,
    /// Coordinates of written rows, to which later writes return.
    written: Vec<u64>,
    /// Every attribute that the table ever had.
    attributes: BTreeMap<String, Attribute>,
    /// Whether fragments may lack an attribute of variable size: libtiledb crashes when it
    /// consolidates them.
    has_missing_texts: bool,
    pub(super) n_steps: u64,
    pub(super) n_refused: u64,
}

/// The values of a column to write.
enum Values {
    Numbers(Numbers),
    Texts(Vec<u8>, Vec<u64>),
}

impl<'a> History<'a> {
    /// Makes a table at `at` with a random history. Steps that libtiledb refuses are logged and
    /// skipped.
    ///
    /// # Errors
    /// libtiledb refuses the schema.
    pub(super) fn make(draw: &mut Draw, context: &'a Context, at: &Path) -> Result<Self, Error> {
        let schema = schema(draw);
        let created = draw.within(0..4);
        let uri = at.to_str().unwrap().to_owned();
        let log = format!("created at {created}: {schema:?}\n");
        if is_traced() {
            print!("{log}");
        }
        Array::create(context, &uri, &schema)?;
        rename_schema(&at.join("__schema"), created);
        let mut history = Self {
            context,
            uri,
            times: BTreeSet::from([created]),
            log,
            last_time: draw.pick(&LAST_TIMES),
            written: Vec::new(),
            attributes: schema
                .attributes
                .iter()
                .map(|one| (one.name.clone(), one.clone()))
                .collect(),
            has_missing_texts: false,
            n_steps: 0,
            n_refused: 0,
        };
        for step in 0..=draw.below(9) {
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
            0..55 => self.write(draw),
            55..68 if !self.has_missing_texts => {
                ("consolidate".to_owned(), Array::consolidate(self.context, &self.uri))
            }
            68..76 => ("vacuum".to_owned(), Array::vacuum(self.context, &self.uri)),
            76..80 => {
                let parameters = [("sm.consolidation.mode", "commits".to_owned())];
                let done = Array::consolidate_with(self.context, &self.uri, &parameters);
                ("consolidate commits".to_owned(), done)
            }
            80..88 => self.delete(draw),
            _ => self.evolve(draw),
        }
    }

    fn delete(&mut self, draw: &mut Draw) -> (String, Result<(), Error>) {
        let time = self.time(draw);
        let schema = match Array::open_for_writing(self.context, &self.uri, None) {
            Ok(array) => array.schema().clone(),
            Err(error) => return ("read a schema".to_owned(), Err(error)),
        };
        if self.written.is_empty() {
            return ("delete nothing".to_owned(), Ok(()));
        }
        let numbers: Vec<i128> = (0..8).map(|_| draw.within(0..1200).into()).collect();
        let condition = condition(draw, &schema, &self.written, &numbers);
        let done = Array::delete(self.context, &self.uri, Some(time), &condition);
        (format!("delete at {time}: {condition:?}"), done)
    }

    fn time(&mut self, draw: &mut Draw) -> u64 {
        let time = draw.within(1..self.last_time);
        self.times.insert(time);
        time
    }

    fn write(&mut self, draw: &mut Draw) -> (String, Result<(), Error>) {
        let time = self.time(draw);
        let array = match Array::open_for_writing(self.context, &self.uri, Some(time)) {
            Ok(array) => Arc::new(array),
            Err(error) => return ("open for a write".to_owned(), Err(error)),
        };
        let schema = array.schema().clone();
        let rows = self.rows(draw, &schema);
        let what = format!("write {} rows at {time}: {rows:?}", rows.len());
        let done = if rows.is_empty() { Ok(()) } else { write_rows(draw, &array, &schema, &rows) };
        (what, done)
    }

    /// Coordinates to write: a stretch, scattered, or written before.
    fn rows(&mut self, draw: &mut Draw, schema: &Schema) -> Vec<u64> {
        let current = schema.current_domain.as_ref().map(|bounds| bounds[0]);
        let (low, high) = current.or(schema.dimensions[0].domain).unwrap();
        let all = low as u64..high as u64 + 1;
        let near = all.start..all.end.min(all.start + 600);
        let n = draw.pick(&[1, 4, 20, 60, 150]);
        let mut next = draw.within(near.clone());
        let (is_strewn, again) = (draw.chance(40), draw.pick(&[0, 20, 90]));
        let mut rows = Vec::new();
        for _ in 0..n {
            if !self.written.is_empty() && draw.chance(again) {
                rows.push(draw.pick(&self.written));
            } else if draw.chance(2) {
                rows.push(draw.within(all.clone()));
            } else if is_strewn {
                rows.push(draw.within(near.clone()));
            } else {
                rows.push(next);
                next += draw.within(1..3);
            }
        }
        rows.retain(|row| all.contains(row));
        if !schema.allows_duplicates {
            rows.sort_unstable();
            rows.dedup();
        }
        draw.shuffle(&mut rows);
        self.written.extend(&rows);
        rows
    }

    fn evolve(&mut self, draw: &mut Draw) -> (String, Result<(), Error>) {
        let time = self.time(draw);
        let schema = match Array::open_for_writing(self.context, &self.uri, None) {
            Ok(array) => array.schema().clone(),
            Err(error) => return ("read a schema".to_owned(), Err(error)),
        };
        let mut evolution = Evolution { timestamp: Some(time), ..Evolution::default() };
        let (low, high) = schema.dimensions[0].domain.unwrap();
        match (&schema.current_domain, unused_name(draw, &schema)) {
            (Some(current), _) if draw.chance(30) => {
                let first = if draw.chance(70) { current[0].0 } else { low };
                let last = (current[0].1 + i128::from(draw.within(0..300))).min(high);
                evolution.current_domain = Some(vec![(first, last)]);
            }
            // In an array with duplicates, libtiledb crashes when it reads fragments that lack an
            // attribute.
            _ if schema.allows_duplicates => return self.write(draw),
            (_, Some(name)) if draw.chance(60) => {
                // libtiledb reads old values of a name by the type and the filters of the latest
                // schema, whatever they were written with.
                let added = match self.attributes.get(name) {
                    Some(known) => known.clone(),
                    None => attribute(draw, name),
                };
                self.attributes.insert(added.name.clone(), added.clone());
                self.has_missing_texts |= added.var_sized;
                evolution.added.push(added);
            }
            _ if schema.attributes.len() > 1 => {
                let dropped = &schema.attributes[draw.below(schema.attributes.len())];
                self.has_missing_texts |= dropped.var_sized;
                evolution.dropped.push(dropped.name.clone());
            }
            _ => return self.write(draw),
        }
        (format!("{evolution:?}"), Array::evolve(self.context, &self.uri, &evolution))
    }
}

/// Gives the only schema in `folder` the time `created`, which is in the name of its file.
pub(super) fn rename_schema(folder: &Path, created: u64) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some((_, uuid)) = name.rsplit_once('_').filter(|_| name != "__enumerations") {
            let named = folder.join(format!("__{created}_{created}_{uuid}"));
            std::fs::rename(folder.join(&name), named).unwrap();
        }
    }
}

fn values(draw: &mut Draw, attribute: &Attribute, n: usize) -> Values {
    if attribute.var_sized {
        let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
        // Some columns have no text at all.
        let longest = draw.pick(&[0, 1, 8, 30, 300]);
        // libtiledb does not count the last text of a tile when it chooses the bytes of a length:
        // it damages a tile of run lengths whose only text of more than 255 bytes is the last one.
        let is_run_lengths = attribute.filters.first() == Some(&Filter::Rle);
        let longest = if is_run_lengths { longest.min(255) } else { longest };
        for _ in 0..n {
            offsets.push(bytes.len() as u64);
            let len = draw.below(longest + 1);
            let first = draw.within(97..120) as u8;
            bytes.extend((0..len).map(|idx| first + (idx % 3) as u8));
        }
        return Values::Texts(bytes, offsets);
    }
    let start = i128::from(draw.within(0..1000));
    let step = i128::from(draw.within(0..5));
    let numbers = (0..n as i128).map(|idx| start + idx * step + i128::from(draw.chance(20)));
    let numbers = Numbers::new(attribute.datatype, numbers);
    Values::Numbers(if draw.chance(50) { numbers.with_special_floats(draw) } else { numbers })
}

fn write_rows(
    draw: &mut Draw,
    array: &Arc<Array>,
    schema: &Schema,
    rows: &[u64],
) -> Result<(), Error> {
    let n = rows.len();
    let coordinates =
        Numbers::new(schema.dimensions[0].datatype, rows.iter().map(|row| i128::from(*row)));
    let drawn = |attribute: &Attribute, draw: &mut Draw| {
        let valid = draw.pick(&[0, 50, 100]);
        let validity: Vec<u8> = (0..n).map(|_| u8::from(draw.chance(valid))).collect();
        (values(draw, attribute, n), validity)
    };
    let attributes: Vec<(Values, Vec<u8>)> =
        schema.attributes.iter().map(|attribute| drawn(attribute, draw)).collect();
    let mut columns = vec![coordinates.column(DIMENSION)];
    for (attribute, (values, validity)) in schema.attributes.iter().zip(&attributes) {
        let column = match values {
            Values::Numbers(numbers) => numbers.column(&attribute.name),
            Values::Texts(bytes, offsets) => {
                WriteColumn::var_sized(&attribute.name, bytes, offsets)
            }
        };
        columns.push(if attribute.nullable { column.with_validity(validity) } else { column });
    }
    let mut write = WriteQuery::new(array, WriteOrder::Unordered)?;
    write.submit(&columns)?;
    write.finish()
}
