//! The columns of what each stage of an epoch took, and the stages in a row for a table.

use crate::column::column_group;

column_group! {
    /// Seconds of the stages that batches go through, on the wall clock and of processors, each summed over the threads that did it.
    /// They overlap. What is not known is null.
    pub struct StageTimes {
        /// Getting bytes from storage. Where `decode_wall_secs` is null, decoding them too.
        pub read_wall_secs: Option<f64>,
        /// The same, of processors.
        pub read_cpu_secs: Option<f64>,
        /// Turning those bytes into cells.
        pub decode_wall_secs: Option<f64>,
        /// The same, of processors.
        pub decode_cpu_secs: Option<f64>,
        /// Drawing the order of chunks and rows.
        pub shuffle_wall_secs: Option<f64>,
        /// The same, of processors.
        pub shuffle_cpu_secs: Option<f64>,
        /// Turning rows into batches.
        pub densify_wall_secs: Option<f64>,
        /// The same, of processors.
        pub densify_cpu_secs: Option<f64>,
        /// The consumer's waits for batches, without what its own thread did to make them.
        pub wait_wall_secs: Option<f64>,
        /// The same, of processors.
        pub wait_cpu_secs: Option<f64>,
        /// What the consumer did with batches, on its own thread.
        pub consume_wall_secs: Option<f64>,
        /// The same, of processors: a library's further threads are not in it.
        pub consume_cpu_secs: Option<f64>,
    }
}

/// Names of the stages, in their order.
pub const STAGES: [&str; 6] = ["read", "decode", "shuffle", "densify", "wait", "consume"];

impl StageTimes {
    /// Wall-clock and processor seconds of each of [`STAGES`].
    pub fn by_stage(&self) -> [(Option<f64>, Option<f64>); STAGES.len()] {
        [
            (self.read_wall_secs, self.read_cpu_secs),
            (self.decode_wall_secs, self.decode_cpu_secs),
            (self.shuffle_wall_secs, self.shuffle_cpu_secs),
            (self.densify_wall_secs, self.densify_cpu_secs),
            (self.wait_wall_secs, self.wait_cpu_secs),
            (self.consume_wall_secs, self.consume_cpu_secs),
        ]
    }

    /// Processor seconds of the stages that have any known.
    pub fn known_cpu_secs(&self) -> Option<f64> {
        self.by_stage().iter().filter_map(|(_, cpu)| *cpu).reduce(|sum, one| sum + one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_stand_under_their_names() {
        let numbers: Vec<String> = StageTimes::default()
            .by_stage()
            .iter()
            .zip(STAGES)
            .map(|(known, name)| format!("{name} {known:?}"))
            .collect();
        assert_eq!(numbers.len(), STAGES.len());
        let json = serde_json::to_value(StageTimes::default()).unwrap();
        let columns: Vec<&String> = json.as_object().unwrap().keys().collect();
        for stage in STAGES {
            for of in ["wall", "cpu"] {
                assert!(columns.contains(&&format!("{stage}_{of}_secs")), "{columns:?}");
            }
        }
        assert_eq!(columns.len(), 2 * STAGES.len());
    }

    #[test]
    fn what_is_not_known_is_left_out_of_the_sum() {
        let mut times = StageTimes { read_wall_secs: Some(1.0), ..StageTimes::default() };
        assert_eq!(times.known_cpu_secs(), None);
        (times.decode_cpu_secs, times.wait_cpu_secs) = (Some(2.0), Some(0.5));
        assert_eq!(times.known_cpu_secs(), Some(2.5));
    }
}
