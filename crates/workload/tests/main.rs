//! fio's job files, and the I/Os generated from them.

mod common;
mod fio_command_line;
mod fio_corpus;
mod fio_examples;
mod fio_language;
mod fio_statistics;
