//! Rules about source files.

use super::{Breach, SourceFile};

/// Largest number of lines of a source file.
const LINES_MAX: usize = 1000;
/// Number of lines above which the command reports that a file should be split.
pub(super) const LINES_WARNED: usize = 600;

/// Forbidden items and their remedies. Each item is in two pieces, because otherwise this file
/// would contain the item.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("to", "do!", "do it"),
    ("unimple", "mented!", "implement it"),
    ("db", "g!", "remove it"),
    ("#[ig", "nore", "a test runs, or finds out for itself that it cannot"),
    ("TO", "DO", "do it, or write it into an issue"),
    ("FIX", "ME", "fix it, or write it into an issue"),
    ("XX", "X", "say what is meant"),
];

/// The only directory whose code may be unsafe, because it calls the system.
const UNSAFE_ALLOWED: &str = "crates/system/";

/// The only crate whose sources may panic, because only tests depend on it.
const TESTING: &str = "crates/testing/";

/// Files of libraries that may panic: the file, the number of such places, and the reason why no
/// panic can happen.
const PANICS_ALLOWED: &[(&str, usize, &str)] = &[
    ("crates/iosched/src/context.rs", 2, "so many contexts or cgroups do not fit into memory"),
    ("crates/iosched/src/request.rs", 1, "so many requests do not fit into memory"),
    ("crates/iosched/src/cfq/data/queue.rs", 1, "so many queues do not fit into memory"),
    ("crates/iosched/src/cfq/process.rs", 1, "a process has a record as long as it has requests"),
    ("crates/iosched/src/bfq/data/entity.rs", 1, "so many entities do not fit into memory"),
    ("crates/iosched/src/bfq/process.rs", 1, "a process has a record as long as it has requests"),
    ("crates/live/src/control/wire.rs", 1, "strings and numbers are JSON"),
];

fn lines(file: &SourceFile) -> usize {
    file.text.lines().count()
}

/// Returns the breach of a file that is too long.
pub(super) fn too_long(file: &SourceFile) -> Option<Breach> {
    let lines = lines(file);
    (lines > LINES_MAX)
        .then(|| Breach::new(&file.path, 0, format!("has {lines} lines; {LINES_MAX} are allowed: split it")))
}

/// Returns the number of lines and the path of a file that should be split soon.
pub(super) fn rather_long(file: &SourceFile) -> Option<(usize, &str)> {
    let lines = lines(file);
    (LINES_WARNED < lines && lines <= LINES_MAX).then_some((lines, file.path.as_str()))
}

/// Returns whether `line` contains `word` as a whole word.
fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !before.ends_with(part) && (!after.starts_with(part) || !word.ends_with(part))
    })
}

/// Returns the forbidden items of a file.
pub(super) fn forbidden(file: &SourceFile) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let is_allowed = file.path.starts_with(UNSAFE_ALLOWED);
    // The keyword is allowed in quotation marks.
    let as_text = ["\"un", "safe\""].concat();
    let keyword = as_text.trim_matches('"');
    for (number, line) in file.text.lines().enumerate() {
        for (one, two, instead) in FORBIDDEN {
            let item = [*one, *two].concat();
            if has_word(line, &item) {
                breaches.push(Breach::new(&file.path, number + 1, format!("{item}: {instead}")));
            }
        }
        let code = line.split("//").next().unwrap_or(line).replace(&as_text, "");
        if has_word(&code, keyword) && !is_allowed {
            let what = format!("only {UNSAFE_ALLOWED} may hold what the compiler cannot check");
            breaches.push(Breach::new(&file.path, number + 1, what));
        }
    }
    breaches
}

/// Returns the breach of a crate that allows unsafe code.
pub(super) fn may_be_unchecked(file: &SourceFile) -> Option<Breach> {
    let folders: Vec<_> = file.path.split('/').collect();
    let is_root = matches!(folders[..], ["crates", _, "src", "lib.rs" | "main.rs"] | ["xtask", "src", "main.rs"]);
    let attribute = ["#![forbid(un", "safe_code)]"].concat();
    let is_forbidden = file.text.lines().any(|line| line == attribute) || file.path.starts_with(UNSAFE_ALLOWED);
    (is_root && !is_forbidden).then(|| Breach::new(&file.path, 0, format!("needs {attribute}")))
}

/// Returns the lines that panic if a value is missing or an error, except in tests and comments.
fn panicking_lines(file: &SourceFile) -> Vec<usize> {
    let panics = [[".unw", "rap()"].concat(), [".exp", "ect("].concat()];
    let code = file.text.lines().enumerate().take_while(|(_, line)| line.trim() != "#[cfg(test)]");
    let code = code.filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.filter(|(_, line)| panics.iter().any(|panic| line.contains(panic))).map(|(number, _)| number + 1).collect()
}

/// Returns the libraries that panic without permission, and the permissions that are not needed.
pub(super) fn panics(sources: &[SourceFile]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let libraries = sources.iter().filter(|file| file.path.starts_with("crates/") && file.path.contains("/src/"));
    let libraries = libraries.filter(|file| !file.path.starts_with(TESTING));
    for file in libraries.filter(|file| !file.path.ends_with("tests.rs") && !file.path.contains("/tests/")) {
        let lines = panicking_lines(file);
        let allowed = PANICS_ALLOWED.iter().find(|(path, ..)| *path == file.path).map_or(0, |(_, count, _)| *count);
        if lines.len() > allowed {
            let what =
                format!("panics {} times on nothing or an error, {allowed} allowed: return an error", lines.len());
            breaches.push(Breach::new(&file.path, lines[0], what));
        } else if lines.len() < allowed {
            let what = format!("panics less often than the {allowed} times allowed: allow less");
            breaches.push(Breach::new(&file.path, 0, what));
        }
    }
    let gone = PANICS_ALLOWED.iter().filter(|(path, ..)| !sources.iter().any(|file| file.path == *path));
    breaches.extend(gone.map(|(path, ..)| Breach::new(path, 0, "is allowed to panic, and is not there")));
    breaches
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn too_long_file_is_a_breach() {
        let of = |lines: usize| file("a.rs", &"x\n".repeat(lines));
        assert!(too_long(&of(LINES_MAX)).is_none());
        assert!(too_long(&of(LINES_MAX + 1)).is_some());
        assert!(rather_long(&of(LINES_WARNED)).is_none());
        assert_eq!(rather_long(&of(LINES_WARNED + 1)), Some((LINES_WARNED + 1, "a.rs")));
        assert!(rather_long(&of(LINES_MAX + 1)).is_none());
    }

    #[test]
    fn every_forbidden_item_is_found() {
        for (one, two, _) in FORBIDDEN {
            let item = [*one, *two].concat();
            assert_eq!(forbidden(&file("a.rs", &format!("x\n    {item} y"))).len(), 1, "{item}");
            assert!(forbidden(&file("a.rs", &format!("a{item}"))).is_empty() || item.starts_with('#'), "{item}");
        }
    }

    #[test]
    fn unsafe_code_is_found_outside_allowed_crates() {
        let word = ["un", "safe"].concat();
        let check = |path: &str, line: &str| forbidden(&file(path, line)).len();
        assert_eq!(check("crates/iosched/src/a.rs", &format!("{word} {{ x() }}")), 1);
        assert_eq!(check("crates/live/src/a.rs", &format!("{word} {{ x() }}")), 1);
        assert_eq!(check("crates/system/src/a.rs", &format!("{word} {{ x() }}")), 0);
        assert_eq!(check("crates/iosched/src/a.rs", &format!("#![forbid({word}_code)]")), 0);
        assert_eq!(check("crates/iosched/src/a.rs", &format!("// {word} is not needed")), 0);
        assert_eq!(check("crates/cli/tests/a.rs", &format!("mode(\"{word}\")")), 0);
        assert_eq!(check("crates/cli/tests/a.rs", &format!("{word} {{ mode(\"{word}\") }}")), 1);
    }

    #[test]
    fn crate_without_forbid_attribute_is_a_breach() {
        let check = |path: &str, text: &str| may_be_unchecked(&file(path, text)).is_some();
        let attribute = ["#![forbid(un", "safe_code)]"].concat();
        for root in ["crates/live/src/lib.rs", "crates/cli/src/main.rs", "xtask/src/main.rs"] {
            assert!(check(root, "mod a;\n"), "{root}");
            assert!(!check(root, &format!("//! A page.\n{attribute}\nmod a;\n")), "{root}");
        }
        assert!(!check("crates/live/src/a.rs", "") && !check("crates/system/src/lib.rs", ""));
    }

    #[test]
    fn library_panics_without_permission_are_breaches() {
        let panic = [".unw", "rap()"].concat();
        let mut sources: Vec<_> =
            PANICS_ALLOWED.iter().map(|(path, count, _)| file(path, &format!("x{panic};\n").repeat(*count))).collect();
        let line = format!("fn f() {{ g(){panic} }}\n");
        sources.push(file("crates/x/tests/a.rs", &line));
        sources.push(file("crates/x/src/doc.rs", &format!("//! {line}")));
        sources.push(file("crates/x/src/tested.rs", &format!("fn f() {{}}\n\n#[cfg(test)]\nmod tests {{\n{line}}}\n")));
        assert_eq!(panics(&sources), []);
        sources.push(file("crates/x/src/a.rs", &format!("\n{line}")));
        assert_eq!(
            panics(&sources).iter().map(|b| (b.file.as_str(), b.line)).collect::<Vec<_>>(),
            [("crates/x/src/a.rs", 2)]
        );
        sources.pop();
        sources[0].text.clear();
        assert_eq!(panics(&sources).len(), 1, "a permission that is not needed");
        sources.remove(0);
        assert_eq!(panics(&sources).len(), 1, "a permission for a file that is gone");
    }
}
