//! The pages of `docs/results`: what is in each, and the command that prints it.

use super::{Runner, root, scaling};
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// How the output of a command is shown.
enum Shown {
    /// As it is: tables of Markdown.
    Markdown,
    /// As it is: text.
    Text,
    /// `sweep --json`: thousands of operations a second.
    Rates,
    /// `sweep --json`: what holds up each number of tasks.
    Bottlenecks,
}
use Shown::{Bottlenecks, Markdown, Rates, Text};

/// A page of results.
struct Page {
    /// The name of its file.
    name: &'static str,
    title: &'static str,
    /// What the tables show.
    about: &'static str,
    /// Each with its heading, and the command that prints it.
    parts: &'static [(&'static str, &'static str, Shown)],
}

const BY_PROCESSES: &str = "scalevm sweep mmap1 page_fault1 page_fault3 brk1 fork1 --cpus \
                            1,16,96,384 --grow --on sim --seeds 1 --duration 0.0016 --vm \
                            linux-6.12,freebsd-14,openbsd-7.6,scalevm --json";
const BY_THREADS: &str = "scalevm sweep mmap1 page_fault1 page_fault3 brk1 fork1 --threads --cpus \
                          1,16,96,384 --grow --on sim --seeds 1 --duration 0.0016 --vm \
                          linux-6.12,freebsd-14,openbsd-7.6,scalevm --json";
const LONGER: &str = "scalevm sweep page_fault1 page_fault3 fork1 --both --cpus 16,96 --on sim \
                      --seeds 1 --duration 0.01 --vm freebsd-14,openbsd-7.6 --json";

/// All pages but `by-hand.md`, which nothing writes.
const PAGES: [Page; 9] = [
    Page {
        name: "story",
        title: "The story of mmap1",
        about: "\
            The text that the command prints without arguments. [The story](../story.md) \
            explains it.",
        parts: &[("All of it", "scalevm", Text)],
    },
    Page {
        name: "kernels",
        title: "Four kernels' designs on 1 to 384 CPUs",
        about: "\
            Simulated: thousands of operations a second, and what holds them up. [Which kernel \
            holds you up](../which-kernel.md) says\n\
            how to read them. A share above 100 % is a wait that goes on when the window ends.",
        parts: &[
            ("Processes: rates", BY_PROCESSES, Rates),
            ("Processes: bottlenecks", BY_PROCESSES, Bottlenecks),
            ("Threads: rates", BY_THREADS, Rates),
            ("Threads: bottlenecks", BY_THREADS, Bottlenecks),
            ("Longer windows: rates", LONGER, Rates),
            ("Longer windows: bottlenecks", LONGER, Bottlenecks),
        ],
    },
    Page {
        name: "scaling",
        title: "How scalevm scales",
        about: "\
            Simulated: thousands of operations a second by the number of tasks. –: not run, \
            since it takes tens of minutes. [How it\n\
            scales](../scaling.md) says what the machines are, and what the bottlenecks.",
        parts: &[
            (
                "All workloads",
                "scalevm campaign run docs/scaling.toml --results scaling --out /dev/stdout",
                Rates,
            ),
            (
                "Faults of threads in one 2 MiB",
                "scalevm sweep near_fault1 page_fault1 --threads --cpus 1,16,32,48,96,384 --grow \
                 --on sim --seeds 1 --duration 0.0016 --json",
                Rates,
            ),
            (
                "freebsd-di",
                "scalevm sweep mmap1 page_fault1 build --cpus 1,16,96 --on sim --seeds 1 \
                 --duration 0.0016 --vm freebsd-di --json",
                Rates,
            ),
        ],
    },
    Page {
        name: "kernel",
        title: "scalevm's kernel compared with Linux",
        about: "\
            Instructions of an operation in a guest. [The \
            kernel](../kernel.md#compared-with-linux) says how they are counted.",
        parts: &[(
            "Costs",
            "scalevm kernel compare --exact --format markdown",
            Markdown,
        )],
    },
    Page {
        name: "locks",
        title: "Locks on simulated machines",
        about: "\
            [Locks on simulated machines](../simulator/locks.md) says what the columns mean, and \
            what was expected.",
        parts: &[
            (
                "Two sockets: freebsd-96",
                "scalevm locks --on sim --machine freebsd-96 --threads 1,2,4,8,16,24,48,96 --seeds \
                 3",
                Text,
            ),
            (
                "Eight sockets: xeon-8s",
                "scalevm locks --on sim --machine xeon-8s --threads 1,2,4,8,10,20,40,80,160 \
                 --seeds 3 --only ticket,proportional,conbo,mcs,clh,k42,qspinlock,cna",
                Text,
            ),
        ],
    },
    Page {
        name: "presets",
        title: "What each preset takes, operation by operation",
        about: "\
            [What each preset takes](../baselines.md) explains the operations and the names. \
            `scalevm check locks` prints the tables\n\
            of all presets, in seconds.",
        parts: &[(
            "The presets of today",
            "scalevm check locks --vm linux-6.12,freebsd-14,openbsd-7.6,scalevm",
            Markdown,
        )],
    },
    Page {
        name: "predictions",
        title: "Published rates, predicted: all curves",
        about: "[Published rates, predicted](../predict.md) explains the columns and the misses.",
        parts: &[("All curves", "scalevm predict --format markdown", Markdown)],
    },
    Page {
        name: "races",
        title: "Planted bugs that the search finds",
        about: "[Checking on simulated \
         machines](../simulator/checking.md#check-races-schedules-that-break-something) says what \
         is\n\
         searched, and how.",
        parts: &[(
            "All planted bugs",
            "scalevm check races --planted all --seeds 1000",
            Text,
        )],
    },
    Page {
        name: "case-studies",
        title: "The case studies' figures, repeated",
        about: "\
            *published or aim*: the published figure; ≥ and ≤ mark an aim, or the range that \
            stands for words. The width of a band\n\
            was set beforehand for each kind of prediction. [The case \
            studies](../studies/README.md) list the systems (S1 to S21) and\n\
            explain each miss.",
        parts: &[(
            "All systems",
            "scalevm reproduce --format markdown",
            Markdown,
        )],
    },
];

/// Where a page lies.
fn place(name: &str) -> std::path::PathBuf {
    root().join(format!("docs/results/{name}.md"))
}

/// The beginning of a page.
fn head(page: &Page) -> String {
    format!("# {}\n\n{}\n", page.title, page.about)
}

/// The content of a page.
fn content(page: &Page, runner: &Runner) -> Result<String, String> {
    let (commit, machine) = (commit(), machine());
    let mut text = head(page);
    for (heading, command, shown) in page.parts {
        let stdout = runner.stdout(command)?;
        let shown = match shown {
            Markdown => stdout.trim().to_owned(),
            Text => format!("```text\n{}\n```", stdout.trim_end()),
            Rates => scaling::table(&stdout, "average"),
            Bottlenecks => scaling::table(&stdout, "bottleneck"),
        };
        let made = format!("`{command}` at {commit}, on {machine}:");
        write!(text, "\n## {heading}\n\n{made}\n\n{shown}\n").expect("text");
    }
    Ok(text)
}

/// The commit that is checked out: `1234abcd (2026-11-28)`.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let output = git.current_dir(root()).args(arguments).output();
        let output = output.expect("git");
        assert!(output.status.success(), "git {arguments:?}");
        super::text(&output.stdout).trim().to_owned()
    };
    let commit = git(&["log", "-1", "--format=%h (%cs)"]);
    let changed = git(&[
        "status",
        "--porcelain",
        "-uno",
        "--",
        "crates",
        "Cargo.lock",
    ]);
    if changed.is_empty() {
        commit
    } else {
        format!("{commit} with changes")
    }
}

/// This computer: `2 × Intel(R) Xeon(R) Processor, Linux 6.18.44`.
fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (info, kernel) = (read("/proc/cpuinfo"), read("/proc/sys/kernel/osrelease"));
    let models = info.lines().filter(|line| line.starts_with("model name"));
    let models = Vec::from_iter(models.filter_map(|line| Some(line.split_once(": ")?.1)));
    let (count, model) = (models.len(), models.first().unwrap_or(&"CPUs"));
    let version = kernel.trim().split('-').next().unwrap_or_default();
    format!("{count} × {model}, Linux {version}")
}

/// Writes the pages with these names, separated by blanks; without any, all.
fn write_pages(names: &str) {
    let named = Vec::from_iter(names.split_whitespace());
    let known = |name: &&str| PAGES.iter().any(|page| page.name == *name);
    let unknown = Vec::from_iter(named.iter().filter(|name| !known(name)));
    assert!(unknown.is_empty(), "docs/results has no {unknown:?}");
    let runner = Runner::new("results");
    let wrong = PAGES
        .iter()
        .filter(|page| named.is_empty() || named.contains(&page.name))
        .filter_map(|page| match content(page, &runner) {
            Ok(content) => {
                fs::write(place(page.name), content).expect("the page is written");
                None
            }
            Err(why) => Some(format!("{}: {why}", page.name)),
        });
    assert_eq!(Vec::from_iter(wrong), [""; 0]);
}

/// With `RESULTS` in the environment, they are written first: those that it names, or all.
#[test]
fn results_say_what_made_them() {
    if let Ok(names) = std::env::var("RESULTS") {
        write_pages(&names);
    }
    for page in PAGES {
        let (name, head) = (page.name, head(&page));
        let text = fs::read_to_string(place(name)).expect(name);
        assert!(text.starts_with(&head), "{name} does not begin with {head}");
        for (_, command, _) in page.parts {
            let made = format!("\n`{command}` at ");
            assert!(text.contains(&made), "{name} has nothing of {command}");
        }
    }
}
