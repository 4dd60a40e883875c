//! The plain values of uns: strings, numbers, truth values, lists of strings, and groups of these.

use arrays::Scalar;

use crate::elements::Elements;
use crate::error::Error;

/// Groups within each other deeper than this are not read: links may lead back to a group.
pub(crate) const MOST_LEVELS: usize = 16;
/// The most elements that are read, since each of several links may lead back.
pub(crate) const MOST_ELEMENTS: usize = 1 << 14;
/// The longest list of strings that is read.
const MOST_STRINGS: u64 = 1 << 20;

/// What is read of uns, annotations that belong to neither cells nor genes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Uns {
    /// The values by name, sorted.
    pub values: Vec<(String, UnsValue)>,
    /// The path within uns of each element that is not read, and why.
    pub unread: Vec<(String, String)>,
}

/// A value of uns.
#[derive(Debug, Clone, PartialEq)]
pub enum UnsValue {
    /// A string, a number or a truth value.
    Single(Scalar),
    /// A list of strings, for instance colors of categories.
    Texts(Vec<String>),
    /// Values by name, sorted.
    Group(Vec<(String, Self)>),
}

impl Uns {
    /// Reads the group `uns`; nothing if there is none. In a collection each data set has its own,
    /// which are not read.
    pub(crate) fn read(elements: &Elements) -> Result<Self, Error> {
        let mut unread = Vec::new();
        if elements.is_collection() {
            for path in elements.paths("uns") {
                if !elements.children(&path)?.is_empty() {
                    unread.push((path, "each data set of a collection has its own".to_owned()));
                }
            }
            return Ok(Self { values: Vec::new(), unread });
        }
        let mut reading = Reading { elements, n_elements: 0, unread };
        let values = match elements.find("uns")? {
            Some(group) if group.array.is_none() => reading.group("uns", 0),
            Some(_) => {
                let why = elements.readable("uns").err().map(|error| error.to_string());
                reading.unread.extend(why.map(|why| ("uns".to_owned(), why)));
                Vec::new()
            }
            None => Vec::new(),
        };
        let within = |(path, why): (String, String)| {
            (path.strip_prefix("uns/").unwrap_or(&path).to_owned(), why)
        };
        Ok(Self { values, unread: reading.unread.into_iter().map(within).collect() })
    }
}

/// A walk through uns.
struct Reading<'a> {
    elements: &'a Elements,
    /// Those that were looked at.
    n_elements: usize,
    unread: Vec<(String, String)>,
}

impl Reading<'_> {
    /// The values in the group at `path`, `level` groups below uns.
    fn group(&mut self, path: &str, level: usize) -> Vec<(String, UnsValue)> {
        let names = match self.elements.children(path) {
            Ok(names) => names,
            Err(error) => {
                self.unread.push((path.to_owned(), reason(&error)));
                return Vec::new();
            }
        };
        let paths: Vec<String> = names.iter().map(|name| format!("{path}/{name}")).collect();
        // What fails here is found again when it is opened.
        drop(self.elements.gather(&paths));
        let is_group = |path: &str| self.elements.get(path).is_ok_and(|node| node.array.is_none());
        let mut members: Vec<(bool, String, String)> = names
            .into_iter()
            .zip(paths)
            .map(|(name, path)| (is_group(&path), name, path))
            .collect();
        // Groups come last: they may be links that use up what is read at most.
        members.sort();
        let mut values = Vec::new();
        for (_, name, path) in members {
            self.n_elements += 1;
            if MOST_ELEMENTS < self.n_elements {
                let why = format!("it and what follows lie beyond the first {MOST_ELEMENTS}");
                self.unread.push((path, why));
                break;
            }
            match self.value(&path, level) {
                Ok(value) => values.push((name, value)),
                Err(why) => self.unread.push((path, why)),
            }
        }
        values.sort_by(|(one, _), (other, _)| one.cmp(other));
        values
    }

    /// The value at `path`; otherwise the reason why it is not read.
    fn value(&mut self, path: &str, level: usize) -> Result<UnsValue, String> {
        let node = self.elements.get(path).map_err(|error| reason(&error))?;
        match (&node.array, node.encoding()) {
            (Some(_), _) => array_of(self.elements, path),
            (None, "dict" | "") if level < MOST_LEVELS => {
                Ok(UnsValue::Group(self.group(path, level + 1)))
            }
            (None, "dict" | "") => Err(format!("it lies deeper than {MOST_LEVELS} groups")),
            (None, encoding) => Err(format!("its encoding-type is `{encoding}`")),
        }
    }
}

/// An error and its cause, as a reason.
fn reason(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// A single value or a list of strings; otherwise the reason why it is not read.
fn array_of(elements: &Elements, path: &str) -> Result<UnsValue, String> {
    if let Some(scalar) = elements.scalar(path).map_err(|error| reason(&error))? {
        return Ok(UnsValue::Single(scalar));
    }
    let array = elements.array(path).map_err(|error| reason(&error))?;
    if !array.is_strings() {
        let n_dimensions = array.shape().len();
        let type_name = array.type_name();
        return Err(format!("it has {n_dimensions} dimensions of elements of type {type_name}"));
    }
    if array.shape().len() != 1 || MOST_STRINGS < array.n_rows() {
        return Err(format!("it has strings of shape {:?}", array.shape()));
    }
    let strings = elements.pool().install(|| array.read_strings(0..array.n_rows()));
    strings.map(UnsValue::Texts).map_err(|error| reason(&error.into()))
}
