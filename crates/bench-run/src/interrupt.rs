//! Ctrl-C: noted, so that a command can stop between two steps and keep its rows.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Notes Ctrl-C and requests to end from now on; a second one ends the process at once.
pub fn watch() -> &'static AtomicBool {
    static WATCHED: OnceLock<()> = OnceLock::new();
    WATCHED.get_or_init(|| {
        let noted = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                end_at_once();
            }
        });
        // Only a second handler is refused, and there is none.
        drop(noted);
    });
    &INTERRUPTED
}

/// The exit code that shells give for an interrupt.
pub const EXIT_CODE: u8 = 130;

#[expect(clippy::exit, reason = "asked for twice: nothing is to be kept waiting for")]
fn end_at_once() {
    std::process::exit(i32::from(EXIT_CODE));
}
