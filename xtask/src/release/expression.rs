//! SPDX licence expressions, such as `(MIT OR Apache-2.0) AND Unicode-3.0`.

/// Returns whether the licences in `allowed` satisfy an expression. A wrong expression is never
/// satisfied.
pub(super) fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut words = &words[..];
    either(&mut words, allowed) == Some(true) && words.is_empty()
}

/// Parses alternatives at the beginning of `words`. One of them must be allowed.
fn either(words: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    let mut holds = both(words, allowed)?;
    while let ["OR", rest @ ..] = words {
        *words = rest;
        holds |= both(words, allowed)?;
    }
    Some(holds)
}

/// Parses terms that must all be allowed. `AND` binds stronger than `OR`.
fn both(words: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    let mut holds = term(words, allowed)?;
    while let ["AND", rest @ ..] = words {
        *words = rest;
        holds &= term(words, allowed)?;
    }
    Some(holds)
}

fn term(words: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let holds = either(words, allowed)?;
            *words = words.strip_prefix(&[")"])?;
            Some(holds)
        }
        [licence, "WITH", exception, rest @ ..] => {
            *words = rest;
            Some(allowed.contains(&format!("{licence} WITH {exception}").as_str()))
        }
        [licence, rest @ ..] if !["AND", "OR", "WITH", ")"].contains(licence) => {
            *words = rest;
            Some(allowed.contains(licence))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[&str] = &["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];

    #[test]
    fn or_expression_needs_one_allowed_licence() {
        assert!(is_allowed("GPL-2.0 OR MIT", ALLOWED));
        assert!(!is_allowed("GPL-2.0 OR BSL-1.0", ALLOWED));
    }

    #[test]
    fn and_expression_needs_every_licence_allowed() {
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0", ALLOWED));
        assert!(!is_allowed("MIT AND GPL-2.0", ALLOWED));
        assert!(is_allowed("GPL-2.0 AND MIT OR MIT", ALLOWED), "AND binds more tightly");
        assert!(!is_allowed("GPL-2.0 AND (MIT OR MIT)", ALLOWED));
    }

    #[test]
    fn exception_is_allowed_only_with_its_licence() {
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception", ALLOWED));
        assert!(!is_allowed("Apache-2.0", ALLOWED));
        assert!(!is_allowed("MIT WITH LLVM-exception", ALLOWED));
    }

    #[test]
    fn invalid_expression_is_not_allowed() {
        for text in ["", "MIT OR", "(MIT", "MIT)", "MIT MIT", "AND MIT"] {
            assert!(!is_allowed(text, ALLOWED), "{text}");
        }
    }
}
