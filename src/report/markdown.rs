//! The report as Markdown tables, for issues, chats and change logs.

use std::fmt::{Display, Write};

use super::Report;
use super::people::told;
use super::quantiles::Quantiles;
use super::sections::{AttemptsSection, ChoicesSection, WaitsSection};

/// Sessions listed.
const SESSIONS: usize = 50;

/// Text being written; writing to a string cannot fail.
struct Page(String);

impl Page {
    fn heading(&mut self, text: &str) {
        let _ = write!(self.0, "\n## {text}\n\n");
    }

    fn line(&mut self, text: impl Display) {
        let _ = writeln!(self.0, "{text}\n");
    }

    /// A table; nothing when it has no rows.
    fn table(&mut self, titles: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_none() {
            return;
        }
        let _ = writeln!(self.0, "| {} |", titles.join(" | "));
        // Names stand at the left, numbers at the right.
        let marks: Vec<&str> = (0..titles.len()).map(|at| if at == 0 { "---" } else { "---:" }).collect();
        let _ = writeln!(self.0, "| {} |", marks.join(" | "));
        for row in rows {
            let cells: Vec<String> = row.into_iter().map(|cell| escaped(&cell)).collect();
            let _ = writeln!(self.0, "| {} |", cells.join(" | "));
        }
        self.0.push('\n');
    }
}

/// A text that ends no cell and begins no markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Of a name after it, some renderers make a person to be told.
        if c == '@' {
            out.push_str("&#64;");
            continue;
        }
        if matches!(c, '|' | '`' | '*' | '_' | '<' | '[' | '\\') {
            out.push('\\');
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

fn millis(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

fn cost(cost: f64) -> String {
    format!("{cost:.3}")
}

/// n, p50, p90, p99, max.
fn quantiles<T: Copy>(values: &Quantiles<T>, show: impl Fn(T) -> String) -> Vec<String> {
    let mut cells = vec![values.n.to_string()];
    cells.extend([values.p50, values.p90, values.p99, values.max].map(|value| value.map_or("–".into(), &show)));
    cells
}

const QUANTILES: [&str; 6] = ["", "n", "p50", "p90", "p99", "max"];

fn row(name: impl ToString, cells: Vec<String>) -> Vec<String> {
    let mut row = vec![name.to_string()];
    row.extend(cells);
    row
}

fn counts<'a, K: ToString + 'a>(map: impl IntoIterator<Item = (K, &'a u64)>) -> Vec<Vec<String>> {
    map.into_iter().map(|(key, count)| vec![key.to_string(), count.to_string()]).collect()
}

fn mean(value: Option<f64>) -> String {
    value.map_or("–".into(), cost)
}

impl Report {
    /// The report as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut page = Page("# reqtop report\n\n".to_owned());
        if let Some(filter) = &self.filter {
            page.line(format_args!(
                "Filter: `` {filter} `` (of requests; spans, traces, records and account are of everything)"
            ));
        }
        if let Some(window) = &self.window {
            page.line(format_args!("Window: the last {:.1} s", window.length_ns as f64 / 1e9));
        }
        let requests = &self.requests;
        page.heading("Requests");
        page.line(format_args!(
            "{} requests: {} in flight, {} without a root, {} with more than one attempt.",
            requests.total, requests.in_flight, requests.without_root, requests.with_more_than_one_attempt
        ));
        page.table(&["outcome", "requests"], counts(&requests.by_outcome));
        page.table(&["marked", "requests"], counts(&requests.by_mark));
        let latency = &self.latency;
        let times = [
            ("total, with a root", &latency.root_duration_ns),
            ("total of successes", &latency.root_duration_ns_success),
            ("TTFT, with a root", &latency.http_ttft_ns),
            ("TTFT by records, with a root", &latency.record_ttft_ns),
        ];
        page.table(&QUANTILES, times.into_iter().map(|(name, values)| row(name, quantiles(values, millis))));
        self.queue(&mut page);
        self.selection(&mut page);
        self.dispatch(&mut page);
        self.streaming(&mut page);
        self.people(&mut page);
        page.heading("Input");
        page.line(format_args!(
            "{} spans in {} traces ({} duplicate, {} rejected, {} evicted, {} shed, {} with a parent that never came); {} records \
             ({} duplicate, {} bad); {} files, {} bad lines.",
            self.spans.total,
            self.traces.total,
            self.spans.duplicates,
            self.spans.rejected,
            self.spans.evicted,
            self.spans.shed,
            self.spans.orphans,
            self.records.total,
            self.records.duplicates,
            self.records.bad,
            self.input.files,
            self.input.bad_lines,
        ));
        for (what, account) in self.accounts() {
            page.line(format_args!("Account of {what}: {account}."));
        }
        page.line(format_args!(
            "Requests of senders: {} turned away, {} answered with busy.",
            self.input.requests_refused, self.input.requests_busy
        ));
        page.0
    }

    fn queue(&self, page: &mut Page) {
        let queue = &self.queue;
        page.heading("Queue");
        const WAITS: [&str; 10] = ["", "n", "deferred", "rejected", "cancelled", "depth", "p50", "p90", "p99", "max"];
        let waits = |name: &str, of: &WaitsSection| {
            let mut cells = vec![name.to_owned(), of.spans.to_string()];
            let said = |count: Option<u64>| count.map_or("not recorded".into(), |count| count.to_string());
            cells.extend([of.deferred, of.rejected, of.cancelled].map(said));
            cells.push(of.max_depth.map_or("–".into(), |depth| depth.to_string()));
            cells.extend(quantiles(&of.wait_ns, millis).into_iter().skip(1));
            cells
        };
        let mut rows = vec![waits("all", &queue.recorded)];
        rows.extend(queue.per_class.iter().map(|(class, of)| waits(&format!("class {class}"), of)));
        rows.extend(queue.per_phase.iter().map(|(phase, of)| waits(&format!("pool {phase}"), of)));
        rows.push(waits("inferred (~)", &queue.inferred));
        rows.retain(|row| row[1] != "0");
        page.table(&WAITS, rows);
        let reasons = queue.wait_ns_by_reason.iter().map(|(reason, waits)| row(reason, quantiles(waits, millis)));
        page.table(&["deferred by", "n", "p50", "p90", "p99", "max"], reasons);
        page.table(&["rejected by", "n"], counts(&queue.rejected_by_reason));
    }

    fn selection(&self, page: &mut Page) {
        page.heading("Selection");
        let both = [("spans", &self.selection.recorded), ("records (ʳ)", &self.selection.from_records)];
        let of = |(name, of): (&str, &ChoicesSection)| {
            let counts = [of.spans, of.made, of.single_candidate, of.ties, of.near_ties, of.chosen_is_not_best];
            row(name, counts.map(|count| count.to_string()).into_iter().chain([cost(of.regret_sum)]).collect())
        };
        let there = || both.into_iter().filter(|(_, of)| of.spans > 0);
        let titles = ["from", "n", "made", "one candidate", "ties", "near ties", "not the best", "regret in all"];
        page.table(&titles, there().map(of));
        let costs = there().flat_map(|(name, of)| {
            [
                row(
                    format!("margin of several candidates, {name}"),
                    quantiles(&of.margin_two_or_more_candidates, cost),
                ),
                row(format!("regret, {name}"), quantiles(&of.regret, cost)),
            ]
        });
        page.table(&["cost", "n", "p50", "p90", "p99", "max"], costs);
        let parts = self.selection.recorded.filtered_by_part.iter().map(|(part, ranks)| {
            let decisions = self.selection.recorded.decisions_filtered_by_part.get(part).copied().unwrap_or(0);
            vec![(*part).to_owned(), decisions.to_string(), ranks.to_string()]
        });
        page.table(&["filtered", "decisions", "ranks"], parts.filter(|row| row[2] != "0"));
    }

    fn dispatch(&self, page: &mut Page) {
        page.heading("Dispatch");
        let rows = |note: &str, of: &AttemptsSection| {
            let row = |row: &super::sections::AttemptsRow| {
                vec![format!("{}{note}", row.phase), row.result.clone(), row.attempt.to_string(), row.count.to_string()]
            };
            of.matrix.iter().map(row).collect::<Vec<_>>()
        };
        let (spans, routes) = (&self.dispatch.recorded, &self.dispatch.inferred);
        page.table(&["phase", "result", "attempt", "n"], rows("", spans).into_iter().chain(rows(" ~", routes)));
        page.table(&["migrated because of", "n"], counts(spans.migrations.iter().chain(&routes.migrations)));
        page.table(&["admission", "n"], counts(&self.dispatch.admission.by_result));
        let bytes = |bytes: u64| format!("{bytes} B");
        let values = [
            row("payload", quantiles(&self.dispatch.admission.payload_bytes, bytes)),
            row("tokens carried", quantiles(&spans.tokens_carried, |tokens| tokens.to_string())),
            row("choice to acceptance", quantiles(&spans.acceptance_ns, millis)),
        ];
        page.table(&QUANTILES, values.into_iter().filter(|row| row[1] != "0"));
        let refused = spans.worker_at_capacity + routes.worker_at_capacity;
        if refused > 0 {
            page.line(format_args!("{refused} attempts were admitted, then refused: the worker was at capacity."));
        }
    }

    fn streaming(&self, page: &mut Page) {
        let streaming = &self.streaming;
        page.heading("Streaming");
        page.line(format_args!(
            "{} streams, {} abandoned, {} open ({} not known); {} events.",
            streaming.spans, streaming.abandoned, streaming.open, streaming.may_be_open, streaming.events_total
        ));
        page.table(&["stream ended", "n"], counts(&streaming.outcomes));
        let roots = streaming.roots_of_abandoned.iter().filter(|(_, count)| **count > 0);
        page.table(&["root of abandoned streams", "n"], counts(roots));
        let number = |number: u64| number.to_string();
        let values = [
            row("events at leaving", quantiles(&streaming.events_at_leaving, number)),
            row("age at leaving", quantiles(&streaming.age_at_leaving_ns, millis)),
            row("TTFT of streams", quantiles(&streaming.ttft_ns, millis)),
            row("TTFT of streams told by records (ʳ)", quantiles(&streaming.ttft_ns_from_records, millis)),
            row("duration", quantiles(&streaming.duration_ns, millis)),
            row("events a second", quantiles(&streaming.events_per_second, number)),
        ];
        page.table(&QUANTILES, values.into_iter().filter(|row| row[1] != "0"));
    }

    fn people(&self, page: &mut Page) {
        page.heading("Workers");
        let titles = [
            "worker",
            "in flight",
            "requests",
            "selected",
            "share",
            "margin won",
            "passed over",
            "regret lost",
            "attempts",
            "failed",
            "lost",
            "TTFT p50",
            "",
        ];
        let ranks = self.ranks.iter().map(|of| {
            let rank = of.rank.map_or_else(String::new, |rank| format!(":{rank}"));
            vec![
                format!("{}{rank}", of.worker),
                told(of.in_flight),
                of.requests.to_string(),
                told(of.chosen()),
                of.share.map_or("–".into(), |share| format!("{:.1} %", share * 100.0)),
                mean(of.margin_won_mean),
                of.passed_over.to_string(),
                mean(of.regret_lost_mean),
                told(of.attempts),
                told(of.failed),
                told(of.lost),
                of.ttft_ns.p50.map_or("–".into(), millis),
                if of.vanished { "vanished".into() } else { String::new() },
            ]
        });
        page.table(&titles, ranks);
        let sessions = &self.sessions;
        page.heading("Sessions");
        page.line(format_args!(
            "{} sessions, {} turns; affinity kept {}, broken {}.",
            sessions.total, sessions.turns, sessions.affinity_kept, sessions.affinity_broken
        ));
        let titles = ["session", "turns", "outcomes", "tokens in", "tokens out", "cached", "affinity kept", "broken"];
        let rows = sessions.sessions.iter().take(SESSIONS).map(|of| {
            let outcomes: Vec<String> =
                of.outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
            let [input, output] = of.tokens();
            vec![
                of.session.clone(),
                of.turns.to_string(),
                outcomes.join(", "),
                input,
                output,
                of.cached_share.map_or("–".into(), |share| format!("{:.0} %", share * 100.0)),
                of.affinity_kept.to_string(),
                of.affinity_broken.to_string(),
            ]
        });
        page.table(&titles, rows);
    }
}
