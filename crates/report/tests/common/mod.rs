//! Checks for every page.

use std::collections::BTreeSet;

/// Checks that tags are closed in the reverse order, and that text has no unescaped special
/// characters. Returns the names of all elements, and the names and values of all attributes.
fn parse(html: &str) -> (BTreeSet<String>, Vec<(String, String)>) {
    const VOID: [&str; 4] = ["meta", "br", "wbr", "link"];
    let mut rest = html.strip_prefix("<!DOCTYPE html>").expect("a document type");
    let (mut open, mut names, mut attributes) = (Vec::new(), BTreeSet::new(), Vec::new());
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        if open.last().is_none_or(|name| name != "style") {
            assert!(!text.contains('>'), "a stray > in {text:?}");
            for (i, _) in text.match_indices('&') {
                let end = text[i..].find(';').expect("an entity that ends");
                assert!(end <= 6, "{}", &text[i..i + end]);
            }
        }
        let end = rest[at..].find('>').expect("a tag that ends") + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "tags are not closed in reverse order");
            continue;
        }
        let (name, mut fields) = tag.split_once(' ').unwrap_or((tag, ""));
        names.insert(name.to_owned());
        while let Some((field, after)) = fields.trim_start().split_once("=\"") {
            let (value, after) = after.split_once('"').expect("a value that ends");
            attributes.push((field.to_owned(), value.to_owned()));
            fields = after;
        }
        if name == "script" {
            // Scripts and their data are not markup.
            rest = &rest[rest.find("</script>").expect("a script that ends")..];
        }
        if !VOID.contains(&name) {
            open.push(name.to_owned());
        }
    }
    assert_eq!(open, Vec::<String>::new(), "these tags are not closed");
    (names, attributes)
}

/// Returns a page without its scripts, as in a browser that runs no scripts.
pub(crate) fn without_scripts(html: &str) -> String {
    let mut parts = html.split("<script");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |page, part| page + part.split_once("</script>").expect("a script that ends").1)
}

/// Checks a page: it is well-formed, loads nothing, and every anchor to which it links exists
/// exactly once. Returns the names of its anchors.
#[track_caller]
pub(crate) fn whole_page(html: &str) -> BTreeSet<String> {
    let (names, attributes) = parse(html);
    assert!(!names.contains("link") && !names.contains("img"), "{names:?}");
    assert!(attributes.iter().all(|(name, _)| name != "src"), "the page loads a resource");
    let plain = without_scripts(html);
    assert!(!plain.contains("http"), "the page loads a resource");
    for wrong in ["NaN", "inf ", "inf\"", "-inf"] {
        assert!(!plain.contains(wrong), "{wrong}");
    }
    for data in html.split("<script class=\"chart\" type=\"application/json\">").skip(1) {
        let chart: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).expect("JSON");
        let places = chart["at"].as_array().expect("places").len();
        for series in chart["series"].as_array().expect("series") {
            assert_eq!(series["y"].as_array().expect("values").len(), places, "a series has a value for each place");
        }
    }
    let ids: Vec<&str> = attributes.iter().filter(|(name, _)| name == "id").map(|(_, id)| id.as_str()).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "an id is not unique");
    for (name, value) in &attributes {
        let targets: Vec<&str> = match name.as_str() {
            "href" => vec![value.strip_prefix('#').expect("a link to an anchor")],
            "aria-labelledby" => value.split(' ').collect(),
            _ => continue,
        };
        assert!(targets.iter().all(|target| unique.contains(target)), "{name} = {value}: this anchor does not exist");
    }
    unique.into_iter().map(str::to_owned).collect()
}
