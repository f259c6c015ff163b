//! Jaeger's query API v3 over HTTP: services, operations, traces of a time, one trace.
//!
//! Checked against Jaeger 2.13 (`github.com/jaegertracing/jaeger` v1.76.0). Its HTTP form knows service, operation and
//! durations of one span, no attributes. Owns: its parameters, its envelopes. Keeps out: OTLP/JSON (`otlp::json`).

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::client::{Client, Failure, clean};
use super::seen::hash;
use super::{Ask, Lack, Page, Search, moment};
use crate::lifecycle::ids::TraceId;
use crate::lifecycle::must::{Must, Name};
use crate::lifecycle::stage::Stage;
use crate::source::intake::Signal;
use crate::source::otlp::json::{Shape, salvage};

const TRACES: &str = "/api/v3/traces";
const SERVICES: &str = "/api/v3/services";
const OPERATIONS: &str = "/api/v3/operations";
/// Most services whose operations are looked at.
const MOST_SERVICES: usize = 256;
/// Most questions that take the place of those to the services that begin requests.
const MOST_QUESTIONS: usize = 32;
/// Most services told in a sentence.
const TOLD: usize = 12;

/// One service, and one of its operations or all.
type Question = (String, Option<String>);

/// The API, and what there is to ask for.
pub struct Jaeger {
    search: Search,
    /// Asked for in every time.
    questions: Vec<Question>,
    /// Asked for when only long requests are wanted: their top spans.
    tops: Vec<Question>,
}

#[derive(Deserialize)]
struct Services {
    #[serde(default)]
    services: Vec<String>,
}

#[derive(Deserialize)]
struct Operations {
    #[serde(default)]
    operations: Vec<Operation>,
}

#[derive(Deserialize)]
struct Operation {
    #[serde(default)]
    name: String,
}

/// What gRPC's gateway wraps around each part of a stream.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    result: Option<Traces<'a>>,
    error: Option<Declined>,
}

/// Traces in OTLP/JSON, a part for each resource.
#[derive(Deserialize)]
struct Traces<'a> {
    #[serde(borrow, default, rename = "resourceSpans", alias = "resource_spans")]
    resources: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Declined {
    #[serde(default)]
    message: String,
}

impl From<Declined> for Failure {
    fn from(declined: Declined) -> Self {
        Self::Declined(clean(declined.message.as_bytes()))
    }
}

/// How much a service's operations have to do with requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    None,
    /// It sends spans of their life.
    Some,
    /// It sends spans above all others of a request.
    Begins,
}

impl Part {
    fn of(operations: &[Operation]) -> Self {
        let part = |operation: &Operation| match Stage::of(&operation.name) {
            Stage::Http | Stage::Root | Stage::Completions => Self::Begins,
            Stage::Other => Self::None,
            _ => Self::Some,
        };
        operations.iter().map(part).max().unwrap_or(Self::None)
    }
}

impl Jaeger {
    pub fn new(search: Search) -> Self {
        Self { search, questions: Vec::new(), tops: Vec::new() }
    }

    /// Whether no service was found to ask for.
    pub fn is_idle(&self) -> bool {
        self.questions.is_empty()
    }

    /// Chooses what to ask for: the services named, or else those that begin requests, or else all that serve them.
    pub async fn prepare(&mut self, client: &Client) -> Result<Option<String>, Failure> {
        let Services { services: all } = document(client, SERVICES, &[]).await?;
        let wanted: Vec<String> = match &self.search.services[..] {
            [] => match self.must_services() {
                Some(names) => {
                    all.iter().filter(|service| names.iter().any(|name| name.means(service))).cloned().collect()
                }
                None if all.len() > MOST_SERVICES => {
                    return Err(Failure::ManyServices(all.len(), MOST_SERVICES));
                }
                None => all.clone(),
            },
            named => {
                all.iter().filter(|name| named.iter().any(|one| one.eq_ignore_ascii_case(name))).cloned().collect()
            }
        };
        let mut found = Vec::new();
        for service in wanted {
            let Operations { operations } = document(client, OPERATIONS, &[("service", &service)]).await?;
            found.push((Part::of(&operations), service, operations));
        }
        let named = !self.search.services.is_empty() || self.must_services().is_some();
        let most = found.iter().map(|(part, ..)| *part).max().unwrap_or(Part::None);
        if let Some(wanted) = &self.search.operation {
            found.retain(|(.., operations)| operations.iter().any(|one| one.name == *wanted));
        } else if let Some(questions) = self.must_operations(&found) {
            // Whichever service it is in, also one that begins no requests.
            self.questions = questions;
            return Ok(None);
        } else if !named {
            found.retain(|(part, ..)| *part == most && most > Part::None);
        }
        self.questions = found.iter().map(|(_, service, _)| (service.clone(), self.search.operation.clone())).collect();
        self.tops = found
            .iter()
            .filter_map(|(_, service, operations)| {
                let top = [Stage::Root, Stage::Http, Stage::Completions]
                    .iter()
                    .find_map(|stage| operations.iter().find(|operation| Stage::of(&operation.name) == *stage));
                Some((service.clone(), Some(top?.name.clone())))
            })
            .collect();
        Ok(self.questions.is_empty().then(|| self.nothing(&all)))
    }

    /// The names of services of which one must be in every trace, when that is all that is known of services and operations.
    fn must_services(&self) -> Option<&[Name]> {
        let is_span = |must: &Must| matches!(must, Must::Span(_));
        if self.search.operation.is_some() || self.search.must.iter().any(is_span) {
            return None;
        }
        self.search.must.iter().find_map(|must| match must {
            Must::Service(names) => Some(&names[..]),
            Must::Be(_) | Must::Span(_) => None,
        })
    }

    /// The operations of which one must be in every trace, in whichever service; `None` when that is not said, not known here, or
    /// of too many.
    fn must_operations(&self, found: &[(Part, String, Vec<Operation>)]) -> Option<Vec<Question>> {
        if self.search.operation.is_some() || !self.search.services.is_empty() {
            return None;
        }
        let names = self.search.must.iter().find_map(|must| match must {
            Must::Span(names) => Some(names),
            Must::Be(_) | Must::Service(_) => None,
        })?;
        let questions = found.iter().flat_map(|(_, service, operations)| {
            let meant = operations.iter().filter(|one| names.iter().any(|name| name.means(&one.name)));
            meant.map(|one| (service.clone(), Some(one.name.clone())))
        });
        let questions: Vec<Question> = questions.take(MOST_QUESTIONS + 1).collect();
        (1..=MOST_QUESTIONS).contains(&questions.len()).then_some(questions)
    }

    fn nothing(&self, all: &[String]) -> String {
        if all.is_empty() {
            return "Jaeger knows no service yet".into();
        }
        let mut known = all.iter().take(TOLD).map(|name| clean(name.as_bytes())).collect::<Vec<_>>().join(", ");
        if all.len() > TOLD {
            known.push_str(&format!(" and {} more", all.len() - TOLD));
        }
        match (&self.search.services[..], &self.search.operation) {
            (_, Some(operation)) => format!("no service in Jaeger has the operation {operation}; services: {known}"),
            ([], None) => format!(
                "no service in Jaeger sends spans of a request's life (request.lifecycle, http-request, …); name one \
                 with --service: {known}"
            ),
            (named, None) => format!("Jaeger knows no service {}; it knows {known}", named.join(", ")),
        }
    }

    /// The traces of a time, over all questions.
    pub async fn page(&mut self, client: &Client, ask: Ask) -> Result<Page, Failure> {
        let questions = if ask.longer_ns.is_some() { &self.tops } else { &self.questions };
        let (from, to, limit) = (moment(ask.from_ns), moment(ask.to_ns), ask.limit.to_string());
        let span = |ns: Option<u64>| ns.map(|ns| format!("{ns}ns"));
        let longer = span(ask.longer_ns.max(self.search.longer_ns));
        let shorter = span(self.search.shorter_ns);
        let mut page = Page::default();
        for (service, operation) in questions {
            let mut query = vec![
                ("query.service_name", service.as_str()),
                ("query.start_time_min", &from),
                ("query.start_time_max", &to),
                // The one name is older, the other newer; each version leaves the one it does not know alone.
                ("query.num_traces", &limit),
                ("query.search_depth", &limit),
                // As sent: without the changes that its user interface wants.
                ("query.raw_traces", "true"),
            ];
            for (key, value) in
                [("query.operation_name", operation), ("query.duration_min", &longer), ("query.duration_max", &shorter)]
            {
                query.extend(value.as_deref().map(|value| (key, value)));
            }
            let reply = traces(client, TRACES, &query).await?;
            page.full |= take(&reply, &mut page)? >= ask.limit;
        }
        Ok(page)
    }

    /// All of one trace; `None` when there is none.
    pub async fn trace(&mut self, client: &Client, id: TraceId) -> Result<Option<Page>, Failure> {
        let mut page = Page::default();
        let reply = traces(client, &format!("{TRACES}/{id}"), &[("raw_traces", "true")]).await?;
        take(&reply, &mut page)?;
        let is_there = !(page.requests.is_empty() && page.lacks.is_empty());
        Ok(is_there.then_some(page))
    }
}

/// Asks for a JSON document that is always there.
async fn document<T: for<'de> Deserialize<'de>>(
    client: &Client,
    path: &str,
    query: &[(&str, &str)],
) -> Result<T, Failure> {
    let reply = client.get(path, query, "application/json").await?;
    if let Some(Envelope { error: Some(declined), .. }) = reply.object() {
        return Err(declined.into());
    }
    match reply.object() {
        Some(document) if reply.status.is_success() => Ok(document),
        _ => Err(Failure::WrongApi(reply.told(path))),
    }
}

/// Asks for traces; "none found" is an empty answer.
async fn traces(client: &Client, path: &str, query: &[(&str, &str)]) -> Result<Bytes, Failure> {
    let reply = client.get(path, query, "application/json").await?;
    if reply.status.is_success() {
        return Ok(reply.body);
    }
    match serde_json::from_slice::<Envelope<'_>>(&reply.body) {
        Ok(Envelope { error: Some(_), .. }) => Ok(Bytes::new()),
        _ => Err(Failure::WrongApi(reply.told(path))),
    }
}

/// Adds an answer's traces to the page; tells how many there are.
fn take(body: &[u8], page: &mut Page) -> Result<usize, Failure> {
    let mut traces = std::collections::HashSet::new();
    for part in serde_json::Deserializer::from_slice(body).into_iter::<Envelope<'_>>() {
        let part = part.map_err(|error| Failure::WrongApi(format!("its answer cannot be read: {error}")))?;
        if let Some(declined) = part.error {
            return Err(declined.into());
        }
        let resources = part.result.and_then(|result| result.resources).unwrap_or_default();
        let mut request = Vec::new();
        for resource in resources {
            let text = resource.get().as_bytes();
            match salvage(Shape::Resource(Signal::Traces), text, &mut request) {
                Ok(tally) => page.lacks.extend(tally.left_out().map(|words| Lack {
                    key: hash(text),
                    words: format!("from Jaeger {words}"),
                    tally,
                })),
                Err(reason) => {
                    page.lacks.push(Lack::unknown(text, format!("from Jaeger left out a resource: {reason}")))
                }
            }
        }
        if request.is_empty() {
            continue;
        }
        let request = Bytes::from(request);
        let mut batch = crate::lifecycle::batch::Batch::default();
        crate::source::otlp::wire::traces(&request, &mut batch).map_err(Failure::WrongApi)?;
        traces.extend(batch.spans.iter().map(|span| span.trace));
        page.requests.push(request);
    }
    Ok(traces.len())
}
