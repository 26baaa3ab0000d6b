//! The text of a pasted command line. This module handles the prompts of shells, the quotes and
//! dashes of word processors, and variables, and splits the text into words.

/// Returns the number of words of a shell prompt at the front of a line: `$`, `root@db:~#`,
/// `[root@db ~]#`.
pub(super) fn prompt(words: &[String]) -> usize {
    let ends = |word: &String| word.ends_with('$') || word.ends_with('#');
    match words {
        [first, ..] if first == "$" || first == "#" || (first.contains('@') && ends(first)) => 1,
        [first, second, ..] if first.starts_with('[') && first.contains('@') && ends(second) => 2,
        _ => 0,
    }
}

/// Variables in fio's options that fio itself replaces.
const FIO_VARIABLES: [&str; 8] =
    ["jobname", "jobnum", "filenum", "clientuid", "pagesize", "mb_memory", "ncpus", "numjobs"];

/// Returns a text without a Windows prompt: `C:\fio>` or `PS C:\fio>`.
pub(super) fn without_windows_prompt(text: &str) -> &str {
    let path = text.trim_start();
    let path = path.strip_prefix("PS ").unwrap_or(path);
    let is_drive = path.starts_with(|c: char| c.is_ascii_alphabetic()) && path[1..].starts_with(":\\");
    match path.split_once('>').filter(|_| is_drive) {
        Some((folder, rest)) if !folder.contains(['\'', '"']) => rest,
        _ => text,
    }
}

/// Returns a text in which shell quotes replace the quotes of a word processor.
pub(super) fn plain_punctuation(text: &str) -> String {
    text.replace(['\u{201c}', '\u{201d}', '\u{201e}'], "\"").replace(['\u{2018}', '\u{2019}'], "'")
}

/// Replaces the long dashes that a word processor writes instead of `--` or `-` before an option.
pub(super) fn plain_dashes(word: &mut String) {
    let name = word.trim_start_matches(['-', '\u{2010}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2212}']);
    let dashes = &word[..word.len() - name.len()];
    if dashes.is_ascii() || name.is_empty() {
        return;
    }
    let is_long = dashes.chars().count() > 1 || dashes == "\u{2014}" || name.contains('=') || name.len() > 2;
    *word = format!("{}{name}", if is_long { "--" } else { "-" });
}

/// Replaces variables with the values of the assignments before them (`SIZE=1G; ...`,
/// `export SIZE=1G`).
pub(super) fn put_values(words: &mut [String]) {
    let mut values: Vec<(String, String)> = Vec::new();
    let mut is_start = true;
    for word in words {
        if !values.is_empty() && word.contains('$') {
            *word = with_values(word, &values);
        }
        match word.split_once('=').filter(|_| is_start && is_variable(word)) {
            Some((name, value)) => values.push((name.to_owned(), value.to_owned())),
            None => is_start = [";", "&&", "&", "export"].contains(&word.as_str()),
        }
    }
}

/// Returns a word in which values replace the variables `$name` and `${name}`. The last assignment
/// counts.
fn with_values(word: &str, values: &[(String, String)]) -> String {
    let mut parts = word.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = match part.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some(inner) => inner,
            None => part.split_at(name_length(part)),
        };
        match values.iter().rev().find(|(known, _)| known == name) {
            Some((_, value)) => text.extend([value, rest]),
            None => text.extend(["$", part]),
        }
    }
    text
}

fn name_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// Returns the name of the first variable `$name` in a word that a shell would replace. fio itself
/// replaces `${name}` and some `$name`.
pub(super) fn variable(word: &str) -> Option<&str> {
    word.split('$').skip(1).find_map(|part| {
        let name = &part[..name_length(part)];
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        (is_name && !FIO_VARIABLES.contains(&name)).then_some(name)
    })
}

/// Returns whether a word is an assignment `NAME=value`, which can precede a program.
pub(super) fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(char::is_numeric)
    })
}

/// Splits a text into words as a shell does. `;`, `|`, `&` and `&&` are separate words. Returns
/// `None` if a quote is not closed.
pub(super) fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let escaped = chars.next().filter(|escaped| *escaped != '\n');
                word = word.or_else(|| escaped.map(|_| String::new()));
                word.iter_mut().for_each(|word| word.extend(escaped));
            }
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        end if end == c => break,
                        '\\' if c == '"' => word.push(chars.next()?),
                        inside => word.push(inside),
                    }
                }
            }
            // `2>&1` and `&>file` are redirections.
            '&' if word.as_ref().is_some_and(|word| word.ends_with('>')) || chars.peek() == Some(&'>') => {
                word.get_or_insert_default().push(c);
            }
            ';' | '|' | '&' => {
                words.extend(word.take());
                let twice = c == '&' && chars.next_if_eq(&'&').is_some();
                words.push(if twice { "&&".to_owned() } else { c.to_string() });
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}
