//! A table as of its opening time: its fragments, and what decides which of their cells count.

use std::sync::Arc;

use storage::Files;

use super::form::{FieldKind, Form, Indexing};
use super::fragment::TableFragment;
use super::window::WantedTile;
use crate::array::MOST_SORTED_STABLY;
use crate::deletes::Deletes;
use crate::description::ArrayDescription;
use crate::directory::Directory;
use crate::error::{Error, Fault};
use crate::fragment::{RawFooter, metadata_file};
use crate::schema::{Attribute, Schema, Schemas, VARIABLE};
use crate::unsupported::Unsupported;

/// The number that stands for a Hilbert curve among the orders of cells.
const HILBERT: u8 = 4;

/// The fragments that count at the opening time.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) files: Files,
    pub(super) timestamp: u64,
    pub(super) allows_duplicates: bool,
    pub(super) indexing: Indexing,
    /// Whether the cells of a tile are stored by ascending coordinate.
    pub(super) cells_ascend: bool,
    /// The first and the last coordinate of the array at the opening time.
    pub(super) current: (u64, u64),
    /// Oldest first.
    pub(super) fragments: Vec<TableFragment>,
    /// The dimensions, then the attributes.
    pub(super) columns: Vec<Column>,
    pub(super) deletes: Deletes,
    pub(super) n_dimensions: usize,
}

/// The longest fill value of a var-sized column that is repeated for rows from before the column;
/// libtiledb's own are single values.
const MAX_FILL_BYTES: usize = 1 << 16;

/// A column as the table's own schema has it.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: FieldKind,
    pub(super) is_nullable: bool,
    /// The value of rows that were written before the column was added.
    pub(super) fill: Vec<u8>,
    /// Whether such rows have a value.
    pub(super) fill_is_valid: bool,
}

impl Snapshot {
    /// Opens the table in `files` as of `timestamp`, and describes it.
    pub(super) fn load(
        files: &Files,
        timestamp: u64,
        indexing: Indexing,
    ) -> Result<(Self, ArrayDescription), Error> {
        let unsupported = |reason| Error::Unsupported { place: files.place(), reason };
        let directory = Directory::load(files, timestamp)?;
        let mut schemas = Schemas::new(files, &directory.schemas);
        let table = schemas.get(directory.latest_schema)?;
        let schema_file = &directory.schemas[directory.latest_schema];
        let description =
            ArrayDescription::read(files.clone(), timestamp, Arc::clone(&table), schema_file)?;
        let form =
            Form::from_schemas(&table, &table, table.version, indexing).map_err(unsupported)?;
        if let Some(reason) = directory.obstacle.clone() {
            return Err(unsupported(reason));
        }
        let deletes = Deletes::load(files, &directory.deletes, &table)?;
        let described = (&*table, indexing);
        let fragments = load_fragments(files, (&directory, &deletes), &mut schemas, described)?;
        let tied = match indexing {
            Indexing::ByPosition => tied(&fragments),
            Indexing::AsStored => of_one_time(&fragments),
        };
        if let Some(time) = tied.filter(|_| !table.allows_duplicates) {
            return Err(unsupported(Unsupported::TiedFragments { time }));
        }
        // Cells outside the current domain have no place in a table that is read by position.
        // Elsewhere none are: a domain only grows, and nothing is written outside of it.
        let current = match indexing {
            Indexing::ByPosition => current(&table).map_err(unsupported)?,
            Indexing::AsStored => (0, u64::MAX),
        };
        let dimensions = form.fields.iter().flatten().take(table.dimensions.len());
        let mut columns: Vec<Column> = dimensions
            .map(|field| Column {
                name: field.name.clone(),
                kind: field.kind,
                is_nullable: false,
                fill: Vec::new(),
                fill_is_valid: true,
            })
            .collect();
        columns.extend(table.attributes.iter().map(column));
        check_fills(files, schema_file, &columns, &fragments)?;
        let snapshot = Self {
            timestamp,
            allows_duplicates: table.allows_duplicates,
            indexing,
            n_dimensions: table.dimensions.len(),
            cells_ascend: table.orders.1 != HILBERT,
            current,
            fragments,
            columns,
            deletes,
            files: files.clone(),
        };
        Ok((snapshot, description))
    }

    /// The fragment of a tile.
    pub(super) fn fragment(&self, tile: &WantedTile) -> &TableFragment {
        &self.fragments[tile.fragment as usize]
    }

    /// Index of the times of cells among the fields.
    pub(super) fn times_field(&self) -> usize {
        self.columns.len()
    }

    /// Index of the times at which cells were deleted among the fields.
    pub(super) fn delete_times_field(&self) -> usize {
        self.columns.len() + 1
    }

    /// Number of rows if the footers show that every cell is one.
    pub(super) fn n_rows_by_footers(&self) -> Option<u64> {
        if self.indexing == Indexing::AsStored {
            let n_cells = self.fragments.iter().map(TableFragment::n_cells);
            return (!self.needs_merge()).then(|| n_cells.fold(0, u64::saturating_add));
        }
        let mut bounds = Vec::new();
        let mut n_rows = 0_u64;
        for fragment in &self.fragments {
            let Some((first, last)) = fragment.bounds else { continue };
            let may_repeat = fragment.footer.has_timestamps && !self.allows_duplicates;
            let is_cut = first < self.current.0 || last > self.current.1;
            let is_bounded = fragment.is_partly_after(self.timestamp);
            if may_repeat || is_cut || is_bounded || fragment.deletes.is_any() {
                return None;
            }
            bounds.push((first, last));
            n_rows = n_rows.saturating_add(fragment.n_cells());
        }
        (self.allows_duplicates || !overlap(&mut bounds)).then_some(n_rows)
    }
}

impl Snapshot {
    /// The fields that show which cells of a tile were deleted.
    pub(super) fn fields_of_deletes(&self, tile: &WantedTile) -> impl Iterator<Item = usize> {
        self.fields_compared(self.fragment(tile))
    }

    /// The fields that the deletes compare which concern a fragment.
    pub(super) fn fields_compared(&self, fragment: &TableFragment) -> impl Iterator<Item = usize> {
        let concerning = &fragment.deletes;
        let times = concerning.has_delete_times().then(|| self.delete_times_field());
        concerning.fields().iter().copied().chain(times)
    }

    /// Whether stored cells may not count, because others replace them, they are too late, or they
    /// were deleted.
    pub(super) fn needs_merge(&self) -> bool {
        let stored = self.fragments.iter().filter(|fragment| fragment.footer.n_tiles > 0);
        let is_late = |fragment: &TableFragment| fragment.is_partly_after(self.timestamp);
        let has_times = |fragment: &TableFragment| fragment.footer.has_timestamps;
        let may_repeat = !self.allows_duplicates
            && (stored.clone().count() > 1 || stored.clone().any(has_times));
        let is_deleted = |fragment: &TableFragment| fragment.deletes.is_any();
        may_repeat || stored.clone().any(is_late) || stored.clone().any(is_deleted)
    }
}

/// The time of several fragments, if there are too many to know their order.
fn of_one_time(fragments: &[TableFragment]) -> Option<u64> {
    let start = |fragment: &TableFragment| fragment.folder.times.start;
    let mut pairs = fragments.windows(2).filter(|_| fragments.len() > MOST_SORTED_STABLY);
    pairs.find(|pair| start(&pair[0]) == start(&pair[1])).map(|pair| start(&pair[0]))
}

/// Checks the fill values of columns that some fragments do not have.
fn check_fills(
    files: &Files,
    schema_file: &str,
    columns: &[Column],
    fragments: &[TableFragment],
) -> Result<(), Error> {
    for (idx, column) in columns.iter().enumerate().skip(1) {
        let is_missing = |fragment: &TableFragment| fragment.form.fields[idx].is_none();
        if !fragments.iter().any(is_missing) {
            continue;
        }
        let (name, n_bytes) = (&column.name, column.fill.len());
        match column.kind {
            FieldKind::Fixed(bytes) if bytes != n_bytes => {
                let what = format!("the fill value of `{name}` has {n_bytes} bytes");
                return Err(Fault::new(what).in_unfiltered(files.name(schema_file), 0));
            }
            FieldKind::VarSized if n_bytes > MAX_FILL_BYTES => {
                let reason = Unsupported::FillTooLong { name: name.clone(), n_bytes };
                return Err(Error::Unsupported { place: files.place(), reason });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether any two of the ranges share a coordinate; sorts them.
fn overlap(bounds: &mut [(u64, u64)]) -> bool {
    bounds.sort_unstable();
    bounds.windows(2).any(|pair| pair[1].0 <= pair[0].1)
}

/// The time of overlapping fragments whose order is unknown because their times are equal.
fn tied(fragments: &[TableFragment]) -> Option<u64> {
    if fragments.len() <= MOST_SORTED_STABLY {
        return None;
    }
    let start = |fragment: &TableFragment| fragment.folder.times.start;
    fragments.chunk_by(|a, b| start(a) == start(b)).find_map(|tied| {
        let mut bounds: Vec<_> = tied.iter().filter_map(|fragment| fragment.bounds).collect();
        overlap(&mut bounds).then(|| start(&tied[0]))
    })
}

fn load_fragments(
    files: &Files,
    (directory, deletes): (&Directory, &Deletes),
    schemas: &mut Schemas<'_>,
    (table, indexing): (&Schema, Indexing),
) -> Result<Vec<TableFragment>, Error> {
    let unsupported = |reason| Error::Unsupported { place: files.place(), reason };
    let mut fragments = Vec::new();
    let mut forms: Vec<((usize, u32), Arc<Form>)> = Vec::new();
    let mut other_types = Vec::new();
    let mut first_tile = 0_u64;
    let oldest = schemas.unnamed()?;
    let footers = RawFooter::load_all(files, &directory.fragments, oldest.as_deref())?;
    for (folder, raw) in directory.fragments.iter().zip(footers) {
        let schema_idx = schemas.find(raw.schema_name.as_deref(), &folder.path)?;
        let schema = schemas.get(schema_idx)?;
        let key = (schema_idx, raw.version);
        let known = forms.iter().find(|(known, _)| *known == key).map(|(_, form)| Arc::clone(form));
        let form = if let Some(form) = known {
            form
        } else {
            if let Some(what) = Form::other_dimensions(table, &schema) {
                let fragment = folder.name.clone();
                return Err(unsupported(Unsupported::SchemaEvolution { fragment, what }));
            }
            let form =
                Form::from_schemas(table, &schema, raw.version, indexing).map_err(unsupported)?;
            let form = Arc::new(form);
            forms.push((key, Arc::clone(&form)));
            form
        };
        let footer = raw.parse(files, folder, &schema)?;
        let concerning = deletes.concerning(files, folder, &footer)?;
        let n_tiles = footer.n_tiles;
        let fragment = TableFragment::new(folder.clone(), footer, form, (concerning, first_tile));
        first_tile = first_tile.saturating_add(n_tiles);
        let damaged = |fault: Fault| fault.in_file(files.name(&metadata_file(folder)), 0);
        fragments.push(fragment.map_err(damaged)?);
        other_types.push(Form::other_attribute(table, &schema));
    }
    let other_types = (0..).zip(other_types);
    for (idx, what) in other_types.filter_map(|(idx, what)| Some((idx, what?))) {
        let (earlier, later): (&TableFragment, &[_]) = (&fragments[idx], &fragments[idx + 1..]);
        let is_replaced = later.iter().any(|later| replaces(later, earlier));
        if table.allows_duplicates || !is_replaced {
            let fragment = earlier.folder.name.clone();
            return Err(unsupported(Unsupported::SchemaEvolution { fragment, what }));
        }
    }
    Ok(fragments)
}

/// Whether `later` has a cell at each coordinate of `earlier`, as far as metadata show: as many
/// cells as coordinates between its bounds. tiledbsoma's `update_obs` writes such fragments. The
/// cells of `earlier` then count no more, and a column may have had another type in it.
fn replaces(later: &TableFragment, earlier: &TableFragment) -> bool {
    let (Some((first, last)), Some(bounds)) = (later.bounds, earlier.bounds) else {
        return earlier.bounds.is_none();
    };
    let times = (&later.folder.times, &earlier.folder.times);
    times.1.end < times.0.start
        && !later.footer.has_timestamps
        && first <= bounds.0
        && bounds.1 <= last
        && later.n_cells() == (last - first).saturating_add(1)
}

/// The first and the last coordinate of the current domain, or of the domain.
fn current(table: &Schema) -> Result<(u64, u64), Unsupported> {
    let Some(dimension) = table.dimensions.first() else {
        return Err(Unsupported::DimensionCount { n_dimensions: 0 });
    };
    let current = table.current_domain.as_ref().and_then(|spans| spans.first().copied().flatten());
    let (low, high) = current.or(dimension.domain).unwrap_or((0, -1));
    let position = |coordinate: i128| {
        u64::try_from(coordinate)
            .map_err(|_| Unsupported::NegativeDomain { name: dimension.name.clone() })
    };
    Ok((position(low)?, position(high)?))
}

fn column(attribute: &Attribute) -> Column {
    let cell_bytes = attribute.datatype.size().unwrap_or(1) * attribute.values_per_cell as usize;
    let kind = match attribute.values_per_cell {
        VARIABLE => FieldKind::VarSized,
        _ => FieldKind::Fixed(cell_bytes),
    };
    Column {
        name: attribute.name.clone(),
        kind,
        is_nullable: attribute.nullable,
        fill: attribute.fill.clone().unwrap_or_default(),
        fill_is_valid: attribute.fill_is_valid,
    }
}
