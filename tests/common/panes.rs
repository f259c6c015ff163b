//! What panes show, read back from their cells, and held against the report.

use std::collections::BTreeMap;

use reqtop::query::Query;
use reqtop::report::{InputSection, Report};
use reqtop::store::Store;
use reqtop::view::format;
use reqtop::view::panes::{Block, Body, Cell, Pane, PaneId, PlotKind, Room, pane};

/// Room for everything that a pane has.
pub const WHOLE: Room = Room { columns: 196, rows: 55, zoomed: true };

/// Sets the filter and the window of the store's lens, and waits for it.
pub fn look(store: &mut Store, filter: &str, window_ns: Option<u64>, until_ns: u64) {
    store.look(&Query::parse(filter).unwrap(), window_ns, until_ns);
    store.refresh_lens(until_ns);
    while !store.lens().is_whole() {
        store.refresh_lens(until_ns);
    }
}

pub fn cells(pane: &Pane) -> impl Iterator<Item = &Cell> {
    pane.columns.iter().flatten().flat_map(|Block { body, .. }| -> Box<dyn Iterator<Item = &Cell>> {
        match body {
            Body::Text(cells) => Box::new(cells.iter()),
            Body::Table(table) => Box::new(table.rows.iter().flatten()),
            Body::Plot(_) => Box::new(std::iter::empty()),
        }
    })
}

/// The count that stands in the cell with a term; 0 when there is none.
pub fn count(pane: &Pane, term: &str) -> u64 {
    let text = |cell: &Cell| cell.text.text.trim_start_matches(['↻', ' ']).replace(',', "");
    cells(pane).filter(|cell| cell.term.as_deref() == Some(term)).find_map(|cell| text(cell).parse().ok()).unwrap_or(0)
}

/// The count in the third cell of the row that is named by a term; 0 when there is none.
pub fn row_count(pane: &Pane, term: &str) -> u64 {
    let rows = pane.columns.iter().flatten().filter_map(|block| match &block.body {
        Body::Table(table) => Some(&table.rows),
        _ => None,
    });
    let row = rows.flatten().find(|row| row[0].term.as_deref() == Some(term));
    row.map_or(0, |row| row[2].text.text.replace(',', "").parse().unwrap())
}

/// The values of the bars of the plot whose first term contains `of`, summed.
pub fn summed(pane: &Pane, of: &str) -> u64 {
    let plots = pane.columns.iter().flatten().filter_map(|block| match &block.body {
        Body::Plot(plot) if plot.kind == PlotKind::Bars => Some(plot),
        _ => None,
    });
    let has = |term: &Option<String>| term.as_ref().is_some_and(|term| term.contains(of));
    let mut plots = plots.filter(|plot| plot.bars.iter().any(|bar| has(&bar.term)));
    plots.next().map_or(0, |plot| plot.bars.iter().filter_map(|bar| bar.value).sum())
}

pub fn has_text(pane: &Pane, text: &str) -> bool {
    cells(pane).any(|cell| cell.text.text == text)
}

/// Holds the panes of the store's lens against the report of the same requests.
pub fn same_as_report(store: &Store, filter: &str, window_ns: Option<u64>, of_what: &str) {
    let query = Query::parse(filter).unwrap();
    let report = Report::within(store, InputSection::default(), Some(&query), window_ns);
    let of = |id| pane(id, store, WHOLE, None);
    let (queue, selection, dispatch) = (of(PaneId::Queue), of(PaneId::Selection), of(PaneId::Dispatch));
    let (streaming, workers, sessions) = (of(PaneId::Streaming), of(PaneId::Workers), of(PaneId::Sessions));
    let check = |what: &str, shown: u64, reported: u64| {
        assert_eq!(shown, reported, "{of_what}: {what} under {filter:?} within {window_ns:?}");
    };

    // Panes show what spans record, or else what is inferred or told by records, never both at once.
    let of_spans = report.queue.recorded.spans > 0;
    let waits = if of_spans { &report.queue.recorded } else { &report.queue.inferred };
    let origin = if of_spans && report.queue.inferred.spans > 0 { " queue.origin:span" } else { "" };
    for (reason, count_) in &report.queue.rejected_by_reason {
        check(
            reason,
            row_count(&queue, &format!("leg(queue.outcome:rejected queue.reason:{reason}{origin})")),
            *count_,
        );
    }
    for (outcome, reported) in report.queue.outcomes.iter().filter(|(outcome, _)| *outcome != "dequeued") {
        check(outcome, count(&queue, &format!("leg(queue.outcome:{outcome}{origin})")), *reported);
    }
    // Elsewhere in time, or beside waits that are counted from how they overlap, the plot has depths of its own.
    if let (Some(peak), None, 0) = (waits.max_depth, window_ns, report.queue.inferred.spans) {
        let said = format!(" peak {peak}");
        assert!(queue.summary.contains(&said), "{of_what} under {filter:?}: {} without{said}", queue.summary);
    }
    check("waits", summed(&queue, "queue.wait:"), waits.spans);
    if waits.spans > 0 {
        let p99 = waits.wait_ns.p99.map_or("–".into(), format::duration);
        assert!(has_text(&queue, &p99), "{p99}");
    }
    for (class, of) in &report.queue.per_class {
        let shown: u64 = ["fcfs", "lcfs", "wspt"]
            .map(|policy| {
                let all =
                    format!("leg(queue.class:{class} queue.policy:{policy} queue.wait:* queue.deferred:true{origin})");
                count(&queue, &all)
            })
            .iter()
            .sum();
        check(class, shown, of.deferred.unwrap_or(0));
    }

    let of_spans = report.selection.recorded.spans > 0;
    let choices = if of_spans { &report.selection.recorded } else { &report.selection.from_records };
    let origin = if of_spans && report.selection.from_records.spans > 0 { " selection.origin:span" } else { "" };
    let not_best = count(&selection, &format!("leg(selection.best:false{origin})"));
    check("not the best", not_best, choices.chosen_is_not_best);
    check("margins", summed(&selection, "-selection.candidates:1"), choices.margin_two_or_more_candidates.n);

    let of_spans = report.dispatch.recorded.spans > 0;
    let attempts = if of_spans { &report.dispatch.recorded } else { &report.dispatch.inferred };
    let origin = if of_spans && report.dispatch.inferred.spans > 0 { " dispatch.origin:span" } else { "" };
    let mut matrix: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in &attempts.matrix {
        *matrix.entry((row.phase, &row.result)).or_default() += row.count;
    }
    for ((phase, result), reported) in matrix {
        let result = if result == "none" {
            "dispatch.time:* -dispatch.result:*".into()
        } else {
            format!("dispatch.result:{result}")
        };
        check("matrix", count(&dispatch, &format!("leg(phase:{phase} {result}{origin})")), reported);
    }
    for (phase, reported) in &attempts.retries {
        check("retries", count(&dispatch, &format!("leg(phase:{phase} attempt>0 dispatch.time:*{origin})")), *reported);
    }
    for (reason, reported) in &attempts.migrations {
        check("migrations", count(&dispatch, &format!("leg(migration.reason:{reason}{origin})")), *reported);
    }
    check("payloads", summed(&dispatch, "admission.bytes:"), report.dispatch.admission.payload_bytes.n);
    let capacity = count(&dispatch, "outcome:rejected at_capacity:true");
    check("at capacity", capacity, attempts.worker_at_capacity);

    for (outcome, reported) in &report.streaming.roots_of_abandoned {
        check(outcome, count(&streaming, &format!("abandoned:true outcome:{outcome}")), *reported);
    }
    for (outcome, reported) in report.streaming.outcomes.iter().filter(|(outcome, _)| *outcome != "none") {
        check(outcome, row_count(&streaming, &format!("stream.outcome:{outcome}")), *reported);
    }
    check("leavers", summed(&streaming, "abandoned:true events:"), report.streaming.events_at_leaving.n);
    check("ages", summed(&streaming, "abandoned:true stream.time:"), report.streaming.age_at_leaving_ns.n);
    check(
        "streams",
        summed(&streaming, "stream.time:"),
        if report.streaming.abandoned > 0 {
            report.streaming.age_at_leaving_ns.n
        } else {
            report.streaming.duration_ns.n
        },
    );
    check("open", count(&streaming, "state:in_flight streaming:true -stream.time:*"), report.streaming.open);

    for rank in &report.ranks {
        let name = rank.rank.map_or(rank.worker.clone(), |of| format!("{}:{of}", rank.worker));
        let selected = count(&workers, &format!("leg(selected.worker:{name})"));
        check(&name, selected, rank.chosen().unwrap_or(0));
        check(&name, count(&workers, &format!("at:{name}")), rank.in_flight.unwrap_or(0));
        check(&name, count(&workers, &format!("leg(worker:{name} dispatch.time:*)")), rank.attempts.unwrap_or(0));
        check(&name, count(&workers, &format!("leg(worker:{name} dispatch.lost:true)")), rank.lost.unwrap_or(0));
        check(&name, count(&workers, &format!("leg(worker:{name} dispatch.failed:true)")), rank.failed.unwrap_or(0));
    }
    let vanished = report.ranks.iter().filter(|rank| rank.vanished).count();
    assert_eq!(cells(&workers).filter(|cell| cell.text.text == "vanished").count(), vanished);
    for session in report.sessions.sessions.iter().take(50) {
        check(&session.session, count(&sessions, &format!("session:{}", session.session)), session.turns);
    }
    let of = format::counted(report.sessions.total, "session", "sessions");
    let total = format!("{of} · {}", format::counted(report.sessions.turns, "turn", "turns"));
    assert!(sessions.summary.starts_with(&total), "{} is not {total}", sessions.summary);
}
