//! Layouts of trace events, from the `format` files of tracefs. The layout of an event differs
//! between versions of Linux.

use std::path::Path;

use crate::roots::read;

/// A field of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// Returns the number in the field. Returns 0 if the event is too short.
    #[inline]
    pub(super) fn number(self, event: &[u8]) -> u64 {
        let Some(bytes) = event.get(self.offset..self.offset + self.size) else { return 0 };
        let mut number = [0; 8];
        // The buffer has the byte order of the machine.
        if cfg!(target_endian = "little") {
            number[..bytes.len()].copy_from_slice(bytes);
        } else {
            number[8 - bytes.len()..].copy_from_slice(bytes);
        }
        u64::from_ne_bytes(number)
    }

    /// Returns the text in the field, up to the first zero byte.
    #[inline]
    pub(super) fn text(self, event: &[u8]) -> &[u8] {
        let bytes = event.get(self.offset..self.offset + self.size).unwrap_or_default();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        &bytes[..end]
    }
}

/// Layout of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Format {
    /// Number of the event in the buffer.
    pub(super) id: u16,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// Reads the layout from the directory of an event.
    pub(super) fn read(directory: &Path) -> Option<Self> {
        Self::parse(&read(&directory.join("format")).ok()?)
    }

    /// Parses a `format` file.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut id = None;
        let mut fields = Vec::new();
        for line in text.lines().map(str::trim) {
            if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim().parse().ok();
            }
            let Some(declared) = line.strip_prefix("field:") else { continue };
            let mut parts = declared.split(';').map(str::trim);
            // The declaration is written in C. The field's name is the last word, without the
            // length of an array.
            let name = parts.next()?.split('[').next()?.split_whitespace().next_back()?.to_owned();
            let number = |word: &str| declared.split(';').find_map(|part| part.trim().strip_prefix(word)?.parse().ok());
            fields.push((name, Field { offset: number("offset:")?, size: number("size:")? }));
        }
        Some(Self { id: id?, fields })
    }

    /// Returns a field that holds a number.
    pub(super) fn number(&self, name: &str) -> Option<Field> {
        self.text(name).filter(|field| field.size <= 8)
    }

    /// Returns a field of any size.
    pub(super) fn text(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, field)| *field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: block_rq_complete\nID: 2107\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:44;\tsize:4;\tsigned:0;\n\nprint fmt: \"%d\"\n";

    #[test]
    fn fields_are_found_by_name() {
        let format = Format::parse(TEXT).unwrap();
        assert_eq!(format.id, 2107);
        assert_eq!(format.number("sector"), Some(Field { offset: 16, size: 8 }));
        assert_eq!(format.text("rwbs"), Some(Field { offset: 34, size: 10 }));
        assert_eq!((format.number("rwbs"), format.number("ioprio")), (None, None));
        assert_eq!(Format::parse("field:int x;\toffset:0;\tsize:4;"), None);
    }

    #[test]
    fn a_field_beyond_the_event_is_empty() {
        let mut event = vec![0; 20];
        event[16..20].copy_from_slice(&7_u32.to_ne_bytes());
        event[8..11].copy_from_slice(b"RA\0");
        assert_eq!(Field { offset: 16, size: 4 }.number(&event), 7);
        assert_eq!(Field { offset: 18, size: 4 }.number(&event), 0);
        assert_eq!(Field { offset: 8, size: 8 }.text(&event), b"RA");
        assert_eq!(Field { offset: 18, size: 8 }.text(&event), b"");
    }
}
