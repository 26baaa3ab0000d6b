//! The public items of the policy library, as rustdoc reports them. `crates/iosched/public-api.txt`
//! stores these items, so that each change is reviewed.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::page;

/// Path of the page, from the root of the repository.
const PAGE: &str = "crates/iosched/public-api.txt";
const LIBRARY: &str = "iosched";
/// Kinds of members that rustdoc lists for an item itself.
const MEMBERS: &[&str] = &["method", "tymethod", "variant", "structfield", "associatedconstant", "associatedtype"];

/// Arguments of `cargo xtask api`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Check that the page is up to date, and do not write it
    #[arg(long)]
    check: bool,
}

/// Writes or checks the page.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let status = Command::new("cargo").args(["doc", "--quiet", "--no-deps", "--package", LIBRARY]).status()?;
    ensure!(status.success(), "cargo doc has failed");
    let text = surface(&target.join("doc").join(LIBRARY))?;
    page::write_or_check(&[(PAGE.to_owned(), text)], args.check, "api")
}

fn surface(docs: &Path) -> Result<String> {
    let read = |name: &str| {
        let path = docs.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))
    };
    let mut text = String::from("What others can use of iosched. Written by `cargo xtask api`.\n");
    let all = read("all.html")?;
    let pages: Vec<&str> = quoted(&all, "<a href=\"").filter(|page| is_item(page)).collect();
    ensure!(!pages.is_empty(), "{}: names no items", docs.join("all.html").display());
    for name in pages {
        let html = read(name)?;
        let (item, _) = name.rsplit_once('.').unwrap_or((name, ""));
        text.push('\n');
        text.push_str(&item.replacen('.', " ", 1));
        text.push('\n');
        for member in members(&html) {
            text.push_str("  ");
            text.push_str(&member);
            text.push('\n');
        }
    }
    Ok(text)
}

/// Returns whether a page describes an item, such as `recording/struct.Record.html`.
fn is_item(page: &str) -> bool {
    let file = page.rsplit('/').next().unwrap_or(page);
    !page.contains(':') && !page.starts_with("..") && file.matches('.').count() == 2 && file.ends_with(".html")
}

/// Returns each text between `before` and the next quotation mark.
fn quoted<'t>(text: &'t str, before: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next())
}

/// Returns the declarations of the members of an item, in the order of the page.
fn members(html: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in html.split(" id=\"").skip(1) {
        let Some((id, rest)) = part.split_once('"') else { continue };
        let Some((kind, _)) = id.split_once('.') else { continue };
        let class = quoted(rest, "class=\"").next().unwrap_or_default();
        if !MEMBERS.contains(&kind) || class.contains("trait-impl") || !rest.starts_with(" class=") {
            continue;
        }
        let (open, close) = if kind == "structfield" { ("<code>", "</code>") } else { ("code-header\">", "</h") };
        let declared = rest.split(open).nth(1).and_then(|rest| rest.split(close).next());
        found.extend(declared.map(plain));
    }
    found
}

/// Returns the text of a piece of HTML, on one line.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut in_tag = false;
    for letter in html.chars() {
        match letter {
            '<' => in_tag = true,
            '>' => in_tag = false,
            letter if !in_tag => text.push(letter),
            _ => {}
        }
    }
    for (entity, letter) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&nbsp;", " "), ("&amp;", "&")]
    {
        text = text.replace(entity, letter);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_exclude_trait_implementations() {
        let html = r##"<section id="method.turn" class="method"><h4 class="code-header">pub fn <a href="#x">turn</a>(&amp;mut self)
            -&gt; <a>Option</a>&lt;<a>Step</a>&gt;</h4></section><section id="method.fmt" class="method trait-impl"><h4 class="code-header">fn
            fmt()</h4></section><span id="structfield.op" class="structfield section-header"><a href="#">§</a><code>op: <a>Op</a></code></span>"##;
        assert_eq!(members(html), ["pub fn turn(&mut self) -> Option<Step>", "op: Op"]);
    }

    #[test]
    fn pages_of_items_are_recognised() {
        assert!(is_item("struct.Bio.html") && is_item("recording/enum.What.html"));
        assert!(!is_item("index.html") && !is_item("https://a.b.html") && !is_item("../settings.x.html"));
    }
}
