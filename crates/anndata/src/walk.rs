//! Which elements of an AnnData are read, found without opening them.
//!
//! Links may lead from a group back to itself. Only uns is a tree of any shape, whose depth and
//! size are limited; elsewhere the names within groups are those of the format.

use std::sync::Arc;

use crate::elements::{Elements, Node, joined};
use crate::error::Error;
use crate::uns::{MOST_ELEMENTS, MOST_LEVELS};

/// The elements of an AnnData that are read.
const ELEMENTS: [&str; 7] = ["X", "layers", "obs", "obsm", "raw", "uns", "var"];
/// Those of its element `raw`.
const OF_RAW: [&str; 2] = ["X", "var"];
/// The arrays that a matrix or a column consists of.
const PARTS: [&str; 7] = ["categories", "codes", "data", "indices", "indptr", "mask", "values"];
/// The deepest such array is `raw/var/column/categories/values`.
const MOST_PARTS: usize = 5;

/// An element within a data set.
struct Place {
    /// The path of the data set.
    root: String,
    /// The names on the way from there.
    names: Vec<String>,
}

impl Place {
    fn path(&self) -> String {
        joined(&self.root, &self.names.join("/"))
    }

    fn is_in_uns(&self) -> bool {
        self.names.first().is_some_and(|name| name == "uns")
    }

    fn child(&self, name: &str) -> Self {
        let names = self.names.iter().cloned().chain([name.to_owned()]).collect();
        Self { root: self.root.clone(), names }
    }
}

/// The elements that are read, each with its path; groups before what is in them.
pub(crate) fn read_elements(elements: &Elements) -> Result<Vec<(String, Arc<Node>)>, Error> {
    let mut found = vec![(String::new(), elements.get("")?)];
    let mut places: Vec<Place> =
        elements.paths("").into_iter().map(|root| Place { root, names: Vec::new() }).collect();
    let mut n_of_uns = 0;
    while !places.is_empty() {
        // What fails here is found again below.
        drop(elements.gather(&places.iter().map(Place::path).collect::<Vec<_>>()));
        let mut next = Vec::new();
        for place in places {
            let path = place.path();
            let node = elements.find(&path);
            // A value of uns that cannot be read is left out.
            let node = if place.is_in_uns() { node.unwrap_or(None) } else { node? };
            let Some(node) = node else { continue };
            if node.array.is_none() {
                for name in names_within(elements, &place)? {
                    n_of_uns += usize::from(place.is_in_uns());
                    if n_of_uns <= MOST_ELEMENTS {
                        next.push(place.child(&name));
                    }
                }
            }
            if !path.is_empty() {
                found.push((path, node));
            }
        }
        places = next;
    }
    Ok(found)
}

/// The names of what is read in a group.
fn names_within(elements: &Elements, place: &Place) -> Result<Vec<String>, Error> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let names: Vec<&str> = place.names.iter().map(String::as_str).collect();
    match &names[..] {
        [] => Ok(owned(&ELEMENTS)),
        ["raw"] => Ok(owned(&OF_RAW)),
        // Each data set of a collection has its own, which are not read.
        ["uns", ..] if elements.is_collection() || MOST_LEVELS < names.len() => Ok(Vec::new()),
        ["uns", ..] => Ok(elements.children(&place.path()).unwrap_or_default()),
        ["layers" | "obsm"] => elements.nested_children(&place.path()),
        ["obs" | "var"]
        | ["raw", "var"]
        | ["obs" | "var", "__categories"]
        | ["raw", "var", "__categories"] => elements.children(&place.path()),
        names if names.len() < MOST_PARTS => Ok(owned(&PARTS)),
        _ => Ok(Vec::new()),
    }
}
