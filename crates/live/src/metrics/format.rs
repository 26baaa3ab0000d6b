//! The two text formats of metrics, and the choice between them.

/// A text format of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    /// The classic text format of Prometheus, which all readers support.
    Classic,
    /// The OpenMetrics format.
    OpenMetrics,
}

impl Format {
    /// Returns the HTTP content type of the format.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Returns the format that the header `Accept` prefers. This is OpenMetrics if the header
    /// contains it, with a quality at least as high as the quality of plain text. Otherwise, it is
    /// the classic format.
    pub(super) fn preferred(accept: &str) -> Self {
        let wanted = |names: &[&str]| {
            let entries = accept.split(',').map(str::trim).map(entry);
            let named = entries.filter(|(name, _)| names.iter().any(|known| name.eq_ignore_ascii_case(known)));
            named.map(|(_, quality)| quality).fold(0.0, f64::max)
        };
        let open = wanted(&["application/openmetrics-text"]);
        let is_open = open > 0.0 && open >= wanted(&["text/plain"]);
        if is_open { Self::OpenMetrics } else { Self::Classic }
    }
}

/// Returns the name and the quality of an entry of the header `Accept`.
fn entry(text: &str) -> (&str, f64) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    // An unreadable quality counts as 0.
    (name, quality.map_or(1.0, |quality| quality.parse().unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_without_a_preference_get_the_classic_text() {
        for accept in ["", "*/*", "text/html, */*;q=0.8", "text/plain", "application/openmetrics-text;q=0", "q=;;,,"] {
            assert_eq!(Format::preferred(accept), Format::Classic, "{accept}");
        }
    }

    #[test]
    fn clients_that_prefer_openmetrics_get_openmetrics() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for accept in [prometheus, "application/openmetrics-text", "Application/OpenMetrics-Text; version=1.0.0"] {
            assert_eq!(Format::preferred(accept), Format::OpenMetrics, "{accept}");
        }
        assert_eq!(Format::preferred("application/openmetrics-text;q=0.2, text/plain;q=0.3"), Format::Classic);
    }
}
