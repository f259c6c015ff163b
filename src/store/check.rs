//! Asking the checks: at once when a request has ended, again when nothing more is expected of it, in bounded slices.
//!
//! Owns: when each request is asked, its answers, and the counts over all requests. Keeps out: what the checks are and what
//! they say (`checks`).

use std::collections::VecDeque;

use super::group::REGROUP_NS;
use super::held::Until;
use super::missing::Missing;
use super::settle::LOST_CHECK_NS;
use super::{Request, Store, read};
use crate::checks::{self, Alike, Answer, Answers, COUNT, CheckId, Finding, Learned, Moment, Run};
use crate::lifecycle::facts::{Marks, State};
use crate::lifecycle::ids::Rid;
use crate::lifecycle::request::RequestKey;

/// How long after the last news an ended request is settled, nanoseconds: pieces of one trace arrive up to 15 s apart
/// (spec lifecycle-spans §6).
pub const GRACE_NS: u64 = 15_000_000_000;

/// How many requests are asked at once, at some tens of microseconds each: a screen that waits for the store must not
/// notice. The rest is asked when the store is free again.
const SLICE: usize = 48;

/// When more than this many wait to be asked at once, they are asked only when they settle: under load one answer each.
const MOST_SOON: usize = 2048;

/// Requests of more spans than this, or with facts that were cut short, are not asked: checks look from span to span, which
/// costs the square of them. Every answer of theirs is unknown.
const MOST_SPANS: u32 = 10_000;

/// The most violations of evicted requests that are kept word for word.
const MOST_GONE: usize = 10_000;

/// What the checks of a request have come to.
#[derive(Default)]
pub(super) struct Asked {
    pub answers: Option<Answers>,
    pub learned: Learned,
    /// Waiting in [`Checked::soon`] or [`Checked::later`].
    pub soon: bool,
    pub later: bool,
}

impl Asked {
    pub fn size(&self) -> usize {
        self.answers.as_ref().map_or(0, Answers::heap_size)
    }
}

/// How often each check held, was violated and could not be told, over all requests asked, evicted ones included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CheckCounts {
    /// Holds.
    pub holds: u64,
    /// Violated.
    pub violated: u64,
    /// Unknown.
    pub unknown: u64,
}

impl CheckCounts {
    fn count(&mut self, answer: Answer, add: bool) {
        let count = match answer {
            Answer::Holds => &mut self.holds,
            Answer::Violated => &mut self.violated,
            Answer::Unknown(_) => &mut self.unknown,
        };
        *count = if add { *count + 1 } else { *count - 1 };
    }
}

/// A violation with the request it is of.
#[derive(Clone, PartialEq, Debug)]
pub struct Violation {
    /// The request; may be gone.
    pub key: RequestKey,
    /// Its id.
    pub request_id: Rid,
    /// What was found.
    pub finding: Finding,
}

/// What each check has said so far.
#[derive(Clone)]
pub struct Said {
    counts: [CheckCounts; COUNT],
    latest: Vec<Option<Violation>>,
}

impl Said {
    /// The counts of a check.
    pub fn counts(&self, check: CheckId) -> CheckCounts {
        self.counts[usize::from(check.0)]
    }

    /// The latest violation of a check.
    pub fn latest(&self, check: CheckId) -> Option<&Violation> {
        self.latest[usize::from(check.0)].as_ref()
    }

    /// Violations, over all checks and requests.
    pub fn violations(&self) -> u64 {
        self.counts.iter().map(|counts| counts.violated).sum()
    }
}

/// What the checks have said so far, and what is to be asked.
pub struct Checked {
    pub(super) run: Run,
    alike: Alike,
    said: Said,
    gone: VecDeque<Violation>,
    pub(super) missing: Missing,
    pub(super) soon: VecDeque<RequestKey>,
    pub(super) later: VecDeque<(u64, RequestKey)>,
}

impl Checked {
    /// Nothing yet; beside a store of this many bytes.
    pub fn beside(memory: usize) -> Self {
        Self {
            run: Run::beside(memory),
            alike: Alike::default(),
            said: Said { counts: [CheckCounts::default(); COUNT], latest: vec![None; COUNT] },
            gone: VecDeque::new(),
            missing: Missing::default(),
            soon: VecDeque::new(),
            later: VecDeque::new(),
        }
    }

    /// The bytes it takes beside what each request has of it.
    pub(super) fn memory(&self) -> usize {
        self.run.memory() + self.alike.memory()
    }

    /// Forgets what only saves room.
    pub(super) fn forget_all(&mut self) {
        self.alike.clear();
        self.run.forget_places();
    }

    /// What each check has said.
    pub fn said(&self) -> &Said {
        &self.said
    }

    /// Violations of requests that are gone, the latest of them.
    pub fn gone(&self) -> impl Iterator<Item = &Violation> {
        self.gone.iter()
    }

    fn count(&mut self, answers: &Answers, add: bool) {
        for (check, answer) in answers.iter() {
            self.said.counts[usize::from(check.0)].count(answer, add);
        }
    }
}

/// The violations and notes of a request, with its name.
fn violations<'a>(key: RequestKey, request: &'a Request, answers: &'a Answers) -> impl Iterator<Item = Violation> + 'a {
    let of = move |finding: &Finding| Violation {
        key,
        request_id: request.facts.request_id.clone(),
        finding: finding.clone(),
    };
    answers.findings().iter().map(of)
}

impl Store {
    /// What the checks have said.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// What the checks say of a request; `None` when it has not been asked.
    pub fn answers(&self, key: RequestKey) -> Option<&Answers> {
        self.requests.get(&self.resolve(key)?)?.asked.answers.as_ref()
    }

    /// The counts of every check, in their order, over these requests alone.
    pub fn checked_among(&self, keys: impl Iterator<Item = RequestKey>) -> [CheckCounts; COUNT] {
        let mut counts = [CheckCounts::default(); COUNT];
        for (check, answer) in keys.filter_map(|key| self.answers(key)).flat_map(Answers::iter) {
            counts[usize::from(check.0)].count(answer, true);
        }
        counts
    }

    /// What the load generator says, for the `load.*` checks.
    pub fn expect_load(&mut self, list: &checks::load::LoadList) {
        self.checked.run.set_load(list.records.iter().cloned());
    }

    /// When the store is next to be refreshed and checks to be asked though nothing came, by the clock of arrivals; `None`
    /// while nothing waits.
    pub fn next_check_ns(&self) -> Option<u64> {
        if !self.checked.soon.is_empty() {
            return Some(0);
        }
        let regroup = (!self.dirty_traces.is_empty()).then(|| self.arrived_ns.saturating_add(REGROUP_NS));
        let settled = self.checked.later.front().map(|(due_ns, _)| *due_ns);
        let ended = (!self.ending.is_empty()).then(|| self.lost_checked_ns.saturating_add(LOST_CHECK_NS));
        regroup.into_iter().chain(settled).chain(ended).min()
    }

    /// A request changed: asks it soon if it has ended, and once more when it is settled.
    pub(super) fn plan_checks(&mut self, key: RequestKey, now_ns: u64) {
        let Some(request) = self.requests.get_mut(&key).filter(|request| request.facts.state != State::InFlight) else {
            return;
        };
        if self.checked.soon.len() < MOST_SOON && !std::mem::replace(&mut request.asked.soon, true) {
            self.checked.soon.push_back(key);
        }
        if !std::mem::replace(&mut request.asked.later, true) {
            self.checked.later.push_back((now_ns.saturating_add(GRACE_NS), key));
        }
    }

    /// Asks the checks of what is due, at most a slice of it. Whoever keeps the store up to date calls it after
    /// [`Store::refresh`], and again at [`Store::next_check_ns`].
    pub fn check(&mut self, now_ns: u64) {
        for _ in 0..SLICE / 2 {
            let Some(key) = self.checked.soon.pop_front() else { break };
            let Some(request) = self.requests.get_mut(&key) else { continue };
            request.asked.soon = false;
            self.ask(key, Moment::Arriving);
        }
        for _ in 0..SLICE / 2 {
            // One due later than the grace was planned by a clock that has gone back since: nobody waits for that.
            let is_due = |due_ns: u64| due_ns <= now_ns || due_ns - now_ns > GRACE_NS;
            let Some((due_ns, key)) = self.checked.later.front().copied().filter(|(due_ns, _)| is_due(*due_ns)) else {
                break;
            };
            self.checked.later.pop_front();
            let Some(request) = self.requests.get_mut(&key) else { continue };
            let settled_ns = request.news_ns().saturating_add(GRACE_NS);
            if settled_ns > due_ns && !is_due(settled_ns) {
                self.checked.later.push_back((settled_ns, key));
                continue;
            }
            request.asked.later = false;
            let is_settled = self.checked.missing.coming.is_settled(request);
            self.ask(key, if is_settled { Moment::Settled } else { Moment::Arriving });
        }
    }

    pub(super) fn ask(&mut self, key: RequestKey, moment: Moment) {
        let Self { requests, tables, traces, checked, lens, counts, accounted, version, .. } = self;
        let Some(request) = requests.get_mut(&key).filter(|request| request.counted) else { return };
        let mut learned = request.asked.learned;
        let view = read::view(tables, traces, key, request, &request.facts, most_spans(request), Until::Now);
        if counts.spans_shed > 0 {
            checked.run.note_lost_spans();
        }
        checked.run.learn(&view, &mut learned);
        let mut answers = if is_too_large(request) {
            checks::unasked(&request.facts)
        } else {
            checks::answer(&view, &checked.run, moment)
        };
        checked.alike.share(&mut answers);
        drop(view);
        lens.about_to_answer(key, request);
        let before = request.asked.size();
        if let Some(old) = request.asked.answers.take() {
            checked.count(&old, false);
        }
        checked.count(&answers, true);
        for violation in violations(key, request, &answers) {
            if answers.of(violation.finding.check) == Answer::Violated {
                let at = usize::from(violation.finding.check.0);
                checked.said.latest[at] = Some(violation);
            }
        }
        request.asked.learned = learned;
        request.asked.answers = Some(answers);
        let grown = request.asked.size();
        request.accounted = request.accounted + grown - before;
        *accounted = *accounted + grown - before;
        lens.answered(key, tables, traces, request);
        *version += 1;
    }

    /// A request is about to go before it was asked for the last time: what can be told is told now, and what may still
    /// be on its way stays unknown.
    pub(super) fn last_word(&mut self, key: RequestKey) {
        let asked = |request: &Request| request.asked.answers.is_some() && !request.asked.soon && !request.asked.later;
        if self.requests.get(&key).is_some_and(|request| !asked(request)) {
            self.ask(key, Moment::Arriving);
        }
    }

    /// A request goes for good: its answers stay in the counts, its violations are kept while there is room.
    pub(super) fn keep_violations(&mut self, key: RequestKey, request: &Request) {
        let Some(answers) = &request.asked.answers else { return };
        for violation in violations(key, request, answers) {
            if self.checked.gone.len() == MOST_GONE {
                self.checked.gone.pop_front();
            }
            self.checked.gone.push_back(violation);
        }
    }

    /// A request was joined into another: its answers go with it.
    pub(super) fn uncount_answers(&mut self, request: &Request) {
        if let Some(answers) = &request.asked.answers {
            self.checked.count(answers, false);
        }
    }

    /// Every violation that is known word for word: of evicted requests, then of those held.
    pub fn violations(&self) -> impl Iterator<Item = Violation> + '_ {
        let held = self.requests.iter().flat_map(|(key, request)| {
            request.asked.answers.as_ref().into_iter().flat_map(move |answers| violations(*key, request, answers))
        });
        self.checked.gone.iter().cloned().chain(held)
    }
}

fn is_too_large(request: &Request) -> bool {
    request.facts.spans > MOST_SPANS || request.facts.marks.has(Marks::CUT_SHORT)
}

/// How many of its spans a request is asked with: none when they are too many.
pub(super) fn most_spans(request: &Request) -> usize {
    if is_too_large(request) { 0 } else { usize::MAX }
}
