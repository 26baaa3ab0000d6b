//! Rules about manifests.

use super::{Breach, DETERMINISTIC, DETERMINISTIC_LINTS, SourceFile};

/// Fields that a crate takes from the workspace.
const OF_THE_WORKSPACE: &[&str] = &[
    "version.workspace = true",
    "edition.workspace = true",
    "rust-version.workspace = true",
    "license.workspace = true",
];

/// Returns whether a manifest is a separate workspace, such as the manifest of fuzz targets.
fn stands_alone(file: &SourceFile) -> bool {
    file.text.lines().any(|line| line == "[workspace]")
}

/// Returns dependencies without a comment that gives the reason. A comment applies to all lines up
/// to the next empty line. In the workspace's table, crates of this workspace need no reason.
pub(super) fn without_reason(file: &SourceFile) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let (mut in_dependencies, mut reason, mut in_value) = (false, false, false);
    for (line, text) in file.text.lines().enumerate().map(|(line, text)| (line + 1, text.trim())) {
        if in_value {
            in_value = !text.starts_with(['}', ']']);
        } else if text.starts_with('[') {
            in_dependencies = text.trim_matches(['[', ']']).ends_with("dependencies");
            reason = false;
        } else if text.is_empty() {
            reason = false;
        } else if text.starts_with('#') {
            reason = true;
        } else if in_dependencies {
            let ours = file.path == "Cargo.toml" && text.contains("path = ");
            if !reason && !ours {
                let name = text.split(['=', '.', ' ']).next().unwrap_or(text);
                let what = format!("{name} needs a line above it that says why it is a dependency");
                breaches.push(Breach::new(&file.path, line, what));
            }
            in_value = text.ends_with(['{', '[']);
        }
    }
    breaches
}

/// Returns crates of the workspace that do not take lints, versions and licence from the workspace.
pub(super) fn not_of_the_workspace(file: &SourceFile) -> Vec<Breach> {
    if stands_alone(file) {
        return Vec::new();
    }
    let lines: Vec<_> = file.text.lines().map(str::trim).collect();
    let missing = OF_THE_WORKSPACE.iter().filter(|wanted| !lines.contains(wanted));
    let missing = missing.map(|wanted| Breach::new(&file.path, 0, format!("[package] needs {wanted}")));
    let lints = lines.windows(2).any(|pair| pair == ["[lints]", "workspace = true"]);
    missing.chain((!lints).then(|| Breach::new(&file.path, 0, "needs [lints] workspace = true"))).collect()
}

/// Returns deterministic crates without the clippy settings that keep them deterministic.
pub(super) fn not_deterministic(manifests: &[SourceFile]) -> Vec<Breach> {
    let find = |path: &str| manifests.iter().find(|file| file.path == path).map(|file| &file.text);
    let Some(lints) = find(DETERMINISTIC_LINTS) else {
        return vec![Breach::new(DETERMINISTIC_LINTS, 0, "is missing")];
    };
    let paths = DETERMINISTIC.iter().map(|name| format!("crates/{name}/clippy.toml"));
    let wrong = paths.filter(|path| find(path) != Some(lints));
    wrong.map(|path| Breach::new(&path, 0, format!("is to be a link to {DETERMINISTIC_LINTS}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn found(breaches: Vec<Breach>) -> Vec<String> {
        breaches.iter().map(Breach::to_string).collect()
    }

    #[test]
    fn dependency_without_a_comment_is_a_breach() {
        let text = "[package]\nname = \"x\"\n\n[dependencies]\n# Why.\na = \"1\"\nb.workspace = true\n\nc = { version = \"1\" }\n\
                    \n[dev-dependencies]\nd = \"1\"\n";
        let breaches = found(without_reason(&file("crates/x/Cargo.toml", text)));
        assert_eq!(breaches.len(), 2, "{breaches:?}");
        assert!(breaches[0].starts_with("crates/x/Cargo.toml:9: c needs a line"), "{breaches:?}");
        assert!(breaches[1].starts_with("crates/x/Cargo.toml:12: d needs a line"), "{breaches:?}");
    }

    #[test]
    fn dependency_may_span_several_lines() {
        let text = "[dependencies]\n# Why.\na = { version = \"1\", features = [\n    \"b\",\n] }\n";
        assert!(without_reason(&file("Cargo.toml", text)).is_empty());
    }

    #[test]
    fn member_without_workspace_settings_is_a_breach() {
        let good = OF_THE_WORKSPACE.join("\n");
        let all = format!("[package]\n{good}\n\n[lints]\nworkspace = true\n");
        let check = |text: &str| found(not_of_the_workspace(&file("crates/x/Cargo.toml", text)));
        assert!(check(&all).is_empty());
        assert_eq!(check(&all.replace("edition.workspace = true", "edition = \"2024\"")).len(), 1);
        assert_eq!(check(&all.replace("[lints]", "[lint]")), ["crates/x/Cargo.toml: needs [lints] workspace = true"]);
    }

    #[test]
    fn deterministic_crate_without_lints_is_a_breach() {
        let mut files = vec![file(DETERMINISTIC_LINTS, "x")];
        files.extend(DETERMINISTIC.iter().map(|name| file(&format!("crates/{name}/clippy.toml"), "x")));
        assert!(not_deterministic(&files).is_empty());
        files[1].text.clear();
        assert_eq!(found(not_deterministic(&files)).len(), 1);
        files.remove(1);
        assert_eq!(found(not_deterministic(&files)).len(), 1);
    }
}
