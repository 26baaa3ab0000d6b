//! The probes, small fio jobs that measure a device, and the choice of probes for a device.
//!
//! The workloads that judge a calibration ([`Role::HeldOut`]) are measured together with the
//! probes, but no fit uses them. For this reason, no probe is a random 4 KiB read at depth 1, 8 or
//! 32 on the whole device. Probes use depths in between and, at depth 1, other sizes or parts of
//! the device.

use std::fmt;

use iosched_workload::Workload;
use iosched_workload::fio::{JobFile, Jobs, NoVariables};
use serde::{Deserialize, Serialize};

use super::target::Target;

const KIB: u32 = 1024;
const MIB: u64 = 1 << 20;
/// Smallest region of random reads.
const REGION_BYTES_MIN: u64 = 16 * MIB;
/// Pause before each read in the probe of think time, ns.
const THINK_NS: u64 = 1_000_000;

/// Pause after bursts, ns.
const BURST_THINK_NS: u64 = 5_000_000;
/// Rest before a probe for credits, ns, and the number of its parts. Each part takes as long as
/// another whole probe.
const REST_NS: u64 = 2_000_000_000;
const PARTS: u32 = 10;

/// I/Os in flight at saturation.
const SATURATION_DEPTH: u32 = 64;

/// Purpose of a probe: the property of the device that it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The approximate speed, which determines the duration of the other probes.
    Pilot,
    /// Random 4 KiB reads at several depths: the parallelism.
    Depth,
    /// Random reads of several sizes, one at a time: the costs per command and per byte.
    Size,
    /// Large reads, several at a time: the bandwidth of the link.
    Bandwidth,
    /// Sequential reads, one at a time: the read-ahead.
    Sequential,
    /// Sequential reads at several places: the zones of a rotating disk.
    Place,
    /// Random reads within parts of the device, one at a time: the cost of distance.
    Distance,
    /// Short runs of reads from random places, and backward reads. They show which reads start a
    /// read-ahead, and which data the cache keeps.
    Runs,
    /// Random reads with a pause before each: the cost of idling.
    Think,
    /// Repeated reads of a small region: a read cache.
    Cache,
    /// Bursts of reads with a pause between them.
    Burst,
    /// Writes, at several depths and of several sizes.
    Write,
    /// Random reads and writes, half and half.
    Mixed,
    /// Random writes with flushes after them.
    Flush,
    /// The same I/O for many seconds after a rest: whether credits run out or a cache becomes full.
    Steady,
    /// A workload that no fit uses.
    HeldOut,
    /// Sequential I/Os at the highest rate, for the model of io.cost. No fit uses them.
    Saturation,
}

impl Role {
    /// Returns the name of the role in tables.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Pilot => "pilot",
            Self::Depth => "depth",
            Self::Size => "size",
            Self::Bandwidth => "bandwidth",
            Self::Sequential => "sequential",
            Self::Place => "place",
            Self::Distance => "distance",
            Self::Runs => "runs",
            Self::Think => "think time",
            Self::Cache => "cache",
            Self::Burst => "burst",
            Self::Write => "write",
            Self::Mixed => "mixed",
            Self::Flush => "flush",
            Self::Steady => "steady",
            Self::HeldOut => "held out",
            Self::Saturation => "saturation",
        }
    }
}

/// A closed loop of equal I/Os on a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Purpose of the probe.
    pub role: Role,
    /// Whether the I/Os are sequential. Otherwise they are at random places of the region.
    #[serde(default)]
    pub sequential: bool,
    /// Whether a sequential probe goes backward: each I/O directly precedes the one before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub backward: bool,
    /// Number of consecutive I/Os from each random place. 0 means 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run: u32,
    /// Share of reads, per cent. The other I/Os are writes.
    pub read_percent: u32,
    /// Size of each I/O, bytes.
    pub bytes: u32,
    /// Number of I/Os in flight.
    pub depth: u32,
    /// Start of the region, sectors.
    pub start_sector: u64,
    /// Size of the region, sectors.
    pub sectors: u64,
    /// Pause before each I/O, or before each `burst` of them, ns.
    #[serde(default)]
    pub think_ns: u64,
    /// Number of I/Os before each pause. 0 means 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub burst: u32,
    /// Number of writes before each flush. 0 means no flushes.
    #[serde(default)]
    pub flush_every: u32,
    /// Rest before the probe, ns.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub rest_ns: u64,
    /// Number of parts of the probe. The parts follow each other directly. Each part takes as long
    /// as another whole probe, and has its own result. 0 means 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parts: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_no_time(ns: &u64) -> bool {
    *ns == 0
}

/// Duration of a probe: its warm-up and its measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Warm-up, which does not count, ns.
    pub warm_up_ns: u64,
    /// Measured time, ns.
    pub measured_ns: u64,
}

impl Probe {
    pub(super) const fn read(role: Role, bytes: u32, depth: u32, sectors: u64) -> Self {
        Self {
            role,
            sequential: false,
            backward: false,
            run: 0,
            read_percent: 100,
            bytes,
            depth,
            start_sector: 0,
            sectors,
            think_ns: 0,
            burst: 0,
            flush_every: 0,
            rest_ns: 0,
            parts: 0,
        }
    }

    /// Returns whether the probe writes.
    #[must_use]
    pub const fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// Returns the probe as a fio job for the device `/dev/target`.
    #[must_use]
    pub fn job_text(&self, span: Span) -> String {
        let place = if self.sequential { "" } else { "rand" };
        let mode = match self.read_percent {
            100 => "read",
            0 => "write",
            _ => "rw",
        };
        let us = |ns: u64| ns.div_ceil(1000).max(1);
        let next = match (self.backward, self.run) {
            // Back by the size of the previous I/O and the size of the next I/O.
            (true, _) => format!(":-{}", 2 * self.bytes),
            (false, 0) => String::new(),
            (false, run) => format!(":{run}"),
        };
        let mut text = format!(
            "[global]\nfilename=/dev/target\nioengine=io_uring\ndirect=1\nnorandommap=1\nrw={place}{mode}{next}\nbs={}\niodepth={}\noffset={}\n\
             size={}\ntime_based=1\nruntime={}us\n",
            self.bytes,
            self.depth,
            self.start_sector * 512,
            self.sectors * 512,
            us(span.measured_ns),
        );
        if mode == "rw" {
            text += &format!("rwmixread={}\n", self.read_percent);
        }
        if self.think_ns > 0 {
            text += &format!("thinktime={}us\nthinktime_blocks={}\n", us(self.think_ns), self.burst.max(1));
        }
        if self.flush_every > 0 {
            text += &format!("fsync={}\n", self.flush_every);
        }
        text += &format!("[probe]\nramp_time={}us\n", us(span.warm_up_ns));
        if self.rest_ns > 0 {
            text += &format!("startdelay={}us\n", us(self.rest_ns));
        }
        for part in 1..self.parts {
            text += &format!("[part-{part}]\nstonewall=1\n");
        }
        text
    }

    /// Returns the probe as a workload.
    #[must_use]
    pub fn workload(&self, span: Span) -> Workload {
        match JobFile::parse("probe.fio", self.job_text(span).as_bytes(), &NoVariables) {
            Ok(file) => Workload::Jobs(Jobs::new(file)),
            Err(error) => unreachable!("a probe is a valid job: {error}"),
        }
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match (self.sequential, self.backward) {
            (false, _) => "random",
            (true, false) => "sequential",
            (true, true) => "backward",
        };
        let what = match self.read_percent {
            100 => "read".to_owned(),
            0 => "write".to_owned(),
            percent => format!("{percent}/{}", 100 - percent),
        };
        write!(f, "{place} {what} {}, depth {}", size(self.bytes.into()), self.depth)?;
        match self.role {
            Role::Place => write!(f, ", from {} on", size(self.start_sector * 512)),
            Role::Distance | Role::Cache => write!(f, ", within {}", size(self.sectors * 512)),
            Role::Runs if self.run > 0 => write!(f, ", {} from each place", self.run),
            Role::Think => write!(f, ", thinking {} ms", self.think_ns as f64 / 1e6),
            Role::Burst => write!(f, ", in one burst, then a pause of {} ms", self.think_ns as f64 / 1e6),
            Role::Flush if self.flush_every > 1 => write!(f, ", flushed after {}", self.flush_every),
            Role::Flush => write!(f, ", each flushed"),
            Role::Steady => write!(f, ", {} times as long", self.parts),
            _ => Ok(()),
        }
    }
}

/// Formats a size in binary units.
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (bytes.max(1).ilog2() / 10).min(4) as usize;
    let value = bytes as f64 / (1u64 << (10 * unit)) as f64;
    if value.fract() == 0.0 { format!("{value} {}", units[unit]) } else { format!("{value:.1} {}", units[unit]) }
}

/// Returns all probes for `target`: the pilot first, the workloads that no fit uses last.
#[must_use]
pub fn probes(target: &Target, quick: bool) -> Vec<Probe> {
    let all = target.capacity_sectors;
    let read = |role, kib: u32, depth| Probe::read(role, kib * KIB, depth, all);
    let sequential = |role, kib, depth| Probe { sequential: true, ..read(role, kib, depth) };
    let mut probes = vec![Probe { sectors: (all / 2).max(8), ..read(Role::Pilot, 4, 1) }];
    probes.extend([2, 4, 16, 64, 128].map(|depth| read(Role::Depth, 4, depth)));
    probes.extend([8, 16, 64, 256, 512, 768, 2048].map(|kib| read(Role::Size, kib, 1)));
    probes.extend([(64, 8), (256, 16)].map(|(kib, depth)| read(Role::Bandwidth, kib, depth)));
    probes.extend([(4, 1), (64, 1), (256, 1), (256, 4)].map(|(kib, d)| sequential(Role::Sequential, kib, d)));
    if !quick {
        probes.extend([(16, 16), (64, 32), (256, 4)].map(|(kib, depth)| read(Role::Bandwidth, kib, depth)));
        probes.extend([(512, 1), (16, 8)].map(|(kib, depth)| sequential(Role::Sequential, kib, depth)));
        probes.extend([(8, 2), (8, 4), (64, 8)].map(|(kib, run)| Probe { run, ..read(Role::Runs, kib, 1) }));
        probes.push(Probe { backward: true, ..sequential(Role::Runs, 16, 1) });
    }
    probes.extend(places(target, if quick { 4 } else { 8 }));
    probes.extend([512, 128, 32, 8, 3].map(|part| Probe { sectors: all / part, ..read(Role::Distance, 4, 1) }));
    probes.push(Probe { think_ns: THINK_NS, ..read(Role::Think, 4, 1) });
    probes.push(Probe { think_ns: BURST_THINK_NS, burst: 32, ..read(Role::Burst, 4, 32) });
    probes.push(Probe { sectors: 512, ..read(Role::Cache, 4, 1) });
    let steady = |probe| Probe { role: Role::Steady, rest_ns: REST_NS, parts: PARTS, ..probe };
    if !quick {
        probes.extend([(4, 64), (256, 8)].map(|(kib, depth)| steady(read(Role::Steady, kib, depth))));
    }
    if target.writable {
        let write = |role, kib, depth| Probe { read_percent: 0, ..read(role, kib, depth) };
        let mixed = |kib, depth| Probe { read_percent: 50, ..write(Role::Mixed, kib, depth) };
        let flushed = |flush_every| Probe { flush_every, ..write(Role::Flush, 4, 1) };
        probes.extend([(4, 1), (4, 16), (4, 64), (64, 1), (256, 4)].map(|(kib, depth)| write(Role::Write, kib, depth)));
        probes.extend([mixed(16, 4), mixed(4, 16), flushed(1)]);
        probes.push(Probe { read_percent: 0, ..sequential(Role::Write, 64, 1) });
        if !quick {
            let more = [(4, 4), (4, 128), (16, 1), (256, 1), (1024, 1), (64, 8), (256, 16)];
            probes.extend(more.map(|(kib, depth)| write(Role::Write, kib, depth)));
            probes.extend([mixed(4, 64), flushed(8)]);
            let more = [(4, 1), (256, 1), (256, 4)];
            probes.extend(more.map(|(kib, d)| Probe { read_percent: 0, ..sequential(Role::Write, kib, d) }));
            probes.extend([(4, 64), (64, 8)].map(|(kib, depth)| steady(write(Role::Steady, kib, depth))));
        }
    }
    probes.extend([1, 8, 32].map(|depth| read(Role::HeldOut, 4, depth)));
    probes.extend([128, 1024].map(|kib| sequential(Role::HeldOut, kib, 1)));
    if target.writable {
        probes.push(Probe { read_percent: 70, ..read(Role::HeldOut, 4, 8) });
    }
    let most = target.depth.clamp(1, SATURATION_DEPTH);
    let saturation = [(4, most), (1024, most.min(16))];
    probes.extend(saturation.map(|(kib, depth)| sequential(Role::Saturation, kib, depth)));
    if target.writable {
        let written = saturation.map(|(kib, depth)| sequential(Role::Saturation, kib, depth));
        probes.extend(written.map(|probe| Probe { read_percent: 0, ..probe }));
    }
    probes.retain(|probe| is_possible(probe, target));
    probes
}

/// Returns sequential reads at `parts` + 1 places, evenly spaced from the first sector to the end.
fn places(target: &Target, parts: u64) -> impl Iterator<Item = Probe> {
    let all = target.capacity_sectors;
    let sectors = (256 * MIB / 512).min(all / parts);
    (0..=parts).map(move |i| Probe {
        sequential: true,
        // Aligned to 4 KiB.
        start_sector: (all - sectors) / parts * i / 8 * 8,
        sectors,
        ..Probe::read(Role::Place, 256 * KIB, 1, sectors)
    })
}

fn is_possible(probe: &Probe, target: &Target) -> bool {
    let bytes = probe.sectors * 512;
    let wide_enough = match probe.role {
        Role::Distance => bytes >= REGION_BYTES_MIN,
        _ => bytes >= u64::from(probe.bytes) * 4,
    };
    // I/Os above the depth of the driver would wait in the scheduler. The measurement would then
    // not show the device alone.
    wide_enough && probe.depth <= target.depth.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_disk::Profile;

    fn target() -> Target {
        Target::of_card("nvme", Profile::named("nvme").unwrap().card())
    }

    #[test]
    fn every_probe_fits_the_device() {
        for target in [target(), Target { capacity_sectors: 4096, depth: 1, ..target() }] {
            let span = Span { warm_up_ns: 1_000_000, measured_ns: 2_000_000 };
            let probes = probes(&target, false);
            for probe in &probes {
                let Workload::Jobs(jobs) = probe.workload(span) else { unreachable!("it is a job") };
                jobs.layout(target.capacity_sectors * 512).unwrap();
                assert!(probe.start_sector + probe.sectors <= target.capacity_sectors, "{probe}");
            }
            assert_eq!(probes[0].role, Role::Pilot);
        }
    }

    #[test]
    fn held_out_points_are_not_fitted() {
        let probes = probes(&target(), false);
        let (held_out, seen): (Vec<&Probe>, Vec<&Probe>) = probes.iter().partition(|p| p.role == Role::HeldOut);
        assert_eq!(held_out.len(), 6);
        for out in held_out {
            let same = |p: &&&Probe| Probe { role: Role::HeldOut, ..***p } == *out;
            assert_eq!(seen.iter().find(same), None);
        }
    }

    #[test]
    fn read_only_target_has_no_write_probes() {
        let target = Target { writable: false, ..target() };
        assert!(probes(&target, false).iter().all(|probe| !probe.writes()));
    }

    #[test]
    fn sizes_are_printed_in_binary_units() {
        assert_eq!([512, 4096, 1_572_864, 1 << 31].map(size), ["512 B", "4 KiB", "1.5 MiB", "2 GiB"]);
    }
}
