//! The part that all fitted encoders share: a name, columns, rules, and classes.

use std::fmt;

use arrow_array::builder::UInt64Builder;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_select::take::take;
use shuffle::stop;

use super::classes::Classes;
use super::error::{EncodeError, FitError, InverseError, LabelsError, unseen_advice};
use super::keys::Keys;
use super::label::{Kind, Label, format_key};
use super::narrow;
use super::{Nulls, Rules, UNSEEN_CODE, Unseen};

/// Number of known labels that an error lists.
const N_LISTED: usize = 5;

/// Maps the keys of some columns to codes.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) rules: Rules,
    pub(super) classes: Classes,
}

impl Mapping {
    /// Fits a mapping on the sorted keys of the rows. `arrays` are the `columns`, in order.
    pub(super) fn fit(
        name: String,
        columns: Vec<String>,
        arrays: &[&ArrayRef],
        rules: Rules,
    ) -> Result<Self, FitError> {
        let classes = sorted_classes(&name, &columns, arrays, rules)?;
        Ok(Self { name, columns, rules, classes })
    }

    /// Adds new keys after the existing ones.
    pub(super) fn extend(&self, arrays: &[&ArrayRef]) -> Result<Self, FitError> {
        let found = sorted_classes(&self.name, &self.columns, arrays, self.rules)?;
        self.check_kinds(found.kinds(), arrays)?;
        let found: Vec<Vec<Label<&str>>> =
            found.keys().iter().map(|key| key.iter().map(Label::borrowed).collect()).collect();
        Ok(Self { classes: self.classes.with(found.iter()), ..self.clone() })
    }

    /// The code of each row.
    pub(super) fn encode(&self, arrays: &[&ArrayRef]) -> Result<Int64Array, EncodeError> {
        let (keys, codes) = self.codes(arrays)?;
        let unseen = |key: &u32| codes[*key as usize] == UNSEEN_CODE;
        if self.rules.unseen == Unseen::Error
            && let Some(row_idx) =
                stop::position(keys.rows.iter(), unseen).map_err(LabelsError::from)?
        {
            let key = &keys.distinct[keys.rows[row_idx] as usize];
            return Err(self.unseen_label(key, row_idx));
        }
        let codes = stop::map(&keys.rows, |key| codes[*key as usize]).map_err(LabelsError::from)?;
        Ok(codes.into())
    }

    /// The keys of the rows, and the code of each distinct one: [`UNSEEN_CODE`] if it has none.
    pub(super) fn codes<'a>(
        &self,
        arrays: &[&'a ArrayRef],
    ) -> Result<(Keys<'a>, Vec<i64>), LabelsError> {
        let keys = keys(&self.columns, arrays)?;
        self.check_kinds(&keys.kinds, arrays)?;
        let code = |key: &Vec<Label<&str>>| {
            self.classes.code_of(key).map_or(UNSEEN_CODE, |code| code as i64)
        };
        let codes = keys.distinct.iter().map(code).collect();
        Ok((keys, codes))
    }

    /// The labels of codes, one array per column of the mapping.
    pub(super) fn inverse(&self, codes: &Int64Array) -> Result<Vec<ArrayRef>, InverseError> {
        let class = |(row_idx, code): (usize, Option<i64>)| match code {
            None => Ok(None),
            Some(UNSEEN_CODE) if self.rules.unseen == Unseen::Code => Ok(None),
            Some(code) if usize::try_from(code).is_ok_and(|code| code < self.classes.len()) => {
                Ok(Some(code as u64))
            }
            Some(code) => Err(InverseError::CodeOutOfRange {
                encoder: self.name.clone(),
                code,
                row_idx,
                n_classes: self.classes.len(),
            }),
        };
        let mut classes = UInt64Builder::with_capacity(codes.len());
        stop::each(codes.iter().enumerate(), |row| {
            classes.append_option(class(row)?);
            Ok::<_, InverseError>(())
        })?;
        let classes = classes.finish();
        (0..self.columns.len())
            .map(|column_idx| {
                take(&self.classes.labels(column_idx), &classes, None).map_err(|source| {
                    InverseError::Arrow { encoder: self.name.clone(), what: "the labels", source }
                })
            })
            .collect()
    }

    /// The mapping's columns of obs.
    pub(super) fn columns_of<'a>(
        &self,
        obs: &'a RecordBatch,
    ) -> Result<Vec<&'a ArrayRef>, LabelsError> {
        columns_of(&self.name, &self.columns, obs)
    }

    fn check_kinds(&self, found: &[Kind], arrays: &[&ArrayRef]) -> Result<(), LabelsError> {
        let fitted = self.classes.kinds();
        match fitted.iter().zip(found).position(|(fitted, found)| fitted != found) {
            Some(idx) => Err(LabelsError::KindChanged {
                encoder: self.name.clone(),
                column: self.columns[idx].clone(),
                fitted: fitted[idx].name(),
                found: arrays[idx].data_type().clone(),
            }),
            None => Ok(()),
        }
    }

    fn unseen_label(&self, key: &[Label<&str>], row_idx: usize) -> EncodeError {
        let known: Vec<String> = self
            .classes
            .first_sorted(N_LISTED)
            .map(|key| format_key(key.iter().map(Label::borrowed)))
            .collect();
        let known = match (known.is_empty(), self.classes.len() > known.len()) {
            (true, _) => String::new(),
            (false, true) => format!(" ({}, ...)", known.join(", ")),
            (false, false) => format!(" ({})", known.join(", ")),
        };
        EncodeError::UnseenLabel {
            encoder: self.name.clone(),
            label: format_key(key.iter().copied()),
            columns: self.columns.join(", "),
            row_idx,
            n_known: self.classes.len(),
            advice: format!("{known}: {}", unseen_advice(key.contains(&Label::Null))),
        }
    }
}

/// The obs columns with these names; an error names `encoder`.
pub(super) fn columns_of<'a>(
    encoder: &str,
    columns: &[String],
    obs: &'a RecordBatch,
) -> Result<Vec<&'a ArrayRef>, LabelsError> {
    let column = |name: &String| {
        obs.column_by_name(name).ok_or_else(|| LabelsError::MissingColumn {
            encoder: encoder.to_owned(),
            column: name.clone(),
            existing: obs.schema().fields().iter().map(|field| field.name().clone()).collect(),
        })
    };
    columns.iter().map(column).collect()
}

/// The classes of all rows, sorted by key. Inspects the rows in windows.
fn sorted_classes(
    name: &str,
    columns: &[String],
    arrays: &[&ArrayRef],
    rules: Rules,
) -> Result<Classes, FitError> {
    let n_rows = arrays.first().map_or(0, Array::len);
    // Codes of groups have 32 bits, and each group has a row.
    if u32::try_from(n_rows).is_err() {
        return Err(LabelsError::TooManyRows { n_rows }.into());
    }
    let mut classes: Option<Classes> = None;
    for (first, n_rows) in narrow::bounds(n_rows) {
        let window: Vec<ArrayRef> = arrays.iter().map(|array| array.slice(first, n_rows)).collect();
        let keys = keys(columns, &window.iter().collect::<Vec<_>>())?;
        let before = match classes {
            Some(classes) => classes,
            None => Classes::new(name, keys.kinds.clone(), Vec::new())?,
        };
        let is_new =
            |key: &&Vec<Label<&str>>| is_class(key, rules) && before.code_of(key).is_none();
        let new: Vec<_> = keys.distinct.iter().filter(is_new).collect();
        classes = Some(if new.is_empty() { before } else { before.with(new.into_iter()) });
    }
    let found = classes.map_or_else(|| Classes::new(name, Vec::new(), Vec::new()), Ok)?;
    let sorted = found.first_sorted(found.len()).cloned().collect();
    Ok(Classes::new(name, found.kinds().to_vec(), sorted)?)
}

fn keys<'a>(columns: &[String], arrays: &[&'a ArrayRef]) -> Result<Keys<'a>, LabelsError> {
    let named: Vec<(&str, &ArrayRef)> =
        columns.iter().map(String::as_str).zip(arrays.iter().copied()).collect();
    Keys::new(&named, arrays.first().map_or(0, Array::len))
}

/// Whether a key gets a code under these rules.
fn is_class(key: &[Label<&str>], rules: Rules) -> bool {
    rules.nulls == Nulls::Class || !key.contains(&Label::Null)
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n_classes, columns) = (self.classes.len(), self.columns.join(", "));
        write!(f, "{:?}: {n_classes} classes of {columns}", self.name)
    }
}
