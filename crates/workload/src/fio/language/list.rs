//! Values with several parts: lists per direction, ranges, shares by size, distributions.

use super::options::Unit;
use super::value::{Numbers, PrioritySplitEntry, Value};
use crate::fio::value::{Distribution, FileService, FileServiceOrder, PerDirection, SplitSize, Zone, ZoneSize};

/// Largest number of sizes in `bssplit` for one direction: fio's limit.
const SPLITS_MAX: usize = 64;
/// Largest number of zones for one direction: fio's limit.
const ZONES_MAX: usize = 256;
/// The largest block, bytes: the limit of fio's option.
const BLOCK_BYTES_MAX: u64 = u32::MAX as u64;
/// Largest number of percentiles.
const REALS_MAX: usize = 1000;

/// Parses up to three parts for reads, writes and trims by fio's rule.
///
/// A part without text is `None`. The last part also applies to the following directions, unless a
/// comma follows it.
pub(super) fn per_direction<T: Clone>(
    text: &str,
    mut read: impl FnMut(&str) -> Result<T, String>,
) -> Result<PerDirection<Option<T>>, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    // The comma at the end of `a,b,c,` makes a fourth part, which is empty and harmless.
    let ends = parts.last().is_some_and(|part| part.is_empty());
    let parts = if ends { &parts[..parts.len() - 1] } else { &parts[..] };
    if parts.len() > 3 {
        return Err(
            "the list has more than three parts; write at most one part each for reads, writes and trims".to_owned()
        );
    }
    if parts.iter().all(|part| part.is_empty()) {
        return Err("the value is missing".to_owned());
    }
    let mut values = Vec::with_capacity(3);
    for part in parts {
        values.push(if part.is_empty() { None } else { Some(read(part)?) });
    }
    let rest = if ends { None } else { values.last().cloned().flatten() };
    values.resize(3, rest);
    let mut values = values.into_iter();
    Ok(PerDirection { read: values.next().flatten(), write: values.next().flatten(), trim: values.next().flatten() })
}

/// Parses `a-b` or `a:b` and returns the smaller number first. A minus at the start is the sign of
/// the first number.
fn range(text: &str, unit: Unit, numbers: Numbers, min: u64, max: u64) -> Result<Option<[u64; 2]>, String> {
    let Some((one, other)) = text.split_once(['-', ':']).filter(|(one, _)| !one.is_empty() && !one.starts_with('('))
    else {
        return Ok(None);
    };
    let (one, other) = (numbers.unsigned(one, unit, min, max)?, numbers.unsigned(other, unit, min, max)?);
    Ok(Some([one.min(other), one.max(other)]))
}

/// Parses a number or a range.
pub(super) fn range_or_number(text: &str, unit: Unit, numbers: Numbers) -> Result<[u64; 2], String> {
    let max = i64::MAX as u64 / 1000;
    match range(text, unit, numbers, 0, max)? {
        Some(range) => Ok(range),
        None => numbers.unsigned(text, unit, 0, max).map(|number| [number, number]),
    }
}

/// Parses up to three ranges, separated by `,` or `/`.
pub(super) fn ranges(text: &str, unit: Unit, numbers: Numbers) -> Result<PerDirection<Option<[u64; 2]>>, String> {
    per_direction(&text.replace('/', ","), |text| {
        range(text, unit, numbers, 1, BLOCK_BYTES_MAX)?.ok_or_else(|| format!("`{text}` is not a range"))
    })
}

/// Parses a real number within bounds.
pub(super) fn real(text: &str, min: f64, max: f64) -> Result<f64, String> {
    let number: f64 = text.trim().parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is out of range; it must be from {min} to {max}"))
    }
}

/// Parses real numbers, separated by colons.
pub(super) fn reals(text: &str, min: f64, max: f64) -> Result<Vec<f64>, String> {
    let numbers: Vec<f64> = text.split(':').map(|text| real(text, min, max)).collect::<Result<_, _>>()?;
    if numbers.len() > REALS_MAX { Err(format!("more than {REALS_MAX} numbers")) } else { Ok(numbers) }
}

/// Divides the rest of 100 % evenly between the missing shares, and returns all shares.
fn fill_shares(shares: &[Option<u32>]) -> Result<Vec<u32>, String> {
    let given: u64 = shares.iter().flatten().map(|share| u64::from(*share)).sum();
    let left = u32::try_from(given).ok().and_then(|given| 100_u32.checked_sub(given));
    let left = left.ok_or_else(|| format!("the shares add up to {given} %, but they must not exceed 100 %"))?;
    let blanks = u32::try_from(shares.iter().filter(|share| share.is_none()).count()).unwrap_or(u32::MAX);
    let mut filled = 0;
    let shares = shares.iter().map(|share| {
        share.unwrap_or_else(|| {
            filled += 1;
            // The last missing share also gets the remainder of the division.
            if filled == blanks { left - left / blanks * (blanks - 1) } else { left / blanks }
        })
    });
    Ok(shares.collect())
}

/// Parses `4k/10:64k/50:32k/40` for up to three directions.
///
/// If the percentages add up to less than 100 %, the size with the largest percentage gets the rest
/// (as measured with fio 3.33).
pub(super) fn split(text: &str, numbers: Numbers) -> Result<PerDirection<Option<Vec<SplitSize>>>, String> {
    per_direction(text, |text| {
        let mut sizes = Vec::new();
        let mut shares = Vec::new();
        for part in text.split(':') {
            let (size, share) = part.split_once('/').unwrap_or((part, ""));
            sizes.push(numbers.unsigned(size, Unit::Bytes, 1, BLOCK_BYTES_MAX)?);
            shares.push(share_of(share, numbers)?);
        }
        if sizes.len() > SPLITS_MAX {
            return Err(format!("more than {SPLITS_MAX} sizes"));
        }
        let mut shares = fill_shares(&shares)?;
        let rest = 100 - shares.iter().sum::<u32>();
        if let Some(largest) = shares.iter_mut().max() {
            *largest += rest;
        }
        Ok(sizes.into_iter().zip(shares).map(|(bytes, percent)| SplitSize { bytes, percent }).collect())
    })
}

/// Parses a share in per cent. Returns `None` if the text is empty.
fn share_of(text: &str, numbers: Numbers) -> Result<Option<u32>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    numbers.unsigned(text, Unit::Count, 0, 100).map(|share| u32::try_from(share).ok())
}

/// Parses `64k/25/1/0:1024k/0` for reads and writes.
pub(super) fn priority_split(text: &str, numbers: Numbers) -> Result<PerDirection<Vec<PrioritySplitEntry>>, String> {
    let split = per_direction(text, |text| {
        let entries: Vec<_> =
            text.split(':').map(|part| priority_entry(part, numbers)).collect::<Result<_, String>>()?;
        if entries.len() > SPLITS_MAX {
            return Err(format!("more than {SPLITS_MAX} sizes"));
        }
        for entry in &entries {
            let same = entries.iter().filter(|other| other.bytes == entry.bytes);
            if same.map(|entry| entry.percent).sum::<u32>() > 100 {
                return Err(format!("for the size of {} bytes, the shares add up to more than 100 %", entry.bytes));
            }
        }
        Ok(entries)
    })?;
    Ok(split.map(|entries| entries.clone().unwrap_or_default()))
}

fn priority_entry(text: &str, numbers: Numbers) -> Result<PrioritySplitEntry, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let number = |text: &str, max: u64| numbers.unsigned(text, Unit::Count, 0, max);
    let (size, percent, priority) = match parts[..] {
        [size, percent] => (size, percent, None),
        // A hint can follow. Modelled devices do not use hints.
        [size, percent, class, level] | [size, percent, class, level, _] => {
            let class = numbers.unsigned(class, Unit::Count, 1, 3)?;
            (size, percent, Some((u8::try_from(class).unwrap_or(3), u8::try_from(number(level, 7)?).unwrap_or(7))))
        }
        _ => return Err(format!("`{text}` does not have the form size/share or size/share/class/level")),
    };
    if let Some(hint) = parts.get(4) {
        number(hint, 1023)?;
    }
    let bytes = numbers.unsigned(size, Unit::Bytes, 1, BLOCK_BYTES_MAX)?;
    let percent = share_of(percent, numbers)?.unwrap_or(100);
    Ok(PrioritySplitEntry { bytes, percent, priority })
}

/// fio's defaults of these parameters.
const ZIPF_THETA: f64 = 1.1;
const PARETO_H: f64 = 0.2;
const GAUSS_DEVIATION: f64 = 0.0;

fn zipf_theta(theta: f64) -> Result<f64, String> {
    // A theta of 1 needs a different formula, with its own tables.
    if theta > 0.0 && (theta - 1.0).abs() > f64::EPSILON {
        Ok(theta)
    } else {
        Err(format!("theta is {theta}, but it must be greater than 0 and different from 1"))
    }
}

fn pareto_h(h: f64) -> Result<f64, String> {
    if h > 0.0 && h < 1.0 { Ok(h) } else { Err(format!("h is {h}, but it must be between 0 and 1")) }
}

fn deviation(deviation: f64) -> Result<f64, String> {
    if (0.0..100.0).contains(&deviation) {
        Ok(deviation)
    } else {
        Err(format!("the deviation is {deviation} %, but it must be from 0 to 100"))
    }
}

/// Parses `random_distribution`.
pub(super) fn distribution(text: &str, numbers: Numbers) -> Result<Value, String> {
    let (name, rest) = text.split_once([':', '=']).map_or((text, None), |(name, rest)| (name, Some(rest)));
    let parameter = |default: f64| -> Result<(f64, Option<f64>), String> {
        let Some(rest) = rest else { return Ok((default, None)) };
        let (first, centre) = rest.split_once(':').map_or((rest, None), |(first, centre)| (first, Some(centre)));
        let centre = centre.map(|centre| real(centre, 0.0, 1.0)).transpose()?;
        Ok((real(first, f64::MIN, f64::MAX)?, centre))
    };
    let distribution = match name {
        "random" => Distribution::Random,
        "zipf" => {
            let (theta, centre) = parameter(ZIPF_THETA)?;
            Distribution::Zipf { theta: zipf_theta(theta)?, centre }
        }
        "pareto" => {
            let (h, centre) = parameter(PARETO_H)?;
            Distribution::Pareto { h: pareto_h(h)?, centre }
        }
        "normal" => {
            let (percent, centre) = parameter(GAUSS_DEVIATION)?;
            Distribution::Normal { deviation_percent: deviation(percent)?, centre }
        }
        "zoned" | "zoned_abs" => zones(rest.unwrap_or(""), name == "zoned_abs", numbers)?,
        "sequence" => {
            let why = "iosched does not model a sequence of blocks";
            return Ok(Value::NotModelled {
                why,
                instead: "write the sequence into a log, and replay the log with read_iolog",
            });
        }
        _ => return Err(format!("`{name}` is not a distribution")),
    };
    Ok(Value::Distribution(distribution))
}

/// Parses `60/10:30/20:10/70` for up to three directions.
fn zones(text: &str, is_absolute: bool, numbers: Numbers) -> Result<Distribution, String> {
    let zones = per_direction(text, |text| {
        let parts: Vec<&str> = text.split(':').collect();
        if parts.len() > ZONES_MAX {
            return Err(format!("more than {ZONES_MAX} zones"));
        }
        let mut shares = Vec::new();
        let mut sizes = Vec::new();
        for part in parts {
            let (share, size) = part.split_once('/').ok_or_else(|| format!("`{part}` is not share/size"))?;
            shares.push(share_of(share, numbers)?);
            sizes.push(size);
        }
        let shares = fill_shares(&shares)?;
        let sum: u32 = shares.iter().sum();
        if sum != 100 {
            return Err(format!("the shares add up to {sum} %, but they must add up to 100 %"));
        }
        let sizes = if is_absolute { absolute_sizes(&sizes, numbers)? } else { relative_sizes(&sizes, numbers)? };
        Ok(shares.into_iter().zip(sizes).map(|(access_percent, size)| Zone { access_percent, size }).collect())
    })?;
    Ok(Distribution::Zoned(zones.map(|zones: &Option<Vec<Zone>>| zones.clone().unwrap_or_default())))
}

fn absolute_sizes(sizes: &[&str], numbers: Numbers) -> Result<Vec<ZoneSize>, String> {
    let bytes = |size: &&str| numbers.unsigned(size, Unit::Bytes, 1, i64::MAX as u64).map(ZoneSize::Bytes);
    sizes.iter().map(bytes).collect()
}

fn relative_sizes(sizes: &[&str], numbers: Numbers) -> Result<Vec<ZoneSize>, String> {
    let sizes: Vec<Option<u32>> = sizes.iter().map(|size| share_of(size, numbers)).collect::<Result<_, _>>()?;
    let sizes = fill_shares(&sizes)?;
    let sum: u32 = sizes.iter().sum();
    if sum != 100 {
        return Err(format!("the sizes add up to {sum} %, but they must add up to 100 %"));
    }
    Ok(sizes.into_iter().map(ZoneSize::Percent).collect())
}

/// Parses `file_service_type`.
pub(super) fn file_service(text: &str, numbers: Numbers) -> Result<FileService, String> {
    let (name, suffix) = text.split_once(':').map_or((text, None), |(name, suffix)| (name, Some(suffix)));
    let count = || suffix.map_or(Ok(1), |suffix| numbers.unsigned(suffix, Unit::Count, 1, u32::MAX.into()));
    let skew = |default| suffix.map_or(Ok(default), |suffix| real(suffix, f64::MIN, f64::MAX));
    let (order, ios_per_file) = match name {
        "random" => (FileServiceOrder::Random, count()?),
        "roundrobin" => (FileServiceOrder::RoundRobin, count()?),
        "sequential" => (FileServiceOrder::Sequential, count()?),
        "zipf" => (FileServiceOrder::Zipf { theta: zipf_theta(skew(ZIPF_THETA)?)? }, 1),
        "pareto" => (FileServiceOrder::Pareto { h: pareto_h(skew(PARETO_H)?)? }, 1),
        "normal" | "gauss" => (FileServiceOrder::Gauss { deviation_percent: deviation(skew(GAUSS_DEVIATION)?)? }, 1),
        _ => return Err(format!("`{name}` is not a known way to choose files")),
    };
    Ok(FileService { order, ios_per_file: u32::try_from(ios_per_file).unwrap_or(u32::MAX) })
}
