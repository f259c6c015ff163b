//! What is said about certificate and key files.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::*;

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
