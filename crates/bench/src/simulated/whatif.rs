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
    /// The numbers of tasks.
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
        let mut answer = Answer {
            base: self.variant(Vec::new(), 0.0)?,
            alone: Vec::new(),
            ladder: vec![self.variant(causes, f64::NAN)?],
            others: Vec::new(),
        };
        self.measure(&mut answer, bars)?;
        Ok(answer)
    }

    /// The rates of the other presets of the family, and of scalevm's own.
    fn others(&self, bars: Bars) -> Result<Vec<(Preset, Vec<f64>)>, Failure> {
        let family = |preset: Preset| preset.name.split('-').next();
        let own = self.target.preset;
        let is_answer = |preset: &Preset| {
            *preset != own && (family(*preset) == family(own) || *preset == Preset::SCALEVM)
        };
        let presets: Vec<Preset> = Preset::ALL.into_iter().filter(is_answer).collect();
        let points = presets
            .iter()
            .flat_map(|&preset| self.counts.iter().map(move |&n| (preset, n)));
        let points: Vec<_> = points.collect();
        let progress = bars(points.len() as u64, "runs");
        let run = |(preset, tasks)| {
            let system = Simulated {
                preset,
                ..self.target.clone()
            };
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
        let curves = rates.chunks(self.counts.len()).map(<[f64]>::to_vec);
        Ok(presets.into_iter().zip(curves).collect())
    }

    /// The system without these causes, watched at the plan's tasks.
    fn variant(&self, without: Vec<Cause>, share: f64) -> Result<Variant, Failure> {
        interrupt::check()?;
        let seen = self
            .system(&without, None)
            .attribute(&self.plan, self.span)?;
        Ok(Variant {
            without,
            share,
            rates: Vec::new(),
            corners: None,
            seen,
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

    /// Fills in the rates and the corners.
    fn measure(&self, answer: &mut Answer, bars: Bars) -> Result<(), Failure> {
        let corners = match self.corners {
            true => self.target.profile.corners().to_vec(),
            false => Vec::new(),
        };
        let variants: Vec<&mut Variant> = answer.variants().collect();
        let points: Vec<(usize, usize, Option<usize>)> = (0..variants.len())
            .flat_map(|at| {
                let counts = self.counts.iter().map(move |&tasks| (at, tasks, None));
                let most = self.plan.tasks;
                counts.chain((0..corners.len()).map(move |corner| (at, most, Some(corner))))
            })
            .collect();
        let systems: Vec<Vec<Cause>> = variants.iter().map(|one| one.without.clone()).collect();
        let progress = bars(points.len() as u64, "runs");
        let run = |(at, tasks, corner): (usize, usize, Option<usize>)| {
            let system = self.system(&systems[at], corner.map(|corner| &corners[corner]));
            let plan = Plan { tasks, ..self.plan };
            let window = system.sample(&plan, self.span);
            progress.step();
            window
        };
        let mut rates = vec![Vec::new(); systems.len()];
        let mut at_corners = vec![Vec::new(); systems.len()];
        let measured = Workers::here(AT_ONCE_WHOLE).run(points, run, |(at, _, corner), window| {
            let kept = if corner.is_some() {
                &mut at_corners
            } else {
                &mut rates
            };
            kept[at].push(window?.rate());
            Ok::<_, Failure>(())
        });
        progress.finish();
        measured?;
        interrupt::check()?;
        let as_it_is = at_corners[0].clone();
        for ((one, rates), corners) in variants.into_iter().zip(rates).zip(at_corners) {
            one.rates = rates;
            let gains = corners.iter().zip(&as_it_is).map(|(new, old)| new / old);
            one.corners = gains.fold(None, |range, gain| {
                let [low, high] = range.unwrap_or([gain; 2]);
                Some([gain.min(low), gain.max(high)])
            });
        }
        Ok(())
    }
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
