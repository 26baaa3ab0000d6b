//! Reads the ioprio of threads in the kernel's encoding.

use iosched::{IoClass, IoPriority, LEVEL_DEFAULT};
use iosched_trace::ioprio_of_kernel;

/// Numbers of the CPU scheduling policies SCHED_FIFO, SCHED_RR and SCHED_DEADLINE. [`IDLE_POLICY`]
/// is SCHED_IDLE.
/// Source: include/uapi/linux/sched.h.
const REAL_TIME_POLICIES: [&str; 3] = ["1", "2", "6"];
const IDLE_POLICY: &str = "5";
/// Numbers of fields in `/proc/<tid>/stat`, as in proc(5).
const FIRST_FIELD_AFTER_NAME: usize = 3;
const STATE_FIELD: usize = 3;
const FLAGS_FIELD: usize = 9;
const NICE_FIELD: usize = 19;
const POLICY_FIELD: usize = 41;

/// Flag of a thread that is ending, PF_EXITING in include/linux/sched.h. Such a thread has lost its
/// ioprio.
const ENDS: u32 = 4;

/// Returns the ioprio with which schedulers treat the thread `tid`. If the thread has set no
/// ioprio, its CPU scheduling policy and nice value determine the ioprio. Returns `None` if the
/// thread does not exist or is ending.
pub(crate) fn ioprio_of(tid: u32) -> Option<IoPriority> {
    let ioprio = ioprio_of_kernel(iosched_system::call::ioprio_of(tid)?.cast_unsigned());
    match ioprio.class() {
        IoClass::None => of_schedule(&std::fs::read_to_string(format!("/proc/{tid}/stat")).ok()?),
        _ => Some(ioprio),
    }
}

/// Returns the ioprio that follows from a line of `/proc/<tid>/stat`. The idle and real-time
/// policies determine the class, and the nice value determines the level. Returns `None` if the
/// thread is ending.
fn of_schedule(stat: &str) -> Option<IoPriority> {
    // The name may contain any character, even parentheses.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace().collect()).unwrap_or_default();
    let field = |number: usize| fields.get(number - FIRST_FIELD_AFTER_NAME).copied().unwrap_or_default();
    if field(STATE_FIELD) == "Z" || field(FLAGS_FIELD).parse::<u32>().is_ok_and(|flags| flags & ENDS != 0) {
        return None;
    }
    let class = match field(POLICY_FIELD) {
        IDLE_POLICY => IoClass::Idle,
        policy if REAL_TIME_POLICIES.contains(&policy) => IoClass::RealTime,
        _ => IoClass::None,
    };
    let nice = field(NICE_FIELD).parse::<i64>().ok();
    let level = nice.and_then(|nice| u8::try_from((nice + 20) / 5).ok()).unwrap_or(LEVEL_DEFAULT);
    Some(IoPriority::new(class, if class == IoClass::Idle { LEVEL_DEFAULT } else { level }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_ioprio_follows_from_nice_and_policy() {
        let line = |nice: i64, policy: u32| {
            let before: String = (4..NICE_FIELD).map(|field| format!("{field} ")).collect();
            let between: String = (NICE_FIELD + 1..POLICY_FIELD).map(|field| format!("{field} ")).collect();
            format!("42 (a b) (c) S {before}{nice} {between}{policy} 42 43\n")
        };
        for (nice, policy, ioprio) in
            [(0, 0, "none"), (19, 0, "none/7"), (-20, 3, "none/0"), (0, 5, "idle"), (0, 1, "rt/4")]
        {
            assert_eq!(of_schedule(&line(nice, policy)), Some(ioprio.parse().unwrap()), "{nice} {policy}");
        }
        assert_eq!(of_schedule("garbage"), Some(IoPriority::default()));
        // A thread that ends has lost its ioprio.
        assert_eq!(of_schedule(&line(0, 0).replace(" 9 10 ", " 4194316 10 ")), None);
        assert_eq!(of_schedule(&line(0, 0).replace(" S ", " Z ")), None);
        assert_eq!(ioprio_of(i32::MAX as u32), None);
    }

    #[test]
    fn an_ioprio_that_is_set_is_read_back() {
        std::thread::spawn(|| {
            for given in ["be/0", "be/7", "idle"] {
                let wanted = iosched_trace::ioprio_for_kernel(given.parse().unwrap());
                iosched_system::call::set_ioprio(wanted).unwrap();
                // The kernel stores no level for the idle class.
                let level = if given == "idle" { 0b111 } else { 0 };
                let kept = iosched_system::call::ioprio_of(0).unwrap();
                assert_eq!(kept | level, i32::from(wanted) | level, "{given}");
            }
        })
        .join()
        .unwrap();
    }
}
