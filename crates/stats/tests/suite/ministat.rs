//! The report compared with the outputs of Debian's ministat 20150715, kept in `data/expected.txt`.

use stats::ministat::{self, Column, Confidence, Dataset, Difference, Options, Plot};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

fn dataset(file: &str, column: &Column) -> Dataset {
    let set = Dataset::read(&format!("{DATA}/{file}"), column).unwrap();
    Dataset::new(file, set.points().to_vec()).unwrap()
}

/// Runs our report with ministat's options.
fn ours(arguments: &str) -> String {
    let mut words = arguments.split(' ');
    let (mut options, mut plot, mut column) =
        (Options::default(), Plot::default(), Column::default());
    let (mut draw, mut compare) = (true, true);
    let mut files = Vec::new();
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap();
        match word {
            "-s" => plot.separate = true,
            "-A" => draw = false,
            "-n" => (draw, compare) = (false, false),
            "-w" => plot.width = value().parse().unwrap(),
            "-c" => options.confidence = Some(value().parse().unwrap()),
            "-C" => column.number = value().parse().unwrap(),
            "-d" => column.delimiters = value().into(),
            file => files.push(file),
        }
    }
    options.plot = draw.then_some(plot);
    options.confidence = options.confidence.filter(|_| compare);
    let sets: Vec<_> = files
        .into_iter()
        .map(|file| dataset(file, &column))
        .collect();
    ministat::report(&sets, &options).unwrap()
}

/// The line with the relative error, the only one that Debian's old version computes differently.
fn is_relative(line: &str) -> bool {
    line.starts_with('\t') && line.matches('%').count() == 2
}

#[test]
fn reports_are_those_of_ministat() {
    let expected = include_str!("../data/expected.txt");
    let mut cases = 0;
    for case in expected.split("$ ministat ").skip(1) {
        let (arguments, theirs) = case.split_once('\n').unwrap();
        let ours = ours(arguments);
        let kept = |text: &str| {
            text.lines()
                .filter(|line| !is_relative(line))
                .map(String::from)
                .collect::<Vec<_>>()
        };
        assert_eq!(kept(&ours), kept(theirs), "ministat {arguments}\n{ours}");
        // The relative difference itself agrees; only its error does not.
        let relative = |text: &str| {
            let value = |line: &str| line.split(" +/- ").next().unwrap().to_string();
            text.lines()
                .filter(|line| is_relative(line))
                .map(value)
                .collect::<Vec<_>>()
        };
        assert_eq!(relative(&ours), relative(theirs), "ministat {arguments}");
        cases += 1;
    }
    assert_eq!(cases, 10);
}

#[test]
fn a_higher_stack_of_an_earlier_sample_is_not_cut() {
    let report = ours("-s -w 60 iguana.txt chameleon.txt");
    let plot: Vec<_> = report.lines().skip(3).take(4).collect();
    // ministat's manual shows these rows without the first, which holds two of seven points.
    let rows = [
        "|       x               x                                    |",
        "|x      *  x            *      +              + x           +|",
        "| |________M______A_______________|                          |",
        "|             |________________M__A___________________|      |",
    ];
    assert_eq!(plot, rows);
}

#[test]
fn case_study_000_to_the_last_digit() {
    let report = ours("before.txt after.txt");
    let table = "    N           Min           Max        Median           Avg        Stddev\n\
        x   5       1005918       1013143       1009119     1008730.8     2895.1156\n\
        +   5       3548585       3552587       3552085       3550909     2039.8783\n\
        Difference at 95.0% confidence\n\
        \t2.54218e+06 +/- 3652.34\n\
        \t252.018% +/- 1.06257%\n\
        \t(Student's t, pooled s = 2504.28)\n";
    assert!(
        report.starts_with("x before.txt\n+ after.txt\n+---"),
        "{report}"
    );
    assert!(report.ends_with(table), "{report}");
}

#[test]
fn relative_error_counts_the_error_of_the_base() {
    let (before, after) = (
        dataset("before.txt", &Column::default()),
        dataset("after.txt", &Column::default()),
    );
    let difference = Difference::between(&before, &after, Confidence::P95);
    let divided = difference.absolute_error * 100.0 / before.mean();
    assert!(
        (divided - 0.362073).abs() < 1e-6,
        "what Debian's ministat prints: {divided}"
    );
    assert!(
        (difference.percent_error - 1.06257).abs() < 5e-6,
        "{}",
        difference.percent_error
    );
}

#[test]
fn an_even_sample_has_the_mean_of_its_middle_two() {
    let set = Dataset::new("even", vec![1.0, 10.0, 3.0, 2.0]).unwrap();
    assert_eq!(set.median(), 2.5);
}

#[test]
fn none_or_too_many_samples_are_refused() {
    let set = dataset("before.txt", &Column::default());
    let report = |count| ministat::report(&vec![set.clone(); count], &Options::default());
    assert_eq!(
        report(0).unwrap_err().to_string(),
        "0 samples; expected 1 to 7"
    );
    assert!(report(8).is_err());
    assert!(report(7).unwrap().contains("\nO before.txt\n"));
}

/// No figure of a report is infinite or no number, however large, small or equal the numbers are.
#[test]
fn a_report_has_figures_at_the_ends_of_the_numbers() {
    let sets = |values: &[[f64; 3]]| -> Vec<Dataset> {
        let set = |points: &[f64; 3]| Dataset::new("f", points.to_vec()).unwrap();
        values.iter().map(set).collect()
    };
    let most = f64::MAX;
    let all = [
        [1e308; 3],
        [most; 3],
        [-most, 0.0, most],
        [-most; 3],
        [0.0; 3],
        [1e-310, 2e-310, 3e-310],
        [5e-324; 3],
        [1.0, 2.0, 3.0],
        [-1.0, 0.0, 1.0],
    ];
    for base in all {
        for sample in all {
            let report = ministat::report(&sets(&[base, sample]), &Options::default()).unwrap();
            let words = report.split(|c: char| c.is_whitespace() || c == '%');
            for word in words {
                assert!(
                    !["inf", "-inf", "nan"].contains(&word),
                    "{base:?} {sample:?}: {report}"
                );
            }
        }
    }
    let report = ministat::report(&sets(&[[0.0; 3], [1.0; 3]]), &Options::default()).unwrap();
    assert!(
        report.ends_with(
            "Difference at 95.0% confidence\n\t1 +/- 0\n\
             \t(no percentage: the first sample's average is 0 or too close to it)\n\
             \t(Student's t, pooled s = 0)\n"
        ),
        "{report}"
    );
    let report = ministat::report(&sets(&[[1e308; 3], [most; 3]]), &Options::default()).unwrap();
    assert!(report.contains("79.7693% +/- 0%"), "{report}");
    let report = ministat::report(&sets(&[[-most; 3], [most; 3]]), &Options::default()).unwrap();
    assert!(report.contains("\t>1.79769e+308 +/- 0\n"), "{report}");
}
