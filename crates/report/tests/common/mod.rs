//! What every page has to be.

use std::collections::BTreeSet;

/// Checks that tags are closed in the order they were opened and that text holds no stray marks; gives the names of
/// all elements and the values of all attributes.
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
            assert_eq!(open.pop().as_deref(), Some(name), "closed in another order than opened");
            continue;
        }
        let (name, mut fields) = tag.split_once(' ').unwrap_or((tag, ""));
        names.insert(name.to_owned());
        while let Some((field, after)) = fields.trim_start().split_once("=\"") {
            let (value, after) = after.split_once('"').expect("a value that ends");
            attributes.push((field.to_owned(), value.to_owned()));
            fields = after;
        }
        if !VOID.contains(&name) {
            open.push(name.to_owned());
        }
    }
    assert_eq!(open, Vec::<String>::new(), "not closed");
    (names, attributes)
}

/// Everything that every page has to be: well-formed, with nothing to run or to fetch, every place in it there and there once. Gives the
/// names of its places.
#[track_caller]
pub(crate) fn whole_page(html: &str) -> BTreeSet<String> {
    let (names, attributes) = parse(html);
    assert!(!names.contains("script") && !names.contains("link") && !names.contains("img"), "{names:?}");
    assert!(!html.contains("http"), "something to fetch");
    for wrong in ["NaN", "inf ", "inf\"", "-inf"] {
        assert!(!html.contains(wrong), "{wrong}");
    }
    let ids: Vec<&str> = attributes.iter().filter(|(name, _)| name == "id").map(|(_, id)| id.as_str()).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "an id twice");
    for (name, value) in &attributes {
        let targets: Vec<&str> = match name.as_str() {
            "href" => vec![value.strip_prefix('#').expect("a place in the page")],
            "aria-labelledby" => value.split(' ').collect(),
            _ => continue,
        };
        assert!(targets.iter().all(|target| unique.contains(target)), "{name} = {value} leads nowhere");
    }
    unique.into_iter().map(str::to_owned).collect()
}
