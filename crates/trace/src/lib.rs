//! Block traces: readers, writers and what can be read off them.
