//! A Prometheus process, and the queries of a Grafana dashboard.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest wait for the expected answer to a query. It includes the start of Prometheus.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// Value of Grafana's variable for the interval of a rate. The interval contains many scrapes.
const RATE_INTERVAL: &str = "5s";

/// A Prometheus process. The process ends when this value is dropped.
#[derive(Debug)]
pub struct Prometheus {
    child: Child,
    at: SocketAddr,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Starts a Prometheus process that scrapes each address, under the name of its job. Its files
    /// are in the directory `here`.
    ///
    /// # Errors
    /// If the program cannot be started, or its file cannot be written.
    pub fn start(here: &Path, jobs: &[(&str, SocketAddr)]) -> std::io::Result<Self> {
        // The system does not give a recently used port to another program soon.
        let at = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut config = "global: {scrape_interval: 200ms}\nscrape_configs:\n".to_owned();
        for (name, at) in jobs {
            let _ = writeln!(config, "- {{job_name: {name}, static_configs: [{{targets: ['{at}']}}]}}");
        }
        std::fs::write(here.join("prometheus.yml"), config)?;
        let mut command = Command::new("prometheus");
        command.arg(format!("--web.listen-address={at}"));
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=db"]);
        let child = command.current_dir(here).stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { child, at })
    }

    /// Repeats a query until `is_right` accepts its series. Returns the series.
    ///
    /// # Errors
    /// If the series are still wrong after two minutes.
    pub fn query(&self, query: &str, is_right: impl Fn(&[Value]) -> bool) -> Result<Vec<Value>, String> {
        self.data(&format!("query?query={}", encoded(query)), |data| {
            let series = data["result"].as_array().cloned().unwrap_or_default();
            is_right(&series).then_some(series)
        })
        .map_err(|answer| format!("{query}: {answer}"))
    }

    /// Repeats a query until it returns at least one series, and every value is a number.
    ///
    /// # Errors
    /// If this is still not the case after two minutes.
    pub fn query_of_a_panel(&self, query: &str) -> Result<Vec<Value>, String> {
        self.query(query, |series| !series.is_empty() && series.iter().all(|series| series["value"][1] != "NaN"))
    }

    /// Repeats the query of a variable until it returns at least one value. Returns the values.
    ///
    /// # Errors
    /// If the query still returns no value after two minutes.
    pub fn values_of_a_variable(&self, variable: &Variable) -> Result<Vec<Value>, String> {
        let Variable { label, series, .. } = variable;
        self.data(&format!("label/{label}/values?match%5B%5D={}", encoded(series)), |data| {
            data.as_array().filter(|values| !values.is_empty()).cloned()
        })
        .map_err(|answer| format!("{variable:?}: {answer}"))
    }

    /// Repeats a request of the API until `right` returns a part of the answer's data.
    fn data<T>(&self, path: &str, right: impl Fn(&Value) -> Option<T>) -> Result<T, String> {
        let began = Instant::now();
        loop {
            // Prometheus does not accept connections before it has started.
            let text = self.get(path).unwrap_or_else(|error| error.to_string());
            let answer = text.find('{').and_then(|from| serde_json::from_str::<Value>(&text[from..]).ok());
            if let Some(found) = answer.and_then(|answer| right(&answer["data"])) {
                return Ok(found);
            }
            if began.elapsed() > PATIENCE {
                return Err(text);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn get(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.at)?;
        write!(stream, "GET /api/v1/{path} HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    }
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        let _ = write!(encoded, "%{byte:02x}");
        encoded
    })
}

/// The queries of a Grafana dashboard, with values for its variables.
#[derive(Debug, PartialEq, Eq)]
pub struct Dashboard {
    /// Pairs of the title of a panel and a query. A panel can have several queries.
    pub panels: Vec<(String, String)>,
    /// The variables whose values come from Prometheus.
    pub variables: Vec<Variable>,
}

/// A variable of a dashboard: the values of a label in some series.
#[derive(Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name of the variable.
    pub name: String,
    /// Selector of the series.
    pub series: String,
    /// Name of the label.
    pub label: String,
}

impl Dashboard {
    /// Reads a dashboard. Every variable has the value "all".
    ///
    /// # Errors
    /// If the text is not a dashboard, a query uses an unknown variable, two panels have the same
    /// identifier, or two panels overlap.
    pub fn read(text: &str) -> Result<Self, String> {
        let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let declared = list(&document["templating"]["list"]);
        let names: Vec<&str> = declared.iter().filter_map(|variable| variable["name"].as_str()).collect();
        let given = |query: &str| {
            let with_interval = query.replace("$__rate_interval", RATE_INTERVAL);
            let given = names.iter().fold(with_interval, |query, name| query.replace(&format!("${name}"), ".*"));
            if given.contains('$') { Err(format!("{query}: unknown variable")) } else { Ok(given) }
        };

        let mut dashboard = Self { panels: Vec::new(), variables: Vec::new() };
        for variable in declared.iter().filter(|variable| variable["type"] == "query") {
            let name = variable["name"].as_str().unwrap_or_default().to_owned();
            let query = given(variable["query"]["query"].as_str().unwrap_or_default())?;
            let parts = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
            let (series, label) = parts.and_then(|parts| parts.rsplit_once(", ")).ok_or(format!("{name}: {query}"))?;
            dashboard.variables.push(Variable { name, series: series.to_owned(), label: label.to_owned() });
        }
        let mut places: Vec<(i64, [i64; 4])> = Vec::new();
        for panel in list(&document["panels"]) {
            let title = panel["title"].as_str().ok_or("a panel has no title")?;
            let id = panel["id"].as_i64().ok_or(format!("{title}: no identifier"))?;
            let [x, y, w, h] = ["x", "y", "w", "h"].map(|name| panel["gridPos"][name].as_i64().unwrap_or(-1));
            let is_apart = |other: &[i64; 4]| x + w <= other[0] || other[2] <= x || y + h <= other[1] || other[3] <= y;
            if x < 0 || y < 0 || w < 1 || h < 1 || x + w > 24 || !places.iter().all(|(_, other)| is_apart(other)) {
                return Err(format!("{title}: the place {} is not free", panel["gridPos"]));
            }
            if places.iter().any(|(other, _)| *other == id) {
                return Err(format!("{title}: another panel has the identifier {id}"));
            }
            places.push((id, [x, y, x + w, y + h]));
            for target in list(&panel["targets"]) {
                let query = target["expr"].as_str().ok_or(format!("{title}: no query"))?;
                dashboard.panels.push((title.to_owned(), given(query)?));
            }
        }
        Ok(dashboard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dashboard(second_place: &str, query: &str) -> Result<Dashboard, String> {
        Dashboard::read(&format!(
            r#"{{"templating": {{"list": [{{"name": "job", "type": "query",
                "query": {{"query": "label_values(up{{job=~\"$job\"}}, job)"}}}}]}},
              "panels": [
                {{"id": 1, "title": "a", "gridPos": {{"x": 0, "y": 0, "w": 12, "h": 5}}, "targets": []}},
                {{"id": 2, "title": "b", "gridPos": {second_place}, "targets": [{{"expr": "{query}"}}]}}]}}"#
        ))
    }

    #[test]
    fn variables_are_replaced_in_every_query() {
        let found =
            dashboard(r#"{"x": 12, "y": 0, "w": 12, "h": 5}"#, "rate(x{job=~'$job'}[$__rate_interval])").unwrap();
        assert_eq!(found.panels, [("b".to_owned(), "rate(x{job=~'.*'}[5s])".to_owned())]);
        let [variable] = &found.variables[..] else { panic!("{found:?}") };
        assert_eq!((variable.series.as_str(), variable.label.as_str()), ("up{job=~\".*\"}", "job"));
    }

    #[test]
    fn unknown_variables_and_overlapping_panels_are_errors() {
        let place = r#"{"x": 0, "y": 5, "w": 24, "h": 5}"#;
        assert!(dashboard(place, "up").is_ok());
        assert!(dashboard(place, "up{a='$other'}").unwrap_err().contains("unknown variable"));
        let overlap = dashboard(r#"{"x": 11, "y": 4, "w": 2, "h": 2}"#, "up").unwrap_err();
        assert!(overlap.contains("is not free"), "{overlap}");
        assert!(dashboard(r#"{"x": 20, "y": 0, "w": 5, "h": 2}"#, "up").is_err());
    }
}
