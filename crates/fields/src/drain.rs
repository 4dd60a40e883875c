//! When a full queue runs empty: the prediction that measurements are compared with.
//!
//! A consumer that takes a batch every `Tc` seconds drains a stock of `S` finished batches while
//! the workers together make `r` batches a second. At the request for batch `n`, counted from 0,
//! `n` were taken in `n Tc` seconds and `r n Tc` were made, so `S + r n Tc - n` are left. They run
//! out at `n = S / (1 - r Tc)`; if `r Tc` is 1 or more, they never do.
//!
//! Workers that load one after another, because a lock or the disk allows only one at a time, make
//! `r = 1 / Tp` batches of `Tp` seconds each. With `Q` places in the queue and `W` workers the
//! stock is `Q + W - 1`, and the prediction is `(Q + W - 1) Tp / (Tp - Tc)`: the formula found
//! for graph-ufs's experiment. Workers that load in parallel make `r = W / Tp`, with the `Tp` that
//! a batch then takes. Both are the one formula above, with `r` measured.

/// The first request that finds the queue empty, counted from 0; `None` if none will.
///
/// `stock` are the finished batches when the consumer begins, `rate` the batches that are made in a
/// second, and `consumer_secs` the seconds that the consumer spends on each.
pub(crate) fn first_empty(stock: f64, rate: f64, consumer_secs: f64) -> Option<f64> {
    let lost = 1.0 - rate * consumer_secs;
    (lost > 0.0).then(|| stock / lost)
}

/// The first request that found the queue empty in a measurement.
pub(crate) fn first_empty_measured(ready: &[f64]) -> Option<usize> {
    ready.iter().position(|ready| *ready < 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The experiment of graph-ufs's notes: loads of 1.22 s one after another, a consumer of 1 s.
    #[test]
    fn the_published_drains_are_predicted() {
        for (queue, workers, published) in [(1, 1, 5.5), (2, 1, 11.1), (1, 2, 11.1), (2, 2, 16.6)] {
            let stock = f64::from(queue + workers - 1);
            let predicted = first_empty(stock, 1.0 / 1.22, 1.0).unwrap();
            assert!((predicted - published).abs() < 0.1, "{queue} {workers}: {predicted}");
        }
    }

    #[test]
    fn a_simulated_queue_runs_empty_where_predicted() {
        for (stock, rate, consumer) in [(3.0, 0.5, 1.0), (8.0, 0.9, 1.0), (5.0, 1.5, 0.5)] {
            let left = |n: u32| stock + rate * f64::from(n) * consumer - f64::from(n);
            let simulated = (0..1000).find(|n| left(*n) < 1.0).unwrap();
            let predicted = first_empty(stock, rate, consumer).unwrap();
            // A queue that holds less than one batch is empty.
            let last_whole = first_empty(stock - 1.0, rate, consumer).unwrap();
            assert!(last_whole <= f64::from(simulated) && f64::from(simulated) <= predicted + 1.0);
        }
    }

    #[test]
    fn workers_that_keep_up_never_let_it_run_empty() {
        assert_eq!(first_empty(4.0, 1.0, 1.0), None);
        assert_eq!(first_empty(4.0, 2.0, 1.0), None);
        assert_eq!(first_empty(0.0, 0.5, 1.0), Some(0.0));
    }

    #[test]
    fn the_first_empty_request_is_found() {
        assert_eq!(first_empty_measured(&[2.0, 1.0, 0.0, 1.0, 0.0]), Some(2));
        assert_eq!(first_empty_measured(&[2.0, 1.0]), None);
    }
}
