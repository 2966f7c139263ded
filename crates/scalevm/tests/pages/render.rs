//! How a page shows the output of a command.
//!
//! | renderer | shows |
//! |---|---|
//! | `text` | all, as it is printed |
//! | `markdown` | the same, which is Markdown already |
//! | `story` | the same, but for the curves of this computer |
//! | `number KEY=VALUE… PATH` | of the lines of JSON the last that has these values: the number there |
//! | `lines PHRASE | …` | the lines that contain one of the phrases; each phrase must be found |
//! | `study NUMBER` | the rows of `reproduce --json` of a case study, as a table |
//! | `checks NUMBER` | its rows that are checks of the instrument |
//! | `tally` | how many rows hold, of each class |
//! | `scaling rate`, `scaling ratio` | of `scaling --json`: thousands a second, or times one task's |
//! | `scaling bottleneck` | the same: what holds up each number of tasks |
//! | `locks` | of `locks --on sim --json`: millions a second, and the part kept of the peak |
//! | `planted` | bugs of `check races --planted … --json`, as a table |

use super::scaling;
use super::support::command::json;
use serde_json::Value;

/// The content that `renderer` makes from `stdout`.
pub fn render(renderer: &str, stdout: &str) -> Result<String, String> {
    let (name, arguments) = renderer.split_once(' ').unwrap_or((renderer, ""));
    let block = |text: &str| Ok(format!("\n{}\n", text.trim_end()));
    match name {
        "text" => block(&format!("```text\n{}\n```", stdout.trim_end())),
        "story" => block(&format!("```text\n{}\n```", without_curves(stdout)?)),
        "markdown" => block(stdout),
        "number" => number(arguments, &json(stdout)),
        "lines" => block(&format!("```text\n{}\n```", lines(stdout, arguments)?)),
        "study" => block(&study(&json(stdout), arguments, false)),
        "checks" => block(&study(&json(stdout), arguments, true)),
        "tally" => Ok(tally(&json(stdout))),
        "scaling" => {
            let mut lines = json(stdout);
            lines.retain(|line| line["kind"] != "point");
            block(&scaling::table(&lines, arguments))
        }
        "locks" => block(&locks(&json(stdout))),
        "planted" => block(&planted(&json(stdout))),
        _ => Err(format!("no renderer is called `{name}`")),
    }
}

/// The number at a path in the line that has some values.
fn number(arguments: &str, lines: &[Value]) -> Result<String, String> {
    let (filters, path): (Vec<&str>, Vec<&str>) = arguments
        .split_whitespace()
        .partition(|word| word.contains('='));
    let has = |line: &Value, filter: &str| {
        let (key, value) = filter.split_once('=').unwrap_or_default();
        line[key].as_str() == Some(value)
    };
    let found = lines
        .iter()
        .rfind(|line| filters.iter().all(|filter| has(line, filter)));
    let found = found.ok_or_else(|| format!("no line has {}", filters.join(" ")))?;
    let path = path.join(" ").replace('.', "/");
    let value = found.pointer(&format!("/{path}")).and_then(Value::as_f64);
    value
        .map(plain)
        .ok_or_else(|| format!("no number at {path}"))
}

/// `1,234`, `12.3`, `0.567`, `0`.
pub(super) fn plain(value: f64) -> String {
    if value == value.trunc() {
        return thousands(value);
    }
    match value.abs() {
        100.0.. => thousands(value.round()),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The story without the plot of this computer's figures.
fn without_curves(story: &str) -> Result<String, String> {
    let (begin, rest) = story
        .split_once("\n  ")
        .ok_or("the story has no first plot")?;
    let (_, end) = rest
        .split_once("\nWhat one iteration")
        .ok_or("the story tells of no locks")?;
    Ok(format!(
        "{}\n(the curves, and what they do)\n\nWhat one iteration{}",
        begin.trim_end(),
        end.trim_end()
    ))
}

/// The lines of `text` that contain one of `phrases`.
fn lines(text: &str, phrases: &str) -> Result<String, String> {
    let phrases = Vec::from_iter(phrases.split(" | "));
    if let Some(missing) = phrases.iter().find(|&&phrase| !text.contains(phrase)) {
        return Err(format!("no line has `{missing}`"));
    }
    let is_shown = |line: &&str| phrases.iter().any(|phrase| line.contains(phrase));
    Ok(Vec::from_iter(text.lines().filter(is_shown)).join("\n"))
}

/// The rows of a case study, or the checks among them.
fn study(lines: &[Value], document: &str, checks: bool) -> String {
    let rows = lines
        .iter()
        .filter(|line| line["document"] == document && (line["class"] == "check") == checks);
    let cells = rows.map(|row| {
        let show = |value: &Value| {
            value
                .as_f64()
                .map_or(String::new(), |value| figure(row, value))
        };
        let aim = match row["aim"].as_str() {
            Some("at-least") => format!("≥ {}", show(&row["figure"])),
            Some("at-most") => format!("≤ {}", show(&row["figure"])),
            Some("words") => words(row, &show),
            _ => show(&row["figure"]),
        };
        let (low, high) = (show(&row["corners_low"]), show(&row["corners_high"]));
        let corners = if row["has_corners"] == true {
            format!("{low}–{high}")
        } else {
            String::new()
        };
        let ratio = row["ratio"].as_f64();
        let band = &row["band"];
        let band = band["low"].as_f64().zip(band["high"].as_f64());
        let verdict = match (row["verdict"] == "holds", row["holds_at_a_corner"] == true) {
            (true, _) => "holds",
            (false, true) => "**misses**, holds at an extreme",
            (false, false) => "**misses**",
        };
        [
            row["system"].as_str().unwrap_or_default().to_owned(),
            row["what"].as_str().unwrap_or_default().to_owned(),
            aim,
            show(&row["median"]),
            corners,
            ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
            band.map_or(String::new(), |(low, high)| {
                format!("{}–{}", plain(low), plain(high))
            }),
            verdict.to_owned(),
        ]
        .join(" | ")
    });
    let head = "| | figure | published or aim | simulated | extremes | ratio | band | |\n\
                |---|---|---|---|---|---|---|---|";
    let rows = cells.map(|cells| format!("\n| {cells} |"));
    format!("{head}{}", String::from_iter(rows))
}

/// The range that words stand for.
fn words(row: &Value, show: &impl Fn(&Value) -> String) -> String {
    let (low, high) = (&row["words"]["low"], &row["words"]["high"]);
    let range = match (low.as_f64(), high.as_f64()) {
        (low, None) if low.is_some() => format!("≥ {}", show(&row["words"]["low"])),
        (Some(0.0), Some(_)) => format!("≤ {}", show(high)),
        (Some(_), Some(1.0)) if row["unit"] == "share" => format!("≥ {}", show(low)),
        _ => format!("{}–{}", show(low), show(high)),
    };
    format!("{range} (words)")
}

fn figure(row: &Value, value: f64) -> String {
    match row["unit"].as_str() {
        Some("share") => format!("{:.1} %", 100.0 * value),
        Some("1/s") if value >= 1e6 => format!("{:.3} M/s", value / 1e6),
        Some("1/s") if value >= 1e3 => format!("{:.3} k/s", value / 1e3),
        Some("1/s") => format!("{value:.3} /s"),
        // The numbers of ministat are compared digit by digit.
        _ if row["class"] == "check" => format!("{value}"),
        _ => plain(value),
    }
}

/// How many rows of each class hold.
fn tally(lines: &[Value]) -> String {
    let classes = [
        ("published", "simulated figures with a published number"),
        ("words", "statements in words"),
        ("aim", "aims"),
        ("check", "checks of the instrument"),
    ];
    let said = classes.map(|(class, what)| {
        let rows = || lines.iter().filter(|line| line["class"] == class);
        let held = rows().filter(|row| row["verdict"] == "holds").count();
        format!("{held} of {} {what}", rows().count())
    });
    said.join(", ")
}

/// A lock a row, a number of CPUs a column.
fn locks(lines: &[Value]) -> String {
    let points = |lock: &Value| lock["contended"].as_array().cloned().unwrap_or_default();
    let millions = |point: &Value| point["ops_per_second"].as_f64().unwrap_or(0.0) / 1e6;
    let rows = lines.iter().map(|lock| {
        let rates: Vec<f64> = points(lock).iter().map(millions).collect();
        let peak = rates.iter().copied().fold(0.0, f64::max);
        let kept = 100.0 * rates.last().unwrap_or(&0.0) / peak;
        let name = lock["name"].as_str().unwrap_or_default().to_owned();
        let alone = format!("{:.1}", lock["uncontended_ns"].as_f64().unwrap_or(0.0));
        let rates = rates.iter().map(|rate| format!("{rate:.2}"));
        let cells = [name, alone].into_iter().chain(rates);
        Vec::from_iter(cells.chain([format!("{kept:.0} %")]))
    });
    let counts = lines.first().map(points).unwrap_or_default();
    let counts = counts.iter().map(|point| point["threads"].to_string());
    let head = ["lock", "ns"].map(str::to_owned).into_iter();
    let head = head.chain(counts).chain(["kept".to_owned()]);
    table(head.collect(), 1, rows)
}

/// Markdown, with the columns from `first_number` on aligned to the right.
pub(super) fn table(
    head: Vec<String>,
    first_number: usize,
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let rule = (0..head.len()).map(|column| {
        if column < first_number {
            "---".to_owned()
        } else {
            "---:".to_owned()
        }
    });
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let rule = format!("|{}|", Vec::from_iter(rule).join("|"));
    let lines = [line(&head), rule].into_iter();
    Vec::from_iter(lines.chain(rows.map(|row| line(&row)))).join("\n")
}

/// A bug a row.
fn planted(lines: &[Value]) -> String {
    let bugs = lines.iter().filter(|line| line["record"] == "planted");
    let rows = bugs.map(|bug| {
        let word = |key: &str| bug[key].as_str().unwrap_or_default().to_owned();
        let [failed, runs] = ["failed", "runs"].map(|key| bug[key].as_f64().unwrap_or(0.0));
        let rate = thousands((1000.0 * failed / runs).round());
        let seed = bug["seed"]
            .as_u64()
            .map_or("–".into(), |seed| seed.to_string());
        format!(
            "\n| `{}` | {} | {seed} | {rate} |",
            word("name"),
            word("about")
        )
    });
    let head =
        "| planted | what is wrong | first seed | fails, of 1,000 seeds |\n|---|---|---|---|";
    format!("{head}{}", String::from_iter(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_and_grouped() {
        let stdout = "{\"vm\":\"a\",\"n\":{\"m\":1234}}\n{\"vm\":\"b\",\"n\":{\"m\":0.5}}\n";
        assert_eq!(render("number vm=a n.m", stdout).as_deref(), Ok("1,234"));
        assert_eq!(render("number vm=b n.m", stdout).as_deref(), Ok("0.500"));
        assert!(render("number vm=c n.m", stdout).is_err());
        assert!(render("number vm=a m", stdout).is_err());
        assert!(render("numbers", stdout).is_err());
        let of = [0.0, -1234.0, 999.0, 1_234_567.0].map(plain);
        assert_eq!(of, ["0", "-1,234", "999", "1,234,567"]);
    }

    #[test]
    fn lines_are_chosen_by_phrases_that_must_occur() {
        let text = "a: peak 1\nb: knee 2\nwith 96: c | d\n";
        assert_eq!(
            render("lines peak | with 96", text).as_deref(),
            Ok("\n```text\na: peak 1\nwith 96: c | d\n```\n")
        );
        let error = render("lines peak | valley", text);
        assert_eq!(error.as_deref(), Err(&"no line has `valley`".to_owned()));
    }

    #[test]
    fn runs_are_rows_and_tasks_are_columns() {
        let line = |workload: &str, tasks: u32, rate: f64| {
            format!(
                "{{\"workload\":\"{workload}\",\"mode\":\"threads\",\
                 \"tasks\":{tasks},\"rate\":{rate}}}\n"
            )
        };
        let lines = line("brk1", 1, 4e6) + &line("brk1", 2, 5e5) + &line("fork1", 2, 20500.0);
        let expected = "| workload | tasks | 1 | 2 |\n|---|---|---:|---:|\n\
                        | brk1 | threads | 4,000 | 500 |\n| fork1 | threads | – | 20.5 |";
        assert_eq!(
            render("scaling rate", &lines),
            Ok(format!("\n{expected}\n"))
        );
        let lock = "{\"name\":\"mcs\",\"uncontended_ns\":25.74,\"contended\":[\
                    {\"threads\":1,\"ops_per_second\":2e6},\
                    {\"threads\":8,\"ops_per_second\":1e6}]}\n";
        let expected = "| lock | ns | 1 | 8 | kept |\n|---|---:|---:|---:|---:|\n\
                        | mcs | 25.7 | 2.00 | 1.00 | 50 % |";
        assert_eq!(render("locks", lock), Ok(format!("\n{expected}\n")));
    }

    #[test]
    fn rows_of_a_case_study_are_a_table_and_checks_another() {
        let row = |class: &str, document: &str| {
            format!(
                "{{\"document\":\"{document}\",\"system\":\"S3\",\"what\":\"x\",\
                 \"class\":\"{class}\",\
                 \"aim\":\"seed\",\"figure\":2000000,\"unit\":\"1/s\",\"median\":1500000,\
                 \"ratio\":0.75,\"band\":{{\"low\":0.65,\"high\":1.35}},\
                 \"verdict\":\"holds\"}}\n"
            )
        };
        let lines = row("published", "000") + &row("check", "000") + &row("published", "001");
        let table = render("study 000", &lines).expect("a table");
        assert_eq!(table.matches("| S3 |").count(), 1);
        let expected = "| S3 | x | 2.000 M/s | 1.500 M/s |  | 0.75 | 0.650–1.35 | holds |";
        assert!(table.contains(expected), "{table}");
        assert!(render("checks 000", &lines).is_ok_and(|table| table.contains("| S3 |")));
        let tally = render("tally", &lines).expect("a sentence");
        assert!(
            tally.starts_with("2 of 2 simulated figures with"),
            "{tally}"
        );
    }
}
