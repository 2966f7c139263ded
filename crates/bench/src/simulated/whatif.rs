//! What each cause costs, and what taking it away brings.
//!
//! A profile says how long tasks wait for a lock, not what a kernel without it gains: the next
//! cause may be right behind. A simulated machine can do without one, and be asked.

use super::cause::Cause;
use super::{AT_ONCE_WHOLE, Attribution, Simulated};
use crate::harness::{Bars, Failure, Plan, interrupt};
use crate::points::Workers;
use baselines::Preset;
use sim::profile::MachineProfile;
use std::time::Duration;
use sync::watch::classes;

/// The most rungs of a ladder.
const RUNGS: usize = 8;
/// The most causes that are taken away one by one.
const CAUSES: usize = 8;

/// The questions: what are the causes at the plan's tasks, and what does each bring there and at
/// other numbers of tasks?
#[derive(Clone, Copy)]
pub struct WhatIf<'a> {
    /// The system as it is.
    pub target: &'a Simulated,
    /// The plan with the most tasks, by which the causes are found.
    pub plan: Plan,
    /// The numbers of tasks, which end with the plan's.
    pub counts: &'a [usize],
    /// The length of windows.
    pub span: Duration,
    /// True if each variant is run on the machine's corners, too.
    pub corners: bool,
}

/// The system without some causes.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What it does without, in the order in which it was taken away.
    pub without: Vec<Cause>,
    /// The part of the tasks' time that the last of these took before.
    pub share: f64,
    /// Operations a second of each number of tasks.
    pub rates: Vec<f64>,
    /// The lowest and the highest gain over the machine's corners at the plan's tasks.
    pub corners: Option<[f64; 2]>,
    /// Where the time goes at the plan's tasks.
    pub seen: Attribution,
}

/// The answers.
pub struct Answer {
    /// The system as it is.
    pub base: Variant,
    /// Without one cause, the one that gains most first.
    pub alone: Vec<Variant>,
    /// Without one cause more on each rung, always the largest that is left.
    pub ladder: Vec<Variant>,
    /// Other presets of the same family and scalevm's own, with the rate of each number of tasks.
    pub others: Vec<(Preset, Vec<f64>)>,
}

impl WhatIf<'_> {
    /// Asks for each cause of the system and for the ladder.
    ///
    /// # Errors
    /// A run fails, or a signal asks to end.
    pub fn ask(&self, bars: Bars) -> Result<Answer, Failure> {
        let base = self.variant(Vec::new(), 0.0)?;
        let mut ladder: Vec<Variant> = Vec::new();
        while ladder.len() < RUNGS
            && let Some((cause, share)) = ladder.last().unwrap_or(&base).next()
        {
            let before = ladder.last().map_or(&[][..], |rung| &rung.without);
            ladder.push(self.variant([before, &[cause]].concat(), share)?);
        }
        let mut causes = Cause::of(&base.seen);
        causes.truncate(CAUSES);
        let single = |at: usize| self.variant(vec![causes[at].0.clone()], causes[at].1);
        let mut alone = Vec::new();
        Workers::here(AT_ONCE_WHOLE).run(0..causes.len(), single, |_, variant| {
            alone.push(variant?);
            Ok::<_, Failure>(())
        })?;
        let mut answer = Answer {
            base,
            alone,
            ladder,
            others: Vec::new(),
        };
        self.measure(&mut answer, bars)?;
        answer.others = self.others(bars)?;
        let last = |one: &Variant| one.rates.last().copied().unwrap_or_default();
        answer.alone.sort_by(|a, b| last(b).total_cmp(&last(a)));
        Ok(answer)
    }

    /// Asks for the system without `causes` together.
    ///
    /// # Errors
    /// As [`WhatIf::ask`].
    pub fn without(&self, causes: Vec<Cause>, bars: Bars) -> Result<Answer, Failure> {
        let base = self.variant(Vec::new(), 0.0)?;
        self.check(&base, &causes)?;
        let mut answer = Answer {
            base,
            alone: Vec::new(),
            ladder: vec![self.variant(causes, f64::NAN)?],
            others: Vec::new(),
        };
        self.measure(&mut answer, bars)?;
        Ok(answer)
    }

    /// Fails if the system has no such lock or line as one of `causes`.
    fn check(&self, base: &Variant, causes: &[Cause]) -> Result<(), Failure> {
        let has = |cause: &Cause| match cause {
            Cause::Lock(name) => classes().any(|class| class.name() == name),
            Cause::Line(name) => base.seen.objects.iter().any(|line| line.what == *name),
            Cause::Flushes | Cause::Memory | Cause::Sleeping => true,
        };
        match causes.iter().find(|cause| !has(cause)) {
            None => Ok(()),
            Some(cause) => Err(Failure::Unavailable(format!(
                "{} on {} by {} tasks has no {cause} (`profile` shows its locks and lines)",
                self.plan.workload.name(),
                self.target.preset.name,
                self.plan.tasks
            ))),
        }
    }

    /// The rates of the other presets of the family, and of scalevm's own.
    fn others(&self, bars: Bars) -> Result<Vec<(Preset, Vec<f64>)>, Failure> {
        let family = |preset: Preset| preset.name.split('-').next();
        let own = self.target.preset;
        let is_answer = |preset: &Preset| {
            *preset != own && (family(*preset) == family(own) || *preset == Preset::SCALEVM)
        };
        let presets: Vec<Preset> = Preset::ALL.into_iter().filter(is_answer).collect();
        let points = presets.iter().flat_map(|&preset| {
            let system = Simulated {
                preset,
                ..self.target.clone()
            };
            let counts = self.counts.iter();
            counts.map(move |&tasks| (system.clone(), tasks))
        });
        let rates = self.rates(&points.collect::<Vec<_>>(), bars)?;
        let curves = rates.chunks(self.counts.len()).map(<[f64]>::to_vec);
        Ok(presets.into_iter().zip(curves).collect())
    }

    /// The system without these causes, watched at the plan's tasks.
    fn variant(&self, without: Vec<Cause>, share: f64) -> Result<Variant, Failure> {
        interrupt::check()?;
        let system = self.system(&without, None);
        let seen = system.observe(&self.plan, self.span)?;
        Ok(Variant {
            without,
            share,
            // Watching takes no simulated time.
            rates: vec![seen.done() as f64 / seen.span.as_secs_f64()],
            corners: None,
            seen: seen.attribution,
        })
    }

    /// The system without `causes`, on one of the machine's corners if that is given.
    fn system(&self, causes: &[Cause], corner: Option<&MachineProfile>) -> Simulated {
        let profile = corner.unwrap_or(&self.target.profile).clone();
        Simulated {
            profile,
            without: causes.to_vec(),
            ..self.target.clone()
        }
    }

    /// Fills in the rates of fewer tasks than the plan's, and the corners.
    fn measure(&self, answer: &mut Answer, bars: Bars) -> Result<(), Failure> {
        let corners = match self.corners {
            true => self.target.profile.corners().to_vec(),
            false => Vec::new(),
        };
        let variants: Vec<&mut Variant> = answer.variants().collect();
        let most = self.plan.tasks;
        let fewer = &self.counts[..self.counts.len() - 1];
        let points = variants.iter().flat_map(|one| {
            let here = fewer.iter().map(|&tasks| (None, tasks));
            let there = corners.iter().map(|corner| (Some(corner), most));
            let system = |(corner, tasks)| (self.system(&one.without, corner), tasks);
            here.chain(there).map(system).collect::<Vec<_>>()
        });
        let points: Vec<(Simulated, usize)> = points.collect();
        let rates = self.rates(&points, bars)?;
        let each = fewer.len() + corners.len();
        let as_it_is = &rates[fewer.len()..each];
        for (at, one) in variants.into_iter().enumerate() {
            let (here, there) = rates[at * each..][..each].split_at(fewer.len());
            one.rates.splice(..0, here.iter().copied());
            let gains = there.iter().zip(as_it_is).map(|(new, old)| new / old);
            one.corners = range(gains);
        }
        Ok(())
    }

    /// The rate of each system by a number of tasks, in their order.
    fn rates(&self, points: &[(Simulated, usize)], bars: Bars) -> Result<Vec<f64>, Failure> {
        let progress = bars(points.len() as u64, "runs");
        let run = |(system, tasks): &(Simulated, usize)| {
            let tasks = *tasks;
            let window = system.sample(&Plan { tasks, ..self.plan }, self.span);
            progress.step();
            window
        };
        let mut rates = Vec::new();
        let measured = Workers::here(AT_ONCE_WHOLE).run(points, run, |_, window| {
            rates.push(window?.rate());
            Ok::<_, Failure>(())
        });
        progress.finish();
        measured?;
        interrupt::check()?;
        Ok(rates)
    }
}

/// The lowest and the highest, if there are any.
fn range(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    values.fold(None, |range, value| {
        let [low, high] = range.unwrap_or([value; 2]);
        Some([value.min(low), value.max(high)])
    })
}

impl Answer {
    /// All variants, the system as it is first.
    fn variants(&mut self) -> impl Iterator<Item = &mut Variant> {
        let base = std::iter::once(&mut self.base);
        base.chain(&mut self.alone).chain(&mut self.ladder)
    }
}

impl Variant {
    /// The gain over `base` at the number of tasks with that place.
    pub fn gain(&self, base: &Variant, at: usize) -> f64 {
        self.rates[at] / base.rates[at]
    }

    /// The largest cause that is left, and its part of the tasks' time.
    pub fn next(&self) -> Option<(Cause, f64)> {
        let mut left = Cause::of(&self.seen).into_iter();
        left.find(|(cause, _)| !self.without.contains(cause))
    }
}
