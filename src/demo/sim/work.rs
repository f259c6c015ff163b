//! A leg on its worker: admission, reading the prompt, generating, and the end of a request that succeeds.

use crate::demo::emit::{Ending, Leaving, WorkerEnd};
use crate::lifecycle::stage::{Outcome, Phase};

use super::life::{Next, then};
use super::load::BLOCK;
use super::pool::GATE;
use super::request::{Leg, Note, Request, Stage};
use super::{Event, Step, World};

/// Prompt tokens a rank reads in a millisecond.
const PREFILL_SPEED: f64 = 2.5;
/// Reads of a prompt begin with this, nanoseconds.
const PREFILL_FLOOR_NS: u64 = 6_000_000;
/// Between two tokens of a sequence alone on its rank, nanoseconds, and how much each further one adds.
const ITL_NS: f64 = 21e6;
const ITL_CROWD: f64 = 0.06;
/// The frontend gives up on a silent worker after this.
const RESPONSE_TIMEOUT_NS: u64 = 4_000_000_000;

impl World {
    pub(super) fn answered(&mut self, request: &mut Request) -> Next {
        let mut leg = request.leg.take()?;
        let at = leg.choice.as_ref()?.chosen().index;
        let worker = self.pools[leg.pool].ranks[at].worker;
        if self.chance.happens(0.0008) {
            return self.turned_away(request, leg, "rejected");
        }
        if self.pools[leg.pool].ranks[at].active > GATE && leg.phase != Phase::Prefill {
            return self.turned_away(request, leg, "accepted");
        }
        debug_assert!(self.workers[worker].alive, "a dying worker takes its requests along");
        self.out.admission(request, &leg, "accepted");
        self.out.dispatch(request, &leg, "accepted", self.now_ns);
        request.stage = Stage::Working;
        let rank = &mut self.pools[leg.pool].ranks[at];
        let crowd = f64::from(rank.active.saturating_sub(1));
        leg.itl_ns = (ITL_NS * (1.0 + ITL_CROWD * crowd) * self.chance.around(1.0, 1.05)) as u64;
        let unread = request.plan.input.saturating_sub(leg.overlap() * BLOCK);
        let next = if leg.phase == Phase::Decode {
            let transfer_ns = self.chance.around(7e6, 1.3) as u64;
            request.transfer_ns = Some(transfer_ns);
            (self.now_ns + transfer_ns + leg.itl_ns, Step::FirstToken)
        } else {
            let read_ns = PREFILL_FLOOR_NS + (unread as f64 / PREFILL_SPEED * 1e6) as u64;
            rank.free_at_ns = rank.free_at_ns.max(self.now_ns) + read_ns;
            let step = if leg.phase == Phase::Prefill { Step::Prefilled } else { Step::FirstToken };
            (rank.free_at_ns, step)
        };
        let stalls = request.plan.stalls && leg.phase != Phase::Prefill && request.first_token_ns.is_none();
        request.leg = Some(leg);
        if stalls { then(self.now_ns + RESPONSE_TIMEOUT_NS, Step::TimesOut) } else { Some(vec![next]) }
    }

    pub(super) fn prefilled(&mut self, request: &mut Request) -> Next {
        let leg = request.leg.take()?;
        self.read(request, &leg);
        self.release(request, &leg, true);
        let end = WorkerEnd { at_ns: self.now_ns, tokens: 1, leaving: Leaving::Finished };
        self.out.worker(request, &leg, end);
        self.out.route(request, &leg, self.now_ns + 240_000, ("success", None));
        request.prefill_route = Some(leg.route);
        request.stage = Stage::Between;
        request.leg = Some(leg);
        then(self.now_ns + 380_000, Step::Enters(Phase::Decode))
    }

    /// A rank has read a prompt: it is in the cache, and no longer to be read.
    fn read(&mut self, request: &Request, leg: &Leg) {
        let Some(choice) = &leg.choice else { return };
        let rank = &mut self.pools[leg.pool].ranks[choice.chosen().index];
        if leg.phase != Phase::Decode {
            rank.prefill_tokens -= request.plan.input.saturating_sub(choice.chosen().overlap * BLOCK);
        }
        rank.cache.keep(&request.plan.blocks[..(request.plan.input / BLOCK) as usize]);
    }

    pub(super) fn first_token(&mut self, request: &mut Request) -> Next {
        let mut leg = request.leg.take()?;
        leg.first_token_ns = Some(self.now_ns);
        self.read(request, &leg);
        self.wake(leg.pool);
        let left = request.plan.output - request.carried;
        let complete_ns = self.now_ns + (left - 1) * leg.itl_ns;
        let itl_ns = leg.itl_ns;
        request.leg = Some(leg);
        let first = request.first_token_ns.is_none();
        if first {
            request.first_token_ns = Some(self.now_ns);
            if request.plan.streaming {
                request.notes.push(Note::Sent(self.now_ns + 60_000, 200));
            }
        }
        if let (true, Some(tokens)) = (first, request.plan.leaves_after) {
            let leaves = Event::Leaves { request: request.ident.number, tokens: Some(tokens) };
            self.at(self.now_ns + tokens * itl_ns + 400_000, leaves);
        }
        match request.plan.fails_after.filter(|after| *after < left) {
            Some(after) => then(self.now_ns + after * itl_ns, Step::EngineFails),
            None => then(complete_ns, Step::Complete),
        }
    }

    pub(super) fn complete(&mut self, request: &mut Request) -> Next {
        let leg = request.leg.take()?;
        let tokens = request.plan.output - request.carried;
        self.release(request, &leg, true);
        let end = WorkerEnd { at_ns: self.now_ns, tokens, leaving: Leaving::Finished };
        self.out.worker(request, &leg, end);
        self.out.route(request, &leg, self.now_ns + 260_000, ("success", None));
        request.truth.output_tokens = request.plan.output;
        let at_ns = self.now_ns + 340_000;
        if !request.plan.streaming {
            request.notes.push(Note::Sent(at_ns + 20_000, 200));
        }
        let ending = Ending {
            outcome: Outcome::Success,
            at_ns,
            told: Some(("success", None)),
            root_error: false,
            http_error: request.attempt > 0,
            stream: self.stream(request, "success", request.plan.output + 2),
        };
        self.end(request, ending, true);
        if request.plan.session.is_some() {
            let mut session = request.session.clone();
            if let Some((plan, think)) = self.load.follow_up(&mut session, request.plan.input, request.plan.output) {
                self.at(self.now_ns + think, Event::Turn(Box::new((plan, session))));
            }
        }
        None
    }
}
