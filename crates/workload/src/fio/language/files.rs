//! Files of a job: given names, names from a format, or separate files for each job.

use super::settings::Settings;
use crate::fio::value::Files;

/// Largest number of names from a format for one job.
pub(super) const NAMES_MAX: u32 = 1 << 16;

/// Returns whether a job has more files than the limit of names.
pub(super) fn are_too_many(settings: &Settings) -> bool {
    let format = settings.text("filename_format").filter(|format| is_shared(format) && format.contains("$filenum"));
    let is_used = settings.text("filename").is_none() && format.is_some();
    is_used && settings.small("nrfiles").unwrap_or(1) > NAMES_MAX
}

/// Returns the files of one copy of a job.
pub(super) fn files(settings: &Settings, job: &str, copy: u32) -> Files {
    let folders = settings.text("directory").map(split).unwrap_or_default();
    // Each copy uses the next folder in the list.
    let folder = folders.get(usize::try_from(copy).unwrap_or(0) % folders.len().max(1)).map_or("", String::as_str);
    if let Some(device) = settings.text("replay_redirect").filter(|_| settings.get("read_iolog").is_some()) {
        return Files::Named(vec![device.to_owned()]);
    }
    if let Some(names) = settings.text("filename") {
        let names = split(names).iter().map(|name| in_folder(folder, name)).collect::<Vec<_>>();
        if !names.is_empty() {
            return Files::Named(names);
        }
    }
    let count = settings.small("nrfiles").unwrap_or(1).max(1);
    match settings.text("filename_format") {
        Some(format) if is_shared(format) => {
            // Without the number of the file in the format, all names would be equal.
            let count = if format.contains("$filenum") { count } else { 1 };
            let name = |file| in_folder(folder, &formatted(format, job, copy, file));
            Files::Named((0..count.min(NAMES_MAX)).map(name).collect())
        }
        _ => Files::Own(count),
    }
}

/// Returns whether files of several jobs can have the same name.
fn is_shared(format: &str) -> bool {
    !(format.contains("$jobname") && format.contains("$jobnum") && format.contains("$filenum"))
}

fn formatted(format: &str, job: &str, copy: u32, file: u32) -> String {
    format
        .replace("$jobname", job)
        .replace("$clientuid", "localhost")
        .replace("$jobnum", &copy.to_string())
        .replace("$filenum", &file.to_string())
}

fn in_folder(folder: &str, name: &str) -> String {
    if folder.is_empty() || name.starts_with('/') {
        name.to_owned()
    } else {
        format!("{}/{name}", folder.trim_end_matches('/'))
    }
}

/// Splits a text at colons, except at colons after a backslash. Removes these backslashes.
fn split(names: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut name = String::new();
    let mut chars = names.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&':') => name.extend(chars.next()),
            ':' => all.push(std::mem::take(&mut name)),
            c => name.push(c),
        }
    }
    all.push(name);
    all.retain(|name| !name.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_colon_is_part_of_the_name() {
        assert_eq!(split(r"/dev/bsg/0\:0\:0\:0:b"), ["/dev/bsg/0:0:0:0", "b"]);
        assert_eq!(split("::a:"), ["a"]);
    }

    #[test]
    fn filename_format_without_the_job_shares_files() {
        assert!(is_shared("testfiles.$filenum"));
        assert!(!is_shared("$jobname.$jobnum.$filenum"));
        assert_eq!(formatted("a/$jobname-$jobnum.$filenum", "job", 2, 7), "a/job-2.7");
    }
}
