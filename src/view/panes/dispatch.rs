//! Attempts: phase × result, retries and migrations, per worker; admissions, payloads, the time to acceptance.

use std::collections::BTreeMap;

use compact_str::CompactString;

use super::results::{Column, by_column, columns, result_tone};
use super::{Bar, Block, Cell, Known, Pane, PlotKind, Room, nothing, quantiles, quantiles_by, said, scale, terms};
use crate::lifecycle::stage::{Origin, Phase};
use crate::store::rollup::values::Together;
use crate::store::rollup::{Dispatches, Rollup};
use crate::view::data::Seen;
use crate::view::{Tone, format};

pub(super) fn pane(seen: &Seen<'_>, room: Room) -> Pane {
    let rollup = &*seen.rollup;
    let (spans, inferred) = (&rollup.dispatch, &rollup.dispatch_inferred);
    let known = Known::of("dispatch.origin", (spans, spans.count), (inferred, inferred.count), Origin::Inferred);
    let of = known.shown;
    let requests = format::counted(rollup.requests.total, "request", "requests");
    if of.count == 0 && admissions(rollup).is_empty() {
        let text = nothing(seen, "nothing was handed to a worker");
        return Pane::one(requests, vec![Block::text(0, vec![Cell::label(text)])]);
    }
    let count = format::counted(of.count, "attempt", "attempts");
    let summary = format!("{count} · {requests}{}{}", known.note, known.beside("inferred"));
    if room.is_tight() {
        return Pane::one(summary, tight(of, &known));
    }
    let mut blocks = vec![matrix(of, &known)];
    blocks.extend(migrations(of, &known).map(|cells| Block::text(3, cells)));
    blocks.push(Block::text(2, admission(rollup)));
    blocks.push(Block::text(4, payload(rollup)));
    if of.at_capacity > 0 {
        blocks.push(Block::text(1, at_capacity(of.at_capacity, &known)));
    }
    let lost: u64 = of.by_worker.values().map(|worker| worker.lost).sum();
    if lost > 0 {
        let term = terms::leg(&["dispatch.lost:true", "worker:*", &known.origin]);
        let cells = vec![
            Cell::label("worker lost"),
            Cell::count(lost, Tone::Bad).finding(term),
            Cell::label("disconnected or not reached"),
        ];
        blocks.push(Block::text(1, cells));
    }
    if of.acceptance.count() > 0 {
        let mut cells = vec![Cell::label("choice to acceptance")];
        cells.extend(quantiles(&of.acceptance, format::duration));
        blocks.push(Block::text(5, cells));
    }
    if !room.zoomed {
        return Pane::one(summary, blocks);
    }
    let left = blocks.into_iter().chain(plots(rollup, of, &known, room)).collect();
    let right = vec![
        Block::table(0, &WORKERS, workers(of, &known)).titled("by worker"),
        Block::table(2, &ATTEMPTS, attempts(of, &known)).titled("by attempt"),
    ];
    Pane::two(summary, room, left, right)
}

fn matrix(of: &Dispatches, known: &Known<'_, Dispatches>) -> Block {
    let (counts, columns) = (by_column(of), columns(of, known));
    let mut titles = vec![""];
    titles.extend(columns.iter().map(|column| column.title()));
    titles.push(">retries");
    let phases = Phase::ALL.into_iter().filter(|phase| {
        // Phases of the other kind of cluster are left out once one kind is known.
        counts.keys().any(|(other, _)| other == phase) || (counts.is_empty() && *phase != Phase::Unknown)
    });
    let rows = phases
        .map(|phase| {
            let phase_term = terms::is("phase", phase.word());
            let total: u64 = columns.iter().filter_map(|column| counts.get(&(phase, column.place()))).sum();
            let mut row = vec![
                Cell::new(phase.word(), Tone::of_phase(phase))
                    .finding_any(total, terms::leg(&[&phase_term, "dispatch.time:*", &known.origin])),
            ];
            row.extend(columns.iter().map(|column| {
                let count = counts.get(&(phase, column.place())).copied().unwrap_or(0);
                let term = terms::leg(&[&phase_term, &column.term(), &known.origin]);
                Cell::count(count, column.tone()).finding_any(count, term)
            }));
            let retries = of.retries.get(&phase);
            let term = terms::leg(&[&phase_term, "attempt>0 dispatch.time:*", &known.origin]);
            let cell = if retries > 0 {
                Cell::new(format!("↻ {}", format::count(retries)), Tone::Warn)
            } else {
                Cell::count(0, Tone::Dim)
            };
            row.push(cell.finding_any(retries, term));
            row
        })
        .collect();
    Block::table(0, &titles, rows)
}

fn tight(of: &Dispatches, known: &Known<'_, Dispatches>) -> Vec<Block> {
    let (counts, columns) = (by_column(of), columns(of, known));
    let mut blocks = Vec::new();
    for phase in Phase::ALL {
        if !counts.keys().any(|(other, _)| *other == phase) {
            continue;
        }
        let phase_term = terms::is("phase", phase.word());
        let short = match phase {
            Phase::Prefill => "pre",
            Phase::Decode => "dec",
            Phase::Aggregated => "agg",
            Phase::Unknown => "?",
        };
        let mut cells = vec![Cell::new(short, Tone::of_phase(phase))];
        for column in &columns {
            let count = counts.get(&(phase, column.place())).copied().unwrap_or(0);
            let tone = if count > 0 { column.tone() } else { Tone::Dim };
            let term = terms::leg(&[&phase_term, &column.term(), &known.origin]);
            let text = format!("{}{}", format::short_count(count), column.sign());
            cells.push(Cell::new(text, tone).finding_any(count, term));
        }
        let retries = of.retries.get(&phase);
        if retries > 0 {
            let term = terms::leg(&[&phase_term, "attempt>0 dispatch.time:*", &known.origin]);
            cells.push(Cell::new(format!("↻{retries}"), Tone::Warn).finding(term));
        }
        blocks.push(Block::text(0, cells));
    }
    if of.at_capacity > 0 {
        blocks.push(Block::text(1, at_capacity(of.at_capacity, known)));
    }
    blocks.extend(migrations(of, known).map(|cells| Block::text(2, cells)));
    blocks
}

fn migrations(of: &Dispatches, known: &Known<'_, Dispatches>) -> Option<Vec<Cell>> {
    if of.migrations.is_empty() {
        return None;
    }
    let mut cells = vec![Cell::label("migrated")];
    for (reason, count) in of.migrations.ranked() {
        cells.push(Cell::label(reason.as_str()));
        let term = terms::leg(&[&terms::is("migration.reason", reason), &known.origin]);
        cells.push(Cell::count(count, Tone::Warn).finding(term));
    }
    cells.push(Cell::label("· tokens carried"));
    cells.extend(quantiles(&of.tokens_carried, format::count).into_iter().take(2));
    let most = of.tokens_carried.max().map_or(Cell::label("–"), |most| Cell::count(most, Tone::Plain));
    cells.extend([Cell::label("max"), most]);
    Some(cells)
}

/// Admissions of recorded and inferred attempts: a span of its own records each.
fn admissions(rollup: &Rollup) -> BTreeMap<(CompactString, CompactString), u64> {
    let mut counts = BTreeMap::new();
    for dispatches in [&rollup.dispatch, &rollup.dispatch_inferred] {
        for (key, count) in dispatches.admissions.iter() {
            *counts.entry(key.clone()).or_default() += count;
        }
    }
    counts
}

fn payloads(rollup: &Rollup) -> Together<'_> {
    let mut payloads = Together::default();
    payloads.join(&rollup.dispatch.payloads);
    payloads.join(&rollup.dispatch_inferred.payloads);
    payloads
}

fn admission(rollup: &Rollup) -> Vec<Cell> {
    let (admissions, told) = (admissions(rollup), rollup.tells_of_admissions());
    if admissions.is_empty() && !told {
        return vec![Cell::label("admission not recorded by this layout")];
    }
    let mut cells = vec![Cell::label("admission")];
    let mut by_result: Vec<(&str, u64)> =
        if told { vec![("accepted", 0), ("rejected", 0), ("failed", 0)] } else { Vec::new() };
    let unsaid = if told { "no result" } else { "result not recorded by this layout" };
    for ((result, _), count) in &admissions {
        match by_result.iter_mut().find(|(known, _)| known == result) {
            Some((_, sum)) => *sum += count,
            None => by_result.push((result, *count)),
        }
    }
    for (result, count) in by_result {
        cells.push(Cell::label(said(result, unsaid)));
        let term = match result {
            // Known from the payload or the transport alone.
            "" => terms::leg(&["at_capacity:* -admission.result:*"]),
            result => terms::leg(&[&terms::is("admission.result", result)]),
        };
        cells.push(Cell::count(count, result_tone(result)).finding_any(count, term));
    }
    let mut transports: BTreeMap<&str, u64> = BTreeMap::new();
    for ((_, transport), count) in &admissions {
        *transports.entry(transport).or_default() += count;
    }
    if !transports.is_empty() {
        cells.push(Cell::label("over"));
    }
    for (transport, count) in transports {
        cells.push(Cell::label(said(transport, "not said")));
        let term = terms::leg(&["at_capacity:*", &terms::is_or_absent("admission.transport", transport)]);
        cells.push(Cell::count(count, Tone::Plain).finding(term));
    }
    cells
}

fn payload(rollup: &Rollup) -> Vec<Cell> {
    let payloads = payloads(rollup);
    let mut cells = vec![Cell::label("payload")];
    cells.extend(quantiles_by(|q| payloads.quantile(q), format::bytes));
    cells
}

/// Admitted by the worker, then refused by its gate, and the request rejected.
fn at_capacity(count: u64, known: &Known<'_, Dispatches>) -> Vec<Cell> {
    let origin = known.origin.trim();
    let term = if origin.is_empty() {
        "outcome:rejected at_capacity:true".to_owned()
    } else {
        format!("outcome:rejected {}", terms::leg(&["at_capacity:true", origin]))
    };
    vec![
        Cell::label("at capacity"),
        Cell::count(count, Tone::Rejected).finding(term),
        Cell::label("admitted, then refused by the worker's gate"),
    ]
}

const WORKERS: [&str; 11] = [
    "worker",
    "phase",
    ">attempts",
    "",
    ">accepted",
    ">cancelled",
    ">failed",
    ">other",
    ">retries",
    ">lost",
    ">payload p50",
];

/// A row per phase and worker; the longest bar of a phase is its busiest worker.
fn workers(of: &Dispatches, known: &Known<'_, Dispatches>) -> Vec<Vec<Cell>> {
    let mut most: BTreeMap<Phase, u64> = BTreeMap::new();
    for ((phase, _), worker) in &of.by_worker {
        let most = most.entry(*phase).or_default();
        *most = worker.count.max(*most);
    }
    of.by_worker
        .iter()
        .map(|((phase, worker), counts)| {
            let (phase_term, worker_term) = (terms::is("phase", phase.word()), terms::worker("worker", *worker));
            let term = |more: &str| terms::leg(&[&phase_term, &worker_term, "dispatch.time:*", more, &known.origin]);
            // Where results are not recorded, success stands for acceptance.
            let accepted = if known.note.is_empty() { "accepted" } else { "success" };
            let result = |word: &str| {
                let count = counts.results.get(word);
                let term = term(&terms::is("dispatch.result", word));
                Cell::count(count, result_tone(word)).finding_any(count, term)
            };
            let named = [accepted, "cancelled"];
            let other = counts.count - counts.failed - named.iter().map(|word| counts.results.get(*word)).sum::<u64>();
            let other_term = term(&format!("-dispatch.result:{} -dispatch.failed:true", named.join(",")));
            let bytes = counts.payloads.quantile(0.5);
            vec![
                Cell::new(worker.short(), Tone::Plain).finding(term("")),
                Cell::new(phase.word(), Tone::of_phase(*phase)),
                Cell::count(counts.count, Tone::Plain),
                Cell::new("", Tone::of_phase(*phase)).bar(counts.count, most[phase]),
                result(accepted),
                result("cancelled"),
                Cell::count(counts.failed, Tone::Bad).finding_any(counts.failed, term("dispatch.failed:true")),
                Cell::count(other, Tone::Warn).finding_any(other, other_term),
                Cell::count(counts.retries, Tone::Warn).finding_any(counts.retries, term("attempt>0")),
                Cell::count(counts.lost, Tone::Bad).finding_any(counts.lost, term("dispatch.lost:true")),
                bytes.map_or(Cell::label("–"), |bytes| Cell::new(format::bytes(bytes), Tone::Plain)),
            ]
        })
        .collect()
}

const ATTEMPTS: [&str; 4] = ["phase", "result", ">attempt", ">n"];

fn attempts(of: &Dispatches, known: &Known<'_, Dispatches>) -> Vec<Vec<Cell>> {
    let row = |((phase, result, attempt), count): (&(Phase, CompactString, u32), u64)| {
        let phase_term = terms::is("phase", phase.word());
        let result_term = match result.as_str() {
            "" => Column::Absent.term(),
            word => terms::is("dispatch.result", word),
        };
        let term = terms::leg(&[&phase_term, &result_term, &format!("attempt:{attempt}"), &known.origin]);
        vec![
            Cell::new(phase.word(), Tone::of_phase(*phase)),
            Cell::new(said(result, "no result"), result_tone(result)),
            Cell::new(attempt.to_string(), if *attempt > 0 { Tone::Warn } else { Tone::Plain }),
            Cell::count(count, Tone::Plain).finding(term),
        ]
    };
    of.by_result.iter().map(row).collect()
}

fn plots(rollup: &Rollup, of: &Dispatches, known: &Known<'_, Dispatches>, room: Room) -> Vec<Block> {
    let most = usize::from(room.column() / 6).max(4);
    let mut plots = Vec::new();
    if of.acceptance.count() > 0 {
        let bars = scale::decades(&of.acceptance, most).into_iter().map(|(from, to)| {
            let count = of.acceptance.between(from, to);
            let within = format!("acceptance:{}..<{}", scale::time(from), scale::time(to));
            Bar {
                value: Some(count),
                label: scale::time(from),
                tone: Tone::Good,
                term: (count > 0).then(|| terms::leg(&[&within, &known.origin])),
            }
        });
        let plot = Block::plot(6, PlotKind::Bars, "attempts", bars.collect(), vec!["from … on".into()]);
        plots.push(plot.titled("from choice to acceptance"));
    }
    let payloads = payloads(rollup);
    if payloads.count() > 0 {
        let bars = scale::doublings(payloads.min().zip(payloads.max()), most).into_iter().map(|(from, to)| {
            let count = payloads.between(from, to);
            Bar {
                value: Some(count),
                label: format::bytes(from).replace(' ', ""),
                tone: Tone::Accent,
                term: (count > 0).then(|| terms::leg(&[&format!("admission.bytes:{from}..<{to}")])),
            }
        });
        let plot = Block::plot(7, PlotKind::Bars, "admissions", bars.collect(), vec!["bytes, from … on".into()]);
        plots.push(plot.titled("payload"));
    }
    plots
}
