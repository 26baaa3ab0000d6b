//! The syntax of parameter files: `type name { field = value, ... }`.
//!
//! A value is a number, a word, a list `[ ... ]` or another block. `#` begins a comment. The name
//! of a field is the text before `=`, and can have several words.

use std::cell::Cell;

use super::error::DiskSimError;

/// Largest nesting of blocks and lists.
const DEPTH_MAX: u32 = 16;

/// Value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    /// Words that are not a number, a list or a block, separated by one space.
    Words(String),
    List(Vec<Located>),
    Block(Block),
}

/// A value, and the line on which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Located {
    pub(crate) line: u32,
    pub(crate) value: Value,
}

/// A block of fields.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    /// Type of the block, such as `dm_disk`.
    pub(crate) kind: String,
    /// Name of the block; empty if it has none.
    pub(crate) name: String,
    pub(crate) line: u32,
    fields: Vec<Field>,
}

/// A field of a block.
#[derive(Clone, Debug, PartialEq)]
struct Field {
    name: String,
    value: Located,
    /// Whether the import has read the field.
    is_read: Cell<bool>,
}

impl Block {
    /// Returns the field with this name. The space between its words does not matter.
    pub(crate) fn field(&self, name: &str) -> Option<&Located> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        field.is_read.set(true);
        Some(&field.value)
    }

    /// Returns the fields that the import has not read, with their names. The search covers this
    /// block and all blocks in it that were read.
    pub(crate) fn unread(&self) -> Vec<(&str, &Located)> {
        let mut unread = Vec::new();
        for Field { name, value, is_read } in &self.fields {
            match &value.value {
                _ if !is_read.get() => unread.push((name.as_str(), value)),
                Value::Block(block) => unread.extend(block.unread()),
                Value::List(list) => {
                    for located in list {
                        if let Value::Block(block) = &located.value {
                            unread.extend(block.unread());
                        }
                    }
                }
                _ => {}
            }
        }
        unread
    }

    /// Returns a field. A missing field is an error.
    pub(crate) fn required(&self, file: &str, name: &str) -> Result<&Located, DiskSimError> {
        self.field(name).ok_or_else(|| {
            let problem = format!("{} has no field {name:?}", self.kind);
            DiskSimError::at(file, self.line, problem, "add the field, because a profile needs its value")
        })
    }

    /// Returns a number within `allowed`.
    pub(crate) fn number(&self, file: &str, name: &str, allowed: (f64, f64)) -> Result<f64, DiskSimError> {
        number(file, name, self.required(file, name)?, allowed)
    }

    /// Returns an integer from 0 to `most`.
    pub(crate) fn whole(&self, file: &str, name: &str, most: u32) -> Result<u32, DiskSimError> {
        whole(file, name, self.required(file, name)?, most.into()).map(|value| value as u32)
    }

    /// Returns a field that is 0 or 1.
    pub(crate) fn flag(&self, file: &str, name: &str) -> Result<bool, DiskSimError> {
        Ok(self.whole(file, name, 1)? == 1)
    }

    /// Returns a field that is a block.
    pub(crate) fn block(&self, file: &str, name: &str) -> Result<&Block, DiskSimError> {
        let located = self.required(file, name)?;
        match &located.value {
            Value::Block(block) => Ok(block),
            _ => {
                Err(DiskSimError::at(file, located.line, format!("{name} is not a block"), "it must be `type { ... }`"))
            }
        }
    }

    /// Returns a field that is a list.
    pub(crate) fn list(&self, file: &str, name: &str) -> Result<&[Located], DiskSimError> {
        let located = self.required(file, name)?;
        match &located.value {
            Value::List(list) => Ok(list),
            _ => Err(DiskSimError::at(file, located.line, format!("{name} is not a list"), "it must be `[ ... ]`")),
        }
    }
}

/// Returns a number within `allowed`.
pub(crate) fn number(file: &str, name: &str, located: &Located, allowed: (f64, f64)) -> Result<f64, DiskSimError> {
    match located.value {
        Value::Number(value) if (allowed.0..=allowed.1).contains(&value) => Ok(value),
        Value::Number(value) => Err(DiskSimError::at(
            file,
            located.line,
            format!("{name} = {value} is out of range"),
            format!("it must be from {} to {}", allowed.0, allowed.1),
        )),
        _ => Err(DiskSimError::at(file, located.line, format!("{name} is not a number"), "it must be a number")),
    }
}

/// Returns an integer from 0 to `most`.
pub(crate) fn whole(file: &str, name: &str, located: &Located, most: u64) -> Result<u64, DiskSimError> {
    let value = number(file, name, located, (0.0, most as f64))?;
    if value.fract() != 0.0 {
        let problem = format!("{name} = {value} is not a whole number");
        return Err(DiskSimError::at(file, located.line, problem, "write a whole number"));
    }
    Ok(value as u64)
}

/// A token of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    /// One of `{ } [ ] = ,`.
    Mark(char),
}

/// Parses the first block of a file.
pub(crate) fn parse(file: &str, text: &str) -> Result<Block, DiskSimError> {
    let mut parser = Parser { file, tokens: tokens(text), at: 0 };
    let line = parser.line();
    match parser.value(0)?.value {
        Value::Block(block) => Ok(block),
        _ => Err(DiskSimError::at(file, line, "the block is missing", "a description must begin with `type name {`")),
    }
}

fn tokens(text: &str) -> Vec<(u32, Token<'_>)> {
    let mut tokens = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or("");
        let mut word_start = None;
        for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
            let is_mark = "{}[]=,".contains(c);
            if is_mark || c.is_whitespace() {
                if let Some(start) = word_start.take() {
                    tokens.push((number, Token::Word(&line[start..at])));
                }
            } else {
                word_start.get_or_insert(at);
            }
            if is_mark {
                tokens.push((number, Token::Mark(c)));
            }
        }
    }
    tokens
}

struct Parser<'t> {
    file: &'t str,
    tokens: Vec<(u32, Token<'t>)>,
    at: usize,
}

impl<'t> Parser<'t> {
    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |&(line, _)| line)
    }

    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at).map(|&(_, token)| token)
    }

    fn next_if(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    /// Returns the words from here to the end of the line, or to a mark.
    fn words(&mut self) -> Vec<&'t str> {
        let line = self.line();
        let mut words = Vec::new();
        while let Some(Token::Word(word)) = self.peek().filter(|_| self.line() == line) {
            words.push(word);
            self.at += 1;
        }
        words
    }

    fn error<T>(&self, wanted: &str) -> Result<T, DiskSimError> {
        let found = match self.peek() {
            None => "found the end of the file".to_owned(),
            Some(Token::Word(word)) => format!("found {word:?}"),
            Some(Token::Mark(mark)) => format!("found '{mark}'"),
        };
        Err(DiskSimError::at(self.file, self.line(), found, format!("expected {wanted}")))
    }

    fn value(&mut self, depth: u32) -> Result<Located, DiskSimError> {
        let line = self.line();
        if depth > DEPTH_MAX {
            return self.error("fewer levels of blocks and lists");
        }
        if self.next_if('[') {
            let list = self.list(depth)?;
            return Ok(Located { line, value: Value::List(list) });
        }
        let words = self.words();
        if self.next_if('{') {
            let (kind, name) = words.split_first().map_or(("", String::new()), |(kind, name)| (*kind, name.join(" ")));
            let fields = self.fields(depth)?;
            return Ok(Located { line, value: Value::Block(Block { kind: kind.to_owned(), name, line, fields }) });
        }
        let value = match words[..] {
            [] => return self.error("a value"),
            [word] => word.parse().map_or_else(|_| Value::Words(word.to_owned()), Value::Number),
            _ => Value::Words(words.join(" ")),
        };
        Ok(Located { line, value })
    }

    /// Parses the rest of a list after `[`. Commas separate values. A comma after the last value is
    /// allowed.
    fn list(&mut self, depth: u32) -> Result<Vec<Located>, DiskSimError> {
        let mut list = Vec::new();
        while !self.next_if(']') {
            list.push(self.value(depth + 1)?);
            if !self.next_if(',') && self.peek() != Some(Token::Mark(']')) {
                return self.error("',' or ']'");
            }
        }
        Ok(list)
    }

    /// Parses the rest of a block after `{`.
    fn fields(&mut self, depth: u32) -> Result<Vec<Field>, DiskSimError> {
        let mut fields: Vec<Field> = Vec::new();
        while !self.next_if('}') {
            let name = self.words().join(" ");
            if name.is_empty() || !self.next_if('=') {
                return self.error("a field `name = value`");
            }
            let line = self.line();
            let value = self.value(depth + 1)?;
            if fields.iter().any(|known| known.name == name) {
                let problem = format!("{name} appears twice");
                return Err(DiskSimError::at(self.file, line, problem, "give each field of a block once"));
            }
            fields.push(Field { name, value, is_read: Cell::new(false) });
            if !self.next_if(',') && self.peek() != Some(Token::Mark('}')) {
                return self.error("',' or '}'");
            }
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lists_and_comments_are_read() {
        let text = "disk Some_Name {\n  Field one = 3, # a comment, with = and {\n  Inner = part { x = 0.5 },\n  \
                    List = [ 1,\n 2, ],\n Empty = [ ],\n Source = source some.file\n} # end\n";
        let block = parse("a.model", text).unwrap();
        assert_eq!((block.kind.as_str(), block.name.as_str()), ("disk", "Some_Name"));
        assert_eq!(block.whole("a.model", "Field one", 10), Ok(3));
        assert_eq!(block.block("a.model", "Inner").unwrap().number("a.model", "x", (0.0, 1.0)), Ok(0.5));
        let list = block.list("a.model", "List").unwrap();
        assert_eq!(list.iter().map(|located| located.line).collect::<Vec<_>>(), [4, 5]);
        assert!(block.list("a.model", "Empty").unwrap().is_empty());
        assert_eq!(block.field("Source").unwrap().value, Value::Words("source some.file".to_owned()));
    }

    #[test]
    fn errors_name_the_line() {
        let message = |text: &str| parse("a.model", text).unwrap_err().to_string();
        assert_eq!(message("disk {\n  a = \n}"), "a.model:3: found '}'; expected a value");
        assert_eq!(message("disk {\n  a = 1\n  b = 2 }"), "a.model:3: found \"b\"; expected ',' or '}'");
        assert_eq!(message("disk { a = 1, a = 2 }"), "a.model:1: a appears twice; give each field of a block once");
        assert_eq!(message("disk { a = [1, 2"), "a.model:1: found the end of the file; expected ',' or ']'");
        assert_eq!(message(""), "a.model:1: found the end of the file; expected a value");
        let block = parse("a.model", "disk {\n n = 7.5, w = x }").unwrap();
        assert_eq!(
            block.whole("a.model", "n", 9).unwrap_err().to_string(),
            "a.model:2: n = 7.5 is not a whole number; write a whole number"
        );
        assert_eq!(
            block.whole("a.model", "n", 7).unwrap_err().to_string(),
            "a.model:2: n = 7.5 is out of range; it must be from 0 to 7"
        );
        assert!(block.number("a.model", "w", (0.0, 1.0)).unwrap_err().to_string().contains("w is not a number"));
        assert!(block.required("a.model", "z").unwrap_err().to_string().contains("no field \"z\""));
    }

    #[test]
    fn too_deep_nesting_is_an_error() {
        assert!(parse("a.model", &"x = [".repeat(10_000)).is_err());
        assert!(parse("a.model", &format!("d {{ x = {}", "[".repeat(10_000))).is_err());
    }
}
