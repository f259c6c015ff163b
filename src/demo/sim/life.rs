//! A request's way to its worker when nothing goes wrong: arrival, preprocessing, queue, choice, dispatch.

use crate::demo::emit::Ending;
use crate::demo::ledger::RequestTruth;
use crate::lifecycle::stage::Phase;

use super::load::{BLOCK, Defect, Plan, Session};
use super::pool::Choice;
use super::queue::Deferral;
use super::request::{Ident, Leg, Request, Stage};
use super::{Event, Step, World};

impl World {
    pub(super) fn arrive(&mut self, plan: Plan, session: Session) {
        self.next_request += 1;
        let number = self.next_request;
        let chance = &mut self.chance;
        let request_id = chance.uuid();
        let session_id = plan.session.map(|number| format!("sess-{:08x}", super::chance::mix(number) as u32));
        let ident = Ident {
            number,
            operation_id: chance.uuid(),
            x_request_id: session_id.as_ref().map(|id| format!("{id}-t{}", plan.turn)),
            trace: chance.trace_id(),
            http: chance.span_id(),
            root: chance.span_id(),
            session_id,
            request_id,
        };
        let root_ns = self.now_ns + chance.between(16_000, 120_000);
        let prepare_ns = root_ns + chance.between(120_000, 180_000);
        let prepared_ns = prepare_ns + 300_000 + (plan.input as f64 * chance.around(600.0, 1.4)) as u64;
        let truth = RequestTruth {
            request_id: ident.request_id.clone(),
            trace_id: crate::lifecycle::ids::TraceId(ident.trace).to_string(),
            session_id: ident.session_id.clone().unwrap_or_else(|| ident.request_id.clone()),
            turn: plan.turn,
            class: plan.class.word().to_owned(),
            streaming: plan.streaming,
            input_tokens: plan.input,
            ..RequestTruth::default()
        };
        if let Some(patience) = plan.patience_ns {
            self.at(self.now_ns + patience, Event::Leaves { request: number, tokens: None });
        }
        let readable = plan.defect != Some(Defect::Body);
        let request = Request {
            ident,
            plan,
            session,
            stage: Stage::Preprocessing,
            era: 0,
            attempt: 0,
            leg: None,
            received_ns: self.now_ns,
            root_ns,
            prepare_ns,
            first_token_ns: None,
            carried: 0,
            first_dispatch_ns: None,
            served: (None, None),
            notes: Vec::new(),
            queue_depth: 0,
            transfer_ns: None,
            replaces: None,
            lost_route: None,
            prefill_route: None,
            truth,
        };
        if readable {
            self.out.received(&request);
        }
        self.requests.insert(number, request);
        self.plan_step(number, if readable { prepared_ns } else { root_ns + 60_000 }, Step::Prepared);
    }

    /// Plans a step of a request in its present era.
    pub(super) fn plan_step(&mut self, number: u64, at_ns: u64, step: Step) {
        if let Some(request) = self.requests.get(&number) {
            self.at(at_ns, Event::Step { request: number, era: request.era, step });
        }
    }

    pub(super) fn step(&mut self, number: u64, era: u32, step: Step) {
        let Some(mut request) = self.requests.remove(&number) else { return };
        if request.era != era {
            self.requests.insert(number, request);
            return;
        }
        let going_on = match step {
            Step::Prepared => self.prepared(&mut request),
            Step::Enters(phase) => self.enters(&mut request, phase),
            Step::Admitted => self.admitted(&mut request),
            Step::Answered => self.answered(&mut request),
            Step::Prefilled => self.prefilled(&mut request),
            Step::FirstToken => self.first_token(&mut request),
            Step::Complete => self.complete(&mut request),
            Step::EngineFails => self.engine_fails(&mut request),
            Step::TimesOut => self.times_out(&mut request),
        };
        let next = going_on.unwrap_or_default();
        if request.truth.outcome.is_empty() {
            self.requests.insert(number, request);
            for (at_ns, step) in next {
                self.plan_step(number, at_ns, step);
            }
        }
    }

    fn prepared(&mut self, request: &mut Request) -> Next {
        match request.plan.defect {
            Some(Defect::Body) => self.invalid(request, None),
            Some(Defect::Tools) => {
                self.out.preprocessing(request, self.now_ns, ("tool_constraints", "rejected"));
                self.invalid(request, Some(("error", Some(("validation", "invalid tool constraints")))))
            }
            None => {
                self.out.preprocessing(request, self.now_ns, ("ready", "success"));
                request.stage = Stage::Between;
                then(self.now_ns + 120_000, Step::Enters(self.pools[0].phase))
            }
        }
    }

    fn enters(&mut self, request: &mut Request, phase: Phase) -> Next {
        let pool = self.pools.iter().position(|pool| pool.phase == phase)?;
        let depth_in = self.pools[pool].depth();
        let nobody_waits = self.pools[pool].queue.depth() == 0;
        let class = request.plan.class;
        let room = self.pools[pool].has_room(&self.workers);
        let deferral = match (self.pools[pool].queue.waiting(class), room && nobody_waits) {
            (0, true) => None,
            (0, false) => Some(Deferral::PrefillCapacity),
            _ => Some(Deferral::ClassBacklog),
        };
        if request.leg.is_none() {
            request.queue_depth = depth_in;
        }
        let mut leg = self.leg(request, pool, depth_in);
        let limit = deferral.and_then(|_| self.pools[pool].queue.limit(class, request.plan.input));
        if let Some(limit) = limit {
            let end_ns = self.now_ns + 8_000;
            self.out.queue(request, &leg, end_ns, ("rejected", Some(limit)), depth_in);
            self.out.routed(request, &leg, end_ns);
            return self.overloaded(request, end_ns + 40_000);
        }
        leg.deferral = deferral;
        request.leg = Some(leg);
        match deferral {
            None => {
                request.stage = Stage::Waiting;
                self.pools[pool].passing += 1;
                let turn_ns = self.chance.around(45e3, 1.5) as u64;
                then(self.now_ns + turn_ns, Step::Admitted)
            }
            Some(_) => self.waits(request),
        }
    }

    /// The request waits until its pool's router comes to it.
    fn waits(&mut self, request: &mut Request) -> Next {
        request.stage = Stage::Waiting;
        let pool = request.leg.as_ref()?.pool;
        let (class, input) = (request.plan.class, request.plan.input);
        self.pools[pool].queue.push(class, request.ident.number, input, input);
        self.wake(pool);
        None
    }

    /// The router has come to a request that need not wait, unless somebody else took the last room meanwhile.
    fn admitted(&mut self, request: &mut Request) -> Next {
        let leg = request.leg.as_mut()?;
        self.pools[leg.pool].passing -= 1;
        if self.pools[leg.pool].has_room(&self.workers) {
            return self.leaves_queue(request, self.now_ns);
        }
        leg.deferral = Some(Deferral::PrefillCapacity);
        self.waits(request)
    }

    fn leg(&mut self, request: &Request, pool: usize, depth_in: u64) -> Leg {
        let Self { chance, pools, now_ns, .. } = self;
        Leg {
            phase: pools[pool].phase,
            role: pools[pool].role,
            pool,
            attempt: request.attempt,
            select: chance.span_id(),
            schedule: chance.span_id(),
            dispatch: chance.span_id(),
            route: chance.span_id(),
            payload: chance.span_id(),
            operation: chance.span_id(),
            worker_operation_id: chance.uuid(),
            queued_ns: *now_ns,
            depth_in,
            deferral: None,
            choice: None,
            dispatch_ns: 0,
            payload_ns: 0,
            admission_ns: (0, 0),
            answered_ns: 0,
            payload_bytes: 1_400 + request.plan.input * 4 + chance.between(0, 300),
            replaces: request.replaces,
            process: 0,
            first_token_ns: None,
            itl_ns: 0,
        }
    }

    /// A router looks at its queue: one leaves per turn, and the router comes back while there is room.
    pub(super) fn router_turn(&mut self, pool: usize) {
        self.pools[pool].turn_due = false;
        if !self.pools[pool].has_room(&self.workers) {
            return;
        }
        let Some(number) = self.pools[pool].queue.pop() else { return };
        if let Some(mut request) = self.requests.remove(&number) {
            let next = self.leaves_queue(&mut request, self.now_ns).unwrap_or_default();
            self.requests.insert(number, request);
            for (at_ns, step) in next {
                self.plan_step(number, at_ns, step);
            }
        }
        self.wake(pool);
    }

    /// The request leaves the queue at `end_ns`: a rank is chosen and booked, and the request sent there.
    fn leaves_queue(&mut self, request: &mut Request, end_ns: u64) -> Next {
        let mut leg = request.leg.take()?;
        let pool = &self.pools[leg.pool];
        let (class, input) = (request.plan.class, request.plan.input);
        let choice = pool.choose(&self.workers, class, input, &request.plan.blocks, &mut self.chance)?;
        let reason = leg.deferral.map(Deferral::word);
        self.out.queue(request, &leg, end_ns, ("dequeued", reason), pool.depth());
        let chosen_ns = end_ns + self.chance.between(14_000, 55_000);
        self.out.selection(request, &leg, &choice, (end_ns + 400, chosen_ns));
        self.out.routed(request, &leg, chosen_ns + 2_000);
        self.book(request, &leg, &choice);
        let transit_ns = self.chance.around(380e3, 1.5) as u64;
        leg.dispatch_ns = chosen_ns + self.chance.between(20_000, 45_000);
        leg.payload_ns = leg.dispatch_ns + transit_ns;
        let admission_ns = leg.payload_ns + self.chance.between(50_000, 140_000);
        leg.admission_ns = (admission_ns, admission_ns + self.chance.between(120_000, 220_000));
        leg.answered_ns = leg.admission_ns.1 + self.chance.around(800e3, 2.2) as u64;
        leg.process = self.workers[self.pools[leg.pool].ranks[choice.chosen().index].worker].process;
        leg.choice = Some(choice);
        request.first_dispatch_ns.get_or_insert(leg.dispatch_ns);
        let answered_ns = leg.answered_ns;
        request.leg = Some(leg);
        request.stage = Stage::Dispatching;
        then(answered_ns, Step::Answered)
    }

    fn book(&mut self, request: &mut Request, leg: &Leg, choice: &Choice) {
        let chosen = choice.chosen();
        let rank = &mut self.pools[leg.pool].ranks[chosen.index];
        let unread = request.plan.input.saturating_sub(chosen.overlap * BLOCK);
        rank.active += 1;
        if leg.phase == Phase::Decode {
            request.served.1 = Some(chosen.worker);
        } else {
            rank.prefill_tokens += unread;
            request.served.0 = Some(chosen.worker);
            if leg.phase == Phase::Aggregated {
                request.served.1 = Some(chosen.worker);
            }
            if leg.attempt == 0 {
                request.truth.cached_tokens = chosen.overlap * BLOCK;
            }
        }
        if leg.phase != Phase::Prefill {
            rank.context_tokens += request.plan.input;
        }
    }

    /// Takes a leg's booking off its rank; `read` tells that its prompt has been read already.
    pub(super) fn release(&mut self, request: &Request, leg: &Leg, read: bool) {
        let Some(choice) = &leg.choice else { return };
        let chosen = choice.chosen();
        let rank = &mut self.pools[leg.pool].ranks[chosen.index];
        rank.active -= 1;
        if leg.phase != Phase::Decode && !read {
            rank.prefill_tokens -= request.plan.input.saturating_sub(chosen.overlap * BLOCK);
        }
        if leg.phase != Phase::Prefill {
            rank.context_tokens -= request.plan.input;
        }
        self.wake(leg.pool);
    }

    /// The frontend's stream of a request, when it has one: beginning, word and events.
    pub(super) fn stream(
        &self,
        request: &Request,
        word: &'static str,
        events: u64,
    ) -> Option<(u64, &'static str, u64)> {
        let first = request.first_token_ns.filter(|_| request.plan.streaming)?;
        Some((first + 210_000, word, events.max(1)))
    }

    /// Writes a request's end and forgets it.
    pub(super) fn end(&mut self, request: &mut Request, ending: Ending, recorded: bool) {
        self.out.ending(request, ending);
        self.out.completed(request, ending);
        if recorded {
            self.out.request_end(request, ending);
        }
        self.out.end(request);
    }
}

/// What is planned next for a request that goes on.
pub(super) type Next = Option<Vec<(u64, Step)>>;

/// One thing is planned next.
pub(super) fn then(at_ns: u64, step: Step) -> Next {
    Some(vec![(at_ns, step)])
}
