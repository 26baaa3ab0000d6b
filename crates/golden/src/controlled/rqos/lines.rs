//! Events in the format of the recordings.

use iosched::controllers::{
    ControllerEvent, Direction, IoLatencyState, IoMaxEvent, SliceChange, Step, Verdict, WbtClass, WbtEvent,
};
use iosched::{CgroupId, Flags};

pub(super) use crate::controlled::line::Line;

/// Returns the letters of a bio's flags.
pub(super) fn flags(flags: Flags) -> String {
    let letters = [(Flags::SYNC, 'S'), (Flags::IDLE, 'I'), (Flags::AHEAD, 'B'), (Flags::SWAP, 'P'), (Flags::PRIO, 'M')];
    letters.iter().filter(|(flag, _)| flags.contains(*flag)).map(|&(_, letter)| letter).collect()
}

pub(super) fn class(class: WbtClass) -> &'static str {
    match class {
        WbtClass::Background => "bg",
        WbtClass::Swap => "swap",
        WbtClass::Discard => "discard",
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "R",
        Direction::Write => "W",
    }
}

/// Returns the line of a controller's decision. `names` has the names of timers and groups. `id`
/// returns the name of a bio.
pub(super) fn decision(
    t_ns: u64,
    event: ControllerEvent,
    names: &Names,
    id: impl Fn(iosched::controllers::BioId) -> u64,
) -> String {
    let line = |name| Line::new(t_ns, name);
    let group = |cgroup: Option<CgroupId>| cgroup.map_or("TOP", |group| names.group(group));
    match event {
        ControllerEvent::Arm { timer, jiffy, fires } => {
            line("arm").text("tm", names.timer(timer.index())).number("exp", jiffy).number("fire", fires).end()
        }
        ControllerEvent::Fire { timer } => line("fire").text("tm", names.timer(timer.index())).end(),
        ControllerEvent::Wbt(event) => wbt(t_ns, event),
        // io.cost has separate runs, so these runs have no such event.
        ControllerEvent::IoCost(_) => line("io_cost").end(),
        ControllerEvent::IoMax(IoMaxEvent::Hold {
            bio_id,
            group: of,
            direction: d,
            bytes,
            ios,
            held: [reads, writes],
        }) => line("hold")
            .number("id", id(bio_id))
            .text("cg", names.group(of))
            .text("d", direction(d))
            .number("bytes", bytes)
            .number("io", ios)
            .number("q", format_args!("[{reads},{writes}]"))
            .end(),
        ControllerEvent::IoMax(IoMaxEvent::Slice { change, group: of, direction: d, start, end }) => {
            let kind = match change {
                SliceChange::New => "new",
                SliceChange::Credit => "credit",
                SliceChange::Extend => "ext",
                SliceChange::Trim { .. } => "trim",
            };
            let mut line = line("slice").text("k", kind).text("cg", names.group(of)).text("d", direction(d));
            if let SliceChange::Trim { slices, bytes, ios } = change {
                line = line.number("nr", slices).number("bytes", bytes).number("io", ios);
            }
            line.number("start", start).number("end", end).end()
        }
        ControllerEvent::IoMax(IoMaxEvent::Carry { group: of, bytes: [b0, b1], ios: [i0, i1] }) => line("carry")
            .text("cg", names.group(of))
            .number("b", format_args!("[{b0},{b1}]"))
            .number("i", format_args!("[{i0},{i1}]"))
            .end(),
        ControllerEvent::IoMax(IoMaxEvent::Round { of, held: [reads, writes] }) => {
            line("round").text("sq", group(of)).number("q", format_args!("[{reads},{writes}]")).end()
        }
        ControllerEvent::IoMax(IoMaxEvent::Moved { of, bios }) => {
            line("moved").text("sq", group(of)).number("n", bios).end()
        }
    }
}

fn wbt(t_ns: u64, event: WbtEvent) -> String {
    let line = |name| Line::new(t_ns, name);
    match event {
        WbtEvent::Set { target_ns, background, normal, depth } => line("wbt_set")
            .number("lat", target_ns)
            .number("bg", background)
            .number("normal", normal)
            .number("max", depth)
            .end(),
        WbtEvent::Exceeded { latency_ns } => line("wbt_lat").number("ns", latency_ns).end(),
        WbtEvent::Window { verdict, step, inflight, unknown, reads, writes, read_min_ns } => {
            let number = match verdict {
                Verdict::Ok => 1,
                Verdict::Unknown => 2,
                Verdict::OnlyWrites => 3,
                Verdict::Exceeded => 4,
            };
            let line = line("wbt_timer").number("st", number).number("step", step).number("inflight", inflight);
            let line = line.number("unk", unknown).number("nr", reads).number("nw", writes);
            line.number("min", read_min_ns.map_or(-1, |ns| ns as i64)).end()
        }
        WbtEvent::Step { way, step, background, normal, depth } => line("wbt_step")
            .text("k", if way == Step::Up { "up" } else { "down" })
            .number("step", step)
            .number("bg", background)
            .number("normal", normal)
            .number("max", depth)
            .end(),
    }
}

/// Names of groups and timers, by number.
#[derive(Default)]
pub(super) struct Names {
    pub(super) groups: Vec<String>,
    pub(super) timers: Vec<String>,
}

impl Names {
    pub(super) fn group(&self, group: CgroupId) -> &str {
        &self.groups[group.index()]
    }

    fn timer(&self, timer: usize) -> &str {
        &self.timers[timer]
    }
}

/// Initial state of a group in io.latency.
pub(super) const LATENCY_AT_FIRST: IoLatencyState = IoLatencyState {
    depth: None,
    own_cookie: 1_000_000,
    samples: 0,
    cookie: 1_000_000,
    missed_target_ns: 0,
    missed_by: None,
    children_samples: 0,
    use_delay: 0,
    delay_ns: 0,
};

/// Returns a line with the changes of a group's state in io.latency. `None` if nothing has changed.
pub(super) fn latency(
    t_ns: u64,
    group: &str,
    before: &IoLatencyState,
    now: &IoLatencyState,
    names: &Names,
) -> Option<String> {
    if before == now {
        return None;
    }
    let mut line = Line::new(t_ns, "lat").text("cg", group);
    if before.depth != now.depth {
        line = line.number("depth", now.depth.map_or(-1, i64::from));
    }
    let fields = |state: &IoLatencyState| {
        [
            ("ck", state.own_cookie),
            ("n", state.samples as i64),
            ("cc", state.cookie),
            ("cl", state.missed_target_ns as i64),
        ]
    };
    for ((key, before), (_, now)) in fields(before).into_iter().zip(fields(now)) {
        if before != now {
            line = line.number(key, now);
        }
    }
    if before.missed_by != now.missed_by {
        line = line.text("cg_miss", now.missed_by.map_or("", |group| names.group(group)));
    }
    let fields = |state: &IoLatencyState| {
        [("cn", state.children_samples as i64), ("ud", state.use_delay.into()), ("dn", state.delay_ns as i64)]
    };
    for ((key, before), (_, now)) in fields(before).into_iter().zip(fields(now)) {
        if before != now {
            line = line.number(key, now);
        }
    }
    Some(line.end())
}
