//! `scalevm top`: what running programs wait for, as it happens.

mod screen;

use super::{prepare, watched};
use crate::cli::TopArgs;
use crate::output::top::View;
use crate::output::top::prometheus::Counters;
use crate::output::{file, profile};
use ::profile::Interval;
use bench::profiling::Live;
use bench::{Failure, interrupt};
use perf::{Options, Whom};
use screen::Screen;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Samples per second and CPU: they tell busy threads, not functions.
const FREQUENCY: u32 = 199;
/// The longest time between looks at keys, and at what is left to watch.
const LOOK: Duration = Duration::from_millis(100);

/// Watches until the user or the watched processes end it.
pub fn run(args: &TopArgs) -> Result<u8, Failure> {
    let whom = args.attached.whom().map_err(Failure::Recording)?;
    let whom = whom.unwrap_or(Whom::All);
    if let Some(path) = &args.prometheus {
        file::check(path)?;
    }
    prepare()?;
    let by_process = !matches!(whom, Whom::Processes(_));
    let options = Options {
        frequency: FREQUENCY,
        by_thread: true,
        ..Options::default()
    };
    let live = Live::start(whom, &options)?;
    profile::notes(live.missing());
    let mut output = Output::of(args, &live, by_process)?;
    watch(live, args, &mut output)?;
    drop(output);
    Ok(watched(args.count.is_some()))
}

fn watch(mut live: Live, args: &TopArgs, output: &mut Output) -> Result<(), Failure> {
    let begun = Instant::now();
    for number in 1.. {
        // From the start, so that intervals do not drift.
        let until = begun + args.interval.mul_f64(number as f64);
        let ends = !output.wait(until, &live)? || args.count == Some(number);
        let interval = live.interval()?;
        // What has ended before an interval began did nothing in it.
        if !(ends && interval.threads.is_empty()) {
            output.put(interval)?;
        }
        if ends {
            break;
        }
    }
    Ok(())
}

/// Where intervals go.
enum Output {
    Screen(Box<Screen>),
    Plain(View),
    Json,
    Metrics(Box<Counters>, PathBuf),
}

impl Output {
    fn of(args: &TopArgs, live: &Live, by_process: bool) -> Result<Output, Failure> {
        let view = View::new(live.name(), by_process);
        let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
        let output = match &args.prometheus {
            Some(path) => Output::Metrics(Box::default(), path.clone()),
            None if args.json => Output::Json,
            None if is_terminal => return Ok(Output::Screen(Box::new(Screen::open(view)?))),
            None => Output::Plain(view),
        };
        let end = match args.count {
            Some(count) => format!("for {}", stats::count(count, "interval")),
            None => "until Ctrl-C".to_owned(),
        };
        eprintln!("scalevm: watching {} {end}", live.name());
        Ok(output)
    }

    /// Waits until `end`; returns false if it is the end of watching.
    fn wait(&mut self, end: Instant, live: &Live) -> Result<bool, Failure> {
        loop {
            if interrupt::pending().is_some() || live.is_over() {
                return Ok(false);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(true);
            }
            let look = left.min(LOOK);
            match self {
                Output::Screen(screen) => {
                    if !screen.obey(look)? {
                        return Ok(false);
                    }
                }
                _ => interrupt::sleep(look),
            }
        }
    }

    fn put(&mut self, interval: Interval) -> Result<(), Failure> {
        match self {
            Output::Screen(screen) => screen.show(interval),
            Output::Plain(view) => {
                view.take(interval);
                view.plain().iter().for_each(|line| println!("{line}"));
                println!();
            }
            Output::Json => {
                let line = serde_json::to_string(&interval);
                println!("{}", line.expect("numbers and strings always serialize"))
            }
            Output::Metrics(counters, path) => {
                counters.add(&interval);
                file::write(path, counters.text().as_bytes())?;
            }
        }
        Ok(())
    }
}
