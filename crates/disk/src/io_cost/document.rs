//! Descriptions of devices for io.cost in JSON documents, such as those of resctl-bench. Only the
//! keys matter, at any depth of the document. An object with all six coefficients is a model. A QoS
//! applies to the models in the same object and below it. The name of a device comes from the
//! nearest object that contains the model.

use serde_json::{Map, Value};

use super::model::{Described, IoCostModel, IoCostQos};
use super::resctl;
use super::text::{MAX_DEFAULT, MIN_DEFAULT, no_rate};

/// First characters of a document.
const BEGINNINGS: [char; 2] = ['{', '['];
/// Endings of keys whose value is the name of a device. Endings for the model name come first, then
/// endings for the name in the machine.
const NAMES: [&str; 7] = ["dev_model", "device_model", "disk_model", "model_name", "devnr", "device", "dev"];

/// An error of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The text is not JSON.
    #[error("line {line}, column {column}: {problem}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The problem.
        problem: String,
    },
    /// The object that is most similar to a model is not valid.
    #[error("at {place}: {problem}")]
    Model {
        /// Path of keys and indices from the top, separated by slashes.
        place: String,
        /// The problem and a remedy.
        problem: String,
    },
    /// No object is similar to a model.
    #[error("the file has no model, because no object has {}", IoCostModel::NAMES.join(", "))]
    NoModel,
    /// The document has no jobs of resctl-bench.
    #[error(
        "this is not a result of resctl-bench: it has no list of jobs with spec.kind and sysinfo. For other \
         descriptions of a device, run iosched import io-cost"
    )]
    NoJobs,
}

/// Returns whether the first character of a text shows that it is a document.
pub(super) fn is_document(text: &str) -> bool {
    text.trim_start().starts_with(BEGINNINGS)
}

/// Parses all descriptions, without duplicates. If several descriptions have the same name, the
/// path in the document is added to each name. A result of resctl-bench has one description for
/// each disk.
///
/// # Errors
/// The text is not JSON, or has no model.
pub(super) fn read(text: &str) -> Result<Vec<Described>, DocumentError> {
    let document = parse_json(text)?;
    if let Some(described) = resctl::described(&document) {
        return described;
    }
    let mut search = Search::default();
    let found = search.visit(&document, "").models;
    if found.is_empty() {
        return Err(search.into_error());
    }
    Ok(named(found))
}

/// Parses JSON.
///
/// # Errors
/// The text is not JSON.
pub(super) fn parse_json(text: &str) -> Result<Value, DocumentError> {
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let problem = error.to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
        DocumentError::Syntax { line, column, problem }
    })
}

/// A model in a document.
pub(super) struct Found {
    /// Path of keys and indices from the top, separated by slashes.
    pub(super) place: String,
    name: Option<String>,
    pub(super) model: IoCostModel,
    pub(super) qos: Option<IoCostQos>,
}

/// Contents of a part of a document.
#[derive(Default)]
struct Part {
    models: Vec<Found>,
    /// A name that no model of the part has taken: its depth, its rank in [`NAMES`], and the name
    /// itself.
    name: Option<(usize, usize, String)>,
}

#[derive(Default)]
pub(super) struct Search {
    /// The error of the incomplete model that has the most coefficients.
    nearest: Option<(usize, DocumentError)>,
}

impl Search {
    /// Returns all models in a value at `place`.
    pub(super) fn models_of(&mut self, value: &Value, place: &str) -> Vec<Found> {
        self.visit(value, place).models
    }

    /// Returns the error of a document without a model.
    pub(super) fn into_error(self) -> DocumentError {
        self.nearest.map_or(DocumentError::NoModel, |(_, error)| error)
    }

    fn visit(&mut self, value: &Value, place: &str) -> Part {
        match value {
            Value::Object(object) => self.visit_object(object, place),
            Value::Array(parts) => {
                let mut all = Part::default();
                for (number, part) in parts.iter().enumerate() {
                    all.add(self.visit(part, &format!("{place}/{number}")));
                }
                all
            }
            _ => Part::default(),
        }
    }

    fn visit_object(&mut self, object: &Map<String, Value>, place: &str) -> Part {
        let mut all = Part { models: self.model(object, place).into_iter().collect(), name: name_of(object) };
        for (key, value) in object {
            all.add(self.visit(value, &format!("{place}/{key}")));
        }
        if all.models.is_empty() {
            return all;
        }
        let name = all.name.take().map(|(_, _, name)| name);
        // A QoS whose key contains "qos" takes precedence over others.
        let mut qos_only: Vec<(&String, IoCostQos)> =
            object.iter().filter_map(|(key, value)| Some((key, qos_of(value.as_object()?)?))).collect();
        qos_only.sort_by_key(|(key, _)| !key.contains("qos"));
        let qos_only = qos_only.first().map(|(_, qos)| *qos);
        for found in &mut all.models {
            found.name = found.name.take().or_else(|| name.clone());
            found.qos = found.qos.or(qos_only);
        }
        all
    }

    /// Returns the model that an object describes, if it describes one.
    fn model(&mut self, object: &Map<String, Value>, place: &str) -> Option<Found> {
        let there = IoCostModel::NAMES.iter().filter(|name| object.contains_key(**name)).count();
        if there == 0 {
            return None;
        }
        match figures(object) {
            Ok(figures) => {
                let model = IoCostModel::of(figures);
                Some(Found { place: place.to_owned(), name: None, model, qos: qos_of(object) })
            }
            Err(problem) => {
                if self.nearest.as_ref().is_none_or(|(most, _)| there > *most) {
                    let place = if place.is_empty() { "the top" } else { place }.to_owned();
                    self.nearest = Some((there, DocumentError::Model { place, problem }));
                }
                None
            }
        }
    }
}

impl Part {
    /// Adds the contents of a nested part. A name in a nested part with models applies only to
    /// these models.
    fn add(&mut self, below: Self) {
        let nearer = below.name.map(|(depth, rank, name)| (depth + 1, rank, name));
        self.name = self.name.take().into_iter().chain(nearer).min_by_key(|candidate| (candidate.0, candidate.1));
        self.models.extend(below.models);
    }
}

fn figures(object: &Map<String, Value>) -> Result<[u64; 6], String> {
    let mut figures = [0; 6];
    for (figure, name) in figures.iter_mut().zip(IoCostModel::NAMES) {
        let all = || IoCostModel::NAMES.join(", ");
        let value =
            object.get(name).ok_or_else(|| format!("the parameter {name} is missing; a model needs {}", all()))?;
        *figure = whole(value).ok_or_else(|| format!("{name}: {value} is not a valid number; give 0 or more"))?;
        if *figure == 0 {
            return Err(no_rate(&format!("{name}: {value}")));
        }
    }
    Ok(figures)
}

/// Returns a number that is not negative, rounded to an integer.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| share(value).map(|number| number.round() as u64))
}

fn share(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite() && *number >= 0.0)
}

/// Returns the QoS that an object describes, if it describes one. Bounds can be missing.
fn qos_of(object: &Map<String, Value>) -> Option<IoCostQos> {
    let bound = |name: &str, default: f64| object.get(name).map_or(Some(default), share);
    Some(IoCostQos {
        rpct: share(object.get("rpct")?)?,
        rlat_us: whole(object.get("rlat")?)?,
        wpct: share(object.get("wpct")?)?,
        wlat_us: whole(object.get("wlat")?)?,
        min: bound("min", MIN_DEFAULT)?,
        max: bound("max", MAX_DEFAULT)?,
    })
}

/// Returns the name in an object.
fn name_of(object: &Map<String, Value>) -> Option<(usize, usize, String)> {
    let rank = |key: &str| {
        NAMES.iter().position(|name| key.strip_suffix(name).is_some_and(|left| left.is_empty() || left.ends_with('_')))
    };
    let names = object.iter().filter_map(|(key, value)| Some((0, rank(key)?, line_of(value)?)));
    names.min_by_key(|candidate| candidate.1)
}

/// Returns a text as one line. Names become part of comments, and a line break would end a comment.
pub(super) fn line_of(value: &Value) -> Option<String> {
    let text = value.as_str()?.replace(char::is_control, " ").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Removes duplicates, and makes names unique.
fn named(found: Vec<Found>) -> Vec<Described> {
    let mut once: Vec<Found> = Vec::new();
    for description in found {
        if !once.iter().any(|known| {
            (&known.name, known.model, known.qos) == (&description.name, description.model, description.qos)
        }) {
            once.push(description);
        }
    }
    let only = once.len() == 1;
    let name = |description: &Found| match &description.name {
        Some(name) if once.iter().filter(|other| other.name == description.name).count() == 1 => name.clone(),
        Some(name) => format!("{name} {}", description.place),
        None if only => String::new(),
        None => description.place.clone(),
    };
    once.iter()
        .map(|description| Described { name: name(description), model: description.model, qos: description.qos })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MODEL: IoCostModel = IoCostModel::of([3_000_000_000, 400_000, 300_000, 2_000_000_000, 200_000, 100_000]);
    const QOS: IoCostQos = IoCostQos { rpct: 95.0, rlat_us: 400, wpct: 95.0, wlat_us: 900, min: 50.0, max: 150.0 };

    fn model(scale: u64) -> Value {
        IoCostModel::NAMES
            .iter()
            .zip(MODEL.figures())
            .map(|(name, rate)| ((*name).to_owned(), json!(rate * scale)))
            .collect()
    }

    fn qos(rlat: f64) -> Value {
        json!({"rpct": 95.0, "rlat": rlat, "wpct": 95, "wlat": 900, "min": 50.0, "max": 150.0})
    }

    fn names(document: &Value) -> Vec<String> {
        read(&document.to_string()).unwrap().into_iter().map(|description| description.name).collect()
    }

    #[test]
    fn models_are_found_at_any_depth_with_their_device_name() {
        let job = json!({
            "spec": {"kind": "iocost-params", "name": "A job"},
            "sysinfo": {"scr_devnr": "259:0", "scr_dev_model": "ACME NVMe 1", "cpu_model": "A processor"},
            "result": {"model": model(1), "qos": qos(400.4), "other": qos(7.0)},
        });
        let expected = [Described { name: "ACME NVMe 1".to_owned(), model: MODEL, qos: Some(QOS) }];
        assert_eq!(read(&json!([{"spec": {"kind": "storage"}}, job]).to_string()).unwrap(), expected);
        assert_eq!(read(&job.to_string()).unwrap(), expected);
        assert_eq!(
            read(&json!({"jobs": {"first": [job, job]}}).to_string()).unwrap(),
            expected,
            "identical models are listed once"
        );
        // The QoS is in an object above, in the same object, or missing.
        let above = json!({"qos": qos(400.0), "result": {"solution": {"model": model(1)}}});
        assert_eq!(read(&above.to_string()).unwrap(), [Described { name: String::new(), ..expected[0].clone() }]);
        let mut itself = model(1);
        itself.as_object_mut().unwrap().extend(qos(400.0).as_object().unwrap().clone());
        assert_eq!(read(&itself.to_string()).unwrap()[0].qos, Some(QOS));
        assert_eq!(read(&format!("\n {}", model(1))).unwrap()[0].qos, None);
        let no_bounds = json!({"m": model(1), "q": {"rpct": 95, "rlat": 400, "wpct": 95, "wlat": 900}});
        assert_eq!(read(&no_bounds.to_string()).unwrap()[0].qos, Some(IoCostQos { min: 1.0, max: 10_000.0, ..QOS }));
    }

    #[test]
    fn models_in_one_file_have_separate_names_and_qos() {
        let devices = json!([
            {"dev_model": "A", "runs": {"model": model(1), "qos": qos(400.0)}},
            {"disk": {"device_model": "B"}, "model": model(2)},
            {"model": model(3)},
        ]);
        assert_eq!(names(&devices), ["A", "B", "/2/model"]);
        let found = read(&devices.to_string()).unwrap();
        assert_eq!(found.iter().map(|description| description.qos).collect::<Vec<_>>(), [Some(QOS), None, None]);
        // A name at the top applies to every description without a name. Each solution is listed.
        let tuned = json!({"sysinfo": {"dev": "sda"}, "solutions": {
            "bandwidth": {"model": model(1), "qos": qos(400.0)}, "isolation": {"model": model(1), "qos": qos(500.0)}}});
        assert_eq!(names(&tuned), ["sda /solutions/bandwidth/model", "sda /solutions/isolation/model"]);
        assert_eq!(names(&json!({"sda": model(1), "sdb": model(2)})), ["/sda", "/sdb"]);
    }

    #[test]
    fn all_zero_model_next_to_a_valid_model_is_ignored() {
        let zeros: Value = IoCostModel::NAMES.iter().map(|name| ((*name).to_owned(), json!(0))).collect();
        let document = json!({"now": {"model": zeros}, "stat": {"rbps": 1.0, "wbps": 2.0}, "result": model(1)});
        assert_eq!(read(&document.to_string()).unwrap()[0].model, MODEL);
        let error = read(&json!({"now": {"model": zeros}}).to_string()).unwrap_err().to_string();
        assert_eq!(error, "at /now/model: rbps: 0: a rate cannot be 0; give 1 or more");
    }

    #[test]
    fn errors_have_path_or_line_and_cause() {
        let wrong = |text: &str| read(text).unwrap_err().to_string();
        let mut most = model(1);
        most.as_object_mut().unwrap().remove("wrandiops");
        let document = json!({"stat": {"rbps": 1}, "jobs": [{"result": most}]}).to_string();
        assert!(
            wrong(&document).starts_with("at /jobs/0/result: the parameter wrandiops is missing; a model needs rbps, ")
        );
        let document = model(1).to_string().replace("300000,", "\"fast\",");
        assert_eq!(wrong(&document), "at the top: rrandiops: \"fast\" is not a valid number; give 0 or more");
        assert_eq!(
            wrong("[]"),
            "the file has no model, because no object has rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops"
        );
        assert!(wrong("{\"rbps\": 1,\n]").starts_with("line 2, column 1: "), "{}", wrong("{\"rbps\": 1,\n]"));
        // The nesting is deeper than the limit.
        assert!(wrong(&"[".repeat(1000)).contains("recursion limit"));
    }
}
