//! Sizes in the names of back ends.

/// Parses a size. Returns bytes, rounded down to whole sectors. Returns `None` below one sector.
pub(super) fn bytes_of_size(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[number.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" | "KIB" => 10,
        "M" | "MIB" => 20,
        "G" | "GIB" => 30,
        "T" | "TIB" => 40,
        _ => return None,
    };
    let bytes = number.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    Some(bytes / 512 * 512).filter(|&bytes| bytes > 0)
}
