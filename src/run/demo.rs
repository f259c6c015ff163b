//! The demo: a simulated cluster that exports to the dashboard's own endpoint, or elsewhere without a screen.

use std::fmt::Write;

use tokio::sync::oneshot;

use super::dashboard::{Stage, Time};
use super::onward::Onward;
use super::{Ended, now, now_ns, runtime};
use crate::cli;
use crate::demo;
use crate::settings;
use crate::source::otlp::Endpoint;
use crate::tui;

/// Runs the demo.
pub(super) fn run(args: cli::Demo) -> Result<Ended, String> {
    let settings = settings::demo(&args)?;
    let guard = &args.listen.guard;
    let bearer = settings::token(guard)?.map(|token| token.reveal());
    if let Some(url) = args.export {
        Onward::refuse_without_listening(&args.onward, "leave --export out")?;
        return export(&settings, demo::Target { url, bearer });
    }
    if guard.tls_cert.is_some() || guard.tls_client_ca.is_some() {
        return Err(
            "the demo sends to itself over loopback, in plain text: leave --tls-cert and --tls-client-ca out".into()
        );
    }
    if let Some(refusal) = tui::terminal::refusal() {
        return Err(format!("{refusal}; `reqtop demo --export URL` sends without one"));
    }
    let bound =
        Endpoint::bind(settings::endpoint(&args.listen, settings::ANY, now())?).map_err(|error| error.to_string())?;
    let address = bound.grpc().first().copied().ok_or("no gRPC address is bound")?;
    let stage = Stage::new(&args.keep, &args.look, Some(&bound), &args.onward, Time::Wall)?
        .linking(settings::trace_url(&args.look, None)?);
    let serving = stage.serve(bound)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let target = demo::Target { url: format!("http://{address}"), bearer };
    let sending = serving.runtime().map(|runtime| {
        runtime.spawn(async move {
            let ended = async {
                let _ = stopped.await;
            };
            demo::run(&settings, target, now_ns(), ended).await
        })
    });
    let (ended, leaving) = stage.show();
    drop(stop);
    if let Some(sending) = sending {
        sending.abort();
    }
    drop(serving);
    leaving.end(ended)
}

/// Sends elsewhere, until the duration is over or a signal comes, and tells what was sent.
fn export(settings: &demo::Settings, to: demo::Target) -> Result<Ended, String> {
    let report = runtime()?.block_on(demo::run(settings, to, now_ns(), async {
        // Without a handler there is no stop but the default one.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }))?;
    let mut output = String::new();
    let _ = writeln!(
        output,
        "sent {} spans and {} log records in {} exports, {} repeated; {} lost",
        report.spans, report.logs, report.exports, report.retries, report.lost
    );
    let _ = writeln!(output, "{}", serde_json::to_string(&report.ledger).map_err(|error| error.to_string())?);
    let status = u8::from(report.lost > 0);
    let notes = report.trouble.into_iter().collect();
    Ok(Ended { notes, status, ..Ended::well(output) })
}
