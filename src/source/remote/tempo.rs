//! Grafana Tempo's HTTP API: a TraceQL search gives trace ids, each trace is fetched as OTLP protobuf.
//!
//! Written from its documentation (`/api/search`, `/api/v2/traces/ID`, and `/api/traces/ID` of older versions). Owns: the
//! TraceQL, the parameters, the envelopes. Keeps out: HTTP (`client`).

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use tokio::task::JoinSet;

use super::client::{Client, Failure, Reply, clean};
use super::{Ask, Kind, Lack, Page, Search};
use crate::lifecycle::ids::TraceId;
use crate::lifecycle::must::{Must, Name};
use crate::source::otlp::wire;

const SEARCH: &str = "/api/search";
const PROTOBUF: &str = "application/protobuf";
/// Traces fetched side by side.
const ABREAST: usize = 8;
/// After this a trace that could not be given is asked for once more.
const PAUSE: Duration = Duration::from_millis(250);
/// Names by which a trace is known to be a request's: the top spans, and the first ones sent while it runs.
const NAMES: [&str; 8] = [
    "http-request",
    "request.lifecycle",
    "completions",
    "completions_single",
    "request.preprocessing",
    "kv_router.schedule",
    "router.queue",
    "request.dispatch",
];
/// How many of them stand above all others of a request.
const TOPS: usize = 4;

/// Which way a trace is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    fn path(self, id: TraceId) -> String {
        match self {
            Self::V1 => format!("/api/traces/{id}"),
            Self::V2 => format!("/api/v2/traces/{id}"),
        }
    }
}

/// The API.
pub struct Tempo {
    search: Search,
    version: Version,
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    traces: Vec<Trace>,
}

#[derive(Deserialize)]
struct Trace {
    #[serde(rename = "traceID", alias = "traceId")]
    id: String,
}

impl Tempo {
    pub fn new(search: Search) -> Self {
        Self { search, version: Version::V2 }
    }

    /// Nothing to find out; asks once, so that a wrong address or query is told at once.
    pub async fn prepare(&mut self, client: &Client) -> Result<Option<String>, Failure> {
        loop {
            let query = traceql(&self.search, None);
            match found(client, &[("q", &query), ("limit", "1")]).await {
                // What is searched for beside what was asked for only makes it quicker.
                Err(Failure::Declined(_)) if !self.search.must.is_empty() => self.search.must.clear(),
                asked => return asked.map(|_| None),
            }
        }
    }

    /// The traces of a time, whole seconds of it.
    pub async fn page(&mut self, client: &Client, ask: Ask) -> Result<Page, Failure> {
        let query = traceql(&self.search, ask.longer_ns);
        let (start, end) = (ask.from_ns / 1_000_000_000, ask.to_ns.div_ceil(1_000_000_000));
        let (start, end, limit) = (start.to_string(), end.to_string(), ask.limit.to_string());
        let parameters = [("q", query.as_str()), ("start", &start), ("end", &end), ("limit", &limit), ("spss", "1")];
        let (ids, unreadable) = found(client, &parameters).await?;
        let mut page = Page { full: ids.len() + unreadable.len() >= ask.limit, ..Page::default() };
        if page.full && !ask.last {
            return Ok(page);
        }
        for id in unreadable {
            let words = format!("Tempo found a trace by {:?}, which is no id: it is left out", clean(id.as_bytes()));
            page.lacks.push(Lack::unknown(id.as_bytes(), words));
        }
        let mut refused = Vec::new();
        for some in ids.chunks(ABREAST) {
            let mut fetching = JoinSet::new();
            for id in some {
                let (client, version, id) = (client.clone(), self.version, *id);
                fetching.spawn(async move { (id, fetch(&client, version, id).await) });
            }
            while let Some(fetched) = fetching.join_next().await {
                let Ok((id, fetched)) = fetched else { continue };
                let given = match fetched {
                    Ok(Some(reply)) => {
                        take(id, reply, &mut page)?;
                        continue;
                    }
                    Ok(None) => self.trace(client, id).await,
                    Err(failure) => Err(failure),
                };
                match given {
                    Err(failure) if failure.of_one_trace().is_some() => refused.push((id, failure)),
                    given => page.add(id, given?),
                }
            }
        }
        // When it refuses them all it is not the trace that is to blame.
        let all = refused.len() > 1 && refused.len() == ids.len();
        for (id, failure) in refused {
            let again = match failure {
                Failure::Broken(_) if !all => {
                    tokio::time::sleep(PAUSE).await;
                    self.trace(client, id).await
                }
                failure => Err(failure),
            };
            match again {
                Err(failure) => match Lack::refused(Kind::Tempo, id, &failure) {
                    Some(lack) if !all => page.lacks.push(lack),
                    _ => return Err(failure),
                },
                Ok(given) => page.add(id, given),
            }
        }
        Ok(page)
    }

    /// All of one trace, by the newer way, or by the older one where that is not known; `None` when there is none.
    pub async fn trace(&mut self, client: &Client, id: TraceId) -> Result<Option<Page>, Failure> {
        let other = match self.version {
            Version::V1 => Version::V2,
            Version::V2 => Version::V1,
        };
        for version in [self.version, other] {
            if let Some(reply) = fetch(client, version, id).await? {
                self.version = version;
                let mut page = Page::default();
                take(id, reply, &mut page)?;
                return Ok(Some(page));
            }
        }
        Ok(None)
    }
}

/// The traces found, and the ids of those that cannot be read.
async fn found(client: &Client, parameters: &[(&str, &str)]) -> Result<(Vec<TraceId>, Vec<String>), Failure> {
    let reply = client.get(SEARCH, parameters, "application/json").await?;
    let Some(found) = reply.object::<Found>() else {
        return Err(Failure::WrongApi(reply.told(SEARCH)));
    };
    if reply.status == StatusCode::NOT_FOUND {
        return Err(Failure::WrongApi(reply.told(SEARCH)));
    }
    let (mut ids, mut unreadable) = (Vec::new(), Vec::new());
    for Trace { id } in found.traces {
        // Leading zeros are left out there.
        match TraceId::from_hex(&format!("{id:0>32}")) {
            Some(id) => ids.push(id),
            None => unreadable.push(id),
        }
    }
    Ok((ids, unreadable))
}

impl Page {
    /// Adds what was given of a trace that was found.
    fn add(&mut self, id: TraceId, given: Option<Self>) {
        match given {
            Some(given) => {
                self.requests.extend(given.requests);
                self.lacks.extend(given.lacks);
            }
            None => {
                let words = format!("Tempo found trace {id} and cannot give it: it is left out");
                self.lacks.push(Lack::of_trace(id, words));
            }
        }
    }
}

/// `None` for "not found", which an unknown path is, too.
async fn fetch(client: &Client, version: Version, id: TraceId) -> Result<Option<Reply>, Failure> {
    let reply = client.get(&version.path(id), &[], PROTOBUF).await?;
    Ok((reply.status == StatusCode::OK).then_some(reply))
}

/// Adds a trace to the page.
fn take(id: TraceId, reply: Reply, page: &mut Page) -> Result<(), Failure> {
    if reply.content_type != PROTOBUF {
        return Err(Failure::WrongApi(format!("{}, asked for {PROTOBUF}", reply.told("a trace"))));
    }
    let (trace, partial) = wire::unwrapped(&reply.body).map_err(Failure::WrongApi)?;
    if partial {
        let words = format!("Tempo gives only a part of trace {id}: it is larger than its limit");
        page.lacks.push(Lack::of_trace(id, words));
    }
    page.requests.extend(trace.into_iter().map(|part| reply.body.slice_ref(part)));
    Ok(())
}

/// The search as TraceQL.
fn traceql(search: &Search, longer_ns: Option<u64>) -> String {
    if let Some(query) = &search.traceql {
        return match longer_ns {
            Some(ns) => format!("{query} && {{ duration >= {ns}ns }}"),
            None => query.clone(),
        };
    }
    let any = |terms: Vec<String>| match &terms[..] {
        [one] => one.clone(),
        _ => format!("({})", terms.join(" || ")),
    };
    let mut terms = Vec::new();
    if !search.services.is_empty() {
        terms.push(any(search
            .services
            .iter()
            .map(|name| format!("resource.service.name = {}", quoted(name)))
            .collect()));
    }
    let tops = longer_ns.is_some() && search.operation.is_none();
    if let Some(name) = &search.operation {
        terms.push(format!("name = {}", quoted(name)));
    } else if tops || (search.services.is_empty() && search.attributes.is_empty()) {
        let names = if tops { &NAMES[..TOPS] } else { &NAMES };
        terms.push(any(names.iter().map(|name| format!("name = {}", quoted(name))).collect()));
    }
    for (key, value) in &search.attributes {
        let key = if key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
            format!(".{key}")
        } else {
            format!(".{}", quoted(key))
        };
        // TraceQL tells texts from numbers and truth values; the sender may have meant either.
        let mut same = vec![format!("{key} = {}", quoted(value))];
        if value.parse::<f64>().is_ok_and(f64::is_finite) || matches!(value.as_str(), "true" | "false") {
            same.push(format!("{key} = {value}"));
        }
        terms.push(any(same));
    }
    if let Some(ns) = longer_ns.max(search.longer_ns) {
        terms.push(format!("duration >= {ns}ns"));
    }
    if let Some(ns) = search.shorter_ns {
        terms.push(format!("duration <= {ns}ns"));
    }
    let mut all = vec![format!("{{ {} }}", terms.join(" && "))];
    for must in &search.must {
        let (key, names) = match must {
            Must::Service(names) => ("resource.service.name", names),
            Must::Span(names) => ("name", names),
            Must::Be(_) => continue,
        };
        let terms = names.iter().map(|name| format!("{key} =~ {}", quoted(&pattern(name)))).collect();
        all.push(format!("{{ {} }}", any(terms)));
    }
    all.join(" && ")
}

/// A name in any case as a regular expression (RE2); whether it is anchored is the same to us.
fn pattern(name: &Name) -> String {
    let mut out = String::from("(?i)");
    for c in name.text.chars() {
        if !c.is_ascii_alphanumeric() {
            out.push('\\');
        }
        out.push(c);
    }
    if name.is_start {
        out.push_str(".*");
    }
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::stage::Stage;

    #[test]
    fn the_names_are_those_of_stages() {
        assert!(NAMES.iter().all(|name| Stage::of(name) != Stage::Other));
        let top = |name: &&str| matches!(Stage::of(name), Stage::Http | Stage::Root | Stage::Completions);
        assert!(NAMES[..TOPS].iter().all(top) && !NAMES[TOPS..].iter().any(top));
    }

    #[test]
    fn searches_are_written_as_traceql() {
        let all = traceql(&Search::default(), None);
        assert!(all.starts_with("{ (name = \"http-request\" || ") && all.contains("router.queue"));
        let long = traceql(&Search::default(), Some(15_000_000_000));
        assert!(long.ends_with("\"completions_single\") && duration >= 15000000000ns }"), "{long}");
        let search = Search {
            services: vec!["a\"b".into()],
            operation: Some("request.lifecycle".into()),
            shorter_ns: Some(5),
            attributes: vec![("request.id".into(), "x".into()), ("odd key".into(), "7".into())],
            ..Search::default()
        };
        assert_eq!(
            traceql(&search, None),
            "{ resource.service.name = \"a\\\"b\" && name = \"request.lifecycle\" && .request.id = \"x\" && \
             (.\"odd key\" = \"7\" || .\"odd key\" = 7) && duration <= 5ns }"
        );
        let name = |text: &str, is_start| Name { text: text.into(), is_start };
        let must = vec![Must::Service(vec![name("a-b", false), name("c\"", true)]), Must::Span(vec![name("x", false)])];
        let search = Search { operation: Some("o".into()), must, ..Search::default() };
        assert_eq!(
            traceql(&search, None),
            r#"{ name = "o" } && { (resource.service.name =~ "(?i)a\\-b" || resource.service.name =~ "(?i)c\\\".*") } && { name =~ "(?i)x" }"#
        );
        let own = Search { traceql: Some("{ .a = 1 }".into()), ..Search::default() };
        assert_eq!(traceql(&own, Some(9)), "{ .a = 1 } && { duration >= 9ns }");
    }
}
