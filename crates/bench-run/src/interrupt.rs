//! Records Ctrl-C, so that a command can stop between two steps and keep its rows.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Returns a flag that Ctrl-C or a termination signal sets. A second signal ends the process at
/// once.
pub fn watch() -> &'static AtomicBool {
    static WATCHED: OnceLock<()> = OnceLock::new();
    WATCHED.get_or_init(|| {
        let noted = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                end_at_once();
            }
        });
        // Fails only if a handler exists already, and this is the only one.
        drop(noted);
    });
    &INTERRUPTED
}

/// Exit code after an interrupt, the same that shells use.
pub const EXIT_CODE: u8 = 130;

#[expect(clippy::exit, reason = "asked for twice: nothing is to be kept waiting for")]
fn end_at_once() {
    std::process::exit(i32::from(EXIT_CODE));
}
