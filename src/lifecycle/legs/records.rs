//! Choices as `router_selection` records tell them.

use compact_str::CompactString;

use crate::lifecycle::facts::{Choice, Leg, Selection};
use crate::lifecycle::ids::Worker;
use crate::lifecycle::record::{Record, RecordBody, SelectionRecord};
use crate::lifecycle::stage::{Origin, Phase};

/// Gives each leg without a selection span the `router_selection` record of its turn: the n-th of its pool.
pub(super) fn selections(records: &[Record], legs: &mut Vec<Leg>) {
    let mut of_records: Vec<(u64, &SelectionRecord)> = records
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::Selection(selection) => Some((record.time_ms, selection)),
            _ => None,
        })
        .collect();
    of_records.sort_by_key(|(time_ms, _)| *time_ms);
    let ends = records.iter().find_map(|record| match &record.body {
        RecordBody::End(end) => end.worker.as_ref(),
        _ => None,
    });
    for pool in [Phase::Prefill, Phase::Decode, Phase::Unknown] {
        let of_pool = of_records.iter().filter(|(_, record)| record.pool == pool);
        for (turn, (time_ms, record)) in of_pool.enumerate() {
            // Legs that never selected (refused in the queue) have no record.
            let mut fitting = legs.iter_mut().filter(|leg| {
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
                phase_fits && (was_chosen || leg.phase == Phase::Unknown)
            });
            match fitting.nth(turn) {
                Some(leg) => match &mut leg.selection {
                    Some(selection) => selection.pinned = Some(record.pinned),
                    None => {
                        let dispatched = leg.dispatch.as_ref().and_then(|dispatch| dispatch.worker);
                        if leg.phase == Phase::Unknown && leg.dispatch.is_none() {
                            leg.phase = pool;
                        }
                        leg.selection = Some(Box::new(of_record(*time_ms, record, dispatched)));
                    }
                },
                None => {
                    let named = ends.and_then(|ends| {
                        let (id, rank) = match pool {
                            Phase::Prefill => (ends.prefill_worker_id, ends.prefill_dp_rank),
                            _ => (ends.decode_worker_id, ends.decode_dp_rank),
                        };
                        Some(Worker { id: id?, rank })
                    });
                    let selection = Some(Box::new(of_record(*time_ms, record, named.filter(|_| turn == 0))));
                    legs.push(Leg { phase: pool, attempt: turn as u32, selection, ..Leg::default() });
                }
            }
        }
    }
}

/// A selection as its record tells it: the chosen one is known from elsewhere, the least cost is the first row's.
fn of_record(time_ms: u64, record: &SelectionRecord, chosen: Option<Worker>) -> Selection {
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
        time_ns: time_ms.saturating_mul(1_000_000),
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
