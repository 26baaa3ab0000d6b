//! Published figures and series.
//!
//! A file of figures has one line per figure: `case,test,unit,setting,mean,sd,origin`. The
//! deviation is empty if the document does not print it. Lines that begin with `#` contain the
//! sources.

use serde::Deserialize;

use super::judge::Known;
use crate::error::LabError;

const COLUMNS: &str = "case,test,unit,setting,mean,sd,origin";

/// Figure of a publication, with its deviation if the document gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedFigure {
    /// Name of the case.
    pub case: String,
    /// Name of the test in the case, as the application reports it.
    pub test: String,
    /// Unit of the figure.
    pub unit: String,
    /// Label of the setting.
    pub setting: String,
    /// Mean and standard deviation.
    pub known: Known,
    /// Use of the figure while the models were made.
    pub origin: Origin,
}

/// Use of a published figure while the models were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The figure was available. Parameters are fitted to these figures.
    Given,
    /// The figure was held back until the models were complete, and was then used to test them.
    HeldOut,
}

impl Origin {
    /// Parses the origin from a file of figures.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "given" => Some(Self::Given),
            "held-out" => Some(Self::HeldOut),
            _ => None,
        }
    }
}

/// A series of published values.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSeries {
    /// Name of the case.
    pub case: String,
    /// Label of the setting.
    pub setting: String,
    /// Name of the series, as the application reports it.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// Values in order.
    pub values: Vec<f64>,
}

/// Parses a file of figures. `file` is its name in messages.
pub(super) fn figures(file: &str, text: &str) -> Result<Vec<PublishedFigure>, LabError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
    let problem = |number: usize, problem: String| LabError::Data {
        file: file.to_owned(),
        problem: format!("line {}: {problem}", number + 1),
    };
    match lines.next() {
        Some((_, COLUMNS)) => {}
        Some((number, other)) => {
            return Err(problem(number, format!("expected the heading {COLUMNS}, found {other:?}")));
        }
        None => return Err(problem(0, format!("the heading {COLUMNS} is missing"))),
    }
    let figure = |(number, line): (usize, &str)| {
        let fields: Vec<&str> = line.split(',').collect();
        let [case, test, unit, setting, mean, sd, origin] = fields[..] else {
            return Err(problem(number, format!("{} fields instead of 7: {COLUMNS}", fields.len())));
        };
        let value = |text: &str| text.parse::<f64>().map_err(|_| problem(number, format!("{text:?} is not a number")));
        let sd = if sd.is_empty() { None } else { Some(value(sd)?) };
        let known = Known { mean: value(mean)?, sd };
        let origin = Origin::parse(origin)
            .ok_or_else(|| problem(number, format!("there is no origin {origin:?}; available: given and held-out")))?;
        let [case, test, unit, setting] = [case, test, unit, setting].map(str::to_owned);
        Ok(PublishedFigure { case, test, unit, setting, known, origin })
    };
    lines.map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_give_figures_and_errors_have_the_line_number() {
        let text = "# from here\ncase,test,unit,setting,mean,sd,origin\na b,write,KB/s,x,10.5,0.5,given\na b,read,KB/s,x,3,,held-out\n";
        let found = figures("x.csv", text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].case.as_str(), found[0].known), ("a b", Known { mean: 10.5, sd: Some(0.5) }));
        assert_eq!((found[1].known.sd, found[1].origin), (None, Origin::HeldOut));
        let wrong = |text: &str| figures("x.csv", text).unwrap_err().to_string();
        assert_eq!(wrong(&text.replace("10.5", "ten")), "x.csv: line 3: \"ten\" is not a number");
        assert_eq!(wrong("a,b\n"), format!("x.csv: line 1: expected the heading {COLUMNS}, found \"a,b\""));
        assert!(wrong(&text.replace("held-out", "mine")).contains("given and held-out"));
        assert!(wrong(&text.replace(",3,", ",3")).contains("line 4: 6 fields"));
    }
}
