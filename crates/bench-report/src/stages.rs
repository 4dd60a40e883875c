//! Columns for the time of each stage, and the list of stages for tables.

use crate::column::column_group;

column_group! {
    /// Wall-clock and CPU seconds of each stage, summed over the threads that ran it. Stages
    /// overlap. Unknown times are null.
    pub struct StageTimes {
        /// Getting bytes from storage; includes decoding if `decode_wall_secs` is null.
        pub read_wall_secs: Option<f64>,
        /// CPU seconds of the same.
        pub read_cpu_secs: Option<f64>,
        /// Decoding those bytes into cells.
        pub decode_wall_secs: Option<f64>,
        /// CPU seconds of the same.
        pub decode_cpu_secs: Option<f64>,
        /// Drawing the order of chunks and rows.
        pub shuffle_wall_secs: Option<f64>,
        /// CPU seconds of the same.
        pub shuffle_cpu_secs: Option<f64>,
        /// Assembling rows into batches.
        pub densify_wall_secs: Option<f64>,
        /// CPU seconds of the same.
        pub densify_cpu_secs: Option<f64>,
        /// The consumer's waits for batches, without its own thread's work to assemble them.
        pub wait_wall_secs: Option<f64>,
        /// CPU seconds of the same.
        pub wait_cpu_secs: Option<f64>,
        /// The consumer's work on batches, on its own thread.
        pub consume_wall_secs: Option<f64>,
        /// CPU seconds of the same, without further threads of a library.
        pub consume_cpu_secs: Option<f64>,
    }
}

/// Names of the stages, in their order.
pub const STAGES: [&str; 6] = ["read", "decode", "shuffle", "densify", "wait", "consume"];

impl StageTimes {
    /// Wall-clock and CPU seconds of each of [`STAGES`].
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

    /// CPU seconds summed over the stages whose CPU time is known.
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
