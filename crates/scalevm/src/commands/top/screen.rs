//! The tables on a terminal, and the keys that change them.

use crate::output::top::{Size, Sort, View};
use crate::stdout;
use ::profile::Interval;
use bench::Failure;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::style::Print;
use crossterm::terminal::{self, Clear, ClearType};
use crossterm::{execute, queue};
use std::io::{self, Write};
use std::time::Duration;

/// A terminal that shows tables, as it was before when this is dropped.
pub struct Screen(View);

impl Screen {
    /// Takes the terminal.
    pub fn open(view: View) -> Result<Screen, Failure> {
        let opened = terminal::enable_raw_mode().map(|()| Screen(view));
        let screen = opened.map_err(Failure::start("terminal"))?;
        let begin = (
            terminal::EnterAlternateScreen,
            terminal::DisableLineWrap,
            Hide,
        );
        stdout::printed(execute!(io::stdout(), begin.0, begin.1, begin.2));
        screen.draw();
        Ok(screen)
    }

    /// Shows the next interval.
    pub fn show(&mut self, interval: Interval) {
        self.0.take(interval);
        self.draw();
    }

    /// Waits for a key for `span` at most, and obeys it. Returns false if it says to quit.
    pub fn obey(&mut self, span: Duration) -> Result<bool, Failure> {
        let next = event::poll(span).and_then(|is_there| match is_there {
            true => event::read().map(Some),
            false => Ok(None),
        });
        let goes_on = match next {
            Ok(Some(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                press(&mut self.0, key)
            }
            Ok(Some(_)) => true,
            Ok(None) => return Ok(true),
            // A signal, which the caller looks at.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(Failure::start("terminal")(error)),
        };
        self.draw();
        Ok(goes_on)
    }

    fn draw(&self) {
        let (width, height) = terminal::size().unwrap_or((80, 24));
        let size = Size {
            width: width.into(),
            height: height.into(),
        };
        let lines = self.0.screen(size);
        stdout::printed(drawn(&lines).and_then(|bytes| {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&bytes)?;
            stdout.flush()
        }));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let end = (
            Show,
            terminal::EnableLineWrap,
            terminal::LeaveAlternateScreen,
        );
        // Nobody is left to tell if the terminal is gone.
        let _ = execute!(io::stdout(), end.0, end.1, end.2);
        let _ = terminal::disable_raw_mode();
    }
}

/// All lines at once, so that the terminal does not flicker.
fn drawn(lines: &[String]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for (row, line) in (0..).zip(lines) {
        queue!(
            bytes,
            MoveTo(0, row),
            Clear(ClearType::CurrentLine),
            Print(line)
        )?;
    }
    Ok(bytes)
}

/// Obeys a key. Returns false if it says to quit.
fn press(view: &mut View, key: KeyEvent) -> bool {
    let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if has_control => return false,
        KeyCode::Char('q') => return false,
        KeyCode::Char('s') => view.sort = Sort::Share,
        KeyCode::Char('w') => view.sort = Sort::Waits,
        KeyCode::Char('p') => view.sort = Sort::P99,
        KeyCode::Char('n') => view.sort = Sort::Name,
        KeyCode::Char('t') => view.by_process = !view.by_process,
        KeyCode::Char(' ') => view.frozen = !view.frozen,
        _ => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_the_view_and_quit() {
        let mut view = View::new("all processes", true);
        let plain = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE);
        for (letter, sort) in [
            ('w', Sort::Waits),
            ('p', Sort::P99),
            ('n', Sort::Name),
            ('s', Sort::Share),
        ] {
            assert!(press(&mut view, plain(letter)));
            assert_eq!(view.sort, sort);
        }
        assert!(press(&mut view, plain('t')) && !view.by_process);
        assert!(press(&mut view, plain(' ')) && view.frozen);
        assert!(press(&mut view, plain(' ')) && !view.frozen);
        assert!(press(&mut view, plain('c')) && press(&mut view, plain('x')));
        assert!(!press(&mut view, plain('q')));
        let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(!press(&mut view, control));
    }

    #[test]
    fn each_line_is_cleared_before_it_is_drawn() {
        let lines = ["one".to_owned(), "two".to_owned()];
        let bytes = drawn(&lines).expect("drawn");
        let text = String::from_utf8(bytes).expect("text");
        assert_eq!(text, "\x1b[1;1H\x1b[2Kone\x1b[2;1H\x1b[2Ktwo");
    }
}
