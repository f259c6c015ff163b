//! What goes wrong: invalid requests, full queues, gates, silent and failing engines, impatient clients, dying workers.

use crate::demo::emit::{Ending, Leaving, WorkerEnd};
use crate::lifecycle::stage::{Outcome, Phase};

use super::cache::PrefixCache;
use super::life::{Next, then};
use super::request::{Leg, Note, Request, Stage};
use super::{Event, Step, World};

/// A worker dies this often on average, nanoseconds.
const DEATH_NS: f64 = 70e9;
/// Discovery lists a dead worker for this long.
const LEASE_NS: u64 = 6_000_000_000;
/// Migrations a request may go through.
const MIGRATIONS: u32 = 2;

impl World {
    /// The request is refused for what it asks.
    pub(super) fn invalid(
        &mut self,
        request: &mut Request,
        told: Option<(&'static str, Option<(&'static str, &'static str)>)>,
    ) -> Next {
        let at_ns = self.now_ns + 15_000;
        request.notes.push(Note::Sent(at_ns + 28_000, 400));
        let ending = Ending {
            outcome: Outcome::Rejected,
            at_ns,
            told,
            root_error: told.is_some(),
            http_error: true,
            stream: None,
        };
        self.end(request, ending, false);
        None
    }

    /// The router or a worker's gate takes no more: 529, or the end of a stream that had begun.
    pub(super) fn overloaded(&mut self, request: &mut Request, at_ns: u64) -> Next {
        let begun = self.stream(request, "rejected", request.carried.max(1));
        if begun.is_none() {
            request.notes.push(Note::Sent(at_ns + 22_000, 529));
            request.notes.push(Note::Failed(at_ns + 30_000, "Status code: 529 <unknown status code>"));
        }
        request.truth.output_tokens = request.carried;
        let ending = Ending {
            outcome: Outcome::Rejected,
            at_ns,
            told: Some(("error", Some(("overload", "service overloaded or rate limited")))),
            root_error: true,
            http_error: true,
            stream: begun,
        };
        let recorded = begun.is_some();
        self.end(request, ending, recorded);
        None
    }

    /// A worker turned the request away: at its door (`rejected`), or at its engine's gate after letting it in.
    pub(super) fn turned_away(&mut self, request: &mut Request, leg: Leg, admission: &'static str) -> Next {
        self.out.admission(request, &leg, admission);
        self.out.turned_away(request, &leg, self.now_ns - 10_000);
        self.out.dispatch(request, &leg, "failed", self.now_ns + 50_000);
        let error = if admission == "accepted" { "overloaded" } else { "response_plane_mismatch" };
        self.out.route(request, &leg, self.now_ns, ("rejected", Some(error)));
        self.release(request, &leg, false);
        self.overloaded(request, self.now_ns + 150_000)
    }

    /// The engine fails in the middle of an answer.
    pub(super) fn engine_fails(&mut self, request: &mut Request) -> Next {
        let leg = request.leg.take()?;
        let tokens = request.carried + leg.generated(self.now_ns, request.plan.output - request.carried);
        self.release(request, &leg, true);
        let end = WorkerEnd { at_ns: self.now_ns, tokens, leaving: Leaving::Cancelled(self.now_ns - 20_000) };
        self.out.worker(request, &leg, end);
        self.out.route(request, &leg, self.now_ns + 200_000, ("error", Some("internal")));
        request.truth.output_tokens = tokens;
        let ending = Ending {
            outcome: Outcome::Failed,
            at_ns: self.now_ns + 320_000,
            told: Some(("error", Some(("internal", "internal server error during processing")))),
            root_error: true,
            http_error: !request.plan.streaming,
            stream: self.stream(request, "failed", tokens + 1),
        };
        self.end(request, ending, true);
        None
    }

    /// The worker stays silent until the frontend gives up.
    pub(super) fn times_out(&mut self, request: &mut Request) -> Next {
        let leg = request.leg.take()?;
        let now_ns = self.now_ns;
        let from = leg.worker().map_or(0, |worker| worker.id);
        self.release(request, &leg, false);
        let end = WorkerEnd { at_ns: now_ns + 900_000, tokens: 0, leaving: Leaving::Cancelled(now_ns + 500_000) };
        self.out.worker(request, &leg, end);
        self.out.route(request, &leg, now_ns + 60_000, ("timeout", Some("response_timeout")));
        let exhausted = Note::Exhausted {
            at_ns: now_ns + 80_000,
            attempt: leg.attempt,
            from,
            tokens: 0,
            reason: "response_timeout",
        };
        request.notes.push(exhausted);
        let at_ns = now_ns + 420_000;
        let ending = Ending {
            outcome: Outcome::TimedOut,
            at_ns,
            told: Some(("error", Some(("internal", "internal server error during processing")))),
            root_error: true,
            http_error: !request.plan.streaming,
            stream: request.plan.streaming.then_some((at_ns - 190_000, "timed_out", 1)),
        };
        self.end(request, ending, true);
        None
    }

    /// A client leaves: for want of a first token, or after the tokens it wanted.
    pub(super) fn leaves(&mut self, number: u64, tokens: Option<u64>) {
        let Some(mut request) = self.requests.remove(&number) else { return };
        let still = request.stage != Stage::Preprocessing
            && match tokens {
                None => request.first_token_ns.is_none(),
                Some(_) => request.first_token_ns.is_some(),
            };
        if !still {
            self.requests.insert(number, request);
            return;
        }
        let now_ns = self.now_ns;
        let generated = request.generated(now_ns);
        if let Some(leg) = request.leg.take() {
            self.cancel_leg(&mut request, &leg, now_ns);
        }
        request.truth.output_tokens = generated;
        let ending = Ending {
            outcome: Outcome::Cancelled,
            at_ns: now_ns + 160_000,
            told: Some(("cancelled", Some(("cancelled", "cancelled before completion")))),
            root_error: false,
            http_error: false,
            stream: self.stream(&request, "abandoned", generated),
        };
        self.end(&mut request, ending, true);
    }

    fn cancel_leg(&mut self, request: &mut Request, leg: &Leg, now_ns: u64) {
        match request.stage {
            Stage::Waiting => {
                let pool = &mut self.pools[leg.pool];
                match leg.deferral {
                    Some(_) => pool.queue.remove(request.ident.number),
                    None => pool.passing -= 1,
                }
                let depth_out = pool.depth();
                let why = ("cancelled", Some("request_lifecycle_ended_before_admission"));
                self.out.queue(request, leg, now_ns, why, depth_out);
                self.out.routed(request, leg, now_ns + 9_000);
            }
            Stage::Dispatching => {
                let at_ns = now_ns.max(leg.dispatch_ns + 90_000);
                self.release(request, leg, false);
                self.out.dispatch(request, leg, "cancelled", at_ns);
                self.out.route(request, leg, at_ns, ("cancelled", None));
            }
            Stage::Working => {
                self.release(request, leg, leg.first_token_ns.is_some());
                // The worker hears of it, and stops at its next token.
                let heard_ns = now_ns + self.chance.between(300_000, 900_000);
                let at_ns = heard_ns + self.chance.between(2_000_000, 30_000_000);
                let end = WorkerEnd { at_ns, tokens: 0, leaving: Leaving::Cancelled(heard_ns) };
                self.out.worker(request, leg, end);
                self.out.route(request, leg, now_ns + 60_000, ("cancelled", None));
            }
            Stage::Preprocessing | Stage::Between => {}
        }
    }

    /// A worker that generates dies, with everything it was working on.
    pub(super) fn a_worker_dies(&mut self) {
        let next = self.chance.exponential(DEATH_NS) as u64;
        self.at(self.now_ns + next.max(20_000_000_000), Event::Dies);
        let load = |worker: usize| -> u32 {
            self.pools[self.workers[worker].pool]
                .ranks
                .iter()
                .filter(|rank| rank.worker == worker)
                .map(|rank| rank.active)
                .sum()
        };
        let generating = self.pools.len() - 1;
        let alive: Vec<usize> = (0..self.workers.len())
            .filter(|at| self.workers[*at].alive && self.workers[*at].pool == generating)
            .collect();
        // The last one stays, and the fuller ones die first: that is when workers run out of memory.
        let Some(worker) = alive.iter().copied().max_by_key(|at| (load(*at), *at)).filter(|_| alive.len() > 1) else {
            return;
        };
        self.workers[worker].alive = false;
        let (pool, place, process) =
            (self.workers[worker].pool, self.workers[worker].place, self.workers[worker].process);
        let lost: Vec<u64> = self
            .requests
            .iter()
            .filter(|(_, request)| matches!(request.stage, Stage::Dispatching | Stage::Working))
            .filter(|(_, request)| self.works_for(request, worker))
            .map(|(number, _)| *number)
            .collect();
        for number in lost {
            self.loses_worker(number);
        }
        // Ranks are remembered for good, their caches are not: a demo of days sees many die.
        for rank in self.pools[pool].ranks.iter_mut().filter(|rank| rank.worker == worker) {
            rank.cache = PrefixCache::default();
        }
        let flush_ns = self.out.retire(process, self.now_ns);
        self.at(flush_ns, Event::Flush(process, crate::demo::Signal::Traces));
        self.at(flush_ns, Event::Flush(process, crate::demo::Signal::Logs));
        self.at(self.now_ns + LEASE_NS, Event::Unlisted(worker));
        let back = self.chance.between(8_000_000_000, 14_000_000_000);
        self.at(self.now_ns + back, Event::Returns { pool, place });
    }

    fn works_for(&self, request: &Request, worker: usize) -> bool {
        let Some(leg) = &request.leg else { return false };
        let Some(choice) = &leg.choice else { return false };
        self.pools[leg.pool].ranks[choice.chosen().index].worker == worker
    }

    /// A request's worker is gone: it migrates, or ends.
    fn loses_worker(&mut self, number: u64) {
        let Some(mut request) = self.requests.remove(&number) else { return };
        let next = self.lost(&mut request).unwrap_or_default();
        if request.truth.outcome.is_empty() {
            self.requests.insert(number, request);
            for (at_ns, step) in next {
                self.plan_step(number, at_ns, step);
            }
        }
    }

    fn lost(&mut self, request: &mut Request) -> Next {
        request.era += 1;
        let leg = request.leg.take()?;
        let from = leg.worker()?.id;
        let now_ns = self.now_ns;
        let (result, why) = match request.stage {
            Stage::Dispatching => ("failed", ("connection_failed", Some("connection_failed"))),
            _ => ("accepted", ("worker_disconnected", Some("disconnected"))),
        };
        // The connection tells within moments; a dispatch cannot end before it began.
        let seen_ns = now_ns.max(leg.dispatch_ns + 60_000) + self.chance.between(60_000, 400_000);
        if result == "failed" {
            self.out.dispatch(request, &leg, result, seen_ns);
        }
        self.out.route(request, &leg, seen_ns, why);
        request.carried += leg.generated(now_ns, request.plan.output - request.carried - 1);
        let tokens = request.carried;
        self.release(request, &leg, leg.first_token_ns.is_some());
        request.lost_route = Some(leg.route);
        request.leg = Some(leg);
        if request.plan.migratable && request.attempt < MIGRATIONS {
            request.attempt += 1;
            request.stage = Stage::Between;
            request.replaces = Some((from, tokens));
            request.notes.push(Note::Migrates { at_ns: seen_ns + 20_000, attempt: request.attempt, from, tokens });
            let phase = self.pools[0].phase;
            debug_assert!(phase != Phase::Decode, "the first pool reads prompts");
            return then(seen_ns + 200_000, Step::Enters(phase));
        }
        let attempt = request.attempt;
        request.notes.push(Note::Exhausted { at_ns: seen_ns + 20_000, attempt, from, tokens, reason: "disconnected" });
        request.truth.output_tokens = tokens;
        let at_ns = seen_ns + 900_000;
        if !request.plan.streaming {
            request.notes.push(Note::Sent(at_ns + 22_000, 503));
        }
        let ending = Ending {
            outcome: Outcome::Rejected,
            at_ns,
            told: Some(("error", Some(("unavailable", "no backend worker available")))),
            root_error: true,
            http_error: !request.plan.streaming,
            stream: self.stream(request, "rejected", tokens.max(1)),
        };
        self.end(request, ending, true);
        None
    }
}
