//! What the command line asks for, resolved once: flag, then environment, then settings file, then default.
//!
//! Owns: turning words into the settings of each part, and the sentences when they are wrong. Keeps out: acting on them.

mod file;
mod order;
mod resolve;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use etcetera::BaseStrategy;

use crate::cli;
use crate::demo;
use crate::demo::fault::Kind;
use crate::lifecycle::stage::Mode;
use crate::query::Query;
use crate::source::otlp;
use crate::source::remote::client::Base;
use crate::source::remote::{self, Until};
use crate::source::trust;
use crate::store::Limits;
use crate::tap::forward::target::Target;
use crate::tap::{forward, record};
use crate::tui::Setup;
use crate::tui::theme::{Depth, Signs, Themes};
use crate::view::filter::Filter;
use crate::view::link::{PLACE, TraceUrl};
use crate::view::window::Window;

pub use resolve::{Refusal, default_file, resolve, said, usual_file};

/// Whether a settings file with this text would be understood.
///
/// # Errors
/// Every mistake with its line.
pub fn understood(text: &str) -> Result<(), Vec<(usize, String)>> {
    let command = cli::command();
    file::parse(text, &command, &resolve::file_options(&command)).map(drop)
}

/// Where to listen, and to whom. `now` is the time since the Unix epoch, to tell an expired certificate.
///
/// # Errors
/// An address that is none; a token or TLS file that cannot be used.
pub fn endpoint(listen: &cli::Listen, default: [otlp::Address; 2], now: Duration) -> Result<otlp::Settings, String> {
    let address = |text: &Option<String>, option: &str, default| match text {
        Some(text) => text.parse().map_err(|error| format!("{option}: {error}")),
        None => Ok(default),
    };
    let (grpc, http) = (address(&listen.grpc, "--grpc", default[0])?, address(&listen.http, "--http", default[1])?);
    if meet(grpc, http) {
        return Err(format!("--grpc and --http: both listen on port {}; give each its own", port(grpc)));
    }
    Ok(otlp::Settings {
        grpc,
        http,
        max_message: listen.max_message.unwrap_or(otlp::MAX_MESSAGE),
        origins: listen.allow_origin.clone(),
        token: token(&listen.guard)?,
        tls: tls(&listen.guard, now)?,
        max_connections: listen.max_connections.unwrap_or(otlp::MAX_CONNECTIONS),
        times: otlp::Times::default(),
    })
}

fn port(address: otlp::Address) -> u16 {
    match address {
        otlp::Address::Loopback(port) => port,
        otlp::Address::Exactly(address) => address.port(),
    }
}

/// Whether nobody can listen on both: one port, and addresses of which one is or covers another.
fn meet(one: otlp::Address, other: otlp::Address) -> bool {
    let ips = |address| match address {
        otlp::Address::Loopback(_) => vec![IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)],
        otlp::Address::Exactly(address) => vec![address.ip()],
    };
    // That of IPv6 for every address takes those of IPv4, too.
    let covers =
        |one: IpAddr, other: IpAddr| one == other || one.is_unspecified() && (one.is_ipv6() || other.is_ipv4());
    let (ones, others) = (ips(one), ips(other));
    let mut pairs = ones.iter().flat_map(|one| others.iter().map(move |other| (*one, *other)));
    port(one) == port(other) && port(one) != 0 && pairs.any(|(one, other)| covers(one, other) || covers(other, one))
}

/// The variable that may hold the token. There is no option for it: others can read a command line.
const TOKEN: &str = "REQTOP_TOKEN";

/// The token that senders must show.
///
/// # Errors
/// One that was given and cannot be used; never says it.
pub fn token(guard: &cli::Guard) -> Result<Option<otlp::Token>, String> {
    if let Some(path) = &guard.token_file {
        return otlp::Token::from_file(path).map(Some).map_err(|error| format!("--token-file {error}"));
    }
    let Some(secret) = std::env::var_os(TOKEN) else { return Ok(None) };
    let token = otlp::Token::new(secret.as_encoded_bytes());
    token.map(Some).map_err(|error| format!("{TOKEN}: {error}; unset it to let everybody send"))
}

fn tls(guard: &cli::Guard, now: Duration) -> Result<Option<otlp::Tls>, String> {
    let (certificate, key) = match (&guard.tls_cert, &guard.tls_key) {
        (None, None) if guard.tls_client_ca.is_none() => return Ok(None),
        (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
        (Some(_), None) => return Err("--tls-cert needs --tls-key with the certificate's key".into()),
        (None, Some(_)) => return Err("--tls-key needs --tls-cert with its certificate".into()),
        (None, None) => return Err("--tls-client-ca needs --tls-cert and --tls-key".into()),
    };
    let files = otlp::Files { certificate, key, client_ca: guard.tls_client_ca.clone() };
    otlp::Tls::load(&files, now).map(Some)
}

/// The ports that OTLP names, on both loopbacks.
pub const USUAL: [otlp::Address; 2] = [otlp::Address::Loopback(4317), otlp::Address::Loopback(4318)];

/// Ports that the system chooses, on both loopbacks.
pub const ANY: [otlp::Address; 2] = [otlp::Address::Loopback(0), otlp::Address::Loopback(0)];

/// What to keep.
pub fn limits(keep: &cli::Keep) -> Limits {
    let default = Limits::default();
    Limits {
        memory: keep.max_memory.unwrap_or(default.memory),
        lost_after_ns: keep.lost_after.map_or(default.lost_after_ns, nanos),
    }
}

/// Where to pass on what is received, and what is worth telling of it.
///
/// # Errors
/// An address, a header, a token or a file that is none; no value of a header and no token is repeated.
pub fn forwarding(onward: &cli::Onward) -> Result<Option<(forward::Settings, Vec<String>)>, String> {
    let Some(url) = &onward.forward else { return Ok(None) };
    let target = Target::parse(url).map_err(|error| format!("--forward: {error}"))?;
    let mut headers = http::HeaderMap::new();
    for text in &onward.forward_header {
        let (name, value) = remote::client::header(text).map_err(|error| format!("--forward-header: {error}"))?;
        headers.append(name, value);
    }
    let mut cautions = Vec::new();
    if let Some(path) = &onward.forward_token_file {
        let token = otlp::Token::from_file(path).map_err(|error| format!("--forward-token-file {error}"))?;
        cautions.extend(token.cautions());
        headers.insert(http::header::AUTHORIZATION, token.bearer());
    }
    let identity = match (&onward.forward_cert, &onward.forward_key) {
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (Some(_), None) => return Err("--forward-cert needs --forward-key with the certificate's key".into()),
        (None, Some(_)) => return Err("--forward-key needs --forward-cert with its certificate".into()),
        (None, None) => None,
    };
    if !target.is_tls && headers.contains_key(http::header::AUTHORIZATION) && !target.is_here() {
        cautions.push(format!(
            "--forward {target}: what it is shown to let us in goes there in plain text: use grpcs or https"
        ));
    }
    let files = trust::Files { authority: onward.forward_ca.clone(), identity };
    let waiting = onward.forward_queue.unwrap_or(forward::WAITING);
    Ok(Some((forward::Settings { target, headers, gzip: onward.forward_gzip, waiting, files }, cautions)))
}

/// What to record to.
pub fn recording(onward: &cli::Onward) -> Option<record::Settings> {
    onward.record.clone().map(|path| record::Settings {
        path,
        most: onward.record_max.map(|most| most as u64),
        keep: onward.record_keep.unwrap_or(record::KEEP),
    })
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The trace store to read; `None` when none is asked for. Of a filter that will hold to the end (not one that may be changed on
/// a screen) the store is asked as much as it can search by.
///
/// # Errors
/// A word that names no store, an address that is none, a time that is none, what this store cannot search for.
pub fn store(
    from: &cli::FromStore,
    filter: Option<&Query>,
    usual: Until,
    now_ns: u64,
) -> Result<Option<remote::Settings>, String> {
    let [store, url] = &from.from[..] else { return Ok(None) };
    let Some((kind, _)) = remote::Kind::ALL.into_iter().find(|(_, word)| word.eq_ignore_ascii_case(store)) else {
        return Err(format!("--from: expected jaeger or tempo before the address, found {store:?}"));
    };
    let base = Base::parse(url).map_err(|error| format!("--from {store}: {error}"))?;
    let moment = |text: &str, option: &str| moment(text, now_ns).map_err(|error| format!("{option}: {error}"));
    let until = from.until.as_deref().map(|text| moment(text, "--until")).transpose()?.map_or(usual, Until::At);
    let since_ns = moment(from.since.as_deref().unwrap_or("1h"), "--since")?;
    if let Until::At(until_ns) = until
        && until_ns <= since_ns
    {
        return Err("--until: expected a moment after --since".into());
    }
    let attribute = |text: &String| match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("--attribute: expected KEY=VALUE, found {text:?}")),
    };
    let search = remote::Search {
        services: from.service.clone(),
        operation: from.operation.clone(),
        longer_ns: from.min_duration.map(nanos),
        shorter_ns: from.max_duration.map(nanos),
        attributes: from.attribute.iter().map(attribute).collect::<Result<_, _>>()?,
        traceql: from.traceql.clone(),
        must: filter.map(Query::needs).unwrap_or_default(),
    };
    if kind == remote::Kind::Jaeger && (!search.attributes.is_empty() || search.traceql.is_some()) {
        return Err(
            "--attribute and --traceql: Jaeger's query API v3 cannot search for them over HTTP; use --filter, \
                    which asks what has been read"
                .into(),
        );
    }
    let mut headers = http::HeaderMap::new();
    for text in &from.from_header {
        let (name, value) = remote::client::header(text).map_err(|error| format!("--from-header: {error}"))?;
        headers.append(name, value);
    }
    let limits = remote::Limits::default();
    Ok(Some(remote::Settings { kind, base, headers, authority: from.from_ca.clone(), search, since_ns, until, limits }))
}

/// Where traces are shown by their store: as said, or by the Jaeger that is read.
///
/// # Errors
/// A template that is none.
pub fn trace_url(look: &cli::Look, from: Option<&remote::Settings>) -> Result<Option<TraceUrl>, String> {
    let template = match (&look.trace_url, from) {
        (Some(template), _) => template.clone(),
        (None, Some(remote::Settings { kind: remote::Kind::Jaeger, base, .. })) => format!("{base}/trace/{PLACE}"),
        (None, _) => return Ok(None),
    };
    TraceUrl::parse(&template).map(Some).map_err(|error| format!("--trace-url: {error}"))
}

/// Reads a time before now (`1h`) or a moment (RFC 3339), as nanoseconds since the epoch.
fn moment(text: &str, now_ns: u64) -> Result<u64, String> {
    if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        return u64::try_from(moment.as_nanosecond())
            .map_err(|_| format!("expected a moment after 1970, found {text}"));
    }
    let ago = cli::duration(text)
        .map_err(|_| format!("expected a time such as 1h or a moment such as 2026-11-30T06:00:00Z, found {text:?}"))?;
    Ok(now_ns.saturating_sub(nanos(ago)))
}

/// The simulated cluster.
///
/// # Errors
/// A fault that cannot be told in this mode and shape.
pub fn demo(demo: &cli::Demo) -> Result<demo::Settings, String> {
    let mode = match demo.mode {
        cli::DemoMode::Core => Mode::Core,
        cli::DemoMode::Investigation => Mode::Investigation,
    };
    Ok(demo::Settings {
        seed: demo.seed,
        rate: demo.rate,
        workers: demo.workers,
        aggregated: demo.aggregated,
        mode,
        faults: faults(&demo.fault, mode, demo.aggregated)?,
        duration: demo.duration,
    })
}

fn faults(names: &[String], mode: Mode, aggregated: bool) -> Result<Vec<&'static Kind>, String> {
    let mut kinds: Vec<&'static Kind> = Vec::new();
    for name in names {
        if name == cli::ALL_FAULTS {
            kinds.extend(Kind::all().filter(|kind| kind.fits(mode, aggregated)));
            continue;
        }
        let kind = Kind::of(name).ok_or_else(|| format!("--fault {name}: `reqtop demo --help` lists the kinds"))?;
        if !kind.fits(mode, aggregated) {
            let told =
                kind.mode.map_or_else(|| "with two pools".to_owned(), |mode| format!("with --mode {}", mode.word()));
            return Err(format!("--fault {name}: can be told {told} only ({})", kind.what));
        }
        kinds.push(kind);
    }
    kinds.sort_by_key(|kind| kind.name);
    kinds.dedup();
    Ok(kinds)
}

/// The folder of the user's own settings, by the rules of the system (`$XDG_CONFIG_HOME`, else `~/.config`).
pub fn folder() -> Option<PathBuf> {
    etcetera::choose_base_strategy().ok().map(|base| base.config_dir().join("reqtop"))
}

/// The folder of the user's own themes.
pub fn themes_folder() -> Option<PathBuf> {
    folder().map(|folder| folder.join("themes"))
}

/// How the screen looks and listens. `variable` reads the environment.
///
/// # Errors
/// No theme of this name; a filter that is none.
pub fn setup(look: &cli::Look, variable: impl Fn(&str) -> Option<String>) -> Result<Setup, String> {
    let signs = if look.ascii { Signs::Ascii } else { Signs::Unicode };
    let depth = match look.colours {
        cli::Colours::Auto => Depth::of(variable),
        cli::Colours::None => Depth::None,
        cli::Colours::Sixteen => Depth::Sixteen,
        cli::Colours::Indexed => Depth::Indexed,
        cli::Colours::All => Depth::Full,
    };
    let themes = Themes::new(themes_folder(), depth, signs);
    let theme = themes.find(look.theme.as_deref().unwrap_or("terminal"))?;
    let filter = look.filter.as_deref().unwrap_or_default();
    let filter = Filter::parse(filter).map_err(|error| format!("--filter: {error}"))?;
    let window = match look.window {
        cli::Window::TenSeconds => Window::TenSeconds,
        cli::Window::Minute => Window::Minute,
        cli::Window::FiveMinutes => Window::FiveMinutes,
        cli::Window::All => Window::All,
    };
    Ok(Setup { keys: look.keys.clone(), mouse: look.mouse, filter, window, themes, theme, trace_url: None })
}

/// A filter of the command line.
///
/// # Errors
/// Where the text is no filter.
pub fn filter(text: Option<&str>) -> Result<Option<Query>, String> {
    text.map(|text| Query::parse(text).map_err(|error| format!("--filter: {error}"))).transpose()
}
