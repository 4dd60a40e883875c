//! Random arrays, made by libtiledb in a random order of writes and upkeep.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use tiledb::{
    Array, ArrayType, Attribute, CellOrder, Comparison, Condition, Context, Datatype, Dimension,
    Error, Evolution, Filter, FragmentInfo, Schema, WriteColumn, WriteOrder, WriteQuery,
};

use super::draw::Draw;
use super::filters::pipeline;
use crate::written::Numbers;

/// The attribute of most arrays.
const DATA: &str = "soma_data";
const DIMENSIONS: [&str; 2] = ["soma_dim_0", "soma_dim_1"];
/// Times of writes, deletions and changes of the schema; few, so that many are equal, and of one digit and of two.
const TIMES: std::ops::Range<u64> = 1..14;

/// An array with all that was done to it.
pub(super) struct History<'a> {
    context: &'a Context,
    uri: String,
    /// Times at which something happened to it.
    pub(super) times: BTreeSet<u64>,
    /// What was done, a line for each step.
    pub(super) log: String,
    /// Whether values are small whole numbers.
    are_counts: bool,
    /// Places of cells that were written, which later writes go to again.
    places: Vec<(u64, u64)>,
    n_written: i32,
    pub(super) n_steps: u64,
    pub(super) n_refused: u64,
}

/// Whether steps are printed as they are taken, since libtiledb crashes in one.
pub(super) fn is_traced() -> bool {
    std::env::var_os("SOMAFEED_RANDOM_TRACE").is_some()
}

/// What was drawn for an array before anything is written.
struct Drawn {
    schema: Schema,
    are_counts: bool,
    created: u64,
}

fn schema(draw: &mut Draw) -> Drawn {
    let n_rows = match draw.below(20) {
        0 => draw.within(2000..5000),
        1..=5 => draw.within(60..400),
        _ => draw.within(1..60),
    };
    let n_columns = match draw.below(20) {
        0 => draw.within(65_530..70_000),
        1 | 2 => draw.within(200..700),
        _ => draw.within(1..80),
    };
    let is_hilbert = draw.chance(8);
    let dimension_type = draw.pick(&[
        Datatype::Int64,
        Datatype::Int64,
        Datatype::Int64,
        Datatype::UInt64,
        Datatype::Int32,
        Datatype::UInt32,
    ]);
    let dimension = |draw: &mut Draw, name: &str, n: u64| {
        let low = if draw.chance(70) { 0 } else { draw.within(1..40) };
        let extent = if draw.chance(30) { n } else { draw.within(1..n.min(100) + 1) };
        Dimension {
            name: name.to_owned(),
            datatype: dimension_type,
            domain: Some((low.into(), i128::from(low + n) - 1)),
            tile_extent: (!is_hilbert).then_some(extent.into()),
            filters: pipeline(draw, dimension_type),
        }
    };
    let dimensions = vec![
        dimension(draw, DIMENSIONS[0], n_rows),
        dimension(draw, DIMENSIONS[1], n_columns),
    ];
    let current_domain = draw.chance(40).then(|| {
        let part = |draw: &mut Draw, dimension: &Dimension| {
            let (low, high) = dimension.domain.unwrap();
            let first = if draw.chance(80) { low } else { within(draw, (low, high)) };
            (first, within(draw, (first, high)))
        };
        dimensions.iter().map(|dimension| part(draw, dimension)).collect()
    });
    let value_type = draw.pick(&[
        Datatype::Float32,
        Datatype::Float32,
        Datatype::Float32,
        Datatype::Float32,
        Datatype::Float64,
        Datatype::Int8,
        Datatype::UInt8,
        Datatype::Int16,
        Datatype::UInt16,
        Datatype::Int32,
        Datatype::UInt32,
        Datatype::Int64,
        Datatype::UInt64,
        Datatype::Bool,
    ]);
    let data =
        Attribute { filters: pipeline(draw, value_type), ..Attribute::new(DATA, value_type) };
    let mut attributes = vec![data];
    if draw.chance(8) {
        let datatypes = [Datatype::Int32, Datatype::Float64, Datatype::StringUtf8];
        attributes.push(another(draw, "more", &datatypes));
        draw.shuffle(&mut attributes);
    }
    if draw.chance(3) {
        attributes[0].nullable = true;
    }
    let order = |draw: &mut Draw| draw.pick(&[CellOrder::RowMajor, CellOrder::RowMajor, CellOrder::ColumnMajor]);
    let capacity = match draw.below(6) {
        0 => draw.within(1..7),
        1..=3 => draw.within(7..60),
        4 => draw.within(60..400),
        _ => 10_000,
    };
    let schema = Schema {
        array_type: ArrayType::Sparse,
        tile_order: order(draw),
        cell_order: if is_hilbert { CellOrder::Hilbert } else { order(draw) },
        capacity,
        allows_duplicates: draw.chance(50),
        offsets_filters: Vec::new(),
        coords_filters: pipeline(draw, dimension_type),
        validity_filters: if draw.chance(50) { pipeline(draw, Datatype::UInt8) } else { Vec::new() },
        current_domain,
        enumerations: Vec::new(),
        dimensions,
        attributes,
    };
    Drawn { schema, are_counts: draw.chance(40), created: draw.within(0..4) }
}

/// An attribute that is not the one of the values.
fn another(draw: &mut Draw, name: &str, datatypes: &[Datatype]) -> Attribute {
    let datatype = draw.pick(datatypes);
    let filters = if datatype == Datatype::StringUtf8 {
        vec![Filter::Zstd(1)]
    } else {
        pipeline(draw, datatype)
    };
    Attribute { nullable: draw.chance(50), filters, ..Attribute::new(name, datatype) }
}

fn within(draw: &mut Draw, (low, high): (i128, i128)) -> i128 {
    low + i128::from(draw.within(0..(high - low + 1) as u64))
}

impl<'a> History<'a> {
    /// Makes an array at `at` and does a few things to it. What libtiledb refuses is noted, and left out.
    ///
    /// # Errors
    /// libtiledb refuses the schema.
    pub(super) fn make(draw: &mut Draw, context: &'a Context, at: &Path) -> Result<Self, Error> {
        let Drawn { schema, are_counts, created } = schema(draw);
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
            places: Vec::new(),
            n_written: 0,
            n_steps: 0,
            n_refused: 0,
        };
        for step in 0..1 + draw.below(8) {
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
            0..50 | 91..93 => self.write(draw),
            50..62 => self.consolidate(draw),
            62..72 => self.consolidate_some(draw),
            72..82 => {
                let mode = draw.pick(&["fragments", "fragments", "fragments", "commits", "fragment_meta"]);
                let context = self.context.with(&[("sm.vacuum.mode", mode.to_owned())]).unwrap();
                (format!("vacuum {mode}"), Array::vacuum(&context, &self.uri))
            }
            82..88 => {
                let mode = draw.pick(&["commits", "commits", "fragment_meta"]);
                let parameters = [("sm.consolidation.mode", mode.to_owned())];
                let done = Array::consolidate_with(self.context, &self.uri, &parameters);
                (format!("consolidate {mode}"), done)
            }
            88..91 => self.delete(draw),
            _ => self.evolve(draw),
        }
    }

    fn time(&mut self, draw: &mut Draw) -> u64 {
        let time = draw.within(TIMES);
        self.times.insert(time);
        time
    }

    /// The schema that is written with.
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

    /// Places to write to: strewn, in stretches of rows, or where something was written before.
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
                    next = (next.0 + 1, columns.start + draw.within(0..step).min(columns.end - columns.start - 1));
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
        let numbers: Vec<i128> = (start..self.n_written)
            .map(|cell| i128::from(if are_counts { cell % 100 } else { cell * 7 - 300 }))
            .collect();
        let coordinates = [0, 1].map(|idx| {
            let of = |place: &(u64, u64)| i128::from(if idx == 0 { place.0 } else { place.1 });
            Numbers::new(schema.dimensions[idx].datatype, places.iter().map(of))
        });
        let attributes: Vec<Option<Numbers>> = schema
            .attributes
            .iter()
            .map(|attribute| {
                // Floats are written as quarters: whole ones are counts.
                let factor = if are_counts && attribute.datatype == Datatype::Float32 { 4 } else { 1 };
                let values = numbers.iter().map(|value| value * factor);
                (!attribute.var_sized).then(|| Numbers::new(attribute.datatype, values))
            })
            .collect();
        let mut columns = vec![coordinates[0].column(DIMENSIONS[0]), coordinates[1].column(DIMENSIONS[1])];
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
            parameters.push(("sm.consolidation.max_fragment_size", draw.within(200..4000).to_string()));
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
            let fragments = FragmentInfo::load(self.context, &self.uri)?.fragments(&schema.dimensions)?;
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
        (format!("consolidate {names:?}"), Array::consolidate_fragments(self.context, &self.uri, &names))
    }

    fn delete(&mut self, draw: &mut Draw) -> (String, Result<(), Error>) {
        let time = self.time(draw);
        let schema = match self.latest() {
            Ok(schema) => schema,
            Err(error) => return ("read a schema".to_owned(), Err(error)),
        };
        let comparison = draw.pick(&[Comparison::Less, Comparison::GreaterOrEqual, Comparison::Equal]);
        let (low, high) = schema.dimensions[0].domain.unwrap();
        let row = within(draw, (low, high));
        let condition = match schema.dimensions[0].datatype {
            Datatype::Int32 => Condition::new(DIMENSIONS[0], comparison, row as i32),
            Datatype::UInt32 => Condition::new(DIMENSIONS[0], comparison, row as u32),
            Datatype::UInt64 => Condition::new(DIMENSIONS[0], comparison, row as u64),
            _ => Condition::new(DIMENSIONS[0], comparison, row as i64),
        };
        let done = Array::delete(self.context, &self.uri, Some(time), &condition);
        (format!("delete {comparison:?} {row} at {time}"), done)
    }

    fn evolve(&mut self, draw: &mut Draw) -> (String, Result<(), Error>) {
        let time = self.time(draw);
        let schema = match self.latest() {
            Ok(schema) => schema,
            Err(error) => return ("read a schema".to_owned(), Err(error)),
        };
        let mut evolution = Evolution { timestamp: Some(time), ..Evolution::default() };
        if let Some(current) = schema.current_domain.as_ref().filter(|_| draw.chance(75)) {
            let grown = current.iter().zip(&schema.dimensions).map(|((low, high), dimension)| {
                let (first, last) = dimension.domain.unwrap();
                (if draw.chance(80) { *low } else { within(draw, (first, *low)) }, within(draw, (*high, last)))
            });
            evolution.current_domain = Some(grown.collect());
        } else if schema.attributes.len() > 1 && draw.chance(80) {
            let names: Vec<&str> =
                schema.attributes.iter().map(|attribute| attribute.name.as_str()).collect();
            let extra = names.iter().find(|name| **name != DATA).filter(|_| draw.chance(80));
            evolution.dropped.push((*extra.unwrap_or(&names[0])).to_owned());
        } else {
            // libtiledb crashes where it consolidates fragments that lack an attribute of variable size.
            evolution.added.push(another(draw, "added", &[Datatype::Int32, Datatype::Float64]));
        }
        (format!("{evolution:?}"), Array::evolve(self.context, &self.uri, &evolution))
    }
}
