//! `scalevm doctor`.

use crate::cli::DoctorArgs;
use bench::Failure;
use calibration::doctor::{Finding, Host, State, examine};
use serde_json::json;
use stats::Exit;

/// Examines this computer and prints the findings.
pub fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    let findings = examine(&Host::here());
    let count = |state| findings.iter().filter(|one| one.state == state).count();
    let doubtful = findings.iter().any(Finding::is_doubtful);
    if args.json {
        findings.iter().for_each(|one| println!("{}", json!(one)));
        let summary = json!({
            "kind": "diagnosis",
            "ok": count(State::Ok),
            "unknown": count(State::Unknown),
            "advice": count(State::Advice),
            "change": count(State::Change),
            "doubtful": doubtful,
        });
        println!("{summary}");
    } else {
        findings.iter().for_each(|one| println!("{}", line(one)));
        println!("{}", sentence(&findings));
    }
    Ok(if doubtful {
        Exit::Inconclusive.code()
    } else {
        Exit::Success.code()
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
    format!("{:<7}  {name:<21}  {found}{advice}", state.name())
}

fn sentence(findings: &[Finding]) -> String {
    let names = |is: &dyn Fn(&&Finding) -> bool| -> Vec<&str> {
        findings.iter().filter(is).map(|one| one.name).collect()
    };
    let changes = names(&|one| one.state == State::Change);
    if !changes.is_empty() {
        return format!(
            "Figures from here would be doubtful: {}.",
            changes.join(", ")
        );
    }
    let open = names(&|one| one.is_doubtful());
    if !open.is_empty() {
        let open = open.join(", ");
        return format!("Figures from here may be doubtful: {open} cannot be seen.");
    }
    let unknown = match names(&|one| one.state == State::Unknown) {
        none if none.is_empty() => String::new(),
        some => format!(", as far as can be seen; not known: {}", some.join(", ")),
    };
    let better = match names(&|one| one.state == State::Advice).len() {
        0 => String::new(),
        1 => "; one property could be better".to_owned(),
        count => format!("; {count} properties could be better"),
    };
    format!("This computer is fit for measurements{unknown}{better}.")
}
