//! The series by which pictures, page and tables distinguish points: loaders if there are several,
//! else results folders, else data sets, else methods. All of them use this rule, so a name means
//! the same everywhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::{OWN_LOADER, PointSummary, source::shortest_tails};

/// Methods in the order of the legend.
const METHODS: [&str; 3] = ["np.array", "scipy.csr", "csr"];

/// Number of methods that have a place and a shape of their own.
pub(crate) const N_METHODS: usize = METHODS.len();

/// The place of a method among them.
pub(crate) fn method_idx(name: &str) -> Option<usize> {
    // The name of csr in older rows.
    let name = if name == "native" { "csr" } else { name };
    METHODS.iter().position(|known| *known == name)
}

/// What the series are named by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NamedBy {
    Loader,
    Folder,
    Data,
    Method,
}

/// The series of some points.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SeriesNames {
    pub(crate) named_by: NamedBy,
    /// Distinct names, in the order of the legend.
    pub(crate) names: Vec<String>,
    of_points: Vec<usize>,
    /// For each point, the name of its series if there were only one data set.
    without_data: Vec<String>,
}

impl SeriesNames {
    pub(crate) fn from_points(points: &[PointSummary]) -> Self {
        let named_by = named_by(points);
        let data = data_names(points);
        // Words that distinguish points with the same name so far.
        let words =
            |of: fn(&PointSummary) -> String| -> Vec<String> { points.iter().map(of).collect() };
        let method = words(|point| point.point.chunk_method.clone());
        let reader = words(|point| point.point.reader.clone());
        let folder = words(|point| point.folder.clone().unwrap_or_default());
        let further: Vec<&Vec<String>> = match named_by {
            NamedBy::Loader => vec![&method, &data, &reader, &folder],
            NamedBy::Folder => vec![&data],
            NamedBy::Data => Vec::new(),
            NamedBy::Method => vec![&data, &reader],
        };
        let mut without_data: Vec<String> =
            points.iter().map(|point| base(named_by, point)).collect();
        let mut names = if named_by == NamedBy::Data { data.clone() } else { without_data.clone() };
        for words in further {
            add_where_different(&mut names, words);
            if !std::ptr::eq(words, &raw const data) {
                add_where_different(&mut without_data, words);
            }
        }
        Self::in_order(named_by, points, &names, without_data)
    }

    fn in_order(
        named_by: NamedBy,
        points: &[PointSummary],
        of_points: &[String],
        without_data: Vec<String>,
    ) -> Self {
        let rank = |point: &PointSummary| match named_by {
            NamedBy::Loader => usize::from(loader(point) != OWN_LOADER),
            NamedBy::Method => method_idx(&point.point.chunk_method).unwrap_or(N_METHODS),
            // They stay in the given order.
            NamedBy::Folder | NamedBy::Data => 0,
        };
        let mut ranked: Vec<(usize, &String)> = Vec::new();
        for (point, name) in points.iter().zip(of_points) {
            if !ranked.iter().any(|(_, known)| *known == name) {
                ranked.push((rank(point), name));
            }
        }
        match named_by {
            NamedBy::Loader | NamedBy::Method => ranked.sort(),
            NamedBy::Folder | NamedBy::Data => ranked.sort_by_key(|(rank, _)| *rank),
        }
        let names: Vec<String> = ranked.into_iter().map(|(_, name)| name.clone()).collect();
        let position = |name| names.iter().position(|known| known == name).unwrap_or(0);
        let of_points = of_points.iter().map(position).collect();
        Self { named_by, names, of_points, without_data }
    }

    /// The position in `names` of the series of point `idx`.
    pub(crate) fn position(&self, idx: usize) -> usize {
        self.of_points[idx]
    }

    /// The name of the series of point `idx`.
    pub(crate) fn name(&self, idx: usize) -> &str {
        &self.names[self.position(idx)]
    }

    /// The name of the series of point `idx` if there were only one data set.
    pub(crate) fn without_data(&self, idx: usize) -> &str {
        &self.without_data[idx]
    }

    /// The heading of a legend of the series.
    pub(crate) fn heading(&self) -> &'static str {
        match self.named_by {
            NamedBy::Loader => "loader",
            NamedBy::Folder => "results",
            NamedBy::Data => "data",
            NamedBy::Method => "method",
        }
    }
}

/// The point's loader; null means ours.
pub(crate) fn loader(point: &PointSummary) -> &str {
    point.point.loader.as_deref().unwrap_or(OWN_LOADER)
}

fn named_by(points: &[PointSummary]) -> NamedBy {
    let several = |of: fn(&PointSummary) -> String| {
        points.iter().map(of).collect::<BTreeSet<String>>().len() > 1
    };
    if several(|point| loader(point).to_owned()) {
        NamedBy::Loader
    } else if points.iter().any(|point| point.folder.is_some()) {
        NamedBy::Folder
    } else if several(data_key) && !several(|point| point.point.chunk_method.clone()) {
        NamedBy::Data
    } else {
        NamedBy::Method
    }
}

fn base(named_by: NamedBy, point: &PointSummary) -> String {
    let method = &point.point.chunk_method;
    match named_by {
        // A peer with settings of its own has a method that begins with its name.
        NamedBy::Loader if method.starts_with(loader(point)) => method.clone(),
        NamedBy::Loader => loader(point).to_owned(),
        NamedBy::Folder => point.folder.clone().unwrap_or_default(),
        NamedBy::Data | NamedBy::Method => method.clone(),
    }
}

/// Appends its word to each name that stands for points with different words.
fn add_where_different(names: &mut [String], words: &[String]) {
    let mut words_of: BTreeMap<String, BTreeSet<&String>> = BTreeMap::new();
    for (name, word) in names.iter().zip(words) {
        words_of.entry(name.clone()).or_default().insert(word);
    }
    for (name, word) in names.iter_mut().zip(words) {
        if words_of[name].len() > 1 && !word.is_empty() {
            *name = format!("{name}, {word}");
        }
    }
}

fn data_key(point: &PointSummary) -> String {
    format!("{}\n{}", point.data.uri, point.data.layout.as_deref().unwrap_or_default())
}

fn data_word(point: &PointSummary, otherwise: &str) -> String {
    point.data.layout.clone().unwrap_or_else(|| otherwise.to_owned())
}

/// A short name of each point's data: its layout, or as many last parts of its URI as distinguish
/// it from the others. With several loaders, the data that the others read is not named.
pub(crate) fn data_names(points: &[PointSummary]) -> Vec<String> {
    let uris: BTreeSet<&str> = points.iter().map(|point| point.data.uri.as_str()).collect();
    let uris: Vec<&str> = uris.into_iter().collect();
    let parts: Vec<Vec<String>> = uris
        .iter()
        .map(|uri| uri.trim_end_matches('/').split('/').map(str::to_owned).collect())
        .collect();
    let short: BTreeMap<&str, String> =
        uris.iter().copied().zip(shortest_tails(&parts).unwrap_or_default()).collect();
    let name = |uri: &str| short.get(uri).cloned().unwrap_or_else(|| uri.to_owned());
    let usual = points.iter().find(|point| loader(point) != OWN_LOADER);
    let usual = usual.map(|point| name(&point.data.uri));
    let word = |point: &PointSummary| {
        let name = name(&point.data.uri);
        let otherwise = match &usual {
            Some(usual) if *usual == name => String::new(),
            // A copy is named by the suffix that it adds to the name of the data.
            Some(usual) => match name.strip_prefix(usual.as_str()) {
                Some(rest) if rest.starts_with(['-', '_', '.']) && rest.len() > 1 => {
                    rest[1..].to_owned()
                }
                _ => name,
            },
            None => name,
        };
        data_word(point, &otherwise)
    };
    let words: Vec<String> = points.iter().map(word).collect();
    let mut uris_of: BTreeMap<&String, BTreeSet<&str>> = BTreeMap::new();
    for (word, point) in words.iter().zip(points) {
        uris_of.entry(word).or_default().insert(&point.data.uri);
    }
    // Two copies with the same layout are distinguished by their URIs.
    let all = words.iter().zip(points);
    all.map(|(word, point)| {
        if uris_of[word].len() > 1 {
            format!("{word} {}", name(&point.data.uri)).trim().to_owned()
        } else {
            word.clone()
        }
    })
    .collect()
}

#[cfg(test)]
mod tests;
