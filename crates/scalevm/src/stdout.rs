//! Printing that ends the command in order where its output cannot be written.
//!
//! The standard library's `println!` panics when standard output is full. The macros here take its
//! place in this crate: the command unwinds from the line that could not be printed, so that tasks
//! are ended and temporary files removed, and [`guard`] prints the reason in one line. A message
//! lost on standard error cannot be reported.
//!
//! Names come from other programs and from files. Their control characters are printed as escapes,
//! so that no name acts on the terminal.

use bench::Failure;
use stats::printable;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Prints on standard output; a line that cannot be printed ends the command.
macro_rules! print {
    ($($text:tt)*) => { $crate::stdout::print(::std::format_args!($($text)*)) };
}

/// Prints on standard output; a line that cannot be printed ends the command.
macro_rules! println {
    () => { $crate::stdout::print_line(::std::format_args!("")) };
    ($($text:tt)*) => { $crate::stdout::print_line(::std::format_args!($($text)*)) };
}

/// Prints a line to standard error, and drops it if it cannot be printed.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::stdout::complain(::std::format_args!($($text)*)) };
}

/// The payload that unwinds to [`guard`]: the file that could not be written, and the error.
struct Unprintable(&'static str, io::Error);

/// Its name in errors.
pub const NAME: &str = "standard output";

/// True if standard output is for tables only.
static TABLES_ONLY: AtomicBool = AtomicBool::new(false);

/// From here on only [`data`] goes to standard output; other text goes to standard error.
pub fn tables_only() {
    // Relaxed: said before any thread is started.
    TABLES_ONLY.store(true, Relaxed);
}

/// Prints on standard output.
pub fn print(text: Arguments<'_>) {
    let text = text.to_string();
    let shown = printable(&text);
    if TABLES_ONLY.load(Relaxed) {
        let _ = io::stderr().lock().write_all(shown.as_bytes());
    } else {
        printed(io::stdout().lock().write_all(shown.as_bytes()))
    }
}

/// Prints a line on standard output, as one piece.
pub fn print_line(text: Arguments<'_>) {
    if TABLES_ONLY.load(Relaxed) {
        complain(text)
    } else {
        data(text)
    }
}

/// Prints a line on standard output, whatever else goes there.
pub fn data(text: Arguments<'_>) {
    let text = text.to_string() + "\n";
    printed(io::stdout().lock().write_all(printable(&text).as_bytes()));
}

/// Prints a line on standard error.
pub fn complain(text: Arguments<'_>) {
    let text = text.to_string() + "\n";
    let _ = io::stderr().lock().write_all(printable(&text).as_bytes());
}

/// Returns if standard output took the text; otherwise unwinds to [`guard`].
pub fn printed(result: io::Result<()>) {
    written(NAME, result);
}

/// Returns if `file`, which lines go to as they come, took the text; otherwise unwinds to
/// [`guard`].
pub fn written(file: &'static str, result: io::Result<()>) {
    match result {
        // Unwinding already: a second reason would abort the process.
        Err(error) if !thread::panicking() => {
            panic::resume_unwind(Box::new(Unprintable(file, error)));
        }
        _ => {}
    }
}

/// Runs `command`, flushes its output, and makes output that could not be written a failure.
/// If the reader of the output ends first (`head` in a pipe, say), the command ends without a
/// message.
pub fn guard(command: impl FnOnce() -> Result<u8, Failure>) -> Result<u8, Failure> {
    let Unprintable(file, error) = match panic::catch_unwind(AssertUnwindSafe(command)) {
        Ok(result) => {
            let code = result?;
            match io::stdout().flush() {
                Ok(()) => return Ok(code),
                Err(error) => Unprintable(NAME, error),
            }
        }
        Err(payload) => match payload.downcast::<Unprintable>() {
            Ok(unprinted) => *unprinted,
            Err(panic) => panic::resume_unwind(panic),
        },
    };
    match error.kind() {
        ErrorKind::BrokenPipe => Ok(128 + libc::SIGPIPE as u8),
        _ => Err(Failure::file(Path::new(file))(error)),
    }
}
