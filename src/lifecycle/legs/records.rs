//! Choices as `router_selection` records tell them.

use compact_str::CompactString;

use crate::lifecycle::facts::{Choice, Leg, Selection};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::record::{Record, RecordBody, SelectionRecord};
use crate::lifecycle::stage::{Origin, Phase};

/// Gives each leg without a selection span the `router_selection` record of its choice. Records may be missing (spec
/// request-trace.md): what was chosen is sent at once, so an attempt has the last choice before it; of what is left the n-th
/// leg has the n-th record.
pub(super) fn selections(records: &[Record], legs: &mut Vec<Leg>) {
    let mut of_records: Vec<(u64, &SelectionRecord)> = records
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::Selection(selection) => Some((record.time_ms.saturating_mul(1_000_000), selection)),
            _ => None,
        })
        .collect();
    if of_records.is_empty() {
        return;
    }
    of_records.sort_by_key(|(time_ns, _)| *time_ns);
    let ends = records.iter().find_map(|record| match &record.body {
        RecordBody::End(end) => end.worker.as_ref(),
        _ => None,
    });
    for pool in [Phase::Prefill, Phase::Decode, Phase::Unknown] {
        let of_pool: Vec<_> = of_records.iter().filter(|(_, record)| record.pool == pool).copied().collect();
        for (turn, place) in places(&of_pool, legs).into_iter().enumerate() {
            let (time_ns, record) = of_pool[turn];
            let Some(leg) = place.map(|place| &mut legs[place]) else {
                let named = ends.and_then(|ends| {
                    let (id, rank) = match pool {
                        Phase::Prefill => (ends.prefill_worker_id, ends.prefill_dp_rank),
                        _ => (ends.decode_worker_id, ends.decode_dp_rank),
                    };
                    Some(Worker { id: id?, rank })
                });
                let selection = Some(Box::new(of_record(time_ns, record, named.filter(|_| turn == 0))));
                legs.push(Leg { phase: pool, attempt: turn as u32, selection, ..Leg::default() });
                continue;
            };
            match &mut leg.selection {
                Some(selection) => selection.pinned = Some(record.pinned),
                None => {
                    if leg.phase == Phase::Unknown && leg.dispatch.is_none() {
                        leg.phase = pool;
                    }
                    leg.selection = Some(Box::new(of_record(time_ns, record, dispatched(leg))));
                }
            }
        }
    }
}

/// The leg of each record of a pool, by its place.
fn places(records: &[(u64, &SelectionRecord)], legs: &[Leg]) -> Vec<Option<usize>> {
    let mut places = vec![None; records.len()];
    let mut sent: Vec<(u64, usize)> =
        legs.iter().enumerate().filter_map(|(place, leg)| Some((leg.dispatch.as_ref()?.start_ns, place))).collect();
    sent.sort_unstable();
    let mut free: Vec<bool> = vec![true; legs.len()];
    for (start_ns, place) in sent {
        let fits = |turn: &usize| {
            let (time_ns, record) = records[*turn];
            places[*turn].is_none() && time_ns <= start_ns && may_be_of(record, &legs[place])
        };
        if let Some(turn) = (0..records.len()).rev().find(fits) {
            (places[turn], free[place]) = (Some(place), false);
        }
    }
    for (turn, (_, record)) in
        records.iter().enumerate().filter(|(turn, _)| places[*turn].is_none()).collect::<Vec<_>>()
    {
        let place = (0..legs.len()).find(|place| free[*place] && may_be_of(record, &legs[*place]));
        if let Some(place) = place {
            (places[turn], free[place]) = (Some(place), false);
        }
    }
    places
}

/// Whether a record may tell of a leg's choice. Legs that never selected (refused in the queue) have no record, and who is
/// not among all candidates was not chosen.
fn may_be_of(record: &SelectionRecord, leg: &Leg) -> bool {
    let pool = record.pool;
    let phase_fits = match leg.phase {
        Phase::Prefill => pool == Phase::Prefill,
        Phase::Decode | Phase::Aggregated => pool != Phase::Prefill,
        Phase::Unknown => {
            let known = leg.selection.as_ref().map_or(Phase::Unknown, |selection| selection.pool);
            let left = leg.queue.as_ref().is_some_and(|queue| queue.outcome.is_empty());
            known.fits_pool(pool) && (leg.dispatch.is_some() || left)
        }
    };
    let was_chosen = leg.dispatch.is_some() || leg.selection.is_some() || leg.admission.is_some();
    let all = record.candidates.len() as u64 >= record.candidate_count;
    let is_candidate = |worker: Worker| record.candidates.iter().any(|(candidate, _)| candidate.agrees(worker));
    phase_fits
        && (was_chosen || leg.phase == Phase::Unknown)
        && dispatched(leg).is_none_or(|worker| !all || is_candidate(worker))
}

fn dispatched(leg: &Leg) -> Option<Worker> {
    leg.dispatch.as_ref().and_then(|dispatch| dispatch.worker)
}

/// A selection as its record tells it: the chosen one is known from elsewhere, the least cost is the first row's.
fn of_record(time_ns: u64, record: &SelectionRecord, chosen: Option<Worker>) -> Selection {
    let row = |worker: Worker| record.candidates.iter().find(|(candidate, _)| candidate.agrees(worker));
    let selected = chosen.map(|worker| match row(worker) {
        Some((candidate, cost)) => Choice { worker: *candidate, cost: Some(*cost) },
        None => Choice { worker, cost: None },
    });
    let least = record.candidates.first().map(|(worker, cost)| Choice { worker: *worker, cost: Some(*cost) });
    // On a tie the chosen one is the best (spec lifecycle-spans §3).
    let best = selected.filter(|selected| least.is_some_and(|least| selected.cost == least.cost)).or(least);
    let margin = match &record.candidates[..] {
        [(_, least), (_, next), ..] => Some(next - least),
        [_] if record.candidate_count <= 1 => Some(0.0),
        _ => None,
    };
    Selection {
        span: None,
        time_ns,
        pool: record.pool,
        candidates: Some(record.candidate_count),
        eligible: None,
        filtered: None,
        filtered_parts: [None; 5],
        selected,
        best,
        margin,
        pinned: Some(record.pinned),
        policy: CompactString::default(),
        origin: Origin::Record,
    }
}
