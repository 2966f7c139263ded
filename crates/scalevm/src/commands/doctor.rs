//! `scalevm doctor`.

use crate::cli::DoctorArgs;
use bench::Failure;
use computer::doctor::{Finding, Host, State, examine};
use serde_json::json;
use stats::Exit;

/// Examines this computer and prints the findings.
pub fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    let findings = examine(&Host::here());
    let count = |state| findings.iter().filter(|one| one.state == state).count();
    let (advice, changes) = (count(State::Advice), count(State::Change));
    if args.json {
        findings.iter().for_each(|one| println!("{}", json!(one)));
        let ok = count(State::Ok);
        let summary = json!({
            "kind": "diagnosis",
            "ok": ok,
            "advice": advice,
            "change": changes,
            "doubtful": changes > 0,
        });
        println!("{summary}");
    } else {
        findings.iter().for_each(|one| println!("{}", line(one)));
        println!("{}", sentence(&findings, advice));
    }
    Ok(match changes {
        0 => Exit::Success.code(),
        _ => Exit::Inconclusive.code(),
    })
}

fn line(finding: &Finding) -> String {
    let Finding {
        name,
        state,
        found,
        advice,
    } = finding;
    let advice = advice
        .as_ref()
        .map_or(String::new(), |advice| format!("; {advice}"));
    format!("{:<6}  {name:<21}  {found}{advice}", state.name())
}

fn sentence(findings: &[Finding], advice: usize) -> String {
    let changes = findings.iter().filter(|one| one.state == State::Change);
    let names: Vec<&str> = changes.map(|one| one.name).collect();
    match (names.is_empty(), advice) {
        (false, _) => format!("Figures from here would be doubtful: {}.", names.join(", ")),
        (true, 0) => "One can measure here.".into(),
        (true, 1) => "One can measure here; one thing could be better.".into(),
        (true, _) => format!("One can measure here; {advice} things could be better."),
    }
}
