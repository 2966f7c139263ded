//! temp
#![allow(missing_docs)]
#[derive(Clone, Debug)]
pub struct Profile {
    pub name: String,
    pub topology: Topology,
    pub transfer: Transfer,
    pub core: Core,
    pub kernel: Kernel,
    pub ipi: Ipi,
    pub memory: MemoryCosts,
}
#[derive(Clone, Debug)]
pub struct Topology {
    pub sockets: usize,
    pub cores: usize,
    pub threads: usize,
    pub cluster: usize,
    pub hops: Vec<Vec<u8>>,
}
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arbitration {
    FirstCome,
    Nearest { bypasses: u32 },
}
#[derive(Clone, Debug)]
pub struct Transfer {
    pub sibling: u64,
    pub cluster: u64,
    pub socket: u64,
    pub hops: Vec<u64>,
    pub legs: [f64; 3],
    pub arbitration: Arbitration,
    pub read_occupancy: u64,
    pub invalidate_per_sharer: u64,
}
#[derive(Clone, Debug)]
pub struct Core {
    pub hit: u64,
    pub rmw: u64,
    pub fence: u64,
    pub pause: u64,
    pub store_buffer: usize,
    pub smt: f64,
    pub instruction: u64,
}
#[derive(Clone, Debug)]
pub struct Kernel {
    pub syscall: u64,
    pub fault: u64,
    pub block: u64,
    pub wake: u64,
    pub allocate: u64,
    pub yield_now: u64,
}
#[derive(Clone, Debug)]
pub struct Ipi {
    pub send: u64,
    pub per_target: u64,
    pub deliver: u64,
    pub handler: u64,
    pub acknowledge: u64,
}
#[derive(Clone, Debug)]
pub struct MemoryCosts {
    pub zero_page: u64,
    pub zero_socket_gbps: f64,
    pub copy_page: u64,
    pub walk: u64,
    pub tlb_flush_page: u64,
    pub tlb_flush_all: u64,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub socket: usize,
    pub cluster: usize,
    pub core: usize,
    pub thread: usize,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    SameThread,
    Sibling,
    Cluster,
    Socket,
    Hops(u8),
}
impl Profile {
    pub fn cpus(&self) -> usize {
        self.topology.sockets * self.topology.cores * self.topology.threads
    }
    pub fn place(&self, cpu: usize) -> Place {
        let t = &self.topology;
        let n = t.sockets * t.cores;
        let core = cpu % n;
        Place {
            socket: core / t.cores,
            cluster: core % t.cores / t.cluster,
            core: core % t.cores,
            thread: cpu / n,
        }
    }
    pub fn sibling(&self, cpu: usize) -> Option<usize> {
        (self.topology.threads == 2).then(|| (cpu + self.cpus() / 2) % self.cpus())
    }
    pub fn distance(&self, a: usize, b: usize) -> Class {
        let (x, y) = (self.place(a), self.place(b));
        if a == b {
            return Class::SameThread;
        }
        if x.socket != y.socket {
            return Class::Hops(1);
        }
        if x.core == y.core {
            return Class::Sibling;
        }
        if x.cluster == y.cluster {
            return Class::Cluster;
        }
        Class::Socket
    }
    pub fn test(sockets: usize, cores: usize, threads: usize) -> Profile {
        Profile {
            name: "t".into(),
            topology: Topology {
                sockets,
                cores,
                threads,
                cluster: cores,
                hops: vec![],
            },
            transfer: Transfer {
                sibling: 7600,
                cluster: 47000,
                socket: 47000,
                hops: vec![134000],
                legs: [0.2, 0.3, 0.5],
                arbitration: Arbitration::FirstCome,
                read_occupancy: 5000,
                invalidate_per_sharer: 1000,
            },
            core: Core {
                hit: 1200,
                rmw: 6000,
                fence: 8000,
                pause: 43000,
                store_buffer: 56,
                smt: 0.63,
                instruction: 300,
            },
            kernel: Kernel {
                syscall: 100000,
                fault: 500000,
                block: 1500000,
                wake: 2500000,
                allocate: 20000,
                yield_now: 300000,
            },
            ipi: Ipi {
                send: 300000,
                per_target: 50000,
                deliver: 800000,
                handler: 500000,
                acknowledge: 100000,
            },
            memory: MemoryCosts {
                zero_page: 330000,
                zero_socket_gbps: 80.0,
                copy_page: 500000,
                walk: 20000,
                tlb_flush_page: 100000,
                tlb_flush_all: 300000,
            },
        }
    }
}
