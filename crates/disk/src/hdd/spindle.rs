//! Rotation of the platters: the angle under the heads at a given time.
//!
//! Angles are fractions of a revolution in units of 2^-32. They wrap around without a division or
//! remainder. Times are rounded to nanoseconds, so a sector that is just under the head could seem
//! to come only a revolution later. An angle that passed less than [`GRACE`] ago therefore counts
//! as an angle of now.

/// An angle: a fraction of a revolution, in units of 2^-32.
pub(crate) type Angle = u32;

/// Tolerance, 2^-16 of a revolution: 127 ns at 7200 rpm, a twentieth of a sector.
const GRACE: Angle = 1 << 16;

/// The rotation of the platters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spindle {
    revolution_ns: u64,
    /// Revolutions per nanosecond, in units of 2^-64.
    revolutions_per_ns: u64,
    grace_ns: u64,
    /// Angle under the heads at time 0.
    pub(crate) start: Angle,
}

impl Spindle {
    pub(crate) fn new(rpm: f64) -> Self {
        let revolution_ns = (60e9 / rpm).round() as u64;
        Self {
            revolution_ns,
            // 2^64 is exact as a float.
            revolutions_per_ns: (18_446_744_073_709_551_616.0 * rpm / 60e9) as u64,
            grace_ns: (revolution_ns * u64::from(GRACE)) >> 32,
            start: 0,
        }
    }

    pub(crate) const fn revolution_ns(&self) -> u64 {
        self.revolution_ns
    }

    /// Returns the angle under the heads at `at_ns`.
    #[inline]
    pub(crate) const fn angle_at(&self, at_ns: u64) -> Angle {
        self.start.wrapping_add(self.turned(at_ns))
    }

    /// Returns the angle by which the platters turn in `ns`, without whole revolutions.
    #[inline]
    pub(crate) const fn turned(&self, ns: u64) -> Angle {
        (ns.wrapping_mul(self.revolutions_per_ns) >> 32) as Angle
    }

    /// Returns the time until `to` is under the heads if `from` is there now, ns.
    #[inline]
    pub(crate) const fn wait_ns(&self, from: Angle, to: Angle) -> u64 {
        let ahead = to.wrapping_sub(from).wrapping_add(GRACE);
        ((ahead as u64 * self.revolution_ns) >> 32).saturating_sub(self.grace_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_an_angle_brings_it_under_the_heads() {
        let spindle = Spindle { start: 12345, ..Spindle::new(7200.0) };
        let mut at_ns = 0u64;
        for step in 0..10_000u64 {
            let to = (step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as Angle;
            let wait_ns = spindle.wait_ns(spindle.angle_at(at_ns), to);
            assert!(wait_ns < spindle.revolution_ns());
            at_ns += wait_ns;
            let off = spindle.angle_at(at_ns).wrapping_sub(to).wrapping_add(GRACE);
            assert!(off <= 2 * GRACE, "step {step}: {off}");
            at_ns += step * 1_000_003;
        }
    }

    #[test]
    fn spindle_returns_to_its_start_angle_after_one_second() {
        let spindle = Spindle::new(7200.0);
        assert_eq!(spindle.wait_ns(spindle.angle_at(1_000_000_000), spindle.start), 0);
    }
}
