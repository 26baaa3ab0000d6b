//! What tasks do: synthetic programs, scenarios and trace replay.
