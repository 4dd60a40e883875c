//! The Parquet file of epochs in a results folder, which any number of processes can append to.
//!
//! Appending reads the file, adds rows and replaces it atomically, all under the folder's lock.
//! Existing rows are copied as columns, not as records, so columns added by a later version
//! survive. The file's metadata identifies it as ours; any other file of that name is left alone
//! and reported.

use std::{fs::File, io::ErrorKind, path::Path, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::{metadata::KeyValue, properties::WriterProperties},
};

use crate::{
    EpochRecord, Error, OrderEntropy,
    column::{BadColumn, ColumnGroup, Scalar as _, is_read_as},
    folder::{self, WriteLock},
};

/// Name of the file of epochs in a results folder.
pub const EPOCHS_FILE: &str = "epochs.parquet";

/// Metadata key that identifies the file as ours; its value is the record's version.
const VERSION_KEY: &str = "somafeed.epoch_record";
/// Increases when a column changes its meaning; new columns do not change it. Since 2, `max_mem` is
/// the peak of the whole process; earlier rows have no `epoch_max_mem`. Since 3, `settings` has
/// what had columns of its own.
const VERSION: u32 = 3;

/// Creates `folder` if missing and checks that epochs can be appended there. Call it before
/// measuring.
///
/// # Errors
/// The folder is not writable, or has a file of epochs that [`append`] would reject.
pub fn check_folder(folder: &Path) -> Result<(), Error> {
    folder::create(folder)?;
    let lock = WriteLock::acquire(folder)?;
    let kept = read_batches(&folder.join(EPOCHS_FILE))?;
    // A folder can be lockable and yet reject new files, so write the rows that are there.
    write(&lock, folder, &kept)
}

/// Appends `records` to the epochs of `folder`, which is created if missing.
///
/// Several processes may append at the same time: they wait for each other and no row is lost. If
/// it fails, or the process is killed, the file is unchanged. An unreadable or foreign file is
/// never overwritten.
pub fn append(folder: &Path, records: &[EpochRecord]) -> Result<(), Error> {
    folder::create(folder)?;
    let lock = WriteLock::acquire(folder)?;
    let path = folder.join(EPOCHS_FILE);
    let mut batches = read_batches(&path)?;
    batches.push(encode(records).map_err(|source| Error::LayOut { path, source })?);
    write(&lock, folder, &batches)
}

/// Appends `record` like [`append`], unless the folder already has a successful epoch of the same
/// point under the same conditions with the same epoch and process numbers. Returns whether it was
/// appended. If several processes do this at once, only one succeeds.
pub fn append_unless_there(folder: &Path, record: &EpochRecord) -> Result<bool, Error> {
    folder::create(folder)?;
    let lock = WriteLock::acquire(folder)?;
    let path = folder.join(EPOCHS_FILE);
    let mut batches = read_batches(&path)?;
    for batch in &batches {
        let there = EpochRecord::decode(batch).map_err(|bad| explain(bad, &path))?;
        if there.iter().any(|one| one.is_same_measurement(record)) {
            return Ok(false);
        }
    }
    let added = encode(std::slice::from_ref(record));
    batches.push(added.map_err(|source| Error::LayOut { path, source })?);
    write(&lock, folder, &batches).map(|()| true)
}

/// Reads all epochs of `folder`, in the order in which they were appended. Unknown columns are
/// ignored, missing ones are null.
pub fn read(folder: &Path) -> Result<Vec<EpochRecord>, Error> {
    let path = folder.join(EPOCHS_FILE);
    if !path.exists() {
        return Err(Error::NoEpochs { folder: folder.to_owned() });
    }
    let mut records = Vec::new();
    for batch in read_batches(&path)? {
        records.extend(EpochRecord::decode(&batch).map_err(|bad| explain(bad, &path))?);
    }
    Ok(records)
}

fn explain(bad: BadColumn, path: &Path) -> Error {
    let path = path.to_owned();
    match bad {
        BadColumn::Type { column, found, expected } => {
            Error::WrongColumn { path, column, found, expected }
        }
        BadColumn::Value { column, value, expected } => {
            Error::WrongValue { path, column, value, expected }
        }
    }
}

fn encode(records: &[EpochRecord]) -> Result<RecordBatch, ArrowError> {
    let rows: Vec<&EpochRecord> = records.iter().collect();
    let schema = Arc::new(Schema::new(EpochRecord::fields()));
    RecordBatch::try_new(schema, EpochRecord::arrays(&rows))
}

/// The file's rows with all columns, known or not; empty if there is no file.
fn read_batches(path: &Path) -> Result<Vec<RecordBatch>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(source) if source.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::ReadFile { path: path.to_owned(), source }),
    };
    let corrupt = |source| Error::CorruptEpochs { path: path.to_owned(), source };
    let file = ParquetRecordBatchReaderBuilder::try_new(file).map_err(corrupt)?;
    check_version(file.metadata().file_metadata().key_value_metadata(), path)?;
    for field in EpochRecord::fields() {
        check_type(file.schema(), &field, path)?;
    }
    let batches = file.build().map_err(corrupt)?;
    batches.map(|batch| batch.map_err(|source| corrupt(source.into()))).collect()
}

fn check_version(metadata: Option<&Vec<KeyValue>>, path: &Path) -> Result<(), Error> {
    let version = metadata.into_iter().flatten().find(|entry| entry.key == VERSION_KEY);
    let Some(version) = version else {
        return Err(Error::ForeignEpochs { path: path.to_owned() });
    };
    let text = version.value.as_deref().unwrap_or_default();
    match text.parse::<u32>() {
        Ok(version) if version <= VERSION => Ok(()),
        _ => Err(Error::NewerEpochs {
            path: path.to_owned(),
            found: text.to_owned(),
            known: VERSION,
        }),
    }
}

fn check_type(found: &Schema, expected: &Field, path: &Path) -> Result<(), Error> {
    match found.field_with_name(expected.name()) {
        Ok(field) if !is_read_as(field.data_type(), expected.data_type()) => {
            Err(Error::WrongColumn {
                path: path.to_owned(),
                column: expected.name().clone(),
                found: field.data_type().clone(),
                expected: expected.data_type().clone(),
            })
        }
        _ => Ok(()),
    }
}

fn write(lock: &WriteLock<'_>, folder: &Path, batches: &[RecordBatch]) -> Result<(), Error> {
    let path = || folder.join(EPOCHS_FILE);
    let schema = merged_schema(batches);
    let widened: Vec<RecordBatch> = batches
        .iter()
        .map(|batch| widen(batch, &schema))
        .collect::<Result<_, _>>()
        .map_err(|source| Error::LayOut { path: path(), source })?;
    let bytes =
        to_parquet(&schema, &widened).map_err(|source| Error::Encode { path: path(), source })?;
    lock.replace(EPOCHS_FILE, &bytes).map(drop)
}

/// Our columns, then those that only the file has, all nullable because rows from before a column
/// have no value for it.
fn merged_schema(batches: &[RecordBatch]) -> SchemaRef {
    let mut fields = EpochRecord::fields();
    for batch in batches {
        for field in batch.schema_ref().fields() {
            if fields.iter().all(|known| known.name() != field.name()) {
                fields.push(field.as_ref().clone().with_nullable(true));
            }
        }
    }
    Arc::new(Schema::new(fields))
}

fn widen(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
        None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        Some(found) if found.data_type() == field.data_type() => Ok(Arc::clone(found)),
        // Lists of an older file, whose structs lack members.
        Some(found) => {
            let lists = <Vec<OrderEntropy>>::from_array(found);
            let lists = lists.map_err(|(value, _)| ArrowError::SchemaError(value))?;
            Ok(<Vec<OrderEntropy>>::to_array(lists.into_iter()))
        }
    };
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(
        Arc::clone(schema),
        schema.fields().iter().map(column).collect::<Result<_, ArrowError>>()?,
        &options,
    )
}

fn to_parquet(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![KeyValue::new(
            VERSION_KEY.to_owned(),
            VERSION.to_string(),
        )]))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(schema), Some(properties))?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.into_inner()
}

#[cfg(test)]
mod tests;
