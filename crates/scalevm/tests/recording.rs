//! `scalevm recording` as a user meets it.

mod support;

use recording::{
    Birth, Call, Environment, Event, FaultKind, Place, Process, Prot, Recording, Sharing, Thread,
    WaitFor, What,
};
use std::fs;
use support::command::{json, run};
use support::scratch::Scratch;

const PAGE: u64 = 4096;

/// Two workers, and a main thread that maps memory for them, each 10 ms for a second.
fn server() -> Recording {
    let thread = |(tid, name): (u32, &str)| Thread {
        tid,
        process: 0,
        name: name.to_owned(),
    };
    let mut recording = Recording {
        environment: Environment {
            kernel: "6.18.0".to_owned(),
            cpus: 2,
            huge_pages: "madvise".to_owned(),
            max_map_count: 65_530,
            variables: vec![("MALLOC_ARENA_MAX".to_owned(), "2".to_owned())],
            ..Environment::default()
        },
        nanoseconds: 1_000_000_000,
        page: PAGE as u32,
        processes: vec![Process {
            pid: 7,
            name: "server".to_owned(),
            birth: Birth::Existed,
        }],
        threads: [(7, "main"), (8, "worker-1"), (9, "worker-2")]
            .map(thread)
            .into(),
        cost: Some(0.125),
        ..Recording::default()
    };
    for round in 0..99 {
        let places = [0, 1].map(|half| Place {
            mapping: round,
            offset: half * 2 * PAGE,
        });
        let [first, second] = places.map(|at| What::Fault {
            at,
            pages: 2,
            write: true,
            kind: FaultKind::Missing,
            in_kernel: false,
        });
        let unmap = Call::Unmap {
            at: places[0],
            length: 2 * PAGE,
        };
        let steps = [
            (0, succeeded(map(round))),
            (0, What::Wake { thread: 1 }),
            (1, wait(Some((0, round)))),
            (1, first),
            (2, wait(None)),
            (2, second),
            (1, succeeded(unmap)),
        ];
        for (millisecond, (thread, what)) in (1..).zip(steps) {
            recording.events.push(Event {
                at: (u64::from(round) * 10 + millisecond) * 1_000_000,
                thread,
                computed: 500_000,
                what,
            });
        }
    }
    recording
}

fn map(mapping: u32) -> Call {
    Call::Map {
        mapping,
        length: 4 * PAGE,
        prot: Prot {
            read: true,
            write: true,
            execute: false,
        },
        sharing: Sharing::Private,
        file: None,
        over: None,
        populate: false,
        no_reserve: false,
        huge: false,
    }
}

fn succeeded(call: Call) -> What {
    What::Call {
        call,
        error: 0,
        parts: Vec::new(),
    }
}

fn wait(by: Option<(u32, u32)>) -> What {
    What::Wait {
        on: WaitFor::Futex,
        nanoseconds: 2_000_000,
        by,
    }
}

fn bytes(recording: &Recording) -> Vec<u8> {
    let mut bytes = Vec::new();
    recording.write(&mut bytes).expect("it can be written");
    bytes
}

/// A folder with the recording as `server.vmrec`; the file's name.
fn folder(name: &str) -> (Scratch, String) {
    let folder = Scratch::folder(name);
    let path = folder.inside("server.vmrec");
    fs::write(&path, bytes(&server())).expect("a file");
    (folder, path)
}

/// The cells of the row that begins with these words.
fn row(stdout: &str, begins: &[&str]) -> Vec<String> {
    let rows = stdout.lines().map(|line| {
        let cells = line.split("  ").map(str::trim);
        Vec::from_iter(cells.filter(|cell| !cell.is_empty()).map(str::to_owned))
    });
    let found = rows.filter(|row| {
        row.starts_with(
            &begins
                .iter()
                .map(|&cell| cell.to_owned())
                .collect::<Vec<_>>(),
        )
    });
    let mut found = found.collect::<Vec<_>>();
    assert_eq!(found.len(), 1, "{begins:?}: {stdout}");
    found.remove(0)
}

#[test]
fn figures_are_shown() {
    let (_folder, path) = folder("recording-shown");
    let (stdout, stderr) = run(0, &["recording", &path]);
    assert_eq!(stderr, "");
    for line in [
        &format!("{path}: 1.00 s, 693 events, whole"),
        "kernel 6.18.0, 2 CPUs, huge pages madvise, overcommit 0, max_map_count 65530, pages of \
         4096 bytes",
        "MALLOC_ARENA_MAX=2",
        "recording costs 12.5 % of a loop of memory calls",
        "lost: 0 records that the kernel dropped, the memory of 0 events",
    ] {
        assert!(
            stdout.lines().any(|found| found == line),
            "{line}: {stdout}"
        );
    }
    let workers = row(&stdout, &["server", "worker"]);
    // 99 calls, 396 pages; of two seconds 247.5 ms computed and 396 ms asleep.
    let figures = ["1", "2", "99.00", "396.0", "12.4 %", "19.8 %"];
    assert_eq!(workers[2..8], figures);
    assert_eq!(workers[8..], ["1.4 %", "66.5 %"]);
    assert_eq!(
        row(&stdout, &["mmap"]),
        ["mmap", "99", "99.00", "0", "1.622 M"]
    );
    assert_eq!(row(&stdout, &["fault, missing"])[1], "396");
    assert_eq!(
        row(&stdout, &["1.00 s"])[3..],
        ["99", "811.0 k"],
        "half of each mapping is left: {stdout}"
    );
}

#[test]
fn what_the_kernel_counts_and_no_record_tells_of_is_lost() {
    let (_folder, path) = folder("recording-lost");
    let mut server = server();
    server.lost.switches = 7;
    fs::write(&path, bytes(&server)).expect("a file");
    let (stdout, _) = run(0, &["recording", &path]);
    let line = "\nevents lost: the kernel counts 7 more switches of threads\n";
    assert!(stdout.contains(line), "{stdout}");
}

#[test]
fn json_has_the_same() {
    let (_folder, path) = folder("recording-json");
    let (stdout, _) = run(0, &["recording", "--json", &path]);
    let lines = json(&stdout);
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert_eq!(
        (&line["kind"], &line["whole"]),
        (&"recording".into(), &true.into())
    );
    assert_eq!(line["events"], 693);
    assert_eq!(line["roles"][0]["thread"], "worker");
    assert_eq!(line["roles"][0]["slept"]["futex"], 0.396);
    assert_eq!(line["calls"][0]["name"], "mmap");
    let spans = line["spans"].as_array().expect("parts of the time");
    assert_eq!(spans.last().expect("a part")["mappings"], 99);
    let (csv, _) = run(0, &["recording", "--format", "csv", &path]);
    assert!(csv.contains("roles,server,worker,1,2,99,396,"), "{csv}");
}

#[test]
fn text_has_a_line_for_each_event() {
    let (_folder, path) = folder("recording-text");
    let (stdout, _) = run(0, &["recording", "--text", &path]);
    let expected: Vec<String> = server().events.iter().map(Event::to_string).collect();
    assert_eq!(Vec::from_iter(stdout.lines()), expected);
    assert_eq!(expected[6], "0.007000000 t1 +500000 munmap m0+0x0 8192 = 0");
}

#[test]
fn parts_are_written() {
    let (folder, path) = folder("recording-parts");
    let part = folder.inside("part.vmrec");
    let written = |more: &[&str]| {
        let arguments = [&["recording", &path, "-o", &part], more].concat();
        assert_eq!(run(0, &arguments), (String::new(), String::new()));
        Recording::open(part.as_ref()).expect("a recording").0
    };
    let whole = server();
    let cut = written(&["--cut", "0.5-0.6"]);
    assert_eq!(cut, whole.cut(500_000_000, 600_000_000));
    let given = |what: &What| matches!(what, What::Given { .. });
    let count = cut.events.iter().filter(|event| given(&event.what)).count();
    // Half of each is unmapped.
    assert_eq!(count, 2 * 50);
    assert_eq!(written(&["--threads", "worker"]), whole.only(&[1, 2]));
    assert_eq!(written(&["--threads", "2,main"]), whole.only(&[0, 2]));
    assert_eq!(
        written(&["--threads", "worker-1", "--cut", "0.25-5"]),
        whole.only(&[1]).cut(250_000_000, u64::MAX)
    );
}

#[test]
fn a_file_that_is_cut_off_is_shown_as_far_as_it_goes() {
    let (folder, path) = folder("recording-cut-off");
    let whole = fs::read(&path).expect("a file");
    fs::write(&path, &whole[..whole.len() - 3]).expect("a file");
    let (stdout, _) = run(0, &["recording", &path]);
    assert!(
        stdout.contains(" events, cut off after ") && stdout.contains(" s: the end is missing\n"),
        "{stdout}"
    );
    let part = folder.inside("part.vmrec");
    let arguments = ["recording", &path, "--threads", "0", "-o", &part];
    // Nothing but the head is whole, and so no thread is known.
    let (_, stderr) = run(2, &arguments);
    assert!(
        stderr.contains("warning: ") && stderr.contains("no thread is `0`"),
        "{stderr}"
    );
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    let (folder, path) = folder("recording-wrong");
    let part = folder.inside("part.vmrec");
    let told = |arguments: &[&str]| {
        let (stdout, stderr) = run(2, arguments);
        assert_eq!(
            (stdout.as_str(), stderr.lines().count()),
            ("", 1),
            "{stderr}"
        );
        stderr
    };
    let missing = folder.inside("missing");
    assert_eq!(
        told(&["recording", &missing]),
        format!("scalevm: {missing}: No such file or directory (os error 2)\n")
    );
    let other = folder.write("other", "PERFILE2");
    for how in ["--json", "--text"] {
        let said = told(&["recording", how, &other]);
        assert_eq!(
            said,
            format!("scalevm: {other}: not a recording of scalevm's\n")
        );
    }
    let mut damaged = bytes(&server());
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    fs::write(&missing, damaged).expect("a file");
    let said = told(&["recording", &missing]);
    assert!(said.ends_with("): the checksum does not match\n"), "{said}");
    let with = |more: &[&'static str]| told(&[&["recording", &path, "-o", &part], more].concat());
    assert_eq!(with(&[]), "scalevm: --output requires --cut or --threads\n");
    assert_eq!(
        with(&["--cut", "1-2"]),
        "scalevm: --cut from 1 s on: the recording ends after 1.000 s\n"
    );
    assert_eq!(
        with(&["--threads", "main,idle"]),
        "scalevm: no thread is `idle`; found 0 to 2, named main, worker\n"
    );
    assert!(
        run(2, &["recording", &path, "--cut", "1-2"])
            .1
            .contains("--output")
    );
    assert!(!folder.0.join("part.vmrec").exists());
}
