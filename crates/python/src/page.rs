//! Pages of a report in a notebook.

/// Returns the page in an inline frame.
pub(crate) fn framed(page: &str) -> String {
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    format!("<iframe srcdoc=\"{page}\" style=\"width:100%;height:40em;border:0\" title=\"iosched report\"></iframe>")
}
