//! The request's trace records, as rows: what `request_end` measured, what each router selection offered, which payload
//! is incomplete and why (field case B45).

use super::detail::{Detail, Opens};
use crate::lifecycle::facts::State;
use crate::lifecycle::record::{Record, RecordBody, RequestEnd};
use crate::lifecycle::request::RequestView;
use crate::view::{Nothing, Piece, Tone, format};

/// The rows of all records; when there is none, which kind of nothing that is.
pub fn records(request: &RequestView<'_>) -> Vec<Detail> {
    if request.records.is_empty() {
        let facts = request.facts;
        let nothing = match facts.state {
            State::InFlight => Nothing::NotYet,
            // A request that fails before its stream has no record (spec request-trace.md).
            _ if facts.stream.is_none() => Nothing::NoSuch,
            _ => Nothing::Missing,
        };
        return vec![Detail::new("request_end", vec![nothing.sentence()])];
    }
    request.records.iter().enumerate().flat_map(|(index, record)| rows(index, record)).collect()
}

fn rows(index: usize, record: &Record) -> Vec<Detail> {
    let mut heading = Detail::heading(record.event_type.as_str());
    heading.value = vec![Piece::dim(format::timestamp(record.time_ms.saturating_mul(1_000_000)))];
    heading.opens = Some(Opens::Record(index));
    let mut rows = vec![heading];
    match &record.body {
        RecordBody::End(end) => rows.extend(end_rows(end)),
        RecordBody::Selection(selection) => {
            let pinned = if selection.pinned { "kept by session affinity" } else { "not pinned" };
            let count = format!("{} of {}", selection.candidates.len(), selection.candidate_count);
            rows.push(Detail::new(
                "pool",
                vec![Piece::new(selection.pool.word(), Tone::of_phase(selection.pool)), Piece::dim(pinned)],
            ));
            rows.push(Detail::new("candidates", vec![Piece::plain(count), Piece::dim("lowest cost first")]));
            let most = selection.candidates.iter().map(|(_, cost)| *cost).fold(0.0, f64::max);
            rows.extend(selection.candidates.iter().map(|(worker, cost)| Detail {
                label: Piece::plain(format!("  {}", worker.short())),
                value: vec![Piece::plain(format::cost(*cost))],
                bar: (most > 0.0).then_some((cost / most, Tone::Plain)),
                opens: None,
            }));
        }
        RecordBody::Payload(payload) if payload.complete => {
            rows.push(Detail::new("payload", vec![Piece::plain("complete")]));
        }
        RecordBody::Payload(payload) => {
            let reason = if payload.drop_reason.is_empty() { "no reason given" } else { &payload.drop_reason };
            rows.push(Detail::new("payload", vec![Piece::new("incomplete", Tone::Warn), Piece::plain(reason)]));
        }
        RecordBody::Tool | RecordBody::Other => {}
    }
    rows
}

fn end_rows(end: &RequestEnd) -> Vec<Detail> {
    let ms = |value: Option<f64>| value.filter(|ms| *ms >= 0.0).map(|ms| format::duration((ms * 1e6) as u64));
    let tokens = |value: Option<u64>| value.map(|count| format!("{} tok", format::count(count)));
    let workers = end.worker.clone().unwrap_or_default();
    let worker = |id: Option<u64>, rank| id.map(|id| super::detail::worker(id, rank));
    let finish = end.finish.as_ref().and_then(|finish| finish.finish_reason.as_ref());
    [
        ("model", end.model.as_ref().map(ToString::to_string)),
        ("client's id", end.x_request_id.as_ref().map(ToString::to_string)),
        ("input", tokens(end.input_tokens)),
        ("cached", tokens(end.cached_tokens)),
        ("output", tokens(end.output_tokens)),
        ("reasoning", tokens(end.reasoning_tokens)),
        ("time to first token", ms(end.ttft_ms)),
        ("mean time between tokens", ms(end.avg_itl_ms)),
        ("prefill wait", ms(end.prefill_wait_time_ms)),
        ("prefill", ms(end.prefill_time_ms)),
        ("total", ms(end.total_time_ms)),
        ("cache hit rate", end.kv_hit_rate.map(|rate| format!("{:.1} %", rate * 100.0))),
        ("queue depth", end.queue_depth.map(format::count)),
        ("prefill worker", worker(workers.prefill_worker_id, workers.prefill_dp_rank)),
        ("decode worker", worker(workers.decode_worker_id, workers.decode_dp_rank)),
        ("finish reason", finish.map(ToString::to_string)),
    ]
    .into_iter()
    .filter_map(|(label, value)| Some(Detail::new(label, vec![Piece::plain(value?)])))
    .collect()
}
