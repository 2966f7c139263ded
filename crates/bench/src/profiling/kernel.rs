//! Profiles scalevm's kernel in a guest: its own samples, and its lock profile.

use super::watched::unwatched;
use super::{Subject, names, own};
use crate::harness::Failure;
use crate::inside::{Line, Window};
use crate::kernel::{GuestKernel, Watched};
use guests::{Frame, functions};
use profile::{Kind, Lock, Profile, Stacks};
use std::collections::HashMap;

/// The first address of the kernel.
const KERNEL: u64 = 1 << 63;
/// The address at which it puts position-independent programs.
const ANYWHERE: u64 = 0x5555_5555_4000;
/// The function under which a thread's work is, in the kernel.
const BEGIN: &str = "kernel::process::thread::run";

/// Measures a run of the plan, and profiles a second one in a guest of its own.
pub fn profile(subject: &Subject<'_>, target: &GuestKernel) -> Result<Option<Profile>, Failure> {
    let Subject { plan, schedule, .. } = subject;
    let mut machine = (subject.machine)();
    let samples = schedule.total().unwrap_or(0) + 1;
    let mut progress = (subject.bars)(samples, "samples");
    let Some(unwatched) = unwatched(subject, &mut progress)? else {
        return Ok(None);
    };
    let watched = target.watch(
        plan,
        Window {
            frequency: subject.options.frequency,
            after: schedule.warmup * schedule.duration,
            span: schedule.samples * schedule.duration,
        },
    );
    progress.step();
    progress.finish();
    let seen = Seen::of(subject, &watched?)?;
    machine.observe_after();
    let mut profile = Profile {
        rate: Some(seen.rate),
        rate_unwatched: Some(unwatched),
        busy: seen.busy,
        waits: seen.waits,
        locks: seen.locks,
        notes: seen.notes,
        machine: Some(machine),
        ..Profile::new(target.subject(plan), seen.seconds, "the guest's clock")
    };
    profile.name_bottleneck();
    Ok(Some(profile))
}

/// The guest's observations.
#[derive(Default)]
struct Seen {
    seconds: f64,
    rate: f64,
    busy: Stacks,
    waits: Stacks,
    locks: Vec<Lock>,
    notes: Vec<String>,
}

/// Nanoseconds of a stack, from the innermost address on.
struct Busy {
    nanoseconds: u64,
    addresses: Vec<u64>,
}

impl Seen {
    fn of(subject: &Subject<'_>, watched: &Watched) -> Result<Self, Failure> {
        let nonsense = |line: &Line| Failure::Guest {
            workload: subject.plan.workload.name(),
            why: format!("unexpected output from the guest: `{line}`"),
        };
        let (mut seen, mut counts, mut stacks) = (Seen::default(), Vec::new(), Vec::new());
        for line in &watched.lines {
            match line {
                Line::Counts(at, of) => counts.push((*at, of)),
                Line::Seen(text) => seen.take(text, &mut stacks).ok_or_else(|| nonsense(line))?,
                _ => return Err(nonsense(line)),
            }
        }
        let [(start, before), (end, after)] = counts[..] else {
            return Err(Failure::Guest {
                workload: subject.plan.workload.name(),
                why: "the guest did not report its counts".into(),
            });
        };
        seen.seconds = (end - start).as_secs_f64();
        let done = after.iter().zip(before).map(|(now, then)| now - then);
        seen.rate = done.sum::<u64>() as f64 / seen.seconds;
        seen.name(&stacks, subject.plan.workload.name(), watched);
        seen.account(subject.plan.tasks, subject.plan.workload.name());
        Ok(seen)
    }

    /// Takes a line of the kernel's profile; none if it is no such line.
    fn take(&mut self, line: &str, stacks: &mut Vec<Busy>) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "sample" => {
                let mut words = rest.split(' ');
                let nanoseconds = words.next()?.parse().ok()?;
                let addresses = words.map(|word| u64::from_str_radix(word, 16).ok());
                stacks.push(Busy {
                    nanoseconds,
                    addresses: addresses.collect::<Option<_>>()?,
                });
            }
            "lock" => self.locks.push(lock(rest)?),
            _ => self.notes.push(format!(
                "the kernel had no room for {rest} samples of a CPU: lower --frequency, or shorten \
                 --duration"
            )),
        }
        Some(())
    }

    fn name(&mut self, stacks: &[Busy], workload: &str, watched: &Watched) {
        let names = Names::of(stacks, watched);
        let mut busy = Stacks::default();
        for stack in stacks {
            let frames = stack.places().rev().flat_map(|place| names.at(place));
            let frames = [workload].into_iter().chain(frames);
            busy.add(frames, stack.nanoseconds as f64 / 1e9);
        }
        self.busy = busy.begun_at(BEGIN);
    }

    /// Computes shares of the tasks' time; the rest is time that was not spent on a CPU.
    fn account(&mut self, tasks: usize, workload: &str) {
        let task_seconds = self.seconds * tasks as f64;
        let locks = self.locks.drain(..);
        self.locks = locks.map(|lock| lock.share_of(task_seconds)).collect();
        self.locks.sort_by(|a, b| b.share.total_cmp(&a.share));
        for lock in &self.locks {
            self.waits
                .add([workload, &lock.name, &lock.caller], lock.wait);
        }
        let rest = task_seconds - self.busy.total() - self.waits.total();
        if rest > 0.0 {
            self.waits.add([workload, "[off CPU]"], rest);
        }
    }
}

impl Busy {
    /// The addresses of the running instructions, the innermost first: all but the first are where
    /// calls return to.
    fn places(&self) -> impl DoubleEndedIterator<Item = u64> {
        let before = |(index, address): (usize, &u64)| address - u64::from(index > 0);
        self.addresses.iter().enumerate().map(before)
    }
}

/// The functions at each address, the outermost first.
struct Names(HashMap<u64, Vec<String>>);

impl Names {
    fn of(stacks: &[Busy], watched: &Watched) -> Self {
        let mut all: Vec<u64> = stacks.iter().flat_map(Busy::places).collect();
        all.sort_unstable();
        all.dedup();
        let (programs, kernels) = all.split_at(all.partition_point(|&place| place < KERNEL));
        let mut names = HashMap::new();
        let named = functions(&watched.kernel, kernels)
            .into_iter()
            .map(kernels_names);
        names.extend(kernels.iter().copied().zip(named));
        if let Some(program) = &watched.program {
            let place = |&place: &u64| {
                if place < ANYWHERE {
                    place
                } else {
                    place - ANYWHERE
                }
            };
            let places: Vec<u64> = programs.iter().map(place).collect();
            let own =
                |frames: Vec<Frame>| frames.into_iter().rev().map(|frame| frame.name).collect();
            let named = functions(&program.file, &places).into_iter().map(own);
            names.extend(programs.iter().copied().zip(named));
        }
        Names(names)
    }

    fn at(&self, place: u64) -> impl Iterator<Item = &str> {
        self.0.get(&place).into_iter().flatten().map(String::as_str)
    }
}

/// Functions of the kernel by their modules.
fn kernels_names(frames: Vec<Frame>) -> Vec<String> {
    let name = |frame: Frame| {
        let place = frame.line.as_deref().unwrap_or_default();
        let path = names::qualified(&frame.name, place).map(|(_, path)| path);
        format!("{}_[k]", path.unwrap_or(frame.name))
    };
    frames.into_iter().rev().map(name).collect()
}

/// A lock, from `ACQUISITIONS WAITS NANOSECONDS LONGEST PLACE CLASS`.
fn lock(text: &str) -> Option<Lock> {
    let mut words = text.splitn(6, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let [acquisitions, waits, all, longest] = [number()?, number()?, number()?, number()?];
    let (place, class) = (words.next()?, words.next()?);
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    let mut lock = Lock::new(class, Kind::Own, own::from_crate(place));
    lock.acquisitions = Some(acquisitions);
    lock.add_waits(waits, seconds(all), seconds(longest));
    Some(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_profile_are_read() {
        let (mut seen, mut stacks) = (Seen::default(), Vec::new());
        for line in [
            "sample 1003009 ffffffff80100001 ffffffff80200005",
            "lock 9 2 3000000 2000000 /x/crates/vm/src/tree/lock.rs:7 tree slot",
            "lost 4",
        ] {
            assert_eq!(seen.take(line, &mut stacks), Some(()), "{line}");
        }
        let places: Vec<u64> = stacks[0].places().collect();
        assert_eq!(places, [0xffff_ffff_8010_0001, 0xffff_ffff_8020_0004]);
        let lock = &seen.locks[0];
        assert_eq!(
            (&lock.name[..], &lock.caller[..]),
            ("tree slot", "vm/src/tree/lock.rs:7")
        );
        assert_eq!((lock.contentions, lock.wait, lock.worst), (2, 0.003, 0.002));
        assert_eq!(seen.notes.len(), 1);
        for bad in ["sample", "sample x", "sample 1 x", "lock 1 2 3 4 place"] {
            assert_eq!(seen.take(bad, &mut stacks), None, "{bad}");
        }
    }

    #[test]
    fn time_off_cpus_is_what_is_left() {
        let mut seen = Seen {
            seconds: 2.0,
            ..Seen::default()
        };
        seen.busy.add(["w", "f"], 1.5);
        seen.account(2, "w");
        assert_eq!(
            seen.waits.iter().collect::<Vec<_>>(),
            [("w;[off CPU]", 2.5)]
        );
    }
}
