//! The plain values of uns: strings, numbers, truth values, lists of strings, and groups of these.

use arrays::Scalar;

use crate::elements::Elements;
use crate::error::Error;

/// Groups within each other deeper than this are not read: links in HDF5 may go round.
const MOST_LEVELS: usize = 16;
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
        let values = match elements.find("uns")? {
            Some(group) if group.array.is_none() => group_of(elements, "uns", 0, &mut unread)?,
            Some(_) => {
                let why = elements.readable("uns").err().map(|error| error.to_string());
                unread.extend(why.map(|why| ("uns".to_owned(), why)));
                Vec::new()
            }
            None => Vec::new(),
        };
        let within = |(path, why): (String, String)| {
            (path.strip_prefix("uns/").unwrap_or(&path).to_owned(), why)
        };
        Ok(Self { values, unread: unread.into_iter().map(within).collect() })
    }
}

/// The values in the group at `path`, `level` groups below uns.
fn group_of(
    elements: &Elements,
    path: &str,
    level: usize,
    unread: &mut Vec<(String, String)>,
) -> Result<Vec<(String, UnsValue)>, Error> {
    let names = elements.children(path)?;
    elements.gather(&names.iter().map(|name| format!("{path}/{name}")).collect::<Vec<_>>())?;
    let mut values = Vec::new();
    for name in names {
        let path = format!("{path}/{name}");
        let node = elements.get(&path)?;
        let value = match (&node.array, node.encoding()) {
            (Some(_), _) => array_of(elements, &path),
            (None, "dict" | "") if level < MOST_LEVELS => {
                Ok(UnsValue::Group(group_of(elements, &path, level + 1, unread)?))
            }
            (None, "dict" | "") => Err(format!("it lies deeper than {MOST_LEVELS} groups")),
            (None, encoding) => Err(format!("its encoding-type is `{encoding}`")),
        };
        match value {
            Ok(value) => values.push((name, value)),
            Err(why) => unread.push((path, why)),
        }
    }
    Ok(values)
}

/// A single value or a list of strings; otherwise the reason why it is not read.
fn array_of(elements: &Elements, path: &str) -> Result<UnsValue, String> {
    let reason = |error: Error| match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    if let Some(scalar) = elements.scalar(path).map_err(reason)? {
        return Ok(UnsValue::Single(scalar));
    }
    let array = elements.array(path).map_err(reason)?;
    if !array.is_strings() {
        let n_dimensions = array.shape().len();
        let type_name = array.type_name();
        return Err(format!("it has {n_dimensions} dimensions of elements of type {type_name}"));
    }
    if array.shape().len() != 1 || MOST_STRINGS < array.n_rows() {
        return Err(format!("it has strings of shape {:?}", array.shape()));
    }
    let strings = elements.pool().install(|| array.read_strings(0..array.n_rows()));
    strings.map(UnsValue::Texts).map_err(|error| reason(error.into()))
}
