//! When a full queue runs empty: the prediction that measurements are compared with.
//!
//! A consumer that takes a batch every `Tc` seconds drains a stock of `S` finished batches while
//! the workers together make `r` batches a second. At the request for batch `n`, counted from 0,
//! `n` were taken in `n Tc` seconds and `r n Tc` were made, so `S + r n Tc - n` are left. Less than
//! one is left from `n = (S - 1) / (1 - r Tc)` on; if `r Tc` is 1 or more, that never happens.
//!
//! Workers that load one after another, because a lock or the disk allows only one at a time, make
//! `r = 1 / Tp` batches of `Tp` seconds each. With `Q` places in the queue and `W` workers the
//! stock is `Q + W`, and the prediction is `(Q + W - 1) Tp / (Tp - Tc)`: the formula found for
//! graph-ufs's experiment.
//!
//! Workers that load in parallel make up to `W` times as many batches, but each takes as long as
//! before, or longer where they share cores or a disk: a queue may run empty before the first of
//! them is done, although they would keep up later. [`Queue::first_empty`] therefore follows the
//! loads one by one. `i` loads under way together make `min(i / Tp, r)` batches a second, in equal
//! shares, where `Tp` is the time of a load alone and `r` the most that all workers make.

/// The first request that finds the queue empty, counted from 0; `None` if none will.
///
/// `stock` are the finished batches when the consumer begins, `rate` the batches that are made in a
/// second, and `consumer_secs` the seconds that the consumer spends on each.
pub(crate) fn first_empty(stock: f64, rate: f64, consumer_secs: f64) -> Option<f64> {
    let lost = 1.0 - rate * consumer_secs;
    (lost > 0.0).then(|| (stock - 1.0).max(0.0) / lost)
}

/// A queue with its workers, and how fast they load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queue {
    /// Batches that may be finished or under way.
    pub(crate) places: usize,
    pub(crate) workers: usize,
    /// Finished batches when the consumer begins.
    pub(crate) stock: usize,
    /// Batches a second of one worker alone.
    pub(crate) alone: f64,
    /// Batches a second of all workers together, at most.
    pub(crate) together: f64,
}

impl Queue {
    /// The first of `n_requests` that finds the queue empty, counted from 0, if the consumer spends
    /// `consumer_secs` on each batch; `None` if none does.
    pub(crate) fn first_empty(&self, consumer_secs: f64, n_requests: usize) -> Option<usize> {
        let mut ready = self.stock;
        // The part of each load under way that is left, in batches.
        let mut loads: Vec<f64> = Vec::new();
        for request in 0..n_requests {
            if ready == 0 {
                return Some(request);
            }
            ready -= 1;
            let mut left = consumer_secs;
            loop {
                let idle = self.workers.saturating_sub(loads.len());
                let room = self.places.saturating_sub(ready + loads.len());
                loads.extend(std::iter::repeat_n(1.0, idle.min(room)));
                let n = loads.len() as f64;
                let each = (n * self.alone).min(self.together) / n;
                let next = loads.iter().copied().fold(f64::INFINITY, f64::min);
                if loads.is_empty() || left * each < next {
                    for load in &mut loads {
                        *load -= left * each;
                    }
                    break;
                }
                left -= next / each;
                for load in &mut loads {
                    *load -= next;
                }
                let n_before = loads.len();
                loads.retain(|load| 1e-9 < *load);
                ready += n_before - loads.len();
            }
        }
        None
    }
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
            let stock = f64::from(queue + workers);
            let predicted = first_empty(stock, 1.0 / 1.22, 1.0).unwrap();
            assert!((predicted - published).abs() < 0.1, "{queue} {workers}: {predicted}");
        }
    }

    #[test]
    fn one_worker_after_another_drains_as_the_formula_says() {
        for (queue, workers) in [(1, 1), (2, 1), (4, 1), (8, 1)] {
            let stock = queue + workers;
            let serial =
                Queue { places: queue + workers, workers, stock, alone: 0.8, together: 0.8 };
            let predicted = first_empty(stock as f64, 0.8, 1.0).unwrap();
            let followed = serial.first_empty(1.0, 1000).unwrap() as f64;
            assert!((followed - predicted).abs() <= 2.0, "{queue}: {followed} for {predicted}");
        }
    }

    #[test]
    fn loads_that_take_longer_than_the_stock_lasts_let_it_run_empty() {
        // Four workers of a batch in 8 s each keep up with a consumer of 2 s, but their first
        // batches come after 8 s, when four were taken.
        let queue = Queue { places: 4, workers: 4, stock: 4, alone: 0.125, together: 0.5 };
        assert_eq!(queue.first_empty(1.9, 100), Some(4));
        let with_places = Queue { places: 8, stock: 8, ..queue };
        assert_eq!(with_places.first_empty(2.1, 100), None);
    }

    #[test]
    fn a_simulated_queue_runs_empty_where_predicted() {
        for (stock, rate, consumer) in [(3.0, 0.5, 1.0), (8.0, 0.9, 1.0), (5.0, 1.5, 0.5)] {
            let left = |n: u32| stock + rate * f64::from(n) * consumer - f64::from(n);
            let simulated = (0..1000).find(|n| left(*n) < 1.0).unwrap();
            let predicted = first_empty(stock, rate, consumer).unwrap();
            assert!(predicted <= f64::from(simulated) && f64::from(simulated) <= predicted + 1.0);
        }
    }

    #[test]
    fn workers_that_keep_up_never_let_it_run_empty() {
        assert_eq!(first_empty(4.0, 1.0, 1.0), None);
        assert_eq!(first_empty(4.0, 2.0, 1.0), None);
        assert_eq!(first_empty(1.0, 0.5, 1.0), Some(0.0));
    }

    #[test]
    fn the_first_empty_request_is_found() {
        assert_eq!(first_empty_measured(&[2.0, 1.0, 0.0, 1.0, 0.0]), Some(2));
        assert_eq!(first_empty_measured(&[2.0, 1.0]), None);
    }
}
