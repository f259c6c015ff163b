//! Who may send, as senders see it: tokens, TLS, client certificates, over gRPC and HTTP, good, bad and missing. And what
//! whoever runs it is told, where no secret may be.

mod common;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Answer, Listening};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};

const TOKEN: &str = "correct-horse-battery-staple";

/// An authority with everything it issued, in files.
struct Trust {
    folder: tempfile::TempDir,
    /// Of the authority.
    root: String,
    /// A certificate and its key for a client.
    client: (String, String),
    /// One that issued it itself.
    stranger: (String, String),
}

impl Trust {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let issue = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![name.to_owned(), "127.0.0.1".to_owned()]).unwrap();
            (params.signed_by(&key, &root).unwrap().pem(), key.serialize_pem())
        };
        let (certificate, key) = issue("localhost");
        let key_alone = KeyPair::generate().unwrap();
        let alone = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key_alone).unwrap();
        let trust = Self {
            folder,
            root: root.pem(),
            client: issue("worker-7"),
            stranger: (alone.pem(), key_alone.serialize_pem()),
        };
        for (name, text) in [("cert", &certificate), ("key", &key), ("root", &trust.root), ("token", &TOKEN.into())] {
            let path = trust.path(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        }
        trust
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An option with a file.
    fn with(&self, option: &str, name: &str) -> [String; 2] {
        [option.to_owned(), self.path(name).display().to_string()]
    }

    fn tls(&self) -> Vec<String> {
        [self.with("--tls-cert", "cert"), self.with("--tls-key", "key")].concat()
    }

    fn listen(&self, options: &[String]) -> Listening {
        let command = ["report", "--json"].into_iter().chain(options.iter().map(String::as_str));
        Listening::start(&command.collect::<Vec<_>>())
    }

    /// One HTTP exchange inside TLS, in the words of the client's library when there is none.
    fn https(&self, address: SocketAddr, head: &str, identity: Option<&(String, String)>) -> Result<Answer, String> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.root.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => config
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                    PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
                )
                .unwrap(),
        };
        let session = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        let mut stream = StreamOwned::new(session, TcpStream::connect(address).unwrap());
        let head = head.lines().collect::<Vec<_>>().join("\r\n");
        let whole = format!("{head}\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}");
        stream.write_all(whole.as_bytes()).map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).map_err(|error| error.to_string())?;
        Ok(common::answer(&answer, head.as_str()))
    }
}

const POST: &str = "POST /v1/traces HTTP/1.1\nContent-Type: application/json";

/// One gRPC export of nothing.
fn grpc(url: String, tls: Option<ClientTlsConfig>, bearer: Option<&str>) -> Result<(), Status> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut endpoint = Endpoint::from_shared(url).unwrap();
        if let Some(tls) = tls {
            endpoint = endpoint.tls_config(tls).unwrap();
        }
        let mut client = TraceServiceClient::new(endpoint.connect_lazy());
        let mut request = Request::new(ExportTraceServiceRequest::default());
        if let Some(bearer) = bearer {
            request.metadata_mut().insert("authorization", bearer.parse().unwrap());
        }
        tokio::time::timeout(Duration::from_secs(20), client.export(request)).await.unwrap().map(drop)
    })
}

/// What a listener said on standard error, and what it printed.
fn ends(listening: Listening) -> (String, serde_json::Value) {
    told(listening.end())
}

fn told(output: std::process::Output) -> (String, serde_json::Value) {
    (String::from_utf8(output.stderr).unwrap(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn only_senders_with_the_token_are_taken_over_both_protocols() {
    let trust = Trust::new();
    let listening = trust.listen(&trust.with("--token-file", "token"));
    let url = format!("http://{}", listening.grpc);
    let good = format!("Bearer {TOKEN}");
    assert!(grpc(url.clone(), None, Some(&good)).is_ok());
    for bad in [None, Some("Bearer s3cret-guess"), Some("Basic dXNlcjpwYXNz"), Some(TOKEN)] {
        let status = grpc(url.clone(), None, bad).unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
        assert!(status.message().contains("Bearer TOKEN"), "{status:?}");
        assert_eq!(status.metadata().get("www-authenticate").unwrap(), "Bearer realm=\"reqtop\"");
    }
    let answer = common::http(listening.http, &format!("{POST}\nAuthorization: {good}"), b"{}");
    assert_eq!(answer.status, 200, "{answer:?}");
    for bad in ["", "\nAuthorization: Bearer s3cret-guess", "\nauthorization: basic dXNlcjpwYXNz"] {
        let answer = common::http(listening.http, &format!("{POST}{bad}"), b"{}");
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer realm=\"reqtop\"")));
        assert_eq!(answer.json()["code"], 16, "{answer:?}");
    }
    // Nothing is told to those without it, not even which paths there are.
    assert_eq!(common::http(listening.http, "GET / HTTP/1.1", b"").status, 401);
    let pid = listening.child.id();
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&command_line).contains(TOKEN));
    let (said, report) = ends(listening);
    assert!(said.contains("8 × without the token"), "{said}");
    let printed = report.to_string();
    for secret in [TOKEN, "s3cret", "dXNlcjpwYXNz"] {
        assert!(!said.contains(secret) && !printed.contains(secret), "{said}\n{printed}");
    }
}

#[test]
fn a_token_may_come_from_the_environment_and_nonsense_is_refused_unsaid() {
    let run = |value: &str| {
        let mut command = common::binary();
        command.args(["report", "--listen", "--for", "0.2s"]).args(common::ANY).env("REQTOP_TOKEN", value);
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = run(TOKEN);
    assert!(status == 0 && !said.contains("caution") && !said.contains(TOKEN), "{said}");
    let (status, said) = run("short");
    assert!(status == 0 && said.contains("caution: the token is shorter than 16"), "{said}");
    for nonsense in ["", "s3cret with spaces", "s3cret\nsecond line"] {
        let (status, said) = run(nonsense);
        assert_eq!((status, said.lines().count()), (2, 1), "{said}");
        assert!(said.contains("REQTOP_TOKEN: expected") && !said.contains("s3cret"), "{said}");
    }
}

#[test]
fn tls_is_spoken_on_both_ports_and_plain_text_is_told_so() {
    let trust = Trust::new();
    let listening = trust.listen(&trust.tls());
    let ours = || ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&trust.root)).domain_name("localhost");
    assert!(grpc(format!("https://{}", listening.grpc), Some(ours()), None).is_ok());
    let answer = trust.https(listening.http, POST, None).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    // Without TLS: an answer that says what to change, over either protocol.
    let status = grpc(format!("http://{}", listening.grpc), None, None).unwrap_err();
    assert_eq!((status.code(), status.message().contains("https://")), (Code::FailedPrecondition, true), "{status:?}");
    let answer = common::http(listening.http, POST, b"{}");
    assert!(answer.status == 400 && answer.text().contains("https://"), "{answer:?}");
    // One who does not know the authority.
    let theirs = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&trust.stranger.0));
    assert!(grpc(format!("https://{}", listening.grpc), Some(theirs.domain_name("localhost")), None).is_err());
    // A probe that only connects is not worth a word; one that says nonsense inside a handshake is.
    drop(TcpStream::connect(listening.http).unwrap());
    common::shout(listening.http, b"\x16\x03\x01\x00\x05nonsense nonsense nonsense");
    let (said, report) = ends(listening);
    assert!(said.contains("× TLS: the TLS handshake failed"), "{said}");
    assert_eq!(report["spans"]["rejected"], 0);
}

#[test]
fn tls_where_none_is_spoken_is_told_too() {
    let trust = Trust::new();
    let listening = trust.listen(&[]);
    let ours = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&trust.root)).domain_name("localhost");
    assert!(grpc(format!("https://{}", listening.grpc), Some(ours), None).is_err());
    assert!(trust.https(listening.http, POST, None).is_err());
    let (said, _) = ends(listening);
    assert!(said.contains("2 × TLS: this port speaks no TLS and a sender did"), "{said}");
}

#[test]
fn only_senders_with_a_certificate_of_the_authority_are_taken() {
    let trust = Trust::new();
    let mutual = trust.with("--tls-client-ca", "root");
    let both = trust.with("--token-file", "token");
    let listening = trust.listen(&[trust.tls(), mutual.to_vec(), both.to_vec()].concat());
    let url = format!("https://{}", listening.grpc);
    let tls = |identity: Option<&(String, String)>| {
        let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&trust.root)).domain_name("localhost");
        identity.map_or(tls.clone(), |(certificate, key)| tls.identity(Identity::from_pem(certificate, key)))
    };
    let bearer = format!("Bearer {TOKEN}");
    let with = format!("{POST}\nAuthorization: {bearer}");
    assert!(grpc(url.clone(), Some(tls(Some(&trust.client))), Some(&bearer)).is_ok());
    assert_eq!(trust.https(listening.http, &with, Some(&trust.client)).unwrap().status, 200);
    // The certificate is not the token, and the token not the certificate.
    let status = grpc(url.clone(), Some(tls(Some(&trust.client))), None).unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
    assert_eq!(trust.https(listening.http, POST, Some(&trust.client)).unwrap().status, 401);
    for identity in [None, Some(&trust.stranger)] {
        assert!(grpc(url.clone(), Some(tls(identity)), Some(&bearer)).is_err());
        assert!(trust.https(listening.http, &with, identity).is_err());
    }
    let (said, _) = ends(listening);
    assert!(said.contains("2 × without the token") && said.contains("× TLS: a sender"), "{said}");
    assert!(!said.contains(TOKEN), "{said}");
}

#[test]
fn what_is_forwarded_goes_inside_tls_with_token_and_certificate() {
    let trust = Trust::new();
    for (name, text) in [("client", &trust.client.0), ("client-key", &trust.client.1)] {
        fs::write(trust.path(name), text).unwrap();
    }
    let guard = [trust.tls(), trust.with("--tls-client-ca", "root").into(), trust.with("--token-file", "token").into()];
    for scheme in ["grpcs", "https"] {
        let far = trust.listen(&guard.concat());
        let address = if scheme == "grpcs" { far.grpc } else { far.http };
        let forward = ["--forward".to_owned(), format!("{scheme}://localhost:{}", address.port())];
        let shown = [trust.with("--forward-cert", "client"), trust.with("--forward-key", "client-key")].concat();
        let token = trust.with("--forward-token-file", "token");
        let near = trust.listen(&[&forward[..], &trust.with("--forward-ca", "root"), &shown, &token].concat());
        let span = common::post_json(near.http, &a_span());
        assert_eq!(span.status, 200, "{span:?}");
        let (said, report) = ends(near);
        assert!(said.contains("forwarded 1 exports to") && !said.contains(TOKEN), "{said}");
        assert!(!report.to_string().contains(TOKEN));
        let (_, there) = ends(far);
        assert_eq!(there["spans"]["total"], 1, "over {scheme}: {said}");
    }
}

#[test]
fn a_far_side_that_is_not_trusted_gets_nothing_and_it_is_said_why() {
    let trust = Trust::new();
    fs::write(trust.path("other"), &trust.stranger.0).unwrap();
    for scheme in ["grpcs", "https"] {
        let far = trust.listen(&trust.tls());
        let address = if scheme == "grpcs" { far.grpc } else { far.http };
        let forward = ["--forward".to_owned(), format!("{scheme}://localhost:{}", address.port())];
        let header = ["--forward-header".to_owned(), format!("Authorization=Bearer {TOKEN}")];
        let near = trust.listen(&[&forward[..], &trust.with("--forward-ca", "other"), &header].concat());
        assert_eq!(common::post_json(near.http, &a_span()).status, 200);
        let output = near.ended_by("TERM");
        assert_eq!(output.status.code(), Some(2), "what was not passed on shows");
        let (said, report) = told(output);
        let passed = &report["input"]["forwarding"];
        assert_eq!((&passed["forwarded"], &passed["waiting"]), (&0.into(), &1.into()), "{passed}");
        for words in ["certificate not accepted", "--forward-ca FILE"] {
            assert!(said.contains(words) && passed["trouble"].as_str().unwrap().contains(words), "{said}");
        }
        assert!(!said.contains(TOKEN) && !report.to_string().contains(TOKEN), "{said}");
        assert_eq!(ends(far).1["spans"]["total"], 0);
    }
    let mut command = common::binary();
    command.args(["report", "--listen"]).args(common::ANY).args(["--forward", "https://x"]);
    let said = String::from_utf8(command.args(trust.with("--forward-ca", "key")).output().unwrap().stderr).unwrap();
    assert!(said.contains("--forward-ca") && said.contains("found a block PRIVATE KEY"), "{said}");
}

fn a_span() -> serde_json::Value {
    let span =
        serde_json::json!({"traceId": "0123456789abcdef0123456789abcdef", "spanId": "00000000000000a1", "name": "x"});
    serde_json::json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
}

#[test]
fn what_is_open_to_others_is_said() {
    let trust = Trust::new();
    let token = trust.with("--token-file", "token").to_vec();
    let open = ["--grpc", "0.0.0.0:0"].map(String::from).to_vec();
    for (options, words) in [
        (open.clone(), Some("anyone who can reach 0.0.0.0:")),
        ([open.clone(), token.clone()].concat(), Some("and read what is sent, the token too")),
        ([open.clone(), trust.tls()].concat(), Some("can send: give --token-file or --tls-client-ca")),
        ([open, trust.tls(), token.clone()].concat(), Some("others can reach 0.0.0.0:")),
        (token, None),
    ] {
        let mut command = common::binary();
        command.args(["report", "--listen", "--for", "0.1s", "--http", "127.0.0.1:0"]).args(&options);
        if options.iter().all(|option| option != "--grpc") {
            command.args(["--grpc", "127.0.0.1:0"]);
        }
        let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
        match words {
            Some(words) => assert!(said.contains("caution: ") && said.contains(words), "{said}"),
            None => assert!(!said.contains("caution"), "{said}"),
        }
    }
}

#[test]
fn half_of_the_options_is_one_line() {
    let trust = Trust::new();
    for (options, words) in [
        (trust.with("--tls-cert", "cert").to_vec(), "--tls-cert needs --tls-key"),
        (trust.with("--tls-key", "key").to_vec(), "--tls-key needs --tls-cert"),
        (trust.with("--tls-client-ca", "root").to_vec(), "--tls-client-ca needs"),
        (trust.with("--token-file", "nowhere").to_vec(), "nowhere: No such file"),
        ([trust.with("--tls-cert", "cert"), trust.with("--tls-key", "root")].concat(), "found a block CERTIFICATE"),
    ] {
        let output = common::binary().args(["report", "--listen"]).args(common::ANY).args(&options).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_web_page_may_send_only_where_it_is_allowed_whatever_its_name_means() {
    let listening = Listening::start(&["report", "--json", "--allow-origin", "http://localhost:3000"]);
    // A page whose name was made to mean this machine sends to what it takes for its own server.
    let page = "\nHost: evil.example:4318\nOrigin: http://evil.example:4318\nSec-Fetch-Site: same-origin";
    let answer = common::http(listening.http, &format!("{POST}{page}"), b"{}");
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None), "{answer:?}");
    let answer = common::http(listening.http, &format!("{POST}\nOrigin: null"), b"{}");
    assert_eq!(answer.status, 403, "{answer:?}");
    let answer = common::http(listening.http, &format!("{POST}\nOrigin: http://localhost:3000"), b"{}");
    assert_eq!(answer.status, 200, "{answer:?}");
    // The gRPC port answers HTTP/1 as well, and no page at all.
    let grpc =
        "POST /opentelemetry.proto.collector.trace.v1.TraceService/Export HTTP/1.1\nContent-Type: application/grpc";
    let answer = common::http(listening.grpc, &format!("{grpc}\nOrigin: http://localhost:3000"), b"\0\0\0\0\0");
    assert_eq!(answer.header("grpc-status"), Some("7"), "{answer:?}");
    let (said, _) = ends(listening);
    assert!(said.contains("3 × web page"), "{said}");
}

#[test]
fn a_handshake_that_never_ends_holds_nobody_up() {
    let trust = Trust::new();
    let listening = trust.listen(&trust.tls());
    let mut held: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(listening.http).unwrap()).collect();
    held.iter_mut().for_each(|stream| stream.write_all(b"\x16\x03\x01\x02\x00\x01").unwrap());
    assert_eq!(trust.https(listening.http, POST, None).unwrap().status, 200);
    let begun = Instant::now();
    ends(listening);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}
