//! Checks the specification of an experiment before anything is written.

use std::collections::HashSet;

use super::measurement::Parts;
use super::{ColumnKind, ColumnSpec, ExperimentSpec, XLayout, layout};
use crate::columns::JOINID;
use crate::{Error, Filter};

/// Fails if the experiment cannot be written as specified.
pub(super) fn check(spec: &ExperimentSpec, uri: &str) -> Result<(), Error> {
    let main =
        Parts { name: &spec.measurement, n_var: spec.n_var, var: &spec.var, layers: &spec.layers };
    sizes(spec)
        .and_then(|()| columns("obs", &spec.obs))
        .and_then(|()| measurement(&main, &[]))
        .map_err(|problem| Error::Write {
            what: "an experiment".into(),
            uri: uri.to_owned(),
            problem,
        })
}

/// Fails if a measurement cannot be written; `names` are those of all measurements.
pub(super) fn measurement(parts: &Parts<'_>, names: &[&str]) -> Result<(), String> {
    size("genes", parts.n_var, u32::MAX.into())?;
    member("measurement", parts.name)?;
    unique("measurement", names)?;
    parts.layers.iter().try_for_each(|layer| member("layer", layer))?;
    unique("layer", parts.layers)?;
    columns("var", parts.var)
}

/// Fails if an array of obsm cannot be written.
pub(super) fn obsm(name: &str, n_columns: u64, is_there: bool) -> Result<(), String> {
    member("array of obsm", name)?;
    if is_there {
        return Err(format!("{name:?} occurs twice as array of obsm"));
    }
    size("columns", n_columns, u32::MAX.into())
}

fn size(what: &str, n: u64, most: u64) -> Result<(), String> {
    if n == 0 {
        return Err(format!("it has no {what}, but needs at least one"));
    }
    if n > most {
        return Err(format!("it has {n} {what}, but can have at most {most}"));
    }
    Ok(())
}

fn sizes(spec: &ExperimentSpec) -> Result<(), String> {
    size("cells", spec.n_obs, layout::MOST_ROWS)?;
    layout_of_x(&spec.x_layout)?;
    if spec.fragment_rows == Some(0) {
        return Err("a fragment has no rows, but needs at least one".into());
    }
    Ok(())
}

fn layout_of_x(layout: &XLayout) -> Result<(), String> {
    for (what, n) in [("rows", layout.tile_rows), ("columns", layout.tile_columns)] {
        if !(1..=layout::MOST_OF_TILE).contains(&n) {
            return Err(format!(
                "a tile of X has {n} {what}, but can have 1 to {}",
                layout::MOST_OF_TILE
            ));
        }
    }
    if !(1..=layout::MOST_CAPACITY).contains(&layout.capacity) {
        return Err(format!(
            "a data tile of X has {} cells, but can have 1 to {}",
            layout.capacity,
            layout::MOST_CAPACITY
        ));
    }
    let filters =
        layout.row_filters.iter().chain(&layout.column_filters).chain(&layout.value_filters);
    for filter in filters {
        match filter {
            Filter::Zstd(level) if !(1..=22).contains(level) => {
                return Err(format!("the zstd level is {level}, and must lie in 1..=22"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Names of members become names of folders, next to those that TileDB creates.
pub(super) fn member(what: &str, name: &str) -> Result<(), String> {
    let bad = name.is_empty()
        || name.starts_with("__")
        || [".", ".."].contains(&name)
        || name.contains(|letter: char| letter == '\\' || letter.is_control());
    if bad {
        return Err(format!(
            "{name:?} cannot be the name of a {what}: it must not be empty, contain backslashes, or begin with \"__\""
        ));
    }
    Ok(())
}

/// The folder of a member: its name, with slashes escaped as tiledbsoma does.
pub(super) fn folder_of(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

fn columns(frame: &str, columns: &[ColumnSpec]) -> Result<(), String> {
    for column in columns {
        let name = &column.name;
        if name.is_empty() || name.starts_with("soma_") || name.contains('\0') {
            return Err(format!(
                "{name:?} cannot be the name of a column of {frame}: {JOINID} is made by itself, and names that begin with \
                 \"soma_\" are reserved"
            ));
        }
        if let ColumnKind::Categorical { values, .. } = &column.kind {
            unique(&format!("value of column {name} of {frame}"), values)?;
        }
    }
    let names: Vec<&String> = columns.iter().map(|column| &column.name).collect();
    unique(&format!("column of {frame}"), &names)
}

fn unique<T: AsRef<str>>(what: &str, names: &[T]) -> Result<(), String> {
    let mut seen = HashSet::new();
    for name in names.iter().map(AsRef::as_ref) {
        if !seen.insert(name) {
            return Err(format!("{name:?} occurs twice as {what}"));
        }
    }
    Ok(())
}
