//! Faults of the root, of identities, of the tree, of attributes, modes, times and endpoints.

use crate::demo::emit::span::{flag, number, text};
use crate::demo::ledger::Witness;
use crate::lifecycle::stage::{Mode, Outcome, Stage};

use super::{Effect, Kind, another, only_if, remove, set, text_of};

const TERMINAL: &str = "dynamo.request.terminal.timestamp_unix_ns";

pub(super) static KINDS: [Kind; 23] = [
    Kind::span("second-root", "the root is written twice, with two span ids", &["root.unique"], |span, scene| {
        only_if!(scene.stage == Stage::Root);
        let mut second = span.clone();
        second.span_id = another(&span.span_id);
        Effect::And(Box::new(second))
    })
    .also(&["tree.span-count"]),
    Kind::span(
        "wrong-parent",
        "the root names a parent that is not its http-request",
        &["root.parent"],
        |span, scene| {
            only_if!(scene.stage == Stage::Root);
            span.parent_span_id = another(&span.parent_span_id);
            Effect::Done
        },
    ),
    Kind::span("early-root", "the root starts before its http-request", &["root.start"], |span, scene| {
        only_if!(scene.stage == Stage::Root);
        span.start_time_unix_nano -= 2_000_000;
        Effect::Done
    }),
    Kind::span("wrong-error", "terminal.error contradicts the outcome", &["root.outcome"], |span, scene| {
        only_if!(scene.stage == Stage::Root);
        set(span, flag("dynamo.request.terminal.error", scene.is_root_of(Outcome::Success)))
    }),
    Kind::span("unknown-end", "a unary success ends with the outcome unknown", &["root.unknown"], |span, scene| {
        only_if!(scene.is_root_of(Outcome::Success) && !scene.truth.streaming);
        set(span, flag("dynamo.request.terminal.error", true));
        set(span, text("dynamo.request.terminal.outcome", Outcome::Unknown.word()))
    }),
    Kind::span(
        "late-terminal",
        "the terminal moment lies a second after the root",
        &["root.terminal-time"],
        |span, scene| {
            only_if!(scene.stage == Stage::Root);
            let after_ns = span.end_time_unix_nano + 1_000_000_000;
            set(span, number(TERMINAL, after_ns))
        },
    ),
    Kind::span("late-first-token", "the first token comes after the request's end", &["root.ttft"], |span, scene| {
        only_if!(matches!(scene.witness, Witness::Http { ttft_ms: Some(_), tokens: Some((_, 1..)) }));
        let length_ms = (span.end_time_unix_nano - span.start_time_unix_nano) as f64 / 1e6;
        set(span, text("ttft_ms", format!("{:.2}", length_ms + 10.0)))
    }),
    Kind::span(
        "half-identity",
        "a preprocessing span's identity is not complete",
        &["identity.complete"],
        |span, scene| {
            only_if!(scene.stage == Stage::Preprocessing);
            set(span, text("dynamo.lifecycle.identity.state", "partial"))
        },
    ),
    Kind::span(
        "foreign-session",
        "a session by fallback is not the request's id",
        &["identity.session"],
        |span, scene| {
            only_if!(matches!(scene.witness, Witness::Root { session: None, .. }));
            set(span, text("dynamo.session.id", "some-other-session"))
        },
    ),
    Kind::span(
        "foreign-operation",
        "a selection carries another operation id",
        &["identity.operation"],
        |span, scene| {
            only_if!(scene.stage == Stage::Selection);
            set(span, text("dynamo.operation.id", "some-other-operation"))
        },
    ),
    Kind::span("lost-root", "the root never comes", &["tree.rooted"], |_, scene| {
        only_if!(scene.stage == Stage::Root && scene.before.lifecycle > 0);
        Effect::Untold
    })
    .also(&["record.present"]),
    Kind::span("lone-dispatch", "a dispatch has no parent", &["tree.rooted"], |span, scene| {
        only_if!(scene.stage == Stage::Dispatch);
        span.parent_span_id.clear();
        Effect::Done
    }),
    Kind::span(
        "other-worker",
        "a route goes to another worker than its dispatch",
        &["tree.route-nesting"],
        |span, scene| {
            only_if!(scene.stage == Stage::Route);
            super::add(span, "worker_id", 1)
        },
    ),
    Kind::span("wrong-component", "preprocessing says it is the router's", &["tree.component"], |span, scene| {
        only_if!(scene.stage == Stage::Preprocessing);
        set(span, text("dynamo.component", "router"))
    }),
    Kind::span(
        "old-worker",
        "a worker writes request.dispatch too, as the base layout does",
        &["tree.layouts"],
        |span, scene| {
            only_if!(scene.stage == Stage::Operation);
            let mut dispatch = span.clone();
            dispatch.name = "request.dispatch".to_owned();
            dispatch.parent_span_id.clone_from(&span.span_id);
            dispatch.span_id = another(&span.span_id);
            dispatch.start_time_unix_nano += 1_000;
            dispatch.end_time_unix_nano -= 1_000;
            Effect::And(Box::new(dispatch))
        },
    )
    .also(&["tree.span-count"]),
    Kind::span(
        "lost-preprocessing",
        "a success comes without its preprocessing span",
        &["tree.span-count"],
        |_, scene| {
            if scene.stage == Stage::Preprocessing {
                return Effect::BegunUntold;
            }
            only_if!(scene.is_root_of(Outcome::Success) && scene.before.begun && scene.truth.attempts == 1);
            Effect::Done
        },
    ),
    Kind::span("odd-schema", "an admission has another detail schema", &["attr.schema"], |span, scene| {
        only_if!(scene.stage == Stage::Admission);
        set(span, text("dynamo.lifecycle.detail_schema", "admission.v0"))
    }),
    Kind::span("duplicated-key", "a queue span carries a key twice", &["attr.repeat"], |span, scene| {
        only_if!(scene.stage == Stage::Queue);
        let class = text_of(span, "dynamo.router.queue.class").unwrap_or_default().to_owned();
        span.attributes.push(text("dynamo.router.queue.class", class));
        Effect::Done
    }),
    Kind::span("lost-attributes", "a selection lost attributes at its sender", &["attr.limit"], |span, scene| {
        only_if!(scene.stage == Stage::Selection);
        span.dropped_attributes_count = 3;
        Effect::Done
    }),
    Kind::span("core-with-candidates", "core mode carries the candidates", &["mode.core"], |span, scene| {
        only_if!(scene.stage == Stage::Selection);
        set(span, text("dynamo.router.candidates.top_k", "[]"))
    })
    .only(Mode::Core),
    Kind::span(
        "no-stage-outcome",
        "preprocessing does not say how it ended",
        &["mode.investigation"],
        |span, scene| {
            only_if!(scene.stage == Stage::Preprocessing);
            remove(span, "dynamo.stage.outcome")
        },
    )
    .only(Mode::Investigation),
    Kind::span("mixed-modes", "a queue span says the other mode", &["mode.mixed"], |span, scene| {
        only_if!(scene.stage == Stage::Queue);
        let core = text_of(span, "dynamo.lifecycle.mode") == Some(Mode::Core.word());
        let other = if core { Mode::Investigation } else { Mode::Core };
        set(span, text("dynamo.lifecycle.mode", other.word()))
    }),
    Kind::span(
        "rootless-endpoint",
        "completions, which make no root, emit lifecycle spans",
        &["scope.endpoints"],
        |span, scene| {
            if scene.stage == Stage::Root && scene.before.lifecycle > 0 {
                return Effect::BegunUntold;
            }
            only_if!(scene.stage == Stage::Http && scene.before.begun);
            set(span, text("uri", "/v1/completions"))
        },
    ),
];
