//! A cluster of Slurm's on this computer: a controller and some nodes, for one test.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time that the cluster has to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Stopped when it is dropped.
pub struct Cluster {
    directory: PathBuf,
    /// Of no other cluster: tasks have it in their environment.
    name: String,
    nodes: Vec<String>,
}

impl Cluster {
    /// Starts `nodes` nodes; their files are in `directory`.
    pub fn start(directory: &str, nodes: usize) -> Self {
        let cluster = Cluster {
            directory: directory.into(),
            name: format!("scalevm{}", std::process::id()),
            nodes: (1..=nodes).map(|node| format!("n{node}")).collect(),
        };
        for name in ["state", "log", "run"] {
            fs::create_dir_all(cluster.file(name)).expect("a directory");
        }
        fs::write(cluster.file("slurm.conf"), cluster.configuration()).expect("written");
        cluster.start_munge();
        cluster.succeed("slurmctld", &[]);
        for node in &cluster.nodes {
            fs::create_dir_all(cluster.file(&format!("spool.{node}"))).expect("a directory");
            cluster.succeed("slurmd", &["-N", node]);
        }
        let begun = Instant::now();
        let up = format!("idle {nodes}");
        while cluster.said("sinfo", &["--noheader", "--format=%T %D"]) != up {
            assert!(begun.elapsed() < PATIENCE, "{}", cluster.logs());
            sleep(Duration::from_millis(100));
        }
        cluster
    }

    /// Makes a command one of the cluster's users.
    pub fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("SLURM_CONF", self.file("slurm.conf"))
    }

    /// Ends a node on which a task runs, with all that runs there, as a loss of power does; whether
    /// there is one.
    pub fn kill_a_busy_node(&self) -> bool {
        let busy = self
            .nodes
            .iter()
            .find(|node| !self.tasks_of(node).is_empty());
        let Some(node) = busy else {
            return false;
        };
        let daemon = fs::read_to_string(self.file(&format!("run/slurmd.{node}.pid")));
        kill(&[daemon.expect("written").trim().to_owned()]);
        let tasks = self.tasks_of(node);
        // Its supervisor would tell the controller how a task ended.
        let supervisors: Vec<String> = tasks.iter().filter_map(|task| supervisor(task)).collect();
        kill(&supervisors);
        kill(&self.tasks_of(node));
        let name = format!("nodename={node}");
        self.said("scontrol", &["update", &name, "state=down", "reason=dead"]);
        true
    }

    /// Returns true if a task was taken back for another node.
    pub fn was_requeued(&self) -> bool {
        let log = fs::read_to_string(self.file("log/slurmctld.log"));
        log.expect("written").to_lowercase().contains("requeue job")
    }

    /// What its daemons said.
    pub fn logs(&self) -> String {
        let mut all = String::new();
        for file in fs::read_dir(self.file("log")).expect("a directory") {
            let path = file.expect("a file").path();
            let text = fs::read_to_string(&path).unwrap_or_default();
            let last: Vec<&str> = text.lines().rev().take(40).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            writeln!(all, "== {}\n{}", path.display(), last.join("\n")).expect("a string");
        }
        all
    }

    /// The processes that run for the cluster on a node.
    fn tasks_of(&self, node: &str) -> Vec<String> {
        let wanted = [
            format!("SLURM_CLUSTER_NAME={}", self.name),
            format!("SLURMD_NODENAME={node}"),
        ];
        let has_all = |process: &String| {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            let has = |wanted: &String| {
                environment
                    .split(|&byte| byte == 0)
                    .any(|one| one == wanted.as_bytes())
            };
            wanted.iter().all(has)
        };
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        let names = processes.filter_map(|process| process.file_name().into_string().ok());
        let numbers = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        numbers.filter(has_all).collect()
    }

    fn start_munge(&self) {
        let key = self.file("run/munge.key");
        let random = fs::read("/proc/sys/kernel/random/uuid").expect("random bytes");
        fs::write(&key, random.repeat(4)).expect("written");
        let mode = Command::new("chmod").arg("400").arg(&key).status();
        assert!(mode.expect("chmod starts").success());
        let file = |option: &str, name: &str| format!("--{option}={}", self.file(name).display());
        self.succeed(
            "munged",
            &[
                "--force",
                &file("key-file", "run/munge.key"),
                &file("socket", "run/munge.socket"),
                &file("pid-file", "run/munged.pid"),
                &file("log-file", "log/munged.log"),
                &file("seed-file", "run/munge.seed"),
            ],
        );
    }

    fn configuration(&self) -> String {
        let host = self.plain("hostname", &["-s"]);
        let user = self.plain("id", &["-un"]);
        let here = self.directory.display();
        let mut text = format!(
            "ClusterName={}\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\n\
             SlurmUser={user}\nSlurmdUser={user}\n\
             AuthType=auth/munge\nCredType=cred/munge\n\
             AuthInfo=socket={here}/run/munge.socket,cred_expire=5\n\
             CommunicationParameters=NoInAddrAny,NoCtldInAddrAny,DisableIPv6\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             JobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\n\
             MpiDefault=none\nSwitchType=switch/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n\
             SchedulerType=sched/backfill\n\
             SchedulerParameters=sched_interval=1,bf_interval=1\nJobRequeue=1\nReturnToService=2\n\
             SlurmdTimeout=10\nSlurmctldTimeout=10\nKillWait=2\nSlurmdParameters=config_overrides\n\
             StateSaveLocation={here}/state\nSlurmdSpoolDir={here}/spool.%n\n\
             SlurmctldPidFile={here}/run/slurmctld.pid\nSlurmdPidFile={here}/run/slurmd.%n.pid\n\
             SlurmctldLogFile={here}/log/slurmctld.log\nSlurmdLogFile={here}/log/slurmd.%n.log\n",
            self.name,
            free_port(),
        );
        for node in &self.nodes {
            let port = free_port();
            writeln!(
                text,
                "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 \
                 RealMemory=500"
            )
            .expect("a string");
        }
        let nodes = self.nodes.join(",");
        text + &format!("PartitionName=all Nodes={nodes} Default=YES MaxTime=INFINITE State=UP\n")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn output(&self, program: &str, arguments: &[&str]) -> Output {
        // Daemons are where users do not look for programs.
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
        let mut command = Command::new(program);
        let command = self.environment(command.args(arguments).env("PATH", path));
        let output = command.output();
        output.unwrap_or_else(|error| panic!("{program} (packages slurm-wlm and munge): {error}"))
    }

    fn succeed(&self, program: &str, arguments: &[&str]) {
        let output = self.output(program, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{program}: {said}\n{}",
            self.logs()
        );
    }

    fn said(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.output(program, arguments);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn plain(&self, program: &str, arguments: &[&str]) -> String {
        self.said(program, arguments)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &self.nodes {
            kill(&self.tasks_of(node));
        }
        for file in fs::read_dir(self.file("run"))
            .expect("a directory")
            .flatten()
        {
            if file.path().extension().is_some_and(|end| end == "pid") {
                let number = fs::read_to_string(file.path()).unwrap_or_default();
                kill(&[number.trim().to_owned()]);
            }
        }
    }
}

fn kill(processes: &[String]) {
    if !processes.is_empty() {
        // Some may have ended already.
        let _ = Command::new("kill").arg("-9").args(processes).output();
    }
}

/// The supervisor that a task was started by.
fn supervisor(task: &str) -> Option<String> {
    let parent = parent(task)?;
    let name = fs::read_to_string(Path::new("/proc").join(&parent).join("comm")).ok()?;
    name.starts_with("slurmstepd").then_some(parent)
}

fn parent(process: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    Some(line.trim().to_owned())
}

/// A port that none listens at.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
