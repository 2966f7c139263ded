//! The parts of manual pages that `--help` lacks: examples, and the meanings of exit codes.

/// The page of one command.
pub struct Page {
    /// The command, as its page is called: `scalevm-check-races`.
    pub command: &'static str,
    /// Aims, each with the line that reaches it.
    pub examples: &'static [(&'static str, &'static str)],
    /// Exit codes in addition to [`COMMON`].
    pub exits: &'static [(u8, &'static str)],
}

/// Exit codes that every command may have.
pub const COMMON: [(u8, &str); 3] = [
    (0, "Done."),
    (2, "Bad usage or input, or output that cannot be written."),
    (
        130,
        "Interrupted (128 plus the signal); finished results are kept.",
    ),
];

const FAILED: (u8, &str) = (4, "A task, a command or the target failed.");
const BROKEN: (u8, &str) = (1, "Something is broken.");

const NO_STATUS: &[(u8, &str)] = &[
    FAILED,
    (
        125,
        "The kernel panicked, or the machine stopped without giving a reason. All other codes are \
         the program's.",
    ),
];

const fn page(
    command: &'static str,
    examples: &'static [(&'static str, &'static str)],
    exits: &'static [(u8, &'static str)],
) -> Page {
    Page {
        command,
        examples,
        exits,
    }
}

pub const PAGES: &[Page] = &[
    page(
        "scalevm",
        &[
            ("Tell the story of mmap1, and leave a page:", "scalevm"),
            (
                "See how a workload scales here:",
                "scalevm sweep mmap1 --threads",
            ),
            (
                "See why it does not scale:",
                "scalevm profile mmap1 --threads -t 4",
            ),
        ],
        &[
            (
                1,
                "Compared: slower; checked: broken; reproduced, predicted: something misses.",
            ),
            (
                3,
                "Compared: inconclusive; doctor: figures would be doubtful.",
            ),
            FAILED,
        ],
    ),
    page(
        "scalevm-list",
        &[("All names, for a script:", "scalevm list --json")],
        &[],
    ),
    page(
        "scalevm-run",
        &[
            (
                "As will-it-scale's mmap1_threads:",
                "scalevm run mmap1 -t 4 --threads",
            ),
            ("A workload of your own:", "scalevm run ./mine.c -t 2"),
            (
                "On a simulated machine of 96 CPUs, and keep it:",
                "scalevm run mmap1 -t 96 --machine freebsd-96 --vm freebsd-di --store results",
            ),
        ],
        &[FAILED],
    ),
    page(
        "scalevm-sweep",
        &[
            (
                "The kernel of this computer:",
                "scalevm sweep page_fault1 --threads --json",
            ),
            (
                "Two builds of scalevm's own VM on a simulated machine:",
                "scalevm sweep mmap1 --machine freebsd-96 --vm freebsd-di,scalevm",
            ),
        ],
        &[FAILED],
    ),
    page(
        "scalevm-profile",
        &[
            (
                "The bottleneck of four threads:",
                "scalevm profile mmap1 --threads -t 4",
            ),
            ("What a change did:", "scalevm profile --diff before after"),
        ],
        &[FAILED],
    ),
    page(
        "scalevm-compare",
        &[
            (
                "Two files of numbers, as ministat does:",
                "scalevm compare before.txt after.txt",
            ),
            (
                "Two builds of scalevm's own VM, run in turn:",
                "scalevm compare --workload mmap1 -t 2 freebsd-di scalevm",
            ),
            (
                "Two commands:",
                "scalevm compare --command 'gzip -1 <f' 'gzip -9 <f'",
            ),
        ],
        &[
            (1, "Slower."),
            (3, "Inconclusive; in a self-test: too many false alarms."),
            FAILED,
        ],
    ),
    page(
        "scalevm-history",
        &[
            (
                "What changed, and when:",
                "scalevm history results --workload mmap1",
            ),
            (
                "For will-it-scale's plots:",
                "scalevm history results --workload mmap1 --on os --export csv",
            ),
        ],
        &[],
    ),
    page(
        "scalevm-report",
        &[(
            "Before and after, on one page:",
            "scalevm report before.jsonl after.jsonl -o report.html",
        )],
        &[],
    ),
    page(
        "scalevm-latency",
        &[("A film during a build:", "scalevm latency build -t 4")],
        &[FAILED],
    ),
    page(
        "scalevm-locks",
        &[
            ("Locks on this computer:", "scalevm locks --threads 1,2,4"),
            ("On a simulated one:", "scalevm locks --machine freebsd-96"),
        ],
        &[FAILED],
    ),
    page(
        "scalevm-reproduce",
        &[(
            "All case studies, in two minutes:",
            "scalevm reproduce --quick",
        )],
        &[(1, "Something misses."), FAILED],
    ),
    page(
        "scalevm-predict",
        &[
            (
                "The preset and the machine that represent each published curve:",
                "scalevm predict --list",
            ),
            ("The curves of one source:", "scalevm predict kogan-cna"),
            (
                "Only the sources that the simulator's authors may look at:",
                "scalevm predict --half open",
            ),
        ],
        &[(1, "A prediction misses its band."), FAILED],
    ),
    page(
        "scalevm-scaling",
        &[(
            "Three workloads, on up to 96 CPUs:",
            "scalevm scaling mmap1 brk1 fork1 --cpus 1,8,96",
        )],
        &[FAILED],
    ),
    page(
        "scalevm-campaign",
        &[(
            "All points of a plan, here:",
            "scalevm campaign run plan.toml",
        )],
        &[],
    ),
    page(
        "scalevm-campaign-run",
        &[
            (
                "The state of a campaign:",
                "scalevm campaign run plan.toml --list",
            ),
            (
                "The second of eight parts:",
                "scalevm campaign run plan.toml --shard 2/8",
            ),
            (
                "An array job of Slurm, each task at most an hour:",
                "scalevm campaign run plan.toml --engine slurm -- --time=60",
            ),
        ],
        &[
            (
                1,
                "All points are done, and something is broken or misses in one of them.",
            ),
            (4, "A point or the engine failed; other results are kept."),
        ],
    ),
    page(
        "scalevm-campaign-collect",
        &[(
            "All results as one file:",
            "scalevm campaign collect plan.toml -o all.jsonl",
        )],
        &[(1, "Something is broken or misses in one of the points.")],
    ),
    page(
        "scalevm-calibrate",
        &[(
            "A profile of this computer:",
            "scalevm calibrate --quick -o here.toml",
        )],
        &[FAILED],
    ),
    page(
        "scalevm-check",
        &[("Search for races in all scenarios:", "scalevm check races")],
        &[BROKEN, FAILED],
    ),
    page(
        "scalevm-check-conflicts",
        &[("Of one preset:", "scalevm check conflicts --vm freebsd-di")],
        &[(1, "The default VM differs from the list."), FAILED],
    ),
    page(
        "scalevm-check-locks",
        &[(
            "Of two presets:",
            "scalevm check locks --vm linux-3.0-fixes,scalevm",
        )],
        &[FAILED],
    ),
    page(
        "scalevm-check-fuzz",
        &[(
            "One seed, again:",
            "scalevm check fuzz --seed 7 --steps 100",
        )],
        &[BROKEN, FAILED],
    ),
    page(
        "scalevm-check-model",
        &[(
            "A sequence from a file:",
            "scalevm check model --replay steps.txt",
        )],
        &[BROKEN, FAILED],
    ),
    page(
        "scalevm-check-oracle",
        &[(
            "A sequence from a file:",
            "scalevm check oracle --replay steps.txt",
        )],
        &[BROKEN, FAILED],
    ),
    page(
        "scalevm-check-races",
        &[(
            "Show that planted bugs are found:",
            "scalevm check races --planted all",
        )],
        &[
            (1, "Something fails, or a planted bug is not found."),
            FAILED,
        ],
    ),
    page(
        "scalevm-doctor",
        &[("Before measuring:", "scalevm doctor")],
        &[(3, "A property needs a change: figures would be doubtful.")],
    ),
    page(
        "scalevm-kernel",
        &[
            ("A shell:", "scalevm kernel --cpus 2"),
            (
                "A static program, which finds a file of yours:",
                "scalevm kernel --files data -- ./program /input",
            ),
        ],
        NO_STATUS,
    ),
    page(
        "scalevm-kernel-compare",
        &[(
            "After crates/guests/linux.sh, the instructions of each operation:",
            "scalevm kernel compare --exact",
        )],
        &[FAILED],
    ),
    page(
        "scalevm-man",
        &[(
            "Install all pages:",
            "scalevm man --out /usr/local/share/man/man1",
        )],
        &[],
    ),
    page(
        "scalevm-completions",
        &[("For this shell:", "scalevm completions bash")],
        &[],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    /// The words of a line, as a shell reads it: single quotes are all it may have.
    fn words(line: &str) -> Vec<String> {
        let parts = line.split('\'').enumerate();
        let words = parts.flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        words.collect()
    }

    fn names(command: &Command, into: &mut Vec<String>) {
        let name = command.get_display_name().unwrap_or(command.get_name());
        into.push(name.to_owned());
        let below = command.get_subcommands();
        below.for_each(|one| names(one, into));
    }

    #[test]
    fn every_command_has_its_page_and_no_other() {
        let mut all = super::super::definition().disable_help_subcommand(true);
        all.build();
        let mut commands = Vec::new();
        names(&all, &mut commands);
        let mut pages: Vec<&str> = PAGES.iter().map(|page| page.command).collect();
        commands.sort();
        pages.sort_unstable();
        assert_eq!(commands, pages);
    }

    #[test]
    fn examples_are_command_lines_of_their_command() {
        for page in PAGES {
            assert!(!page.examples.is_empty(), "{}", page.command);
            for (_, line) in page.examples {
                let parsed = super::super::definition().try_get_matches_from(words(line));
                // A workload of one's own need not be there to be understood.
                if let Err(error) = parsed {
                    panic!("{line}: {error}");
                }
                let name = page.command.replace('-', " ");
                let other = line.strip_prefix(name.as_str());
                assert!(other.is_some(), "{line} stands on the page of {name}");
            }
        }
    }
}
