//! Tunables of ADIOS, and its files that hold more than one number. Files accept the same
//! texts as the original: no white space except one line end after a number, and any
//! white space between the numbers of a model.

use crate::tunable::{Declarations, Reads, Span, TextSpec, TunableError, TunableSet, Tuned, tunable};

/// Version whose rules are implemented.
pub(super) const VERSION: &str = "3.3.0";
/// Smallest nice value.
const NICE_MIN: u64 = (-20_i64) as u64;
/// Default latency window on rotational devices, ns.
const WINDOW_ROTATIONAL_NS: u64 = 22_000_000;

#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) window_ns: u64,
    pub(super) refill_percent: u64,
    pub(super) limit_ns: u64,
    pub(super) order: u32,
    pub(super) compliance: u64,
    pub(super) batch_read: u32,
    pub(super) batch_write: u32,
    pub(super) batch_discard: u32,
    pub(super) target_read_ns: u64,
    pub(super) target_write_ns: u64,
    pub(super) target_discard_ns: u64,
    pub(super) shrink_kreqs: u64,
    pub(super) shrink_gbytes: u64,
    pub(super) shrink_resist: u32,
    pub(super) read_priority: i32,
}

pub(super) static DECLARATIONS: Declarations<Values> = Declarations {
    owner: "adios",
    what: "tunable",
    tunables: &[
        tunable!(Values.window_ns, "global_latency_window", Nanoseconds, 1, 16_000_000, 0..=u64::MAX, "3.3.0",
            "a batch is full when the predicted times of its requests and of the requests in flight add up to this \
            time. The default for devices with seek times is 22000000", { reads: Reads::U64, tuning: Span::of(1_000_000, 256_000_000) }),
        tunable!(Values.refill_percent, "bq_refill_below_ratio", Count, 1, 20, 0..=100, "3.3.0",
            "percentage of global_latency_window. If the predicted time of the requests in flight is below this \
            percentage, ADIOS prepares the next batch", { tuning: Span::or_zero(5, 100) }),
        tunable!(Values.limit_ns, "lat_model_latency_limit", Nanoseconds, 1, 500_000_000, 0..=2_000_000_000, "3.3.0",
            "longest latency that ADIOS predicts; longer measured latencies do not change the predictions", { reads: Reads::U64 }),
        tunable!(Values.order, "batch_order", Switch, 1, 0, 0..=1, "3.3.0",
            "1: serve the async requests of a batch in sector order; possible only on a device with seek times", { tuning: Span::SWITCH }),
        tunable!(Values.compliance, "compliance_flags", Count, 1, 0, 0..=u64::MAX, "3.3.0",
            "1 (or any odd number): the deadline of a request does not include its predicted time", { reads: Reads::U64, tuning: Span::SWITCH }),
        tunable!(Values.batch_read, "batch_limit_read", Requests, 1, 36, 1..=u64::MAX, "3.3.0",
            "largest number of reads in one batch", { reads: Reads::U64, wraps: Some(1), tuning: Span::of(1, 256) }),
        tunable!(Values.batch_write, "batch_limit_write", Requests, 1, 72, 1..=u64::MAX, "3.3.0",
            "largest number of writes in one batch", { reads: Reads::U64, wraps: Some(1), tuning: Span::of(1, 256) }),
        tunable!(Values.batch_discard, "batch_limit_discard", Requests, 1, 1, 1..=u64::MAX, "3.3.0",
            "largest number of discards in one batch", { reads: Reads::U64, wraps: Some(1), tuning: Span::of(1, 16) }),
        tunable!(Values.target_read_ns, "lat_target_read", Nanoseconds, 1, 2_000_000, 0..=u64::MAX, "3.3.0",
            "time from the arrival of an async read to its deadline, without the predicted time; writing to this file \
             clears the learnt latencies of reads", { reads: Reads::U64, tuning: Span::or_zero(125_000, 64_000_000) }),
        tunable!(Values.target_write_ns, "lat_target_write", Nanoseconds, 1, 2_000_000_000, 0..=u64::MAX, "3.3.0",
            "time from the arrival of an async write to its deadline, without the predicted time; writing to this \
             file clears the learnt latencies of \
             writes", { reads: Reads::U64, tuning: Span::or_zero(2_000_000, 8_000_000_000) }),
        tunable!(Values.target_discard_ns, "lat_target_discard", Nanoseconds, 1, 8_000_000_000, 0..=u64::MAX, "3.3.0",
            "time from the arrival of an async discard to its deadline, without the predicted time; writing to this \
             file clears the learnt latencies of discards", { reads: Reads::U64 }),
        tunable!(Values.shrink_kreqs, "shrink_at_kreqs", Count, 1, 5_000, 1..=100_000, "3.3.0",
            "ADIOS reduces the weight of old samples after this number of samples of small requests (up to 4 KiB), in \
             thousands",
            { reads: Reads::U64 }),
        tunable!(Values.shrink_gbytes, "shrink_at_gbytes", Count, 1, 50, 1..=1_000, "3.3.0",
            "ADIOS reduces the weight of old samples when the samples of large requests (above 4 KiB) reach this total \
             size, in GiB",
            { reads: Reads::U64 }),
        tunable!(Values.shrink_resist, "shrink_resist", Count, 1, 2, 1..=3, "3.3.0",
            "reduction of the weight of old samples. 1: by half; 2: by a quarter; 3: by an eighth", { reads: Reads::U64 }),
        tunable!(Values.read_priority, "read_priority", Count, 1, 8, 0..=19, "3.3.0",
            "priority of reads while other requests also wait. 0: reads and other requests get equal time; 19: reads \
             get most; -20: reads get least", { signed: true, min: NICE_MIN, tuning: Span::or_zero(1, 19) }),
    ],
};

pub(super) const TEXTS: &[TextSpec] = &[
    model_file("lat_model_read", "learnt latency of reads: base in ns, and slope in ns for each KiB above 4 KiB"),
    model_file("lat_model_write", "learnt latency of writes"),
    model_file("lat_model_discard", "learnt latency of discards"),
    TextSpec {
        name: "reset_lat_model",
        takes: "1, or six numbers: base and slope of the latency of reads, of writes and of discards",
        readable: false,
        doc: "1: clear all learnt latencies; six numbers: load the latencies of reads, writes and discards",
        since: VERSION,
        accepts: |text| resets(text).is_some(),
    },
    TextSpec {
        name: "reset_bq_stats",
        takes: "1",
        readable: false,
        doc: "1: clear batch_actual_max",
        since: VERSION,
        accepts: |text| plain(text).is_some_and(is_one),
    },
    TextSpec {
        name: "batch_actual_max",
        takes: "",
        readable: true,
        doc: "size of the largest batch so far, and the largest number of discards, of reads and of writes in one \
             batch so far",
        since: VERSION,
        accepts: |_| false,
    },
    TextSpec {
        name: "adios_version",
        takes: "",
        readable: true,
        doc: "the version of ADIOS",
        since: VERSION,
        accepts: |_| false,
    },
];

const fn model_file(name: &'static str, doc: &'static str) -> TextSpec {
    let accepts = |text: &str| numbers::<2>(text).is_some();
    TextSpec {
        name,
        takes: "two numbers: base in ns and slope in ns/KiB",
        readable: true,
        doc,
        since: VERSION,
        accepts,
    }
}

/// Effect of a write that does more than set a value. The elevator executes the effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// The models of these operations start with the given base and slope.
    Load {
        /// Index of the first operation, counted from reads.
        first: usize,
        /// Base and slope of each operation; `None` at the end.
        values: [Option<[u64; 2]>; 4],
        /// Whether the shared store is emptied.
        empties: bool,
    },
    /// The bias is set to 0.
    ResetBias,
    /// The sizes of the largest batches are reset.
    ResetMaxima,
}

impl Effect {
    fn load(first: usize, base_slope: [u64; 2], empties: bool) -> Self {
        Self::Load { first, values: [Some(base_slope), None, None, None], empties }
    }
}

/// Values of the tunables.
pub(super) struct Tunables {
    pub(super) values: Tuned<Values>,
    rotational: bool,
}

impl Tunables {
    pub(super) fn new(rotational: bool) -> Self {
        let mut values = DECLARATIONS.tuned(Values::default());
        if rotational {
            values.window_ns = WINDOW_ROTATIONAL_NS;
        }
        Self { values, rotational }
    }

    /// Returns the target latency of async requests of `kind`, ns.
    #[inline]
    pub(super) fn target_ns(&self, kind: usize) -> u64 {
        [self.values.target_read_ns, self.values.target_write_ns, self.values.target_discard_ns, 0][kind]
    }

    /// Returns the largest number of requests of `kind` in a batch.
    #[inline]
    pub(super) fn batch_limit(&self, kind: usize) -> u32 {
        [self.values.batch_read, self.values.batch_write, self.values.batch_discard, 1][kind]
    }

    /// Writes a file. Returns the further effect, if any.
    pub(super) fn write(&mut self, name: &str, text: &str) -> Result<Option<Effect>, TunableError> {
        if let Some(spec) = TEXTS.iter().find(|spec| spec.name == name) {
            spec.check(text)?;
            return Ok(match (name, numbers::<2>(text)) {
                ("lat_model_read", Some(loaded)) => Some(Effect::load(0, loaded, true)),
                ("lat_model_write", Some(loaded)) => Some(Effect::load(1, loaded, true)),
                ("lat_model_discard", Some(loaded)) => Some(Effect::load(2, loaded, true)),
                ("reset_lat_model", _) => resets(text).map(|values| Effect::Load { first: 0, values, empties: true }),
                _ => Some(Effect::ResetMaxima),
            });
        }
        if let Some(spec) = DECLARATIONS.specs().find(|spec| spec.name == name)
            && plain(text).is_none()
        {
            // The name is declared, but its file does not accept the text.
            return Err(spec.not_a_number(text));
        }
        if name == "batch_order" && !self.rotational && plain(text).is_some_and(is_one) {
            return Err(TunableError::NotTaken {
                name: "batch_order",
                value: text.trim().to_owned(),
                takes: "only 0 on a device without seek times",
            });
        }
        self.values.set(name, text)?;
        Ok(match name {
            "lat_target_read" => Some(Effect::load(0, [0; 2], false)),
            "lat_target_write" => Some(Effect::load(1, [0; 2], false)),
            "lat_target_discard" => Some(Effect::load(2, [0; 2], false)),
            "read_priority" => Some(Effect::ResetBias),
            _ => None,
        })
    }
}

/// Returns `text` without a line end after it; `None` if there is other white space.
fn plain(text: &str) -> Option<&str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    (!text.contains(is_space)).then_some(text)
}

fn is_space(letter: char) -> bool {
    letter.is_ascii_whitespace() || letter == '\x0b'
}

/// Returns whether `text` is the number 1.
fn is_one(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or(text);
    digits.trim_start_matches('0') == "1"
}

/// Returns the first numbers of `text`, with white space before and between
/// them. A number of more than 64 bits wraps.
fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let (mut rest, mut found) = (text, [0; N]);
    for number in &mut found {
        rest = rest.trim_start_matches(is_space);
        let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        if digits == 0 {
            return None;
        }
        let digit = |sum: u64, digit: u8| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        *number = rest.bytes().take(digits).fold(0, digit);
        rest = &rest[digits..];
    }
    Some(found)
}

/// Returns the values that a text written to `reset_lat_model`
/// loads. A text with a space contains numbers.
fn resets(text: &str) -> Option<[Option<[u64; 2]>; 4]> {
    if text.contains(' ') {
        let [a, b, c, d, e, f] = numbers(text)?;
        return Some([Some([a, b]), Some([c, d]), Some([e, f]), None]);
    }
    plain(text).filter(|text| is_one(text)).map(|_| [Some([0; 2]); 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(name: &str, text: &str) -> Result<Option<Effect>, TunableError> {
        Tunables::new(false).write(name, text)
    }

    #[test]
    fn numbers_may_have_one_newline_and_no_other_whitespace() {
        for text in ["5", "+5", "007", "5\n"] {
            assert_eq!(write("bq_refill_below_ratio", text), Ok(None), "{text:?}");
        }
        for text in ["", "\n", "5 ", " 5", "5\n\n", "x", "-1", "101", "1 2"] {
            assert!(write("bq_refill_below_ratio", text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn batch_limit_keeps_thirty_two_bits() {
        let mut tunables = Tunables::new(false);
        tunables.write("batch_limit_read", "4294967296").unwrap();
        assert_eq!(tunables.values.text("batch_limit_read").unwrap(), "0");
        tunables.write("batch_limit_read", "4294967299").unwrap();
        assert_eq!(tunables.batch_limit(0), 3);
    }

    #[test]
    fn sector_order_is_for_rotational_queues() {
        assert!(write("batch_order", "1").is_err());
        assert_eq!(Tunables::new(true).write("batch_order", "1"), Ok(None));
        assert_eq!(Tunables::new(true).values.window_ns, 22_000_000);
    }

    #[test]
    fn latency_model_writes_take_two_numbers_and_ignore_the_rest() {
        let loaded = |text: &str| match write("lat_model_write", text) {
            Ok(Some(Effect::Load { first: 1, values: [Some(loaded), ..], empties: true })) => Some(loaded),
            _ => None,
        };
        assert_eq!(loaded("5 6"), Some([5, 6]));
        assert_eq!(loaded("  9\t10 11x"), Some([9, 10]));
        assert_eq!(["", "5", "-5 6", "a", "5,6", "5 +6"].map(loaded), [None; 6]);
    }

    #[test]
    fn a_reset_takes_one_or_six_numbers() {
        assert_eq!(resets("1\n"), Some([Some([0; 2]); 4]));
        assert_eq!(resets("1 2 3 4 5 6"), Some([Some([1, 2]), Some([3, 4]), Some([5, 6]), None]));
        assert_eq!(["0", "2", "1 ", "1 2 3 4 5", "x", "1\t2\t3\t4\t5\t6"].map(resets), [None; 6]);
    }

    #[test]
    fn writing_a_target_clears_latencies_of_its_operation() {
        let clears = |first| Ok(Some(Effect::load(first, [0; 2], false)));
        assert_eq!(write("lat_target_read", "1"), clears(0));
        assert_eq!(write("lat_target_discard", "0"), clears(2));
        assert!(write("lat_target_read", "18446744073709551616").is_err());
    }

    #[test]
    fn read_only_files_refuse_writes() {
        assert_eq!(write("adios_version", "1"), Err(TunableError::ReadOnly { name: "adios_version" }));
        assert_eq!(write("batch_actual_max", "1"), Err(TunableError::ReadOnly { name: "batch_actual_max" }));
    }
}
