//! The report as a person reads it in a terminal or a log.

use std::fmt::{self, Display, Write};

use super::Report;
use super::lines::Lines;
use super::people::told;
use super::quantiles::Quantiles;
use super::sections::{AttemptsSection, ChoicesSection, WaitsSection};

/// Sessions listed.
const SESSIONS: usize = 20;

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let f = &mut Lines(f);
        let Self { traces, spans, requests, records, input, .. } = self;
        if let Some(filter) = &self.filter {
            writeln!(f, "filter       {filter}  (of requests; spans, traces, records and account are of everything)")?;
        }
        if let Some(window) = &self.window {
            writeln!(f, "window       the last {:.1} s", window.length_ns as f64 / 1e9)?;
        }
        writeln!(
            f,
            "requests     {}: {}; in flight {}, without a root {}{}",
            requests.total,
            list(requests.by_outcome.iter()),
            requests.in_flight,
            requests.without_root,
            some(", end missing ", requests.lost),
        )?;
        if requests.with_more_than_one_attempt > 0 {
            writeln!(f, "             {} with more than one attempt", requests.with_more_than_one_attempt)?;
        }
        if !requests.by_mark.is_empty() {
            writeln!(f, "             marked: {}", list(requests.by_mark.iter()))?;
        }
        let (layouts, modes) = (list(requests.by_layout.iter()), list(requests.by_mode.iter()));
        writeln!(f, "layout       {layouts}; {modes}; of {} with a root", requests.with_root)?;
        writeln!(
            f,
            "spans        {} in {} traces; {} duplicate, {} rejected, {} evicted, {} with a parent that never came{}",
            spans.total,
            traces.total,
            spans.duplicates,
            spans.rejected,
            spans.evicted,
            spans.orphans,
            some(", shed ", spans.shed),
        )?;
        let width = spans.by_name.keys().map(String::len).max().unwrap_or(0);
        for (name, count) in &spans.by_name {
            writeln!(f, "             {name:<width$}  {count}")?;
        }
        writeln!(
            f,
            "records      {}: {}; {} duplicate, {} bad",
            records.total,
            list(records.by_type.iter()),
            records.duplicates,
            records.bad
        )?;
        for (what, account) in self.accounts() {
            writeln!(f, "account      {what}: {account}")?;
        }
        if input.requests_refused + input.requests_busy > 0 {
            writeln!(
                f,
                "             requests: {} turned away, {} answered with busy",
                input.requests_refused, input.requests_busy
            )?;
        }
        waits(f, "queue", &self.queue.recorded)?;
        if self.queue.recorded.spans > 0 {
            writeln!(
                f,
                "             outcomes: {}; reasons: {}",
                list(self.queue.outcomes.iter()),
                list(self.queue.reasons.iter())
            )?;
        }
        waits(f, "queue ~", &self.queue.inferred)?;
        choices(f, "selection", &self.selection.recorded)?;
        choices(f, "selection ®", &self.selection.from_records)?;
        attempts(f, "dispatch", &self.dispatch.recorded)?;
        attempts(f, "dispatch ~", &self.dispatch.inferred)?;
        let admission = &self.dispatch.admission;
        if admission.spans > 0 {
            writeln!(
                f,
                "admission    {}: {}; payload {}",
                admission.spans,
                list(admission.by_result.iter()),
                quantiles(&admission.payload_bytes, |bytes| format!("{bytes} B"))
            )?;
        }
        let streaming = &self.streaming;
        if streaming.spans > 0 {
            writeln!(
                f,
                "streaming    {}: {}; events {}; events when abandoned {}",
                streaming.spans,
                list(streaming.outcomes.iter()),
                streaming.events_total,
                quantiles(&streaming.events_at_leaving, u64::to_string)
            )?;
        }
        for (label, values, of) in [
            ("ttft", &self.streaming.ttft_ns, ""),
            ("ttft ®", &self.latency.record_ttft_ns, " with a root"),
            ("total", &self.latency.root_duration_ns, " with a root"),
        ] {
            if values.n > 0 {
                writeln!(f, "{label:<13}{} of {}{of}", quantiles(values, millis), values.n)?;
            }
        }
        for row in &self.workers {
            let rank = row.rank.map_or_else(String::new, |rank| format!(":{rank}"));
            writeln!(
                f,
                "worker       {}{rank} {}{}: {} dispatched ({}), {} selected{}",
                row.worker,
                row.phase,
                if row.origin == "span" { "" } else { " ~" },
                row.dispatched,
                list(row.results.iter()),
                told(row.selected),
                some(", lost ", row.lost)
            )?;
        }
        for row in &self.ranks {
            let rank = row.rank.map_or_else(String::new, |rank| format!(":{rank}"));
            let mean = |mean: Option<f64>| mean.map_or_else(|| "–".into(), |mean| format!("{mean:.3}"));
            writeln!(
                f,
                "rank         {}{rank}: {} requests, {} in flight, selected {}{}, won by {}, passed over {} by {}{}{}",
                row.worker,
                row.requests,
                told(row.in_flight),
                told(row.chosen()),
                row.share.map_or_else(String::new, |share| format!(" ({:.1} %)", share * 100.0)),
                mean(row.margin_won_mean),
                row.passed_over,
                mean(row.regret_lost_mean),
                some(", lost ", row.lost.unwrap_or(0)),
                if row.vanished { ", vanished" } else { "" },
            )?;
        }
        let sessions = &self.sessions;
        if sessions.total > 0 {
            writeln!(
                f,
                "sessions     {}: {} turns; affinity kept {}, broken {}",
                sessions.total, sessions.turns, sessions.affinity_kept, sessions.affinity_broken
            )?;
        }
        for row in sessions.sessions.iter().take(SESSIONS) {
            let [input, output] = row.tokens();
            writeln!(
                f,
                "             {}: {} turns ({}), {input} tokens in, {output} out, {} cached; affinity kept {}, broken {}",
                row.session,
                row.turns,
                list(row.outcomes.iter()),
                told(row.cached_tokens),
                row.affinity_kept,
                row.affinity_broken
            )?;
        }
        writeln!(
            f,
            "input        {} files, {} bad lines; {} other logs, {} request logs, {} metric points, {} texts cleaned",
            input.files,
            input.bad_lines,
            input.other_logs,
            input.request_logs,
            input.metric_points,
            input.texts_cleaned
        )?;
        input.problems.iter().try_for_each(|problem| writeln!(f, "             {problem}"))?;
        input.forwarding.iter().try_for_each(|forwarding| writeln!(f, "forwarded    {forwarding}"))?;
        input.recording.iter().try_for_each(|recording| writeln!(f, "recorded     {recording}"))?;
        writeln!(f, "~ inferred from other spans   ® told by trace records")
    }
}

fn some(label: &str, count: u64) -> String {
    if count == 0 { String::new() } else { format!("{label}{count}") }
}

fn list<K: Display, V: Display>(items: impl Iterator<Item = (K, V)>) -> String {
    let mut out = String::new();
    for (key, value) in items {
        let _ = write!(out, "{}{key} {value}", if out.is_empty() { "" } else { ", " });
    }
    if out.is_empty() { "none".into() } else { out }
}

fn millis(nanos: &u64) -> String {
    format!("{:.3} ms", *nanos as f64 / 1e6)
}

fn quantiles<T>(values: &Quantiles<T>, show: impl Fn(&T) -> String) -> String {
    let show = |value: &Option<T>| value.as_ref().map_or_else(|| "–".into(), &show);
    format!("p50 {} p90 {} p99 {} max {}", show(&values.p50), show(&values.p90), show(&values.p99), show(&values.max))
}

fn waits(f: &mut Lines<'_, '_>, label: &str, waits: &WaitsSection) -> fmt::Result {
    if waits.spans == 0 {
        return Ok(());
    }
    let depth = waits.max_depth.map_or_else(String::new, |depth| format!("; greatest depth {depth}"));
    let counts = [("deferred", waits.deferred), ("rejected", waits.rejected), ("cancelled", waits.cancelled)];
    let said = |(of, count): (&str, Option<u64>)| {
        count.map_or_else(|| format!("{of} not recorded"), |count| format!("{of} {count}"))
    };
    let counts = counts.map(said).join(", ");
    writeln!(f, "{label:<13}{}: {counts}; wait {}{depth}", waits.spans, quantiles(&waits.wait_ns, millis))
}

fn choices(f: &mut Lines<'_, '_>, label: &str, choices: &ChoicesSection) -> fmt::Result {
    if choices.spans == 0 {
        return Ok(());
    }
    writeln!(
        f,
        "{label:<13}{} ({}): {} made; margin of all {}; ties {}, near {}; chosen not best {}, regret {}",
        choices.spans,
        list(choices.by_pool.iter()),
        choices.made,
        quantiles(&choices.margin_all, |cost| format!("{cost:.3}")),
        choices.ties,
        choices.near_ties,
        choices.chosen_is_not_best,
        choices.regret_sum
    )?;
    if choices.filtered_total > 0 {
        writeln!(f, "             filtered {}: {}", choices.filtered_total, list(choices.filtered_by_part.iter()))?;
    }
    Ok(())
}

fn attempts(f: &mut Lines<'_, '_>, label: &str, attempts: &AttemptsSection) -> fmt::Result {
    if attempts.spans == 0 {
        return Ok(());
    }
    writeln!(f, "{label:<13}{}: by {}", attempts.spans, list(attempts.route.iter()))?;
    for row in &attempts.matrix {
        writeln!(f, "             {:<11} attempt {}  {:<20} {}", row.phase, row.attempt, row.result, row.count)?;
    }
    if !attempts.migrations.is_empty() {
        writeln!(
            f,
            "             migrated: {}; tokens carried {}",
            list(attempts.migrations.iter()),
            quantiles(&attempts.tokens_carried, u64::to_string)
        )?;
    }
    if attempts.worker_at_capacity > 0 {
        writeln!(f, "             worker at capacity {}", attempts.worker_at_capacity)?;
    }
    Ok(())
}
