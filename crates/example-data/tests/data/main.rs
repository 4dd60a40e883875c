//! What is written, read back through soma-io.

mod contents;
mod generate;
mod import;
mod killed;
mod visium;
