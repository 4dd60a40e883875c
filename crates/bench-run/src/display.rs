//! Progress of a command on stderr: a bar on a terminal, lines elsewhere, nothing if quiet.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows progress.
#[derive(Debug)]
pub struct Display {
    bar: Option<ProgressBar>,
    quiet: bool,
}

impl Display {
    /// Makes a bar of `length` steps, counted in `unit`.
    pub fn new(length: u64, unit: &str, quiet: bool) -> Self {
        let template = format!(
            "{{bar:30}} {{human_pos}}/{{human_len}} {unit}, {{elapsed}}, about {{eta}} left  {{wide_msg}}"
        );
        Self::drawn(Some(length), &template, quiet)
    }

    /// Makes a counter of `unit`, for an unknown number of steps.
    pub fn counting(unit: &str, quiet: bool) -> Self {
        Self::drawn(
            None,
            &format!("{{spinner}} {{human_pos}} {unit}, {{elapsed}}  {{wide_msg}}"),
            quiet,
        )
    }

    fn drawn(length: Option<u64>, template: &str, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        if quiet || bar.is_hidden() {
            return Self { bar: None, quiet };
        }
        // An invalid template falls back to the plain bar.
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.enable_steady_tick(Duration::from_millis(500));
        Self { bar: Some(bar), quiet }
    }

    /// Shows the current activity. Has no effect without a bar.
    pub fn now(&self, text: impl Into<String>) {
        if let Some(bar) = &self.bar {
            bar.set_message(text.into());
        }
    }

    /// Sets the number of completed steps.
    pub fn position(&self, position: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
        }
    }

    /// Prints a permanent line: above the bar, or to stderr without one. Prints nothing if quiet.
    pub fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None if self.quiet => {}
            None => crate::print_message!("{text}"),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_without_a_terminal_or_quietly() {
        for display in [
            Display::new(3, "points", true),
            Display::new(3, "points", false),
            Display::counting("cells", false),
        ] {
            display.now("x");
            display.position(1);
            display.finish();
        }
        assert!(Display::new(3, "points", true).bar.is_none());
    }
}
