//! Two profiles, compared.

use super::Place;
use super::files::{self, title};
use crate::cli::ProfileArgs;
use crate::output::profile as output;
use bench::Failure;
use profile::flame::{self, Widths};
use profile::{Difference, Profile, unlike};
use std::path::Path;

/// The default directory of the difference.
const DIRECTORY: &str = "profile-diff";

/// Shows the changes from `before` to `after`.
pub fn run(args: &ProfileArgs, before: &Path, after: &Path) -> Result<u8, Failure> {
    let (before, after) = (files::read(before)?, files::read(after)?);
    let json = args.common.json;
    let directory = Place::of(args.out.as_deref(), json)?;
    let difference = Difference::of(&before, &after);
    if json {
        println!("{}", files::difference_line(&before, &after, &difference))
    } else {
        println!("before: {}", title(&before));
        println!("after:  {}", title(&after));
        output::print_difference(&difference);
    }
    let unlike = unlike(&before.subject, &after.subject);
    if !unlike.is_empty() {
        eprintln!(
            "scalevm: warning: the profiles are of unlike things ({}): differences between them \
             need not be changes",
            unlike.join("; ")
        );
    }
    if let Some(directory) = directory.make(|| DIRECTORY.to_owned())? {
        write(&before, &after, &difference, &directory)?;
        eprintln!(
            "scalevm: differential flame graphs are in {}",
            directory.display()
        );
    }
    Ok(0)
}

fn write(
    before: &Profile,
    after: &Profile,
    difference: &Difference,
    directory: &Path,
) -> Result<(), Failure> {
    let title = format!("{} → {}", title(before), title(after));
    let seconds = (before.task_seconds(), after.task_seconds());
    for (name, stacks) in [
        ("busy", (&before.busy, &after.busy)),
        ("waits", (&before.waits, &after.waits)),
    ] {
        let sides = ((stacks.0, seconds.0), (stacks.1, seconds.1));
        for (file, widths) in [("", Widths::After), ("-before", Widths::Before)] {
            let of = if widths == Widths::After {
                "after"
            } else {
                "before"
            };
            let subtitle = format!(
                "red: more {name}, blue: less; as wide as {of}; {}",
                difference.sentence
            );
            let svg = flame::difference(sides.0, sides.1, widths, &title, &subtitle);
            files::put(directory, &format!("{name}-diff{file}.svg"), svg)?;
        }
    }
    Ok(())
}
