//! Waits for states of a cluster.

use std::thread::sleep;
use std::time::Duration;

use super::error::Error;
use crate::clock::Stopwatch;

/// Pause between two looks at a state.
const PAUSE: Duration = Duration::from_millis(20);

/// What a look at a state found.
#[derive(Debug)]
pub(super) enum Look<T> {
    /// The wanted state.
    Reached(T),
    /// Another state, in words.
    NotYet(String),
}

/// Looks until the state is the wanted one. Fails after `deadline`, and with an error of `look`.
pub(super) fn until<T>(
    deadline: Duration,
    wanted: &str,
    mut look: impl FnMut() -> Result<Look<T>, Error>,
) -> Result<T, Error> {
    let start = Stopwatch::start();
    loop {
        match look()? {
            Look::Reached(value) => return Ok(value),
            Look::NotYet(state) if deadline <= start.elapsed() => {
                let wanted = wanted.to_owned();
                return Err(Error::Deadline { waited: start.elapsed(), wanted, state });
            }
            Look::NotYet(_) => sleep(PAUSE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_ends_with_the_state_or_the_deadline() {
        let mut looks = 0;
        let third = until(Duration::from_mins(1), "third", || {
            looks += 1;
            Ok(if looks == 3 { Look::Reached(looks) } else { Look::NotYet("before".into()) })
        });
        assert_eq!(third.unwrap(), 3);
        let never = until::<()>(Duration::ZERO, "ready", || Ok(Look::NotYet("asleep".into())));
        let text = never.unwrap_err().to_string();
        assert!(text.contains("still not ready: asleep"), "{text}");
    }
}
