//! Words of command lines that people may copy.
//!
//! `shlex` would put quotes round `cfq:slice_idle=0`, which every shell takes as it is.

/// As a POSIX shell wants it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
