//! Descriptions of devices for io.cost: lines of `io.cost.model` and `io.cost.qos`, with or without
//! the number of the device, and entries of systemd's hwdb.

use super::model::{Described, IoCostModel, IoCostQos};

/// Prefixes of the hwdb properties that have a model or a QoS.
const MODEL_OF: &str = "IOCOST_MODEL_";
const QOS_OF: &str = "IOCOST_QOS_";
const SOLUTIONS: &str = "IOCOST_SOLUTIONS";
/// The kernel's defaults for missing bounds of a QoS, per cent.
pub(super) const MIN_DEFAULT: f64 = 1.0;
pub(super) const MAX_DEFAULT: f64 = 10_000.0;

/// Name for a missing model name.
const NAME_UNKNOWN: &str = "MODEL_NAME";

/// Start of the output of `iosched device io-cost`. First come the lines of the two files, each
/// below a heading.
pub const MODEL_HEADING: &str = "for /sys/fs/cgroup/io.cost.model";
/// Start of the line after which the output of `iosched device io-cost` repeats its values for
/// hwdb.
pub const PERMANENT: &str = "to set the model permanently";

/// An error of a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// The problem and a remedy.
    pub problem: String,
}

/// Parses descriptions, in their order: lines of the two files, or entries of hwdb. Other
/// properties in hwdb are ignored.
///
/// # Errors
/// A line has neither format, a word is not valid in its line, or there is no model.
pub(super) fn read(text: &str) -> Result<Vec<Described>, TextError> {
    let mut found: Vec<(String, Option<IoCostModel>, Option<IoCostQos>)> = Vec::new();
    // Device that the following hwdb properties describe.
    let mut matched = String::new();
    let has_headings = text.starts_with(MODEL_HEADING);
    for (number, line) in text.lines().enumerate() {
        if has_headings && line.starts_with(PERMANENT) {
            break;
        }
        if has_headings && line.starts_with("for ") {
            continue;
        }
        let wrong = |problem: String| TextError { line: number + 1, problem };
        let line = line.split_once('#').map_or(line, |(before, _)| before).trim();
        if line.is_empty() {
            continue;
        }
        if line.starts_with("block:") {
            matched = name_of_match(line);
            continue;
        }
        let (name, rest) = match line.split_once('=') {
            Some((key, rest)) if key.starts_with(MODEL_OF) || key.starts_with(QOS_OF) => (matched.clone(), rest),
            Some((key, _)) if key.starts_with(SOLUTIONS) || is_other_property(key) => continue,
            _ => match line.split_once(char::is_whitespace) {
                Some((device, rest)) if is_device_number(device) => (device.to_owned(), rest),
                _ => (String::new(), line),
            },
        };
        let place = match found.iter().position(|device| device.0 == name) {
            Some(place) => place,
            None => {
                found.push((name, None, None));
                found.len() - 1
            }
        };
        match Words::read(rest).map_err(wrong)? {
            // If there are several solutions, the first one counts, because it is the best one.
            Words::Model(model) => found[place].1 = found[place].1.or(Some(model)),
            Words::Qos(qos) => found[place].2 = found[place].2.or(Some(qos)),
        }
    }
    let described = found.into_iter().filter_map(|(name, model, qos)| Some(Described { name, model: model?, qos }));
    let described: Vec<Described> = described.collect();
    if described.is_empty() {
        let problem = format!(
            "the file has no model; write \"MAJ:MIN ctrl=user model=linear {}\", as in io.cost.model, or \
             {MODEL_OF}NAME=… as in hwdb",
            IoCostModel::NAMES.map(|name| format!("{name}=N")).join(" ")
        );
        return Err(TextError { line: text.lines().count().max(1), problem });
    }
    Ok(described)
}

/// Returns the error of a coefficient of 0.
pub(super) fn no_rate(subject: &str) -> String {
    format!("{subject}: a rate cannot be 0; give 1 or more")
}

/// Returns the model name in a match: `block:*:name:MODEL:fwrev:*:`.
fn name_of_match(line: &str) -> String {
    let mut parts = line.split(':');
    parts.find(|part| *part == "name").and_then(|_| parts.next()).unwrap_or_default().to_owned()
}

fn is_device_number(word: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    word.split_once(':').is_some_and(|(major, minor)| number(major) && number(minor))
}

/// Returns whether a key is an hwdb property unrelated to io.cost.
fn is_other_property(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_')
}

/// Contents of a line.
enum Words {
    Model(IoCostModel),
    Qos(IoCostQos),
}

impl Words {
    fn read(text: &str) -> Result<Self, String> {
        let mut figures: [Option<u64>; 6] = [None; 6];
        let mut qos = IoCostQos { rpct: 0.0, rlat_us: 0, wpct: 0.0, wlat_us: 0, min: MIN_DEFAULT, max: MAX_DEFAULT };
        let mut is_qos = false;
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=').ok_or_else(|| format!("{word:?} is not NAME=VALUE"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{word}: {value:?} is not a whole number"));
            let share = || {
                let number = value.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
                number.ok_or_else(|| format!("{word}: {value:?} is not a valid number; give 0 or more"))
            };
            if let Some(place) = IoCostModel::NAMES.iter().position(|known| *known == name) {
                let figure = number()?;
                if figure == 0 {
                    return Err(no_rate(word));
                }
                figures[place] = Some(figure);
                continue;
            }
            match name {
                "ctrl" => continue,
                "model" if value == "linear" => continue,
                "model" => return Err(format!("{word}: iosched does not support this model; write model=linear")),
                "enable" => {}
                "rpct" => qos.rpct = share()?,
                "rlat" => qos.rlat_us = number()?,
                "wpct" => qos.wpct = share()?,
                "wlat" => qos.wlat_us = number()?,
                "min" => qos.min = share()?,
                "max" => qos.max = share()?,
                _ => {
                    let names = IoCostModel::NAMES.join(", ");
                    return Err(format!(
                        "{word}: {name:?} is not a parameter of the model ({names}), and not a \
                         parameter of QoS"
                    ));
                }
            }
            is_qos = true;
        }
        if is_qos {
            return Ok(Self::Qos(qos));
        }
        let missing = IoCostModel::NAMES.iter().zip(figures).find(|(_, figure)| figure.is_none());
        if let Some((name, _)) = missing {
            return Err(format!("the parameter {name} is missing; a model needs {}", IoCostModel::NAMES.join(", ")));
        }
        Ok(Self::Model(IoCostModel::of(figures.map(Option::unwrap_or_default))))
    }
}

/// Returns the entry of systemd's hwdb for devices with a model name, with one solution called
/// `measured`.
#[must_use]
pub fn hwdb(name: &str, model: &IoCostModel, qos: &IoCostQos) -> String {
    format!(
        "block:*:name:{name}:fwrev:*:\n  {SOLUTIONS}=measured\n  {MODEL_OF}MEASURED={model}\n  {QOS_OF}MEASURED={qos}\n"
    )
}

/// Returns a model name as udev stores it in `ID_MODEL`: unusual characters become underscores.
#[must_use]
pub fn hwdb_name(model_name: Option<&str>) -> String {
    let name = model_name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(NAME_UNKNOWN);
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "#+-.=@_".contains(c) { c } else { '_' }).collect()
}

/// Returns the path of the file for the hwdb entry.
#[must_use]
pub fn hwdb_path(model_name: Option<&str>) -> String {
    format!("/etc/udev/hwdb.d/90-iocost-{}.hwdb", hwdb_name(model_name).to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: IoCostModel = IoCostModel::of([3_000_000_000, 400_000, 300_000, 2_000_000_000, 200_000, 100_000]);
    const QOS: IoCostQos = IoCostQos { rpct: 95.0, rlat_us: 400, wpct: 95.0, wlat_us: 900, min: 50.0, max: 150.0 };

    #[test]
    fn kernel_io_cost_files_are_parsed() {
        let text = format!("259:0 {}\n8:16 {}\n259:0 {}\n", MODEL.line(), MODEL.line(), QOS.line());
        let found = read(&text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], Described { name: "259:0".to_owned(), model: MODEL, qos: Some(QOS) });
        assert_eq!(found[1], Described { name: "8:16".to_owned(), model: MODEL, qos: None });
        assert_eq!(read(&MODEL.line()).unwrap()[0].name, "");
    }

    #[test]
    fn hwdb_entry_round_trips() {
        let text = format!("# measured\n{}\n", hwdb("A_Disk", &MODEL, &QOS));
        assert_eq!(read(&text).unwrap(), [Described { name: "A_Disk".to_owned(), model: MODEL, qos: Some(QOS) }]);
        let other = text.replace("  IOCOST_SOL", "  ID_VENDOR=x y\n  IOCOST_SOL");
        assert_eq!(read(&other).unwrap().len(), 1);
    }

    #[test]
    fn errors_name_the_cause() {
        let wrong = |text: &str| read(text).unwrap_err().to_string();
        assert!(wrong("").contains("the file has no model; write \"MAJ:MIN ctrl=user model=linear rbps=N"));
        assert_eq!(wrong("\n8:0 rbps=x"), "line 2: rbps=x: \"x\" is not a whole number");
        assert!(wrong("rbps=1 rseqiops=2").contains("rrandiops is missing"));
        assert!(wrong("rbps=0").contains("give 1 or more"));
        assert!(wrong("rbsp=1").contains("\"rbsp\" is not a parameter of the model"));
        assert!(wrong("model=cubic rbps=1").contains("iosched does not support this model"));
        assert!(wrong("nonsense").contains("\"nonsense\" is not NAME=VALUE"));
        // A QoS without a model is not a device.
        assert!(wrong(&QOS.line()).contains("the file has no model"));
    }
}
