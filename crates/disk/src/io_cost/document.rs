//! Descriptions of devices for io.cost in JSON documents, as resctl-bench writes them: gone by keys alone, at any depth.
//! An object is a model if it has all six coefficients; a QoS belongs to the models beside and below it; a device is
//! called what the nearest object says that has a model in it.

use serde_json::{Map, Value};

use super::text::{MAX_DEFAULT, MIN_DEFAULT, no_rate};
use super::{Described, IoCostModel, IoCostQos};

/// What begins a document.
const BEGINNINGS: [char; 2] = ['{', '['];
/// The ends of keys that a device's name stands at: the model name first, then how the machine calls it.
const NAMES: [&str; 7] = ["dev_model", "device_model", "disk_model", "model_name", "devnr", "device", "dev"];

/// What is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is no JSON.
    #[error("line {line}, column {column}: {problem}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// An object that looks most like a model is none.
    #[error("at {place}: {problem}")]
    Model {
        /// Keys and numbers from the top, with slashes before.
        place: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// Nothing in it looks like a model.
    #[error("the model is missing: no object has {}", IoCostModel::NAMES.join(", "))]
    NoModel,
}

/// Whether a text is a document, by how it begins.
pub(super) fn is_document(text: &str) -> bool {
    text.trim_start().starts_with(BEGINNINGS)
}

/// Reads all descriptions, each once. Names that several have are followed by where each stands.
///
/// # Errors
/// No JSON, or no model in it.
pub(super) fn read(text: &str) -> Result<Vec<Described>, DocumentError> {
    let document: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let problem = error.to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
        DocumentError::Syntax { line, column, problem }
    })?;
    let mut search = Search::default();
    let found = search.visit(&document, "").models;
    if found.is_empty() {
        return Err(search.nearest.map_or(DocumentError::NoModel, |(_, error)| error));
    }
    Ok(named(found))
}

/// A model in a document.
struct Found {
    place: String,
    name: Option<String>,
    model: IoCostModel,
    qos: Option<IoCostQos>,
}

/// What a part of a document has.
#[derive(Default)]
struct Part {
    models: Vec<Found>,
    /// A name that no model of the part has taken: how far down, the place in [`NAMES`], and the name.
    name: Option<(usize, usize, String)>,
}

#[derive(Default)]
struct Search {
    /// What is wrong with the object that has most coefficients of all that are no models.
    nearest: Option<(usize, DocumentError)>,
}

impl Search {
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
        // One that is called so comes before others.
        let mut beside: Vec<(&String, IoCostQos)> =
            object.iter().filter_map(|(key, value)| Some((key, qos_of(value.as_object()?)?))).collect();
        beside.sort_by_key(|(key, _)| !key.contains("qos"));
        let beside = beside.first().map(|(_, qos)| *qos);
        for found in &mut all.models {
            found.name = found.name.take().or_else(|| name.clone());
            found.qos = found.qos.or(beside);
        }
        all
    }

    /// The model that an object is.
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
    /// What a part below has, too. The name of one that has models is theirs alone.
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
        let value = object.get(name).ok_or_else(|| format!("{name} is missing: a model needs {}", all()))?;
        *figure = whole(value).ok_or_else(|| format!("{name}: {value} is not a number of 0 or more"))?;
        if *figure == 0 {
            return Err(no_rate(&format!("{name}: {value}")));
        }
    }
    Ok(figures)
}

/// A number from 0 on, rounded.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| share(value).map(|number| number.round() as u64))
}

fn share(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite() && *number >= 0.0)
}

/// The QoS that an object is; its bounds may be missing.
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

/// The name that an object says itself.
fn name_of(object: &Map<String, Value>) -> Option<(usize, usize, String)> {
    let rank = |key: &str| {
        NAMES.iter().position(|name| key.strip_suffix(name).is_some_and(|left| left.is_empty() || left.ends_with('_')))
    };
    let text = |value: &Value| value.as_str().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let names = object.iter().filter_map(|(key, value)| Some((0, rank(key)?, text(value)?)));
    names.min_by_key(|candidate| candidate.1)
}

/// Each once, and no two of one name.
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
        assert_eq!(read(&json!({"jobs": {"first": [job, job]}}).to_string()).unwrap(), expected, "twice the same");
        // Above, in itself, or not at all.
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
    fn each_of_several_has_its_own_name_and_qos() {
        let devices = json!([
            {"dev_model": "A", "runs": {"model": model(1), "qos": qos(400.0)}},
            {"disk": {"device_model": "B"}, "model": model(2)},
            {"model": model(3)},
        ]);
        assert_eq!(names(&devices), ["A", "B", "/2/model"]);
        let found = read(&devices.to_string()).unwrap();
        assert_eq!(found.iter().map(|description| description.qos).collect::<Vec<_>>(), [Some(QOS), None, None]);
        // What is said of all is said of each that says nothing itself; and of several solutions each is told.
        let tuned = json!({"sysinfo": {"dev": "sda"}, "solutions": {
            "bandwidth": {"model": model(1), "qos": qos(400.0)}, "isolation": {"model": model(1), "qos": qos(500.0)}}});
        assert_eq!(names(&tuned), ["sda /solutions/bandwidth/model", "sda /solutions/isolation/model"]);
        assert_eq!(names(&json!({"sda": model(1), "sdb": model(2)})), ["/sda", "/sdb"]);
    }

    #[test]
    fn an_unset_model_beside_a_set_one_is_ignored() {
        let zeros: Value = IoCostModel::NAMES.iter().map(|name| ((*name).to_owned(), json!(0))).collect();
        let document = json!({"now": {"model": zeros}, "stat": {"rbps": 1.0, "wbps": 2.0}, "result": model(1)});
        assert_eq!(read(&document.to_string()).unwrap()[0].model, MODEL);
        let error = read(&json!({"now": {"model": zeros}}).to_string()).unwrap_err().to_string();
        assert_eq!(error, "at /now/model: rbps: 0: a rate of 0 I/Os per second is not possible; give 1 or more");
    }

    #[test]
    fn missing_parameters_are_reported_with_their_place() {
        let wrong = |text: &str| read(text).unwrap_err().to_string();
        let mut most = model(1);
        most.as_object_mut().unwrap().remove("wrandiops");
        let document = json!({"stat": {"rbps": 1}, "jobs": [{"result": most}]}).to_string();
        assert!(wrong(&document).starts_with("at /jobs/0/result: wrandiops is missing: a model needs rbps, "));
        let document = model(1).to_string().replace("300000,", "\"fast\",");
        assert_eq!(wrong(&document), "at the top: rrandiops: \"fast\" is not a number of 0 or more");
        assert_eq!(
            wrong("[]"),
            "the model is missing: no object has rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops"
        );
        assert!(wrong("{\"rbps\": 1,\n]").starts_with("line 2, column 1: "), "{}", wrong("{\"rbps\": 1,\n]"));
        // As deep as it may be, and deeper.
        assert!(wrong(&"[".repeat(1000)).contains("recursion limit"));
    }
}
