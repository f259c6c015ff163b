//! What stories say.

use super::*;
use crate::lifecycle::facts::Queue;
use crate::lifecycle::request::RequestKey;
use crate::view::data::Data;
use crate::view::fixture::{Fixture, NOW, cluster, def};

fn told(fixture: &Fixture, key: u64) -> String {
    let lines = story(&fixture.request(RequestKey(key)).unwrap(), NOW);
    let line = |line: &Vec<Piece>| line.iter().map(|piece| piece.text.as_str()).collect::<String>();
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_life_is_told_from_its_evidence() {
    let mut fixture = cluster();
    let lost = &mut fixture.facts_mut(RequestKey(5)).legs[1].dispatch;
    lost.as_mut().unwrap().attempt_outcome = "worker_disconnected".into();
    let moved = fixture.facts_mut(RequestKey(5)).legs[2].dispatch.as_mut().unwrap();
    (moved.migration_reason, moved.tokens_carried) = ("disconnected".into(), Some(61));
    insta::assert_snapshot!(told(&fixture, 5));
}

#[test]
fn a_phase_that_no_span_says_is_marked() {
    let mut fixture = cluster();
    fixture.facts_mut(RequestKey(5)).legs[0].phase_origin = Origin::Inferred;
    assert!(told(&fixture, 5).contains("~Prefill: "), "{}", told(&fixture, 5));
}

/// A record of a choice does not say which candidate it was: the span does, later.
#[test]
fn a_choice_known_by_its_record_alone_is_one() {
    let mut fixture = cluster();
    let selection = fixture.facts_mut(RequestKey(5)).legs[0].selection.as_mut().unwrap();
    (selection.origin, selection.selected) = (Origin::Record, None);
    let story = told(&fixture, 5);
    assert!(story.contains("one of its record's candidates") && !story.contains("nothing was chosen"), "{story}");
}

#[test]
fn the_four_kinds_of_nothing_are_said_as_what_they_are() {
    let fixture = cluster();
    assert!(told(&fixture, 1).contains("choice not recorded by the base layout"), "{}", told(&fixture, 1));
    assert!(told(&fixture, 2).contains("its end is missing although expected"), "{}", told(&fixture, 2));
    assert!(told(&fixture, 3).contains("events not recorded in core mode"), "{}", told(&fixture, 3));
    assert!(told(&fixture, 4).contains("then rejected by request limit; nothing was chosen"), "{}", told(&fixture, 4));
    assert!(told(&fixture, 8).contains("its root has not yet arrived"), "{}", told(&fixture, 8));
    assert!(told(&fixture, 6).contains("in a tie"), "{}", told(&fixture, 6));
    // What records alone tell of lacks what spans would tell; nothing is missing that was expected.
    let mut fixture = fixture;
    let facts = fixture.facts_mut(RequestKey(6));
    (facts.spans, facts.has_root, facts.outcome) = (0, false, None);
    for leg in &mut facts.legs {
        (leg.queue, leg.dispatch) = (None, None);
        leg.selection.as_mut().unwrap().origin = Origin::Record;
    }
    let story = told(&fixture, 6);
    assert!(story.contains("It ended without a root: a span, of which none has come"), "{story}");
    assert!(!story.contains("missing"), "{story}");
}

/// A request of the fixture's rejected one's kind whose wait ended so.
fn after_waiting(change: impl FnOnce(&mut Facts, &mut Queue)) -> String {
    let mut fixture = cluster();
    let facts = fixture.facts_mut(RequestKey(4));
    let mut queue = facts.legs[0].queue.take().unwrap();
    change(facts, &mut queue);
    facts.legs[0].queue = Some(queue);
    told(&fixture, 4)
}

/// No layout needs to say how the wait ended for what cannot follow not to be missed.
#[test]
fn after_a_refusal_nothing_is_missing() {
    let story = after_waiting(|facts, queue| {
        (facts.layout, facts.mode) = (Layout::Base, Mode::Core);
        (queue.origin, queue.deferred) = (Origin::Inferred, None);
        (queue.outcome, queue.reason) = Default::default();
    });
    assert!(story.contains("; nothing was chosen or sent.") && !story.contains("missing"), "{story}");
}

/// Whether it was served is as unknown as what it was served with.
#[test]
fn a_wait_that_a_layout_does_not_end_may_have_been_the_last() {
    for outcome in [Outcome::Cancelled, Outcome::Failed] {
        let story = after_waiting(|facts, queue| {
            (facts.layout, facts.mode, facts.outcome) = (Layout::Base, Mode::Core, Some(outcome));
            (queue.origin, queue.deferred) = (Origin::Inferred, None);
            (queue.outcome, queue.reason) = Default::default();
        });
        assert!(story.contains("the hand-over not recorded by the base layout"), "{story}");
    }
}

/// The producer's word for a wait that expired is not known (spec lifecycle-spans §3): any but the ways to a worker.
#[test]
fn a_wait_that_ended_in_any_other_word_ended_so() {
    let story = after_waiting(|facts, queue| {
        facts.outcome = Some(Outcome::TimedOut);
        (queue.outcome, queue.reason, queue.deferred) = ("ran_out".into(), "deadline".into(), Some(true));
    });
    assert!(story.contains("then ran out by deadline; nothing was chosen or sent."), "{story}");
    assert!(!story.contains("deferred") && !story.contains("missing"), "{story}");
    let story = after_waiting(|facts, queue| {
        facts.outcome = Some(Outcome::Failed);
        (queue.outcome, queue.reason) = ("dequeued".into(), Default::default());
    });
    assert!(story.contains("choice missing although expected; the hand-over missing"), "{story}");
}

/// A choice that chose nobody has nobody to be sent to.
#[test]
fn what_was_not_chosen_is_not_sent() {
    let mut fixture = cluster();
    let leg = &mut fixture.facts_mut(RequestKey(6)).legs[1];
    leg.selection.as_mut().unwrap().selected = None;
    leg.dispatch = None;
    assert!(told(&fixture, 6).contains("nothing was chosen; nothing was sent."), "{}", told(&fixture, 6));
}

/// Where the lifecycle is traced at all, that is no cause.
#[test]
fn a_chat_without_any_lifecycle_span_may_not_be_traced() {
    let untraced = "It ended without a root: the lifecycle is not traced (DYN_LIFECYCLE_TRACE_ENABLED), sampling";
    let mut fixture = cluster();
    for (endpoint, is_told) in [("/v1/chat/completions", true), ("/v1/completions", false)] {
        let facts = fixture.facts_mut(RequestKey(6));
        (facts.has_root, facts.outcome, facts.endpoint) = (false, None, endpoint.into());
        assert_eq!(told(&fixture, 6).contains(untraced), is_told, "{}", told(&fixture, 6));
    }
    fixture.facts_mut(RequestKey(6)).endpoint = "/v1/chat/completions".into();
    fixture.span(RequestKey(6), def(1, 0, "request.preprocessing", 0.0, 1.0));
    let story = told(&fixture, 6);
    assert!(story.contains("without a root: sampling or a refusal"), "{story}");
}
