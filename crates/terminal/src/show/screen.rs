//! The table on a terminal. It is redrawn at each interval. Keys sort and filter the table, and
//! show details.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use crate::signals::on_signal;
use iosched_attributes::load::{Cell, Kind, Row, Sample, Source};

/// Interval of checks for signals.
const LOOK: Duration = Duration::from_millis(200);
/// Longest time before the first table.
const FIRST: Duration = Duration::from_millis(300);

/// Shows the samples of `source` at each `interval`, until q, Ctrl-C or a signal.
///
/// # Errors
/// The terminal cannot be drawn on, or the source has ended.
pub fn show(source: &mut dyn Source, interval: Duration) -> Result<()> {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ended);
    on_signal(move |_| flag.store(true, Ordering::SeqCst))?;
    std::thread::sleep(interval.min(FIRST));
    let mut screen = Screen::of(source.sample()?);
    let mut terminal =
        ratatui::try_init().context("top cannot draw on this terminal; to print one table, add --once")?;
    let mut turn = || -> Result<()> {
        let mut next = Instant::now() + interval;
        while !ended.load(Ordering::SeqCst) {
            terminal.draw(|frame| screen.draw(frame))?;
            let wait = next.saturating_duration_since(Instant::now()).min(LOOK);
            if event::poll(wait)?
                && let Event::Key(key) = event::read()?
            {
                match screen.key(key) {
                    Action::End => break,
                    Action::Set { row, attribute, value } => {
                        let set = source.set(&row, attribute, &value);
                        screen.message =
                            set.map_or_else(|error| error.to_string(), |()| format!("{attribute} is {value}"));
                    }
                    Action::Nothing => {}
                }
            }
            if Instant::now() >= next {
                next = Instant::now() + interval;
                if !screen.is_paused {
                    screen.take(source.sample()?);
                }
            }
        }
        Ok(())
    };
    let turned = turn();
    ratatui::restore();
    turned
}

/// Action that a key requests from the caller.
#[derive(Debug, PartialEq)]
enum Action {
    Nothing,
    End,
    Set { row: String, attribute: &'static str, value: String },
}

/// Meaning of the keys.
#[derive(Clone, Debug, PartialEq)]
enum Mode {
    /// Keys are commands for the table.
    Table,
    /// The user types the filter.
    Filter,
    /// The user types the value of an attribute.
    Value { row: String, attribute: &'static str, typed: String },
}

/// The shown table and the state of the screen.
struct Screen {
    sample: Sample,
    sorted_by: usize,
    is_descending: bool,
    filter: String,
    /// Id of the selected row. Its position can change.
    chosen: Option<String>,
    shows_details: bool,
    is_paused: bool,
    mode: Mode,
    message: String,
}

impl Screen {
    fn of(sample: Sample) -> Self {
        let sorted_by = sample.sorted_by;
        let is_descending = sample.is_descending(sorted_by);
        let mut screen = Self {
            sample,
            sorted_by,
            is_descending,
            filter: String::new(),
            chosen: None,
            shows_details: false,
            is_paused: false,
            mode: Mode::Table,
            message: String::new(),
        };
        screen.sort();
        screen
    }

    fn take(&mut self, sample: Sample) {
        self.sample = sample;
        self.sort();
    }

    fn sort(&mut self) {
        self.sample.sort(self.sorted_by, self.is_descending);
    }

    /// Returns the rows that match the filter.
    fn rows(&self) -> Vec<&Row> {
        let wanted = self.filter.to_lowercase();
        let has = |row: &&Row| wanted.is_empty() || self.sample.row(row).to_lowercase().contains(&wanted);
        self.sample.rows.iter().filter(has).collect()
    }

    fn key(&mut self, key: KeyEvent) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::Nothing;
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Action::End;
        }
        match &mut self.mode {
            Mode::Table => return self.command(key.code),
            Mode::Filter => match key.code {
                KeyCode::Enter => self.mode = Mode::Table,
                KeyCode::Esc => {
                    self.filter.clear();
                    self.mode = Mode::Table;
                }
                code => typed(&mut self.filter, code),
            },
            Mode::Value { row, attribute, typed: value } => match key.code {
                KeyCode::Enter => {
                    let change = Action::Set { row: row.clone(), attribute, value: value.trim().to_owned() };
                    self.mode = Mode::Table;
                    return change;
                }
                KeyCode::Esc => self.mode = Mode::Table,
                code => typed(value, code),
            },
        }
        Action::Nothing
    }

    fn command(&mut self, code: KeyCode) -> Action {
        self.message.clear();
        match code {
            KeyCode::Char('q') => return Action::End,
            KeyCode::Esc if self.shows_details => self.shows_details = false,
            KeyCode::Char('s') => {
                self.sorted_by = (self.sorted_by + 1) % self.sample.columns.len();
                self.is_descending = self.sample.is_descending(self.sorted_by);
                self.sort();
            }
            KeyCode::Char('r') => {
                self.is_descending = !self.is_descending;
                self.sort();
            }
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::Enter => {
                if self.chosen.is_none() {
                    self.choose(1);
                }
                self.shows_details = !self.shows_details;
            }
            KeyCode::Char(key) => {
                if let Some(&(_, attribute)) = self.sample.settable.iter().find(|(asks, _)| *asks == key) {
                    match self.chosen.clone() {
                        Some(row) => self.mode = Mode::Value { row, attribute, typed: String::new() },
                        None => "select a row first, with the arrow keys".clone_into(&mut self.message),
                    }
                }
            }
            _ => {}
        }
        Action::Nothing
    }

    fn choose(&mut self, by: isize) {
        let rows = self.rows();
        let now = self.chosen.as_ref().and_then(|chosen| rows.iter().position(|row| row.id == *chosen));
        let at = match now {
            Some(now) => now.saturating_add_signed(by).min(rows.len().saturating_sub(1)),
            None => 0,
        };
        self.chosen = rows.get(at).map(|row| row.id.clone());
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let rows = self.rows();
        let details = self.details();
        let below = details.as_ref().map_or(0, |details| details.len() as u16 + 1);
        let areas = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(below),
            Constraint::Length(1),
            Constraint::Length(1),
        ]);
        let [title, heads, table, about, note, keys] = areas.areas(frame.area());
        let state =
            [(self.is_paused, "  paused".to_owned()), (!self.filter.is_empty(), format!("  only {}", self.filter))];
        let state: String = state.into_iter().filter(|(is, _)| *is).map(|(_, state)| state).collect();
        let bold = Style::new().add_modifier(Modifier::BOLD);
        frame.render_widget(Line::styled(format!("{}{state}", self.sample.title), bold), title);
        frame.render_widget(self.heads(), heads);
        // Scroll so that the selected row stays visible.
        let height = usize::from(table.height).max(1);
        let at = self.chosen.as_ref().and_then(|chosen| rows.iter().position(|row| row.id == *chosen)).unwrap_or(0);
        let first = (at + 1).saturating_sub(height);
        let lines: Vec<Line<'_>> = rows.iter().skip(first).take(height).map(|row| self.line(row)).collect();
        frame.render_widget(Paragraph::new(lines), table);
        if let Some(details) = details {
            let lines: Vec<Line<'_>> = details.iter().map(|line| Line::raw(line.as_str())).collect();
            frame.render_widget(
                Paragraph::new(lines).block(Block::new().borders(ratatui::widgets::Borders::TOP)),
                about,
            );
        }
        let message =
            if self.message.is_empty() { self.sample.note.as_deref().unwrap_or_default() } else { &self.message };
        frame.render_widget(Line::raw(message), note);
        frame.render_widget(Line::styled(self.keys(), Style::new().add_modifier(Modifier::REVERSED)), keys);
    }

    fn details(&self) -> Option<&Vec<String>> {
        let chosen = self.chosen.as_ref().filter(|_| self.shows_details)?;
        self.sample.rows.iter().find(|row| row.id == *chosen).map(|row| &row.details)
    }

    /// Returns the line of heads. The head of the sort column is underlined.
    fn heads(&self) -> Line<'static> {
        let spans = self.sample.columns.iter().enumerate().flat_map(|(number, column)| {
            let width = column.width;
            let head = if column.kind == Kind::Text {
                format!("{:width$}", column.head)
            } else {
                format!("{:>width$}", column.head)
            };
            let style = Style::new().fg(Color::Cyan);
            let style = if number == self.sorted_by { style.add_modifier(Modifier::UNDERLINED) } else { style };
            [Span::styled(head, style), Span::raw(" ")]
        });
        Line::from(spans.collect::<Vec<_>>())
    }

    fn line(&self, row: &Row) -> Line<'static> {
        let alarm = row.cells.iter().zip(self.sample.columns).find_map(|(cell, column)| match (cell, column.kind) {
            (Cell::Number(value), Kind::Percent(_, alarming)) if *value >= alarming => Some(Color::Red),
            (Cell::Number(value), Kind::Percent(remarkable, _)) if *value >= remarkable => Some(Color::Yellow),
            _ => None,
        });
        let mut style = alarm.map_or_else(Style::new, |colour| Style::new().fg(colour));
        if self.chosen.as_deref() == Some(row.id.as_str()) {
            style = style.add_modifier(Modifier::REVERSED);
        }
        Line::styled(self.sample.row(row), style)
    }

    fn keys(&self) -> String {
        match &self.mode {
            Mode::Filter => {
                format!("show only rows with: {}_   Enter keeps the filter, Esc shows all rows", self.filter)
            }
            Mode::Value { row, attribute, typed } => {
                format!("{attribute} of {row}: {typed}_   Enter sets the value, Esc cancels")
            }
            Mode::Table => {
                let settable = self.sample.settable.iter().map(|(key, attribute)| format!("  {key} {attribute}"));
                format!("q quit  s sort  r reverse  / filter  p pause  Enter details{}", settable.collect::<String>())
            }
        }
    }
}

fn typed(text: &mut String, code: KeyCode) {
    match code {
        KeyCode::Char(letter) => text.push(letter),
        KeyCode::Backspace => {
            text.pop();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use iosched_attributes::load::Column;

    const COLUMNS: &[Column] = &[
        Column { head: "client", name: "client", width: 10, kind: Kind::Text },
        Column { head: "busy%", name: "busy", width: 5, kind: Kind::Percent(60.0, 90.0) },
    ];

    fn sample(rows: &[(&str, f64)]) -> Sample {
        let row = |&(name, busy): &(&str, f64)| Row {
            id: name.to_owned(),
            cells: vec![Cell::Text(name.to_owned()), Cell::Number(busy)],
            details: vec![format!("all about {name}")],
        };
        let settable = &[('i', "ioprio")];
        let rows = rows.iter().map(row).collect();
        Sample { title: "sda  cfq".to_owned(), columns: COLUMNS, sorted_by: 1, rows, note: None, settable }
    }

    fn shown(screen: &Screen) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(80, 10)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..10).map(line).collect()
    }

    fn press(screen: &mut Screen, keys: &str) -> Action {
        let mut action = Action::Nothing;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                'v' => KeyCode::Down,
                '^' => KeyCode::Esc,
                key => KeyCode::Char(key),
            };
            action = screen.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
        action
    }

    #[test]
    fn keys_sort_filter_select_and_show_details() {
        let mut screen = Screen::of(sample(&[("backup", 10.0), ("db", 95.0), ("web", 20.0)]));
        let lines = shown(&screen);
        assert_eq!(lines[0], "sda  cfq");
        assert_eq!(lines[1], "client     busy%");
        assert_eq!(lines[2..5], ["db            95", "web           20", "backup        10"]);
        assert!(lines[9].starts_with("q quit") && lines[9].ends_with("i ioprio"), "{}", lines[9]);
        press(&mut screen, "s");
        assert_eq!(shown(&screen)[2], "backup        10", "sorted by name, ascending");
        press(&mut screen, "r");
        assert_eq!(shown(&screen)[2], "web           20");
        press(&mut screen, "/D\n");
        let lines = shown(&screen);
        assert_eq!(
            (lines[0].as_str(), lines[2].as_str(), lines[3].as_str()),
            ("sda  cfq  only D", "db            95", "")
        );
        press(&mut screen, "/^v\n");
        assert!(shown(&screen).contains(&"all about web".to_owned()));
        press(&mut screen, "v\n");
        assert!(!shown(&screen).iter().any(|line| line.starts_with("all about")));
        assert_eq!(press(&mut screen, "q"), Action::End);
    }

    #[test]
    fn top_sets_a_clients_priority_and_keeps_the_selection() {
        let mut screen = Screen::of(sample(&[("backup", 10.0), ("db", 95.0)]));
        assert_eq!(press(&mut screen, "i"), Action::Nothing);
        assert!(shown(&screen)[8].contains("select a row first"));
        press(&mut screen, "vv");
        screen.take(sample(&[("backup", 99.0), ("db", 5.0)]));
        let action = press(&mut screen, "iidle\n");
        assert_eq!(action, Action::Set { row: "backup".to_owned(), attribute: "ioprio", value: "idle".to_owned() });
        assert_eq!(press(&mut screen, "iq^"), Action::Nothing, "letters go to the text field");
        assert_eq!(screen.mode, Mode::Table);
    }

    #[test]
    fn table_scrolls_to_selection_and_small_terminals_do_not_panic() {
        let names: Vec<String> = (0..50).map(|number| format!("c{number}")).collect();
        let rows: Vec<_> =
            names.iter().enumerate().map(|(number, name)| (name.as_str(), 50.0 - number as f64)).collect();
        let mut screen = Screen::of(sample(&rows));
        press(&mut screen, &"v".repeat(31));
        assert!(shown(&screen).iter().any(|line| line.starts_with("c30 ")));
        press(&mut screen, "\n");
        let mut terminal = Terminal::new(TestBackend::new(10, 3)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        press(&mut screen, "/nobody\nv\n");
        shown(&screen);
    }
}
