//! Text of io.cost.qos, io.cost.model and io.weight, after the number of the device.

use std::fmt;

use super::model::Speeds;
use super::share::WHOLE;
use crate::controllers::write_error::WriteError;

/// File of a cgroup or of the root that io.cost reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoCostFile {
    /// Switch, latency targets, and bounds of the rate: a file of the root group.
    Qos,
    /// Capacity of the device per second: a file of the root group.
    Model,
    /// Weight of a group: a file of all groups except the root.
    Weight,
    /// Statistics of a group: a read-only file.
    Stat,
}

impl IoCostFile {
    /// Returns the file of a name in the cgroup file system.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "io.cost.qos" => Self::Qos,
            "io.cost.model" => Self::Model,
            "io.weight" => Self::Weight,
            "io.stat" => Self::Stat,
            _ => return None,
        })
    }
}

/// Latency targets and bounds of the rate, as in io.cost.qos.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Qos {
    /// Part of reads and writes that must meet their target, parts per million; 0: no target.
    pub(super) target_ppm: [u32; 2],
    /// Latency targets of reads and writes without the time of the transfer, µs.
    pub(super) target_us: [u32; 2],
    /// Lowest rate of virtual time, parts per million of real time.
    pub(super) slowest_ppm: u32,
    /// Highest rate of virtual time, parts per million of real time.
    pub(super) fastest_ppm: u32,
}

/// Capacity of a device per second for reads and writes, as in io.cost.model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Model(pub(super) [Speeds; 2]);

/// Value, and its source: the user or the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owned<T> {
    pub(super) value: T,
    pub(super) by_user: bool,
}

impl<T> Owned<T> {
    fn author(&self) -> &'static str {
        if self.by_user { "user" } else { "auto" }
    }

    /// Sets the source of the value, from the text after `ctrl=`.
    fn set_author(&mut self, author: &str) -> Result<(), WriteError> {
        self.by_user = match author {
            "auto" => false,
            "user" => true,
            _ => return Err(WriteError::Invalid),
        };
        Ok(())
    }
}

/// Returns the words of a text, each of the form `name=value`.
fn words(text: &str) -> impl Iterator<Item = Result<(&str, &str), WriteError>> {
    text.split_whitespace().map(|word| word.split_once('=').ok_or(WriteError::Invalid))
}

/// Applies `text` to io.cost.qos. Returns whether the controller is on, and the other values.
pub(super) fn parse_qos(text: &str, on: bool, qos: Owned<Qos>) -> Result<(bool, Owned<Qos>), WriteError> {
    let (mut on, mut qos) = (on, qos);
    for word in words(text) {
        let (name, value) = word?;
        match name {
            "enable" => on = integer(value)? != 0,
            "ctrl" => qos.set_author(value)?,
            _ => {
                let set = &mut qos.value;
                match name {
                    "rpct" => set.target_ppm[0] = proportion(value)?,
                    "rlat" => set.target_us[0] = integer(value)? as u32,
                    "wpct" => set.target_ppm[1] = proportion(value)?,
                    "wlat" => set.target_us[1] = integer(value)? as u32,
                    "min" => set.slowest_ppm = rate(value)?,
                    "max" => set.fastest_ppm = rate(value)?,
                    _ => return Err(WriteError::Invalid),
                }
                qos.by_user = true;
            }
        }
    }
    if qos.value.slowest_ppm > qos.value.fastest_ppm {
        return Err(WriteError::Invalid);
    }
    Ok((on, qos))
}

/// Applies `text` to io.cost.model.
pub(super) fn parse_model(text: &str, model: Owned<Model>) -> Result<Owned<Model>, WriteError> {
    let mut model = model;
    for word in words(text) {
        let (name, value) = word?;
        match name {
            "ctrl" => model.set_author(value)?,
            "model" if value == "linear" => {}
            "model" => return Err(WriteError::Invalid),
            _ => {
                let [read, write] = &mut model.value.0;
                let speed = match name {
                    "rbps" => &mut read.bps,
                    "rseqiops" => &mut read.sequential_iops,
                    "rrandiops" => &mut read.random_iops,
                    "wbps" => &mut write.bps,
                    "wseqiops" => &mut write.sequential_iops,
                    "wrandiops" => &mut write.random_iops,
                    _ => return Err(WriteError::Invalid),
                };
                *speed = integer(value)?;
                model.by_user = true;
            }
        }
    }
    Ok(model)
}

/// Weight from a text for io.weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Weight {
    /// Weight for all devices, 1 to 10000.
    Default(u32),
    /// Weight for this device, 1 to 10000; `None`: the weight for all devices.
    Device(Option<u32>),
}

/// Parses a weight: `100`, `default 100`, `8:0 100`, `8:0 default`. The
/// host has selected the device by its number.
pub(super) fn parse_weight(text: &str) -> Result<Weight, WriteError> {
    let weight = |word: &str| match word.parse() {
        Ok(weight @ 1..=10_000) => Ok(weight),
        _ => Err(WriteError::Invalid),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [all] | ["default", all] => weight(all).map(Weight::Default),
        [device, number] if is_device_number(device) => match number {
            "default" => Ok(Weight::Device(None)),
            number => weight(number).map(|number| Weight::Device(Some(number))),
        },
        _ => Err(WriteError::Invalid),
    }
}

fn is_device_number(word: &str) -> bool {
    word.split_once(':').is_some_and(|(major, minor)| [major, minor].iter().all(|part| part.parse::<u32>().is_ok()))
}

/// Parses a number: hexadecimal after `0x`, octal after `0`, otherwise decimal.
fn integer(text: &str) -> Result<u64, WriteError> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.starts_with('+') {
        return Err(WriteError::Invalid);
    }
    u64::from_str_radix(digits, radix).map_err(|_| WriteError::Invalid)
}

/// Parses a percentage in hundredths, rounded half up.
fn hundredths(text: &str) -> Option<u64> {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !(integer.bytes().chain(fraction.bytes())).all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digit = |at: usize| fraction.as_bytes().get(at).map_or(0, |digit| u64::from(digit - b'0'));
    let round_up = u64::from(digit(2) >= 5);
    integer.parse::<u64>().ok()?.checked_mul(100)?.checked_add(digit(0) * 10 + digit(1) + round_up)
}

/// Parses a percentage from 0 to 100. Returns parts per million.
fn proportion(text: &str) -> Result<u32, WriteError> {
    match hundredths(text) {
        Some(hundredths @ 0..=10_000) => Ok(hundredths as u32 * 100),
        _ => Err(WriteError::Invalid),
    }
}

/// Parses a percentage and limits it to 1 to 10000. Returns parts per million.
fn rate(text: &str) -> Result<u32, WriteError> {
    let hundredths = hundredths(text).ok_or(WriteError::Invalid)?;
    Ok(hundredths.clamp(100, 1_000_000) as u32 * 100)
}

/// Hundredths of a percent, formatted as percent.
pub(super) struct Percent(pub(super) u64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

/// Returns the text of io.cost.qos as in Linux 6.12.
pub(super) fn qos_text(on: bool, qos: &Owned<Qos>) -> String {
    let percent = |ppm: u32| Percent(u64::from(ppm / 100));
    let Qos { target_ppm: [rppm, wppm], target_us: [rlat, wlat], slowest_ppm, fastest_ppm } = qos.value;
    format!(
        "enable={} ctrl={} rpct={} rlat={rlat} wpct={} wlat={wlat} min={} max={}",
        u8::from(on),
        qos.author(),
        percent(rppm),
        percent(wppm),
        percent(slowest_ppm),
        percent(fastest_ppm),
    )
}

/// Returns the text of io.cost.model as in Linux 6.12.
pub(super) fn model_text(model: &Owned<Model>) -> String {
    let speeds = |letter: char, speeds: &Speeds| {
        let Speeds { bps, sequential_iops, random_iops } = speeds;
        format!("{letter}bps={bps} {letter}seqiops={sequential_iops} {letter}randiops={random_iops}")
    };
    let [read, write] = &model.value.0;
    format!("ctrl={} model=linear {} {}", model.author(), speeds('r', read), speeds('w', write))
}

/// Returns the text of io.weight as in Linux 6.12: `default 100`, and a second line with the value
/// for this device. The host adds the number of the device.
pub(super) fn weight_text(default: u32, device: Option<u32>) -> String {
    let device_line = device.map_or(String::new(), |weight| format!("\n{weight}"));
    format!("default {default}{device_line}")
}

const _: () = assert!(10_000 * WHOLE as u64 <= u32::MAX as u64, "every weight fits");

#[cfg(test)]
mod tests {
    use super::super::table::Table;
    use super::*;

    fn qos(text: &str) -> Result<String, WriteError> {
        let table = Owned { value: Table::Flash.qos(), by_user: false };
        parse_qos(text, false, table).map(|(on, qos)| qos_text(on, &qos))
    }

    #[test]
    fn words_apply_in_order_and_unnamed_values_stay() {
        let text = qos("rpct=12.345 wpct=7.5 rlat=0x400 wlat=010 min=0.001 max=99999 enable=7");
        let expected = "enable=1 ctrl=user rpct=12.35 rlat=1024 wpct=7.50 wlat=8 min=1.00 max=10000.00";
        assert_eq!(text.as_deref(), Ok(expected));
        assert!(qos("min=5 ctrl=auto").unwrap().contains("ctrl=auto"));
        assert!(qos("ctrl=auto min=5").unwrap().contains("ctrl=user"));
        assert!(qos("enable=1").unwrap().starts_with("enable=1 ctrl=auto"));
        assert!(qos("rlat=4294967297").unwrap().contains("rlat=1 "), "only 32 bits are stored");
    }

    #[test]
    fn one_invalid_word_refuses_the_whole_write() {
        for text in
            ["rpct=101", "rlat=abc", "rlat=09", "rlat=-1", "min=-1", "min=", "rpct=1.x", "speed=1", "on", "enable"]
        {
            assert!(qos(&format!("enable=1 {text}")).is_err(), "{text}");
        }
        assert_eq!(qos("min=150 max=120"), Err(WriteError::Invalid));
        assert!(qos(&format!("min={}", "9".repeat(40))).is_err());
    }

    #[test]
    fn written_speeds_set_ctrl_user_and_only_linear_is_accepted() {
        let table = Owned { value: Table::Flash.model(), by_user: false };
        let text = |text: &str| parse_model(text, table).map(|model| model_text(&model));
        let expected = "ctrl=user model=linear rbps=1 rseqiops=0 rrandiops=8518 wbps=427891549 wseqiops=28755 \
                        wrandiops=21940";
        assert_eq!(text("rbps=1 rseqiops=0").as_deref(), Ok(expected));
        assert!(text("model=linear").unwrap().starts_with("ctrl=auto"));
        assert_eq!(text("model=cubic"), Err(WriteError::Invalid));
    }

    #[test]
    fn weights_are_1_to_10000_for_all_devices_or_one() {
        assert_eq!(parse_weight("default 10000"), Ok(Weight::Default(10_000)));
        assert_eq!(parse_weight("1"), Ok(Weight::Default(1)));
        assert_eq!(parse_weight("8:16 200"), Ok(Weight::Device(Some(200))));
        assert_eq!(parse_weight("8:16 default"), Ok(Weight::Device(None)));
        for text in ["", "0", "10001", "default", "8:16", "8 200", "8:16 0", "-1"] {
            assert!(parse_weight(text).is_err(), "{text}");
        }
    }
}
