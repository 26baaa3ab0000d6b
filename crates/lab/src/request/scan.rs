//! Scans of a parameter. For example, `cfq:slice_idle=0..8/2` means the five settings with 0, 2, 4,
//! 6 and 8.

/// Largest number of settings from one text. A comparison of more settings would have no readable
/// answer.
const SETTINGS_MAX: usize = 256;

/// Returns the settings that a text describes. Without a scan, returns only the text itself. With
/// several scans, returns every combination.
///
/// A scan is `name=LOW..HIGH` or `name=LOW..HIGH/STEP`, in whole numbers. The first value is `LOW`.
/// The last value is the largest value of the steps that is not above `HIGH`.
///
/// # Errors
/// A scan is not valid, or the text describes too many settings. The message says what is valid.
pub fn scanned(text: &str) -> Result<Vec<String>, String> {
    let Some((elevator, values)) = text.split_once(':') else { return Ok(vec![text.to_owned()]) };
    let mut all = vec![format!("{elevator}:")];
    for (number, part) in values.split(',').enumerate() {
        let parts = match part.split_once('=').and_then(|(name, value)| Some((name, value.split_once("..")?))) {
            None => vec![part.to_owned()],
            Some((name, (low, rest))) => {
                let values = range(low, rest).map_err(|problem| format!("{}: {problem}", name.trim()))?;
                values.map(|value| format!("{name}={value}")).take(SETTINGS_MAX + 1).collect()
            }
        };
        if all.len() * parts.len() > SETTINGS_MAX {
            return Err(format!(
                "these scans make more than {SETTINGS_MAX} settings; scan fewer values, or use larger steps"
            ));
        }
        let comma = if number == 0 { "" } else { "," };
        all = all.iter().flat_map(|begun| parts.iter().map(move |part| format!("{begun}{comma}{part}"))).collect();
    }
    Ok(all)
}

fn range(low: &str, rest: &str) -> Result<impl Iterator<Item = u64> + use<>, String> {
    let (high, step) = rest.split_once('/').unwrap_or((rest, "1"));
    let number = |text: &str| {
        let text = text.trim();
        text.parse::<u64>().map_err(|_| {
            format!("{text:?} is not a whole number; to compare several values, write LOW..HIGH/STEP, such as 0..8/2")
        })
    };
    let (low, high, step) = (number(low)?, number(high)?, number(step)?);
    if step == 0 {
        return Err("the step of a scan must be 1 or more, as in 0..8/2".to_owned());
    }
    if low > high {
        return Err(format!("a scan must begin with the lower value; write {high}..{low}"));
    }
    Ok(std::iter::successors(Some(low), move |value| value.checked_add(step).filter(|&next| next <= high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_expand_to_every_combination_in_order() {
        let all = |text: &str| scanned(text).unwrap().join(" ");
        assert_eq!(all("cfq"), "cfq");
        assert_eq!(all("cfq:slice_idle=0"), "cfq:slice_idle=0");
        assert_eq!(all("cfq:slice_idle=0..7/3"), "cfq:slice_idle=0 cfq:slice_idle=3 cfq:slice_idle=6");
        assert_eq!(
            all("bfq:low_latency=0..1,nr_requests=64"),
            "bfq:low_latency=0,nr_requests=64 bfq:low_latency=1,nr_requests=64"
        );
        assert_eq!(scanned("cfq:slice_idle=0..1,quantum=1..3,nr_requests=4..4").unwrap().len(), 6);
        assert_eq!(scanned(&format!("cfq:quantum={0}..{0}", u64::MAX)).unwrap().len(), 1);
    }

    #[test]
    fn errors_of_scans_name_the_problem() {
        for (text, message) in [
            ("cfq:slice_idle=8..0", "slice_idle: a scan must begin with the lower value; write 0..8"),
            ("cfq:slice_idle=0..8/0", "must be 1 or more"),
            ("cfq:slice_idle=a..8", "\"a\" is not a whole number; to compare several values, write LOW..HIGH/STEP"),
            ("cfq:slice_idle=0..-8", "\"-8\" is not a whole number"),
            ("cfq:quantum=1..257", "more than 256 settings"),
            ("cfq:quantum=1..256,slice_idle=0..1", "more than 256 settings"),
            ("cfq:quantum=0..18446744073709551615", "more than 256 settings"),
        ] {
            assert!(scanned(text).unwrap_err().contains(message), "{text}: {}", scanned(text).unwrap_err());
        }
    }
}
