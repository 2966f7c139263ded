//! How fast CPUs compute: other busy threads of the same core slow a CPU down, and so do other busy
//! cores of the socket.

use super::{Cpu, Doing, Engine};

impl Engine {
    /// Sets the speeds of `cpus` while `works` says which CPUs work.
    pub(crate) fn set_speeds(
        &mut self,
        cpus: impl IntoIterator<Item = usize>,
        works: impl Fn(&[Cpu], usize) -> bool,
    ) {
        let mut clocks = vec![None; self.profile.topology.sockets];
        for cpu in cpus {
            let socket = self.profile.place(cpu).socket;
            let works = |cpu| works(&self.cpus, cpu);
            let clock = *clocks[socket].get_or_insert_with(|| self.clock(socket, works));
            let threads = self.siblings(cpu).chain([cpu]).filter(|&cpu| works(cpu));
            let smt = match threads.count() {
                0 | 1 => 1.0,
                _ => self.profile.core.smt,
            };
            self.cpus[cpu].set_speed(clock * smt);
        }
    }

    /// Updates the speeds of all CPUs that are affected when the running CPU becomes idle or busy.
    pub(super) fn change_speeds(&mut self) {
        let cpus: Vec<usize> = if self.profile.core.clocks.0.is_empty() {
            self.siblings(self.running).chain([self.running]).collect()
        } else {
            self.cpus_of(self.profile.place(self.running).socket)
                .collect()
        };
        self.set_speeds(cpus, |cpus, cpu| cpus[cpu].doing != Doing::Idle);
    }

    /// The speed of a socket's cores by their clock.
    fn clock(&self, socket: usize, works: impl Fn(usize) -> bool) -> f64 {
        let clocks = &self.profile.core.clocks;
        if clocks.0.is_empty() {
            return 1.0;
        }
        let first = self.cpus_of(socket).take(self.profile.topology.cores);
        let busy = |&cpu: &usize| works(cpu) || self.siblings(cpu).any(&works);
        clocks.speed(first.filter(busy).count())
    }

    /// The CPUs of a socket, the first threads of its cores first.
    fn cpus_of(&self, socket: usize) -> impl Iterator<Item = usize> + use<> {
        let topology = &self.profile.topology;
        let (cores, all) = (topology.cores, topology.sockets * topology.cores);
        let thread = move |thread| (0..cores).map(move |core| thread * all + socket * cores + core);
        (0..topology.threads).flat_map(thread)
    }
}
