//! The protocol between a command and the process that it measures: an order on the process's
//! stdin, events on its stdout, each a line of JSON.

use serde::{Deserialize, Serialize};

/// A task for a measured process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order<Task> {
    /// State of the page cache, recorded with the measurement.
    pub cache: String,
    /// Work to perform.
    pub task: Task,
}

/// A report of a measured process. `Answer` is the command's type of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event<Answer> {
    /// Progress of the task.
    Progress {
        /// Rows done so far.
        n_rows: u64,
        /// Rows of the whole task.
        of_rows: u64,
    },
    /// The task is prepared, and waits for the signal to begin.
    Ready,
    /// A result; a task may have several.
    Answer(Answer),
    /// A problem that does not end the task.
    Warning {
        /// Message in one line.
        message: String,
    },
    /// The task failed.
    Failed {
        /// Reason in one line.
        message: String,
    },
    /// The task is done.
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_events_pass_through_a_line_of_json() {
        let order = Order { cache: "warm".to_owned(), task: ("a".to_owned(), u64::MAX) };
        let line = serde_json::to_string(&order).unwrap();
        assert_eq!(serde_json::from_str::<Order<(String, u64)>>(&line).unwrap(), order);
        for event in [
            Event::Done,
            Event::Ready,
            Event::Answer(0.1 + 0.2),
            Event::Progress { n_rows: 1, of_rows: u64::MAX },
            Event::Failed { message: "a \"b\"\nc".into() },
        ] {
            let line = serde_json::to_string(&event).unwrap();
            assert_eq!(line.lines().count(), 1);
            assert_eq!(serde_json::from_str::<Event<f64>>(&line).unwrap(), event);
        }
    }
}
