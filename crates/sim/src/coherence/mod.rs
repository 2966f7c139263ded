//! Cache coherence: a directory of lines.
//!
//! # Protocol
//! A line is untouched, exclusive to one CPU, or shared by several to read. An access that the
//! CPU's rights allow is a *hit* and costs a cache access. Any other is a *request*, with three
//! *legs* (one-way latencies): it travels to the directory (first leg), and is granted when the
//! line is not in transit; the snoop reaches the line's holder (second leg), which can use the line
//! until then; the data travel to the requester (third leg). A line in transit has a queue, from
//! which arbitration picks when the transit ends. Readers of a shared line are served one after the
//! other, each keeping it busy for an *occupancy*; a writer waits for the last sharer's
//! acknowledgement, and for each sharer a little more.
//!
//! # Time
//! Requests are made in the order of simulated time: a requester has the smallest clock of all
//! actors. Hits need not be in that order: a request made at time *t* takes no line away before *t*
//! plus two legs of the shortest transfer, the *warning*. So a CPU may run ahead of the others by
//! that much with the same result.
//!
//! # Spinning
//! A CPU that waits for others sleeps on the lines that it has read since it last waited
//! ([`spin`]), until one of them is granted to a writer.

pub(crate) mod account;
mod distance;
mod line;
mod sharers;
pub(crate) mod spin;
mod table;

use crate::engine::Time;
use crate::engine::agenda::Agenda;
use crate::profile::{Arbitration, MachineProfile};
use account::Accounts;
use distance::{Distances, Legs};
use line::{NOBODY, State};
use sharers::Sharers;
use spin::Spinners;
use table::Table;

/// A line's number.
pub(crate) type LineId = usize;

/// What a request costs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    /// As much of the transfer takes the actor no time.
    pub(crate) credit: Time,
    /// True if the transfer takes nobody any time.
    pub(crate) at_hand: bool,
    /// True if those who spin on the line notice the change at once.
    pub(crate) prompt: bool,
}

/// The request of an actor.
#[derive(Clone, Copy, Default)]
struct Request {
    line: LineId,
    write: bool,
    made: Time,
    terms: Terms,
    /// The part of the transfer that the actor's credit has paid for.
    paid: Time,
    /// When the request reaches the directory.
    arrives: Time,
    /// When the request was granted.
    granted: Time,
    /// The next actor in the queue, + 1.
    next: u16,
    /// How often a nearer request was preferred.
    bypassed: u32,
}

/// The directory of the lines, with the requests and the CPUs that spin.
pub(crate) struct Directory {
    table: Table,
    sharers: Sharers,
    distances: Distances,
    arbitration: Arbitration,
    per_sharer: Time,
    /// How far a CPU may run ahead of other cores.
    warning: Time,
    cpus: usize,
    /// The request of each actor: a CPU, or (+ `cpus`) its store buffer.
    requests: Box<[Request]>,
    pub(crate) spinners: Spinners,
    pub(crate) accounts: Accounts,
}

impl Directory {
    pub(crate) fn new(profile: &MachineProfile, base: usize) -> std::io::Result<Self> {
        let cpus = profile.cpus();
        let distances = Distances::new(profile);
        Ok(Directory {
            table: Table::new(base)?,
            sharers: Sharers::new(cpus),
            warning: distances.warning(),
            distances,
            arbitration: profile.transfer.arbitration,
            per_sharer: profile.transfer.invalidate_per_sharer,
            cpus,
            requests: vec![Request::default(); 2 * cpus].into(),
            spinners: Spinners::new(cpus, profile.core.pause / 2),
            accounts: Accounts::default(),
        })
    }

    /// How far a CPU may run ahead of other cores, and of its core's other thread.
    pub(crate) fn warnings(&self) -> (Time, Time) {
        (self.warning, self.distances.sibling_warning())
    }

    /// The line of an address.
    #[inline]
    pub(crate) fn line_of(&mut self, address: usize) -> LineId {
        self.table.id(address)
    }

    /// The line's first address, as an offset in the machine's window.
    pub(crate) fn offset_of(&self, line: LineId) -> Option<usize> {
        self.table.offset_of(line)
    }

    /// Returns true if `cpu` has the right to read, or write, at `time`.
    #[inline]
    pub(crate) fn allows(&self, line: LineId, cpu: usize, time: Time, write: bool) -> bool {
        let (here, cpu) = (self.table.get(line), cpu as u16);
        here.is_own(cpu, time) || (!write && self.shares(line, cpu, time))
    }

    /// Returns true if `cpu` may read as a sharer, now or still.
    fn shares(&self, line: LineId, cpu: u16, time: Time) -> bool {
        let here = self.table.get(line);
        let still = match here.state {
            State::Shared => true,
            State::Exclusive => here.previous == NOBODY && time < here.until,
            State::Untouched => false,
        };
        still && here.sharers != 0 && self.sharers.contains(here.sharers, cpu)
    }

    /// Records that `cpu` has read the line at `time`, in case it is about to wait.
    #[inline]
    pub(crate) fn note_read(&mut self, line: LineId, cpu: usize, time: Time) {
        let here = self.table.get(line);
        // If the right is already being withdrawn, the value read is about to change.
        let current = match here.state {
            State::Exclusive => here.holder == cpu as u16,
            _ => true,
        };
        let doomed = if current || time >= here.until {
            0
        } else {
            here.until
        };
        self.spinners.note(cpu, line, here.version, doomed);
    }

    /// Puts `cpu` to sleep on the lines it has read; returns the wake-up time if one of them has
    /// changed or is about to. (Another may still change before that, and wake it.)
    pub(crate) fn sleep(&mut self, cpu: usize, now: Time) -> Option<Time> {
        let Directory {
            table, spinners, ..
        } = self;
        spinners.sleep(cpu, now, table)
    }

    /// Charges `cpu`'s spinning for `time` to the line that it has read last.
    pub(crate) fn charge_spin(&mut self, cpu: usize, time: Time) {
        let line = self.spinners.last(cpu);
        let account = &mut self.table.get_mut(line).account;
        self.accounts.spin(account, line, time);
    }

    /// Requests the line for `actor` at `now`, the earliest time of all. The agenda then has the
    /// actor at the time when its data arrive, or at no time while it has to queue.
    pub(crate) fn request(
        &mut self,
        actor: usize,
        line: LineId,
        write: bool,
        now: Time,
        terms: Terms,
        agenda: &mut Agenda,
    ) {
        let cpu = (actor % self.cpus) as u16;
        let here = self.table.get(line);
        let travel = match here.state {
            State::Untouched => 0,
            _ => self.legs(terms, here.holder, cpu).request,
        };
        let paid = travel.min(terms.credit);
        self.requests[actor] = Request {
            line,
            write,
            made: now,
            terms,
            paid,
            arrives: now + travel - paid,
            granted: 0,
            next: 0,
            bypassed: 0,
        };
        let joins = !write && here.state == State::Shared;
        if here.first == 0 && (here.in_flight == 0 || joins) {
            self.grant(actor, now, agenda);
        } else {
            self.enqueue(actor, line);
            agenda.set(actor, crate::engine::agenda::NEVER);
        }
    }

    /// The part of the transfer for which the credit of `actor`, whose data have arrived, has paid.
    pub(crate) fn paid(&self, actor: usize) -> Time {
        self.requests[actor].paid
    }

    /// Records that the data of `actor`'s request have arrived at `now`, in the line's account if
    /// it `counts`. If that ends the transit, serves the waiters.
    pub(crate) fn arrived(&mut self, actor: usize, now: Time, counts: bool, agenda: &mut Agenda) {
        let Request {
            line,
            made,
            granted,
            ..
        } = self.requests[actor];
        let here = self.table.get_mut(line);
        here.in_flight -= 1;
        let idle = here.in_flight == 0;
        // The first touch of a line moves nothing.
        if now > made && counts {
            let account = &mut here.account;
            self.accounts
                .transfer(account, line, granted - made, now - granted);
        }
        if idle {
            self.serve(line, now, agenda);
        }
    }

    /// Grants the line to waiters: one writer, or all readers up to the next writer.
    fn serve(&mut self, line: LineId, now: Time, agenda: &mut Agenda) {
        while let Some(actor) = self.choose(line) {
            let write = self.requests[actor].write;
            if write && self.table.get(line).in_flight > 0 {
                break;
            }
            self.dequeue(actor, line);
            self.grant(actor, now, agenda);
            if write {
                break;
            }
        }
    }

    /// Gives the line to `actor`, at `now` or when the request reaches the directory.
    fn grant(&mut self, actor: usize, now: Time, agenda: &mut Agenda) {
        let Request {
            line,
            write,
            arrives,
            terms,
            ..
        } = self.requests[actor];
        let cpu = (actor % self.cpus) as u16;
        let here = self.table.get(line);
        let from = now.max(arrives);
        let (start, done) = match here.state {
            State::Untouched => self.take_untouched(line, cpu, from),
            State::Exclusive if here.holder == cpu => (from, from),
            State::Exclusive => self.take_from_holder(line, cpu, write, from, terms, agenda),
            State::Shared if write => self.take_from_sharers(line, cpu, from, now, terms, agenda),
            State::Shared => self.join(line, cpu, from, terms),
        };
        self.table.get_mut(line).in_flight += 1;
        let request = &mut self.requests[actor];
        let paid = (done - start).min(terms.credit - request.paid);
        request.granted = start;
        request.paid += paid;
        agenda.set(actor, done - paid);
    }

    fn take_untouched(&mut self, line: LineId, cpu: u16, from: Time) -> (Time, Time) {
        let here = self.table.get_mut(line);
        here.state = State::Exclusive;
        here.holder = cpu;
        here.previous = NOBODY;
        here.busy = from;
        (from, from)
    }

    fn take_from_holder(
        &mut self,
        line: LineId,
        cpu: u16,
        write: bool,
        from: Time,
        terms: Terms,
        agenda: &mut Agenda,
    ) -> (Time, Time) {
        let legs = self.legs(terms, self.table.get(line).holder, cpu);
        let here = self.table.get_mut(line);
        let start = from.max(here.busy);
        let (lost, done) = (start + legs.snoop, start + legs.served());
        here.previous = here.holder;
        here.until = lost;
        here.busy = done;
        if write {
            here.holder = cpu;
            here.version = here.version.wrapping_add(1);
            self.wake(line, cpu, lost, terms, agenda);
        } else {
            here.state = State::Shared;
            here.readable = done;
            here.reader_turn = done;
            self.sharers.clear(&mut here.sharers);
            self.sharers.insert(here.sharers, here.holder);
            self.sharers.insert(here.sharers, cpu);
        }
        (start, done)
    }

    /// Takes the line from its sharers. A sharer may have run ahead by the warning, so none loses
    /// the line before that.
    fn take_from_sharers(
        &mut self,
        line: LineId,
        cpu: u16,
        from: Time,
        now: Time,
        terms: Terms,
        agenda: &mut Agenda,
    ) -> (Time, Time) {
        let (warning, per_sharer) = match terms.at_hand {
            true => (0, 0),
            false => (self.warning, self.per_sharer),
        };
        let warned = now + warning;
        let here = self.table.get(line);
        let start = from.max(here.busy).max(here.readable);
        let (mut nearest, mut done, mut count) = (Time::MAX, start, 0);
        for other in self
            .sharers
            .iter(here.sharers)
            .filter(|&other| other != cpu)
        {
            let legs = self.legs(terms, other, cpu);
            nearest = nearest.min(legs.snoop);
            done = done.max(start + legs.served());
            count += 1;
        }
        let lost = match count {
            0 => start,
            _ => (start + nearest).max(warned),
        };
        let done = lost.max(done + per_sharer * count);
        let here = self.table.get_mut(line);
        here.state = State::Exclusive;
        here.holder = cpu;
        here.previous = NOBODY;
        here.until = lost;
        here.busy = done;
        here.version = here.version.wrapping_add(1);
        self.wake(line, cpu, lost, terms, agenda);
        (start, done)
    }

    fn join(&mut self, line: LineId, cpu: u16, from: Time, terms: Terms) -> (Time, Time) {
        let here = self.table.get_mut(line);
        let (sharers, distances) = (&mut self.sharers, &self.distances);
        if sharers.contains(here.sharers, cpu) {
            return (from, from.max(here.busy));
        }
        let nearest = sharers
            .iter(here.sharers)
            .min_by_key(|&other| distances.legs(other, cpu).total());
        let nearest = nearest.unwrap_or(here.holder);
        let start = from.max(here.reader_turn);
        let (served, occupancy) = match terms.at_hand {
            true => (Legs::AT_HAND.served(), 0),
            false => (
                distances.legs(nearest, cpu).served(),
                distances.occupancy(nearest, cpu),
            ),
        };
        let done = start + served;
        here.reader_turn = start + occupancy;
        here.readable = here.readable.max(done);
        sharers.insert(here.sharers, cpu);
        (start, done)
    }

    /// The legs of a transfer on these terms.
    #[inline]
    fn legs(&self, terms: Terms, from: u16, to: u16) -> Legs {
        if terms.at_hand {
            Legs::AT_HAND
        } else {
            self.distances.legs(from, to)
        }
    }

    /// Wakes the CPUs that spin on the line: it is invalid at `lost`.
    fn wake(&mut self, line: LineId, writer: u16, lost: Time, terms: Terms, agenda: &mut Agenda) {
        let list = self.table.get(line).spinners;
        self.spinners.wake(list, writer, lost, terms.prompt, agenda);
    }

    /// The waiting request to be served next.
    fn choose(&self, line: LineId) -> Option<usize> {
        let here = self.table.get(line);
        let first = usize::from(here.first).checked_sub(1)?;
        let Arbitration::Nearest { bypasses } = self.arbitration else {
            return Some(first);
        };
        if self.requests[first].bypassed >= bypasses {
            return Some(first);
        }
        let waiting = core::iter::successors(Some(first), |&actor| {
            usize::from(self.requests[actor].next).checked_sub(1)
        });
        let cost = |actor: usize| {
            self.distances
                .legs(here.holder, (actor % self.cpus) as u16)
                .total()
        };
        waiting.min_by_key(|&actor| cost(actor))
    }

    fn enqueue(&mut self, actor: usize, line: LineId) {
        let here = self.table.get_mut(line);
        let name = actor as u16 + 1;
        match here.last {
            0 => here.first = name,
            last => self.requests[usize::from(last) - 1].next = name,
        }
        here.last = name;
    }

    /// Removes `actor` from the queue, and counts a bypass for those before it.
    fn dequeue(&mut self, actor: usize, line: LineId) {
        let here = self.table.get_mut(line);
        let name = actor as u16 + 1;
        let (mut before, mut at) = (0, here.first);
        while at != name {
            let request = &mut self.requests[usize::from(at) - 1];
            request.bypassed += 1;
            (before, at) = (at, request.next);
        }
        let next = self.requests[actor].next;
        match before {
            0 => here.first = next,
            before => self.requests[usize::from(before) - 1].next = next,
        }
        if here.last == name {
            here.last = before;
        }
    }

    /// Gives the line to a CPU that has overwritten all of it without reading it (zeroing a frame).
    pub(crate) fn seize(&mut self, line: LineId, cpu: usize) {
        let here = self.table.get_mut(line);
        if here.in_flight == 0 && here.first == 0 {
            here.state = State::Exclusive;
            here.holder = cpu as u16;
            here.previous = NOBODY;
            here.until = 0;
            here.version = here.version.wrapping_add(1);
        }
    }
}
