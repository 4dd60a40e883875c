//! What to say if a list of genes does not fit to the names in var.

use std::collections::HashSet;

use arrow_schema::DataType;
use soma_io::{AxisQuery, DataFrame};

use crate::error::{DatasetError, open_error};
use crate::selection::texts;

/// Checks how many of the named genes are there, in a column with the names `existing`. Returns a
/// warning if they are fewer than half.
///
/// # Errors
/// None of them is there; another column cannot be read.
pub(crate) fn check(
    var: &DataFrame,
    column: &str,
    names: &[String],
    existing: &[Option<String>],
    n_known: usize,
) -> Result<Option<String>, DatasetError> {
    let n_names = names.len();
    if n_known * 2 >= n_names {
        return Ok(None);
    }
    let existing: Vec<&str> = existing.iter().flatten().map(String::as_str).collect();
    let mut advice = looks(names, column, &existing);
    match most_matches(var, column, names, &existing, n_known)? {
        Some(better) => advice.push_str(&better),
        None => advice.push_str("check the list and the column"),
    }
    let column = column.to_owned();
    if n_known == 0 {
        return Err(DatasetError::NoNamedGene { column, n_names, advice });
    }
    Ok(Some(format!(
        "only {n_known} of the {n_names} named genes are in var column {column:?}, the others are \
         columns of zeros: {advice}"
    )))
}

/// Describes both sides by an example, and by their kinds if these differ.
fn looks(names: &[String], column: &str, existing: &[&str]) -> String {
    let (Some(asked), Some(first)) = (names.first(), existing.first()) else {
        return format!("{column} has no names; ");
    };
    let ours = Look::of_most(names.iter().map(String::as_str));
    let theirs = Look::of_most(existing.iter().copied());
    if ours == theirs {
        return format!("the list has names like {asked:?}, {column} like {first:?}; ");
    }
    format!(
        "the list has {} like {asked:?}, {column} has {} like {first:?}; ",
        ours.text(),
        theirs.text()
    )
}

/// What names of genes look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Ensembl,
    VersionedEnsembl,
    Number,
    Symbol,
}

impl Look {
    const ALL: [Self; 4] = [Self::Ensembl, Self::VersionedEnsembl, Self::Number, Self::Symbol];

    fn from_name(name: &str) -> Self {
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if are_digits(name) {
            return Self::Number;
        }
        // ENSG00000141510, ENSMUSG00000059552: letters of the species, then 11 digits.
        let (id, version) = name.split_once('.').map_or((name, None), |(id, v)| (id, Some(v)));
        let is_id = id.starts_with("ENS")
            && id.len() > 11
            && id.split_at_checked(id.len() - 11).is_some_and(|(species, digits)| {
                are_digits(digits) && species.bytes().all(|b| b.is_ascii_uppercase())
            });
        match version {
            None if is_id => Self::Ensembl,
            Some(version) if is_id && are_digits(version) => Self::VersionedEnsembl,
            _ => Self::Symbol,
        }
    }

    /// The look of most of the names.
    fn of_most<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut counts = [0; Self::ALL.len()];
        for name in names {
            counts[Self::from_name(name) as usize] += 1;
        }
        Self::ALL.into_iter().max_by_key(|look| counts[*look as usize]).unwrap_or(Self::Symbol)
    }

    fn text(self) -> &'static str {
        match self {
            Self::Ensembl => "Ensembl ids without a version",
            Self::VersionedEnsembl => "Ensembl ids with a version",
            Self::Number => "numbers",
            Self::Symbol => "symbols",
        }
    }
}

/// The way in which most names would be found, if they are more than now.
fn most_matches(
    var: &DataFrame,
    column: &str,
    names: &[String],
    existing: &[&str],
    n_known: usize,
) -> Result<Option<String>, DatasetError> {
    let unversioned = |name: &str| match Look::from_name(name) {
        Look::VersionedEnsembl => name.split('.').next().unwrap_or(name).to_owned(),
        _ => name.to_owned(),
    };
    let asked = || names.iter().map(String::as_str);
    let existing = || existing.iter().copied();
    let n_names = names.len();
    let regardless = |n: usize, of: &str| (n, format!("{n} of {n_names} fit but for the {of}"));
    let mut ways = vec![
        regardless(n_common(asked().map(unversioned), existing().map(unversioned)), "version"),
        regardless(
            n_common(asked().map(str::to_lowercase), existing().map(str::to_lowercase)),
            "upper and lower case",
        ),
    ];
    for other in text_columns(var).into_iter().filter(|other| other != column) {
        let rows = var.query(Some(&[&other]), &AxisQuery::default());
        let rows = rows.map_err(open_error(format!("var column {other:?}")))?;
        let there = texts("var", &rows, &other)?;
        let n = n_common(asked(), there.iter().flatten().map(String::as_str));
        ways.push((n, format!("{n} of {n_names} are in var column {other:?}: name it instead")));
    }
    // The first of equals.
    let best = ways.into_iter().rev().max_by_key(|(n, _)| *n);
    Ok(best.filter(|(n, _)| *n > n_known).map(|(_, text)| text))
}

fn n_common<T: Eq + std::hash::Hash>(
    names: impl Iterator<Item = T>,
    existing: impl Iterator<Item = T>,
) -> usize {
    let existing: HashSet<T> = existing.collect();
    names.filter(|name| existing.contains(name)).count()
}

/// The columns of texts, plain or categories.
fn text_columns(var: &DataFrame) -> Vec<String> {
    let is_text = |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::LargeUtf8);
    let schema = var.schema();
    let texts = schema.fields().iter().filter(|field| match field.data_type() {
        DataType::Dictionary(_, values) => is_text(values),
        plain => is_text(plain),
    });
    texts.map(|field| field.name().clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_by_their_look() {
        for (name, look) in [
            ("ENSG00000141510", Look::Ensembl),
            ("ENSMUSG00000059552", Look::Ensembl),
            ("ENSG00000141510.18", Look::VersionedEnsembl),
            ("7157", Look::Number),
            ("TP53", Look::Symbol),
            ("AC000001.1", Look::Symbol),
            ("ENSG00000141510.", Look::Symbol),
            ("ENSA", Look::Symbol),
            ("ENSé00000141510", Look::Symbol),
            ("ENS\u{e9}0000000000", Look::Symbol),
            ("", Look::Symbol),
        ] {
            assert_eq!(Look::from_name(name), look, "{name}");
        }
        let most = |names: &[&str]| Look::of_most(names.iter().copied());
        assert_eq!(most(&["TP53", "ENSG00000141510", "MT-ND1"]), Look::Symbol);
        assert_eq!(most(&["7", "ENSG00000141510.1", "ENSG00000141511.2"]), Look::VersionedEnsembl);
    }

    #[test]
    fn both_sides_are_shown() {
        let names = ["TP53".to_owned()];
        let text = looks(&names, "id", &["ENSG00000141510"]);
        assert!(text.contains("symbols like \"TP53\", id has Ensembl ids without"), "{text}");
        assert!(looks(&names, "id", &["Tp53"]).contains("\"TP53\", id like \"Tp53\""));
        assert!(looks(&names, "id", &[]).contains("no names"));
    }
}
