//! Measured seek times: a header line, then lines with distance in cylinders and time in ms.

use super::error::DiskSimError;
use crate::hdd::SeekPoint;

/// Parses seek times.
pub(crate) fn parse(file: &str, text: &str) -> Result<Vec<SeekPoint>, DiskSimError> {
    let mut points: Vec<SeekPoint> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.trim().is_empty() || (points.is_empty() && line.starts_with("Seek distances measured")) {
            continue;
        }
        let point = line.split_once(',').and_then(|(cylinders, ms)| {
            let ms = ms.trim().parse::<f64>().ok().filter(|ms| (0.0..=1_000.0).contains(ms))?;
            Some(SeekPoint { cylinders: cylinders.trim().parse().ok()?, ns: (ms * 1e6).round() as u64 })
        });
        let Some(point) = point else {
            let remedy = "a line must have a distance in cylinders, a comma, and a time in ms up to 1000";
            return Err(DiskSimError::at(file, number, format!("{line:?} is not a distance and a seek time"), remedy));
        };
        if points.last().map_or(1, |last| last.cylinders + 1) > point.cylinders
            || (points.is_empty() && point.cylinders != 1)
        {
            let problem = format!("a seek of {} cylinders", point.cylinders);
            return Err(DiskSimError::at(file, number, problem, "distances must increase and start at 1"));
        }
        points.push(point);
    }
    if points.is_empty() {
        return Err(DiskSimError::of(
            file,
            "the table has no seek times",
            "give at least the seek time over one cylinder",
        ));
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seek_times_are_converted_to_ns() {
        let points = parse("a.seek", "Seek distances measured: 2\n1,\t1.24500\n3,\t1.5\n").unwrap();
        assert_eq!(points.iter().map(|p| (p.cylinders, p.ns)).collect::<Vec<_>>(), [(1, 1_245_000), (3, 1_500_000)]);
    }

    #[test]
    fn errors_name_the_line() {
        let message = |text: &str| parse("a.seek", text).unwrap_err().to_string();
        assert!(
            message("Seek distances measured: 1\n1 1.2\n")
                .starts_with("a.seek:2: \"1 1.2\" is not a distance and a seek time")
        );
        assert!(message("1,1.2\n1,1.3\n").starts_with("a.seek:2: a seek of 1 cylinders; distances must increase"));
        assert!(message("2,1.2\n").contains("start at 1"));
        assert!(message("Seek distances measured: 0\n").contains("the table has no seek times"));
    }
}
