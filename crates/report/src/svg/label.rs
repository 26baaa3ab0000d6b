//! Labels: their width, and positions without overlap.

/// Estimates the width of `text` in a sans-serif font of `size` pixels. It cannot be measured,
/// because no font is available.
pub(crate) fn width_of(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '(' | ')' | '/' | '-' => 0.33,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.88,
        c if c.is_ascii_uppercase() => 0.68,
        c if c.is_ascii() => 0.57,
        // Characters of wide scripts.
        c if c as u32 >= 0x1100 => 1.0,
        _ => 0.6,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// Shortens `text` to at most `width` pixels in a font of `size` pixels. An ellipsis replaces
/// missing characters.
pub(crate) fn shorten(text: &str, size: f64, width: f64) -> String {
    if width_of(text, size) <= width {
        return text.to_owned();
    }
    let mut fitting = String::new();
    for c in text.chars() {
        fitting.push(c);
        if width_of(&fitting, size) + size > width {
            fitting.pop();
            break;
        }
    }
    format!("{}…", fitting.trim_end())
}

/// Returns positions for labels near the positions `wanted`, in the same order. They are at least
/// `gap` apart. If there is enough room, they are within `low..=high`.
pub(crate) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]).then(a.cmp(&b)));
    // Labels that are too close form a block around their mean position. Blocks that touch are
    // joined.
    let mut blocks: Vec<(f64, Vec<usize>)> = Vec::new();
    let half = |count: usize| (count.max(1) - 1) as f64 * gap / 2.0;
    let place = |members: &[usize]| {
        let mean = members.iter().map(|&i| wanted[i]).sum::<f64>() / members.len() as f64;
        let reach = half(members.len());
        mean.min(high - reach).max(low + reach)
    };
    for &label in &order {
        let mut members = vec![label];
        let mut centre = place(&members);
        while let Some((before, others)) = blocks.last() {
            if before + half(others.len()) + gap <= centre - half(members.len()) + 1e-9 {
                break;
            }
            let mut joined = others.clone();
            joined.append(&mut members);
            members = joined;
            blocks.pop();
            centre = place(&members);
        }
        blocks.push((centre, members));
    }
    let mut places = vec![0.0; wanted.len()];
    for (centre, members) in &blocks {
        for (i, &label) in members.iter().enumerate() {
            places[label] = centre - half(members.len()) + i as f64 * gap;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_with_room_keep_their_position() {
        assert_eq!(spread(&[10.0, 90.0, 50.0], 12.0, 0.0, 100.0), [10.0, 90.0, 50.0]);
    }

    #[test]
    fn overlapping_labels_are_spread_within_the_range() {
        let places = spread(&[50.0, 50.0, 51.0], 12.0, 0.0, 100.0);
        assert!((places[1] - places[0] - 12.0).abs() < 1e-9 && (places[2] - places[1] - 12.0).abs() < 1e-9);
        let places = spread(&[99.0, 100.0, 1.0, 0.0], 10.0, 0.0, 100.0);
        assert!(places.iter().all(|place| (0.0..=100.0).contains(place)), "{places:?}");
        assert!(places[3] < places[2] && places[0] < places[1]);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shorten("short", 12.0, 100.0), "short");
        let cut = shorten("a very long name of a process", 12.0, 60.0);
        assert!(cut.ends_with('…') && width_of(&cut, 12.0) <= 72.0, "{cut}");
    }
}
