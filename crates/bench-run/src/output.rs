//! What a program prints. A reader that goes away early, as `head` does, is not a failure: the rest
//! is dropped, and the work goes on.

use std::fmt::Arguments;
use std::io::{Error, ErrorKind, Write};
use std::sync::{Mutex, PoisonError};

/// Why stdout does not have all that was printed.
static FAILED: Mutex<Option<Error>> = Mutex::new(None);

/// Prints a line to stdout like `println!`, which panics if nobody reads.
///
/// If it cannot be written for another reason, for example to a full disk, the program fails at its
/// end ([`exit_code`](crate::exit_code)).
#[macro_export]
macro_rules! print_line {
    ($($text:tt)+) => { $crate::print_to_stdout(::std::format_args!($($text)+)) };
}

/// Prints a line to stderr like `eprintln!`, which panics if nobody reads.
#[macro_export]
macro_rules! print_message {
    ($($text:tt)+) => { $crate::print_to_stderr(::std::format_args!($($text)+)) };
}

#[doc(hidden)]
pub fn print_to_stdout(line: Arguments<'_>) {
    if let Err(error) = print(std::io::stdout().lock(), line)
        && error.kind() != ErrorKind::BrokenPipe
    {
        FAILED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

#[doc(hidden)]
pub fn print_to_stderr(line: Arguments<'_>) {
    // There is nowhere left to say why.
    let _unread = print(std::io::stderr().lock(), line);
}

/// Writes a line. All of it at once: other processes may write to the same file.
fn print(mut to: impl Write, line: Arguments<'_>) -> Result<(), Error> {
    to.write_all(format!("{line}\n").as_bytes())?;
    to.flush()
}

/// The first error of writing to stdout.
pub(crate) fn unprinted() -> Option<Error> {
    FAILED.lock().unwrap_or_else(PoisonError::into_inner).take()
}
