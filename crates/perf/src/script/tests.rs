//! Scripts, whole and damaged.

use super::*;
use profile::Kind;
use std::io::Write;

/// Recorded by perf 6.1 of a program whose threads map memory:
/// `perf record -a -g -F 499 -e cpu-clock -e lock:contention_begin -e lock:contention_end
/// -e sched:sched_switch`, then
/// `perf script`, shortened.
const RECORDED: &str = include_str!("../../tests/data/script.txt");

fn parsed(text: &str) -> Profile {
    let profile = parse("a.txt", text.as_bytes()).expect("it is read");
    profile.expect("it is a script")
}

/// Two threads of a process that wait for a rwsem and a futex, and the CPU's idle thread.
const SMALL: &str = "\
# a comment
p 10/10 [000] 1.000: 10000000 cpu-clock:
\t11cf work+0x36 (/tmp/p)
\t124b main+0x1b (/tmp/p)

worker 10/11 [001] 1.010: lock:contention_begin: 0xffff8881 (flags=WRITE)
\tffffffff821fd95f rwsem_down_write_slowpath+0x37f ([kernel.kallsyms])
\tffffffff821fdd8c down_write_killable+0x5c ([kernel.kallsyms])
\tffffffff815b99f0 __vm_munmap+0xe0 ([kernel.kallsyms])
\t124b main+0x1b (/tmp/p)

worker 10/11 [001] 1.010: sched:sched_switch: worker:11 [120] D ==> swapper/1:0 [120]
\tffffffff821f8b58 __schedule+0x618 ([kernel.kallsyms])
\tffffffff821fd95f rwsem_down_write_slowpath+0x37f ([kernel.kallsyms])
\tffffffff815b99f0 __vm_munmap+0xe0 ([kernel.kallsyms])
\t124b main+0x1b (/tmp/p)

swapper 0/0 [001] 1.410: sched:sched_switch: swapper/1:0 [120] R ==> worker:11 [120]

worker 10/11 [001] 1.410: lock:contention_end: 0xffff8881 (ret=0)

p 10/10 [000] 1.500: 10000000 cpu-clock:
\tffffffff815e9f07 do_anonymous_page+0x377 ([kernel.kallsyms])
\t11cf work+0x36 (/tmp/p)
\t124b main+0x1b (/tmp/p)

p 10/10 [000] 1.500: sched:sched_switch: prev_comm=p prev_pid=10 prev_state=S ==> next_pid=0
\tffffffff821f8b58 __schedule+0x618 ([kernel.kallsyms])
\tffffffff8141a000 futex_wait+0x5e ([kernel.kallsyms])
\t891f5 pthread_mutex_lock@@GLIBC_2.2.5+0x12 (/usr/lib/libc.so.6)
\t124b main+0x1b (/tmp/p)

swapper 0/0 [000] 1.600: sched:sched_switch: swapper/0:0 [120] R ==> p:10 [120]

p 10/10 [000] 2.000: 10000000 cpu-clock:
\t11cf work+0x36 (/tmp/p)
\t124b main+0x1b (/tmp/p)
";

#[test]
fn a_script_becomes_stacks_locks_and_times_off_cpu() {
    let profile = parsed(SMALL);
    assert_eq!(profile.subject.workload, "recording of p");
    assert!((profile.seconds - 1.0).abs() < 1e-9, "{}", profile.seconds);
    // Of the second thread, from its first event on.
    let lived = profile.lived.expect("known");
    assert!((lived - 1.99).abs() < 1e-9, "{lived}");
    let busy: Vec<(&str, f64)> = profile.busy.iter().collect();
    assert_eq!(
        busy,
        [
            ("p;main;work", 0.02),
            ("p;main;work;do_anonymous_page_[k]", 0.01)
        ]
    );
    let waits: Vec<(&str, f64)> = profile.waits.iter().collect();
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(
        waits.iter().any(|(stack, time)| stack
            .ends_with("__vm_munmap_[k];rwsem_down_write_slowpath_[k];__schedule_[k]")
            && near(*time, 0.4)),
        "{waits:?}"
    );
    let [mmap, futex] = &profile.locks[..] else {
        panic!("{:?}", profile.locks);
    };
    assert_eq!(
        (mmap.name.as_str(), mmap.kind, mmap.caller.as_str()),
        ("mmap_lock", Kind::RwsemWrite, "__vm_munmap")
    );
    assert!(near(mmap.wait, 0.4) && mmap.contentions == 1, "{mmap:?}");
    assert_eq!(
        (futex.name.as_str(), futex.kind, futex.caller.as_str()),
        ("pthread_mutex", Kind::Futex, "main")
    );
    assert!(near(futex.wait, 0.1), "{futex:?}");
    assert!(
        profile
            .bottleneck
            .starts_with("20 % of task time waits for mmap_lock, taken for writing"),
        "{}",
        profile.bottleneck
    );
    assert_eq!(profile.hidden, profile::Hidden::default());
    assert!(profile.notes.is_empty(), "{:?}", profile.notes);
}

#[test]
fn what_a_file_does_not_show_is_hidden_and_said() {
    let samples =
        "p 10 1.0: 1 cycles:u:  11cf main+0x1 (/p)\np 10 1.5: 1 cycles:u:  11cf main+0x1 (/p)\n";
    let profile = parsed(samples);
    assert!(profile.hidden.kernel && profile.hidden.waits);
    assert!(
        profile
            .bottleneck
            .starts_with("not known: the kernel and waits cannot be seen"),
        "{}",
        profile.bottleneck
    );
    assert_eq!(profile.clock, "cycles");
    let notes = profile.notes.join("\n");
    for what in [
        "perf record -g",
        "sched:sched_switch",
        "lock:contention_begin",
    ] {
        assert!(notes.contains(what), "{what}: {notes}");
    }
    // Without other threads' switches, when a thread came back is known by its next event only.
    let own = "p 10 1.0: sched:sched_switch: p:10 [120] S ==> q:11 [120]\n\n\
               p 10 1.5: 1 cpu-clock: 11 main (/p)\n";
    let notes = parsed(own).notes.join("\n");
    assert!(notes.contains("--switch-events"), "{notes}");
    let told = own.replace("\n\n", "\np 10 1.4: PERF_RECORD_SWITCH IN\n");
    assert!(!parsed(&told).notes.join("\n").contains("--switch-events"));
}

#[test]
fn threads_die_and_records_are_lost() {
    let text = "\
p 10/10 [000] 1.0: 1000000 cpu-clock: ffffffff81000000 f ([kernel.kallsyms])
q 10/11 [000] 1.0: sched:sched_switch: q:11 [120] Z ==> p:10 [120]
p 10/10 [000] 3.0: 1000000 cpu-clock: 11 main (/p)
r 12/12 [000] 3.0: 5 instructions: 11 main (/p)
p 10/10 [000] 3.0: PERF_RECORD_LOST lost 7
";
    let profile = parsed(text);
    assert_eq!(profile.lived, Some(2.0));
    let notes = profile.notes.join("\n");
    assert!(notes.contains("lost records: 7,"), "{notes}");
    assert!(notes.contains("not used: instructions (1)"), "{notes}");
}

#[test]
fn gzip_is_read_too_and_other_files_are_not_scripts() {
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zip.write_all(SMALL.as_bytes()).expect("memory");
    let zipped = zip.finish().expect("memory");
    let profile = parse("a.gz", &zipped)
        .expect("it is read")
        .expect("a script");
    assert_eq!(profile, parsed(SMALL));
    for other in ["", "{\"kind\":\"profile\"}", "1\n2\n3\n", "\0\0\0"] {
        assert_eq!(parse("other", other.as_bytes()).expect("no error"), None);
    }
    let cut = parse("a.gz", &zipped[..zipped.len() / 2]);
    assert!(matches!(cut, Err(InputError::Unreadable { .. })), "{cut:?}");
}

#[test]
fn a_recorded_script_names_the_locks() {
    let profile = parsed(RECORDED);
    let names: Vec<&str> = profile.locks.iter().map(|lock| &*lock.name).collect();
    assert!(names.contains(&"mmap_lock"), "{names:?}");
    assert!(!profile.busy.is_empty() && profile.hidden == profile::Hidden::default());
}

#[test]
fn damaged_scripts_are_profiles_or_errors() {
    let bytes = RECORDED.as_bytes();
    let check = |bytes: &[u8]| {
        if let Ok(Some(profile)) = parse("damaged", bytes) {
            let times = profile.busy.iter().chain(profile.waits.iter());
            assert!(times.map(|(_, time)| time).all(|time| time >= 0.0));
            assert!(!profile.bottleneck.is_empty());
        }
    };
    let step = bytes.len() / 200;
    for end in (0..bytes.len()).step_by(step) {
        check(&bytes[..end]);
    }
    // Reproducible, and each a different byte and bit.
    let mut random = 1u64;
    for _ in 0..300 {
        let mut damaged = bytes.to_vec();
        for _ in 0..20 {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let at = (random >> 33) as usize % damaged.len();
            damaged[at] ^= 1 << (random >> 61);
        }
        check(&damaged);
    }
}
