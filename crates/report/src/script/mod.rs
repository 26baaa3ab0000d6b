//! Scripts of a page: zooming of plots, switches of settings, sorting of tables, and storing of
//! this state in the URL fragment. A page is also complete without scripts.

use maud::{Markup, PreEscaped, html};

const STATE: &str = include_str!("state.js");
const CHARTS: &str = include_str!("charts.js");
const TABLES: &str = include_str!("tables.js");
const UPLOT: &str = include_str!("../../vendor/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../vendor/uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("../../vendor/uplot/LICENSE");

/// Returns the style of plots that scripts draw. Empty for a page without such plots.
pub(crate) fn style(body: &str) -> &'static str {
    if has_charts(body) { UPLOT_STYLE } else { "" }
}

/// Returns the scripts of a page. The plotting library and its licence are included only if the
/// page has plots.
pub(crate) fn scripts(body: &str) -> Markup {
    let (first, last) = (format!("\"use strict\";\n{STATE}"), TABLES);
    html! {
        @if has_charts(body) {
            script { (PreEscaped(format!("/*! uPlot\n{UPLOT_LICENCE}*/\n{UPLOT}"))) }
            script { (PreEscaped(format!("{first}\n{CHARTS}\n{last}"))) }
        } @else {
            script { (PreEscaped(format!("{first}\n{last}"))) }
        }
    }
}

fn has_charts(body: &str) -> bool {
    body.contains("<script class=\"chart\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_contain_no_closing_tag_or_html_comment() {
        for script in [STATE, CHARTS, TABLES, UPLOT, UPLOT_LICENCE] {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }

    #[test]
    fn only_pages_with_plots_include_plot_library_and_licence() {
        assert!(!scripts("<p>").0.contains("uPlot") && style("<p>").is_empty());
        let page = scripts("<script class=\"chart\" type=\"application/json\">").0;
        assert!(page.contains(UPLOT) && page.contains("Permission is hereby granted"));
    }
}
