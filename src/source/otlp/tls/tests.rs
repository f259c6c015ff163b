//! What is said about certificate and key files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tokio::sync::watch;

use super::*;
use crate::source::notices::{Notice, Notices};

/// 2026-01-01.
const NOW: Duration = Duration::from_secs(1_767_225_600);

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }
}

/// A certificate for these years, and its key, in PEM.
fn pair(from: i32, to: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn load(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Tls, String> {
    let files = Files { certificate: certificate.into(), key: key.into(), client_ca: client_ca.map(Path::to_path_buf) };
    Tls::load(&files, NOW)
}

#[test]
fn good_files_are_taken_and_nothing_said() {
    let folder = Folder::new();
    let (certificate, key) = pair(2020, 2030);
    let (certificate, key) = (folder.file("c.pem", &certificate, 0o644), folder.file("k.pem", &key, 0o600));
    let tls = load(&certificate, &key, None).unwrap();
    assert_eq!((tls.cautions().count(), tls.clients()), (0, Clients::All));
    assert_eq!(load(&certificate, &key, Some(&certificate)).unwrap().clients(), Clients::Certified);
    // Both in one file, as some tools write them.
    let both = fs::read_to_string(&key).unwrap() + &fs::read_to_string(&certificate).unwrap();
    let both = folder.file("both.pem", &both, 0o400);
    assert!(load(&both, &both, None).is_ok());
}

#[test]
fn bad_files_are_named_with_what_was_expected() {
    let folder = Folder::new();
    let (certificate, key) = pair(2020, 2030);
    let (other, _) = pair(2020, 2030);
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let good = folder.file("good.pem", &certificate, 0o644);
    let good_key = folder.file("good.key", &key, 0o600);
    let torn = folder.file("torn.pem", &certificate[..certificate.len() / 2], 0o644);
    let nothing = folder.file("nothing.pem", "", 0o600);
    let noise = folder.file("noise.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", 0o644);
    let locked = folder.file("locked.key", encrypted, 0o600);
    let other = folder.file("other.pem", &other, 0o644);
    let huge = folder.file("huge.pem", &"x".repeat(2 << 20), 0o600);
    let missing = folder.0.path().join("missing.pem");
    for (certificate, key, client_ca, words) in [
        (&missing, &good_key, None, "--tls-cert: missing.pem: No such file"),
        (
            &good_key,
            &good_key,
            None,
            "--tls-cert: good.key: expected at least one block -----BEGIN CERTIFICATE-----, found a block PRIVATE KEY",
        ),
        (&nothing, &good_key, None, "--tls-cert: nothing.pem: found none"),
        (&torn, &good_key, None, "--tls-cert: torn.pem: expected certificates in PEM"),
        (&noise, &good_key, None, "--tls-cert: noise.pem: cannot be read"),
        (&huge, &good_key, None, "--tls-cert: huge.pem: found more than"),
        (&good, &missing, None, "--tls-key: missing.pem: No such file"),
        (
            &good,
            &good,
            None,
            "--tls-key: good.pem: expected a block -----BEGIN PRIVATE KEY-----: found a block CERTIFICATE",
        ),
        (&good, &locked, None, "--tls-key: locked.key: openssl pkey"),
        (&other, &good_key, None, "--tls-key: good.key: expected the key of the certificate in: other.pem"),
        (&good, &good_key, Some(&good_key), "--tls-client-ca: good.key: found a block PRIVATE KEY"),
        (&good, &good_key, Some(&missing), "--tls-client-ca: missing.pem: No such file"),
    ] {
        let error = load(certificate, key, client_ca.map(PathBuf::as_path)).unwrap_err();
        for word in words.split(": ") {
            assert!(error.contains(word), "{word:?} is not in {error:?}");
        }
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_certificate_out_of_its_time_and_an_open_key_are_told() {
    let folder = Folder::new();
    for (from, to, word) in [(2020, 2025, "expired 365 days ago"), (2027, 2030, "valid in 365 days only")] {
        let (certificate, key) = pair(from, to);
        let tls = load(&folder.file("c", &certificate, 0o644), &folder.file("k", &key, 0o640), None).unwrap();
        let cautions: Vec<String> = tls.cautions().collect();
        assert!(cautions[0].contains("can be read by others: chmod 600"), "{cautions:?}");
        assert!(cautions[1].contains(word) && cautions[1].contains("senders will refuse it"), "{cautions:?}");
    }
}

/// Waits for something that others do.
async fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn renewed_files_are_served_and_broken_ones_are_told_while_the_old_ones_go_on() {
    let folder = Folder::new();
    let (certificate, key) = pair(2020, 2030);
    let (certificate, key) = (folder.file("c.pem", &certificate, 0o644), folder.file("k.pem", &key, 0o600));
    let tls = load(&certificate, &key, None).unwrap();
    let (notices, (stop, stopped)) = (Notices::default(), watch::channel(()));
    let keeping = tokio::spawn(renew::keep(tls.clone(), Duration::from_millis(5), notices.clone(), stopped));
    let served = || Arc::as_ptr(&tls.config.read());
    let latest = || notices.list().last().map(|noted| noted.latest.clone()).unwrap_or_default();
    let first = served();
    let (new, new_key) = pair(2020, 2031);
    folder.file("c.pem", &new, 0o644);
    folder.file("k.pem", &new_key, 0o600);
    until("the new pair", || served() != first).await;
    until("a word on it", || latest().contains("was read anew")).await;
    let second = served();
    folder.file("c.pem", "-----BEGIN CERTIFICATE-----\nAAAA", 0o644);
    until("a word on the broken one", || latest().contains("goes on: --tls-cert")).await;
    assert_eq!(served(), second);
    let told = notices.count(Notice::Certificate);
    // Its key without it is no better; the two together are.
    let (new, new_key) = pair(2020, 2025);
    folder.file("k.pem", &new_key, 0o600);
    folder.file("c.pem", &new, 0o644);
    until("the third pair", || served() != second).await;
    until("that it has expired", || latest().contains("expired 365 days ago")).await;
    assert!(notices.count(Notice::Certificate) <= told + 3);
    drop(stop);
    keeping.await.unwrap();
}
