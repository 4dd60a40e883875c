//! The scheduling policy of worker threads, which must not preempt the consumer they work for.
//!
//! Taking a batch wakes the thread that makes batches. Linux runs a woken thread at once, if need
//! be on the processor of the thread that woke it. The consumer then stood still for as long as the
//! next batch took to make: 3 to 8 ms, instead of a wait of 0.1 ms. Under the policy `SCHED_BATCH`
//! a thread gets the same share of processor time, but does not preempt when it wakes
//! ([sched(7)](https://man7.org/linux/man-pages/man7/sched.7.html)).

/// Stops this thread, and threads that it starts later, from preempting others when it wakes. On
/// systems other than Linux, nothing changes.
///
/// Niceness stays as it is, and so does a policy other than the default one. If the kernel refuses,
/// nothing changes: only the longest waits depend on the policy.
pub fn run_in_background() {
    #[cfg(target_os = "linux")]
    linux::run_in_background();
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::process::getpriority_process;
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
        set_thread_priority_and_policy, thread_native_id, thread_schedule_policy,
    };

    /// The default policy, and the policy for background work.
    pub(super) const OTHER: ThreadSchedulePolicy =
        ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    pub(super) const BATCH: ThreadSchedulePolicy =
        ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch);

    pub(super) fn run_in_background() {
        if thread_schedule_policy() != Ok(OTHER) {
            return;
        }
        let Ok(niceness) = getpriority_process(None) else { return };
        // The library sets policy and niceness together, and has its own scale for niceness.
        let all = (0..=u8::MAX).map_while(|value| ThreadPriorityValue::try_from(value).ok());
        let priority = all
            .map(ThreadPriority::Crossplatform)
            .find(|priority| priority.to_posix(BATCH) == Ok(niceness));
        if let Some(priority) = priority {
            let _refused = set_thread_priority_and_policy(thread_native_id(), priority, BATCH);
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::thread;

    use rustix::process::{getpriority_process, setpriority_process};
    use thread_priority::{ThreadSchedulePolicy, thread_schedule_policy};

    use super::linux::{BATCH, OTHER};
    use super::run_in_background;

    /// Policy and niceness of a thread with the given niceness, before and after, and of a thread
    /// that it starts.
    fn look(niceness: i32) -> [(ThreadSchedulePolicy, i32); 3] {
        let now = || (thread_schedule_policy().unwrap(), getpriority_process(None).unwrap());
        thread::spawn(move || {
            setpriority_process(None, niceness).unwrap();
            let before = now();
            run_in_background();
            [before, now(), thread::spawn(now).join().unwrap()]
        })
        .join()
        .unwrap()
    }

    #[test]
    fn a_thread_takes_the_policy_of_background_work_and_keeps_its_niceness() {
        let least = getpriority_process(None).unwrap();
        for niceness in least..20 {
            let [before, after, started] = look(niceness);
            // If the tests themselves run under another policy, that policy stays.
            let expected = if before.0 == OTHER { BATCH } else { before.0 };
            assert_eq!(after, (expected, niceness));
            assert_eq!(started, after);
        }
    }
}
