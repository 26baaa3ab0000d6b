//! Software bills of materials in the format of CycloneDX 1.5: <https://cyclonedx.org/docs/1.5/json/>.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::dist::metadata::{Metadata, Package};
use crate::dist::{Recipe, VERSION, printed};

/// The file `Cargo.lock`, which has the checksums of crates from a registry.
#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Checksums of crates, by name and version.
type Checksums = BTreeMap<(String, String), String>;

/// Returns the bill of materials of the first crate in `linked`. Its program contains all these
/// crates.
pub(super) fn bill(recipe: &Recipe, metadata: &Metadata, linked: &[&Package]) -> Result<String> {
    let lock: Lock = toml::from_str(&fs::read_to_string(recipe.root.join("Cargo.lock"))?)?;
    let checksums: Checksums =
        lock.package.into_iter().filter_map(|it| Some(((it.name, it.version), it.checksum?))).collect();
    let seconds = format!("--date=@{}", recipe.epoch);
    let time = printed(recipe.command("date").args(["--utc", &seconds, "+%Y-%m-%dT%H:%M:%SZ"]))?;
    let (subject, others) = linked.split_first().context("a program has a crate")?;
    let mut about = component(subject, &checksums);
    about["type"] = json!("application");
    let dependencies: Vec<Value> = linked
        .iter()
        .map(|package| {
            let needs: Vec<String> = metadata.needs(package, linked).into_iter().map(url).collect();
            json!({ "ref": url(package), "dependsOn": needs })
        })
        .collect();
    let document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.trim(),
            "tools": { "components": [{ "type": "application", "name": "cargo xtask release", "version": VERSION }] },
            "component": about,
        },
        "components": others.iter().map(|package| component(package, &checksums)).collect::<Vec<_>>(),
        "dependencies": dependencies,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// Returns the identifier of a crate: <https://github.com/package-url/purl-spec>.
fn url(package: &Package) -> String {
    // A version such as 1.0.0+2 has a plus sign, which an identifier must not have.
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

fn component(package: &Package, checksums: &Checksums) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": url(package),
        "name": package.name,
        "version": package.version,
        "purl": url(package),
    });
    if let Some(description) = &package.description {
        component["description"] = json!(description.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if let Some(expression) = package.expression() {
        component["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(checksum) = checksums.get(&(package.name.clone(), package.version.clone())) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &package.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::metadata::COMMAND;

    /// Creates the bill of a program in this repository. The test needs only the metadata.
    fn document() -> (Value, usize) {
        let recipe = Recipe::new(None, "release-artefacts", true).unwrap();
        let metadata = Metadata::read(&recipe.root).unwrap();
        let linked = metadata.linked(&recipe.root, COMMAND).unwrap();
        let text = bill(&recipe, &metadata, &linked).unwrap();
        (serde_json::from_str(&text).unwrap(), linked.len())
    }

    #[test]
    fn the_bill_has_every_crate_of_the_command_once() {
        let (document, count) = document();
        let components = document["components"].as_array().unwrap();
        assert_eq!(components.len() + 1, count);
        assert_eq!(document["metadata"]["component"]["name"], COMMAND);
        let mut references: Vec<&str> = components.iter().map(|it| it["bom-ref"].as_str().unwrap()).collect();
        let named = references.len();
        references.sort_unstable();
        references.dedup();
        assert_eq!(references.len(), named);
        for component in components {
            assert!(component["licenses"][0]["expression"].is_string(), "{component}");
            let is_ours = component["name"].as_str().unwrap().starts_with("iosched");
            assert_eq!(component["hashes"].is_array(), !is_ours, "{component}");
        }
        assert!(components.iter().any(|it| it["name"] == "serde_json"));
        assert!(!components.iter().any(|it| it["name"] == "proptest"), "tests are not in the program");
        // Dependencies must name only components of the bill.
        for edge in document["dependencies"].as_array().unwrap() {
            for needed in edge["dependsOn"].as_array().unwrap() {
                assert!(references.contains(&needed.as_str().unwrap()), "{needed}");
            }
        }
    }
}
