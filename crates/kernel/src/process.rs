//! Detects whether a process is about to end.

use std::fs;

/// Bit of SIGKILL in the masks of `/proc/<pid>/status`.
const KILL: u64 = 1 << (9 - 1);
/// Flag of a thread that ends, in `/proc/<pid>/stat`.
const EXITING: u64 = 0x4;

/// Returns whether a process no longer exists, is ending, or was killed and is about to end.
pub(crate) fn is_ending(pid: u32) -> bool {
    let (Ok(stat), Ok(status)) =
        (fs::read_to_string(format!("/proc/{pid}/stat")), fs::read_to_string(format!("/proc/{pid}/status")))
    else {
        return true;
    };
    is_ending_by(&stat, &status)
}

fn is_ending_by(stat: &str, status: &str) -> bool {
    // The name comes first, in parentheses, and may contain any character.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap_or_default().1.split_whitespace().collect();
    // Fields 3 and 9 of proc(5).
    let is_dead = matches!(fields.first(), Some(&("Z" | "X")));
    let is_exiting =
        fields.get(6).and_then(|flags| flags.parse::<u64>().ok()).is_some_and(|flags| flags & EXITING != 0);
    let pending = ["SigPnd:", "ShdPnd:"].into_iter().filter_map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(line.trim(), 16).ok()
    });
    is_dead || is_exiting || pending.fold(0, |all, signals| all | signals) & KILL != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn killed_exiting_and_dead_processes_are_ending() {
        let stat = |state: &str, flags: u64| format!("7 (a) Z (4) {state} 1 7 7 0 -1 {flags} 0 0");
        let status =
            |thread: &str, shared: &str| format!("Name:\ta\nSigPnd:\t{thread}\nShdPnd:\t{shared}\nSigBlk:\t100\n");
        let none = status("0000000000000000", "0000000000000002");
        for (state, flags, status, expected) in [
            ("S", 0x400_040, &none, false),
            ("D", 0x400_044, &none, true),
            ("Z", 0x400_040, &none, true),
            ("X", 0x400_040, &none, true),
            ("R", 0x400_040, &status("0", "0000000000000100"), true),
            ("D", 0x400_040, &status("0000000000000100", "0"), true),
        ] {
            assert_eq!(is_ending_by(&stat(state, flags), status), expected, "{state} {flags:x} {status}");
        }
        assert!(!is_ending(std::process::id()));
    }
}
