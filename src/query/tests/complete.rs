use crate::query::{Vocabulary, complete};

struct Seen;

impl Vocabulary for Seen {
    fn values(&self, field: &str) -> Vec<String> {
        let seen: &[&str] = match field {
            "worker" => &["7587890:0", "7f3a:0"],
            "session" => &["s-1", "a \"b\""],
            "check" => &["queue.reason", "root.unique"],
            "queue.reason" => &["class_backlog"],
            _ => &[],
        };
        seen.iter().map(|value| (*value).to_owned()).collect()
    }

    fn attributes(&self) -> Vec<String> {
        vec!["odd key".into(), "color".into()]
    }

    fn attribute_values(&self, key: &str) -> Vec<String> {
        if key == "color" { vec!["red".into()] } else { Vec::new() }
    }
}

/// The texts after taking the first few offers; `|` is the cursor.
fn taken(text: &str, count: usize) -> Vec<String> {
    let cursor = text.find('|').unwrap();
    let text = text.replacen('|', "", 1);
    let offers = complete(&text, cursor, &Seen);
    let take = |offer: &crate::query::Completion| {
        let mut taken = text.clone();
        taken.replace_range(offer.replace.clone(), &offer.text);
        taken
    };
    offers.iter().take(count).map(take).collect()
}

#[test]
fn names_operators_and_values_are_offered() {
    for (text, offers) in [
        ("|", &["request:", "x_request_id:"][..]),
        ("outc|", &["outcome:"]),
        ("a -(out|", &["a -(outcome:"]),
        ("out|come:failed", &["outcome:failed"]),
        ("reas|", &["queue.reason:"]),
        ("leg(pha|", &["leg(phase:"]),
        ("margin|", &["margin:", "margin>", "margin>="]),
        ("outcome|", &["outcome:", "outcome!="]),
        ("outcome:|", &["outcome:success", "outcome:cancelled"]),
        ("outcome:in|", &["outcome:\"in flight\""]),
        ("outcome:(failed,ca|", &["outcome:(failed,cancelled"]),
        ("outcome:failed,ca|", &["outcome:failed,cancelled"]),
        ("outcome!=ca|nc x", &["outcome!=cancelled x"]),
        ("worker:7|", &["worker:7587890:0", "worker:7f3a:0"]),
        ("session:a|", &["session:\"a \\\"b\\\"\""]),
        ("session:\"a |\" x", &["session:\"a \\\"b\\\"\" x"]),
        ("check:|", &["check:violated", "check:unknown", "check:holds", "check:queue.reason"]),
        ("reason:class|", &["reason:class_backlog"]),
        ("queue.wait>100|", &["queue.wait>100ms", "queue.wait>100s"]),
        ("admission.bytes>4|", &["admission.bytes>4B", "admission.bytes>4KiB"]),
        ("deferred:|", &["deferred:true", "deferred:false"]),
        ("odd|", &["\"odd key\":"]),
        ("color:|", &["color:red"]),
        ("route.over|", &["route.overlap:"]),
        ("\"free |", &[]),
        ("[|", &[]),
    ] {
        let got = taken(text, offers.len().max(1));
        assert_eq!(got, offers, "{text}");
    }
}

#[test]
fn every_offer_has_a_place_in_the_text() {
    let text = "é outcome:(a,\"b\" or -queue.wait > 5ms \"x y";
    for cursor in 0..=text.len() + 2 {
        for offer in complete(text, cursor, &Seen) {
            assert!(text.get(offer.replace.clone()).is_some(), "{cursor}: {offer:?}");
        }
    }
}
