//! Reads all columns of a table with both readers, and compares times and sizes:
//! `tables <array folder> [threads] [repetitions]`.
#![expect(clippy::print_stdout, reason = "it is a program that reports")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use storage::LocalStorage;
use tiledb::{Config, Context, Layout, ReadQuery};
use tiledb_native::{OpenOptions, Table};

/// libtiledb's buffer for each column, in bytes.
const BUFFER_BYTES: usize = 64 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("tables <array folder> [threads] [repetitions]")?;
    let n_threads = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let n_repetitions: u32 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let config: Config = ["sm.compute_concurrency_level", "sm.io_concurrency_level"]
        .map(|name| (name.to_owned(), n_threads.to_string()))
        .into_iter()
        .collect();
    for _ in 0..n_repetitions {
        let started = Instant::now();
        let storage = Arc::new(LocalStorage::new(&folder));
        let table = Table::open(storage, &OpenOptions::new(n_threads))?;
        let schema = table.description().schema();
        let names = schema.dimensions.iter().map(|dimension| dimension.name.as_str());
        let attributes = schema.attributes.iter().map(|attribute| attribute.name.as_str());
        let names: Vec<&str> = names.chain(attributes).collect();
        let columns = table.read(&names, None)?;
        let native = started.elapsed();
        let n_bytes: usize = columns.iter().map(|column| column.bytes.len()).sum();
        drop(columns);
        let started = Instant::now();
        let array = tiledb::Array::open(&Context::new(&config)?, &folder, None)?;
        let mut query = ReadQuery::new(&array, Layout::Unordered, &[], &names, BUFFER_BYTES)?;
        let mut n_theirs = 0;
        while let Some(piece) = query.next_piece()? {
            let all = 0..names.len();
            n_theirs += all.map(|column| piece.column(column).bytes().len()).sum::<usize>();
        }
        let libtiledb = started.elapsed();
        assert_eq!(n_bytes, n_theirs);
        println!(
            "{} columns, {} rows, {n_bytes} bytes: native {native:.3?}, libtiledb {libtiledb:.3?}",
            names.len(),
            table.n_rows()?
        );
    }
    Ok(())
}
