//! A site's Slurm, with programs in place of `sbatch` and `squeue`.

use super::support::command::{exits, scalevm};
use super::support::scratch::Scratch;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Two shards of two points.
const PLAN: &str = "[[part]]\ncommand = \"run\"\nargs = \"mmap1\"\nmachine = \"pc-16c32t\"\n\
                    tasks = [1, 2]\nseed = [1, 2]\nseeds = 1\nduration = 0.001\n";

/// Submits: the job is made two seconds later, and is number 815 on the cluster `east` if there is
/// one.
const SBATCH: &str = r#"#!/bin/sh
echo submitted >>"$HERE/log"
for script; do :; done
( sleep 2
  for task in 0 1; do SLURM_ARRAY_TASK_ID=$task sh "$script"; done
  : >"$HERE/ended" ) >/dev/null 2>&1 &
printf %b "$PRINTS"
"#;

/// Knows the job where it is, until it has ended.
const SQUEUE: &str = r#"#!/bin/sh
case "$PRINTS $*" in
*east*--clusters=east*) ;;
*east*) echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1 ;;
esac
case "$*" in
*"--jobs 815"*) ;;
*) echo "error: Invalid job id: $*" >&2; exit 1 ;;
esac
echo "CLUSTER: east"
[ -e "$HERE/ended" ] || echo '815_[0-1]'
"#;

/// A site whose `sbatch` prints this.
struct Site {
    place: Scratch,
    prints: &'static str,
}

impl Site {
    fn new(name: &str, prints: &'static str) -> Self {
        let place = Scratch::folder(name);
        for (name, text) in [("sbatch", SBATCH), ("squeue", SQUEUE)] {
            let path = place.write(name, text);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
        }
        place.write("plan.toml", PLAN);
        Site { place, prints }
    }

    fn campaign(&self) -> Command {
        let plan = self.place.inside("plan.toml");
        let mut command = scalevm(&format!("campaign run {plan} --engine slurm --shards 2"));
        let here = self.place.inside("");
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{here}:{path}"))
            .env("HERE", here)
            .env("PRINTS", self.prints);
        command
    }

    /// How often a job was submitted.
    fn submissions(&self) -> usize {
        let log = fs::read_to_string(self.place.inside("log"));
        log.expect("submitted").lines().count()
    }
}

#[test]
fn a_job_is_submitted_once_whatever_sbatch_prints_with_its_number() {
    for (name, prints) in [
        ("slurm-plain", r"815\n"),
        ("slurm-cluster", r"815;east\n"),
        (
            "slurm-banner",
            r"----\n Welcome to Cluster 5\n--> OK\n815\n",
        ),
        ("slurm-both", r"Queue; OK\n815;east\n"),
    ] {
        let site = Site::new(name, prints);
        let output = site.campaign().output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        assert_eq!(site.submissions(), 1, "{name}: {said}");
        assert!(said.contains("4 points done"), "{name}: {said}");
    }
}

#[test]
fn a_job_without_a_number_is_an_error_and_is_not_submitted_again() {
    let site = Site::new("slurm-none", r"Your job is queued.\n");
    let (_, said) = exits(4, &mut site.campaign());
    assert!(
        said.contains("sbatch: the number of the job is not clear") && said.lines().count() == 1,
        "{said}"
    );
    assert_eq!(site.submissions(), 1);
}
