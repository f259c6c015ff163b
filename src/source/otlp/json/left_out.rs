//! What came with a recorded request, or before it, and is not in it: in a key of our own behind the request, which OTLP's
//! readers must ignore. Without it a recording would miss what its original knew to be lost. Owns: that key, both ways. Keeps
//! out: when something is left out (`write`), the rest of the line (`print`).

use serde::{Deserialize, Serialize};

use crate::lifecycle::batch::{MOST_TORN, Tally};
use crate::lifecycle::ids::TraceId;

/// The key, as it stands behind others.
const KEY: &str = ",\"reqtopLeftOut\":";

/// What is not in a request that came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// What its source refused of it, or only counted.
    pub tally: Tally,
    /// Exports before it that could not be read, did not come whole, or are not recorded.
    pub exports: u64,
    /// Whether what came before it stands in another file, whose last request arrived when this says.
    pub continues: bool,
}

impl LeftOut {
    /// What a source refused of a request, or only counted; `None` for nothing.
    pub fn of(tally: &Tally) -> Option<Box<Self>> {
        (*tally != Tally::default()).then(|| Box::new(Self { tally: tally.clone(), ..Self::default() }))
    }

    /// Bytes it takes in memory.
    pub fn size(&self) -> usize {
        let Tally { torn, refusal, .. } = &self.tally;
        size_of::<Self>() + size_of_val(&torn[..]) + refusal.as_ref().map_or(0, String::len)
    }
}

/// The form it is written in; what is 0 is not written.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    continues: bool,
    #[serde(skip_serializing_if = "is_zero")]
    exports: u32,
    #[serde(skip_serializing_if = "is_zero")]
    spans: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    traces: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    records: u32,
    #[serde(skip_serializing_if = "is_zero")]
    parts: u32,
    #[serde(skip_serializing_if = "is_zero")]
    misplaced: u32,
    #[serde(skip_serializing_if = "is_zero")]
    texts: u32,
    #[serde(skip_serializing_if = "is_zero")]
    snake_case: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Adds to the request printed from `start` on what was left out of it.
pub fn put(out: &mut Vec<u8>, start: usize, left_out: &LeftOut) {
    let LeftOut { tally, exports, continues } = left_out;
    // Points of metrics and logs of others are counted anew whenever the request is read.
    let Tally { refused_spans, torn, refusal, other_logs: _, metric_points: _, .. } = tally;
    let Tally { bad_records, passed_over, misplaced, bad_texts, snake_case, .. } = tally;
    let count = |count: &u64| u32::try_from(*count).unwrap_or(u32::MAX);
    let written = Written {
        continues: *continues,
        exports: count(exports),
        spans: count(refused_spans),
        traces: torn.iter().map(TraceId::to_string).collect(),
        records: count(bad_records),
        parts: count(passed_over),
        misplaced: count(misplaced),
        texts: count(bad_texts),
        snake_case: count(snake_case),
        reason: refusal.clone(),
    };
    if out.len() == start + 2 {
        // A request of nothing but what is not in it.
        out.truncate(start);
        out.extend_from_slice(br#"{"resourceSpans":[]}"#);
    }
    if out.len() > start && out.pop() == Some(b'}') {
        out.extend_from_slice(KEY.as_bytes());
        // Memory takes what it is given.
        let _ = serde_json::to_writer(&mut *out, &written);
        out.push(b'}');
    }
}

/// What was left out of a recorded request, as far as its line says.
pub fn read(line: &[u8]) -> Option<LeftOut> {
    // Within texts no quotation mark stands without a backslash before it.
    let text = &line[memchr::memmem::rfind(line, KEY.as_bytes())? + KEY.len()..];
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Written>();
    let Written { continues, exports, spans, traces, records, parts, misplaced, texts, snake_case, reason } =
        values.next()?.ok()?;
    let torn = traces.iter().filter_map(|id| TraceId::from_hex(id)).take(MOST_TORN.min(spans as usize)).collect();
    let tally = Tally {
        refused_spans: spans.into(),
        torn,
        refusal: reason,
        bad_records: records.into(),
        passed_over: parts.into(),
        misplaced: misplaced.into(),
        bad_texts: texts.into(),
        snake_case: snake_case.into(),
        ..Tally::default()
    };
    Some(LeftOut { tally, exports: exports.into(), continues })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally() -> Tally {
        Tally {
            refused_spans: 2,
            torn: vec![TraceId([7; 16])],
            refusal: Some("span \"a\\b\": spanId: expected hex digits, found ,\"reqtopLeftOut\":{".into()),
            bad_records: 3,
            passed_over: 4,
            misplaced: 5,
            bad_texts: 6,
            snake_case: 7,
            ..Tally::default()
        }
    }

    #[test]
    fn what_is_put_is_read_back() {
        let whole = LeftOut { tally: tally(), exports: 9, continues: true };
        for (request, becomes) in
            [("{\"resourceLogs\":[1]}", "{\"resourceLogs\":[1],"), ("{}", "{\"resourceSpans\":[],")]
        {
            let mut out = format!("before{request}").into_bytes();
            put(&mut out, 6, &whole);
            let text = std::str::from_utf8(&out[6..]).unwrap();
            assert!(text.starts_with(becomes) && serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
            assert!(super::super::stamp(&mut out, 6, 7));
            assert_eq!((read(&out[6..]), super::super::arrived(&out)), (Some(whole.clone()), Some(7)));
        }
        let mut out = b"{\"resourceSpans\":[]}".to_vec();
        put(&mut out, 0, &LeftOut::default());
        assert_eq!(read(&out), Some(LeftOut::default()));
        assert_eq!((LeftOut::of(&Tally::default()), LeftOut::of(&tally()).unwrap().tally), (None, tally()));
        assert_eq!(read(b"{\"resourceSpans\":[]}"), None);
    }

    /// A line may be anybody's.
    #[test]
    fn what_others_write_is_bounded() {
        let line = |written: &str| read(format!("{{\"resourceSpans\":[]{KEY}{written},\"x\":1}}").as_bytes());
        assert_eq!(line("{}"), Some(LeftOut::default()));
        assert_eq!(line("{\"spans\":-1}"), None);
        assert_eq!(line("{\"spans\":18446744073709551615}"), None);
        let ids = vec!["\"07070707070707070707070707070707\""; 999].join(",");
        let many = line(&format!("{{\"spans\":999,\"traces\":[{ids},\"x\"]}}")).unwrap();
        assert_eq!((many.tally.refused_spans, many.tally.torn.len()), (999, MOST_TORN));
        let one = line(&format!("{{\"spans\":1,\"traces\":[{ids}]}}")).unwrap();
        assert_eq!(one.tally.torn.len(), 1);
    }
}
