//! Certificates, over real TLS.

use super::*;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;

/// A controller behind TLS. Returns its port.
fn serve(host: &Host, certified: &CertifiedKey<KeyPair>) -> u16 {
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = host.runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = router(&host.fleet);
    host.runtime.spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, router) = (acceptor.clone(), router.clone());
            tokio::spawn(async move {
                let Ok(tls) = acceptor.accept(tcp).await else { return };
                let service = TowerToHyperService::new(router);
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(tls), service)
                    .with_upgrades();
                let _ = connection.await;
            });
        }
    });
    port
}

fn first(port: u16, trust: Trust) -> FromController {
    let url = format!("https://localhost:{port}/");
    let link = join(Join { url, token: Some(Secret::new("let me in")), trust }, hello("d1")).unwrap();
    next(&link)
}

#[test]
fn a_fingerprint_a_file_or_the_system_decides() {
    let host = Host::new(options());
    let certified = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let port = serve(&host, &certified);
    let fingerprint = tidemark_tls::fingerprint(certified.cert.der());
    assert!(matches!(first(port, Trust::Fingerprint(fingerprint)), FromController::Joined { .. }));

    let mut wrong = fingerprint;
    wrong[31] ^= 1;
    let FromController::Refused(reason) = first(port, Trust::Fingerprint(wrong)) else { panic!("believed") };
    assert!(reason.contains("--trust sha256:HEX"), "{reason}");

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("controller.pem");
    std::fs::write(&path, certified.cert.pem()).unwrap();
    assert!(matches!(first(port, Trust::File(path.clone())), FromController::Joined { .. }));

    let other = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&path, other.cert.pem()).unwrap();
    let FromController::Refused(reason) = first(port, Trust::File(path.clone())) else { panic!("believed") };
    assert!(reason.contains("--trust FILE"), "{reason}");

    std::fs::write(&path, "no certificate").unwrap();
    let options = Join { url: format!("https://localhost:{port}"), token: None, trust: Trust::File(path) };
    let error = join(options, hello("d1")).err().unwrap();
    assert!(error.to_string().contains("controller.pem"), "{error}");
}

#[test]
fn a_certificate_for_another_name_is_not_believed_but_by_its_fingerprint() {
    let host = Host::new(options());
    let certified = generate_simple_self_signed(["elsewhere".to_owned()]).unwrap();
    let port = serve(&host, &certified);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("controller.pem");
    std::fs::write(&path, certified.cert.pem()).unwrap();
    let FromController::Refused(reason) = first(port, Trust::File(path)) else { panic!("believed") };
    assert!(reason.contains("other names"), "{reason}");
    let fingerprint = tidemark_tls::fingerprint(certified.cert.der());
    assert!(matches!(first(port, Trust::Fingerprint(fingerprint)), FromController::Joined { .. }));
}

#[test]
fn addresses_that_are_none_are_refused_at_once() {
    let trouble = |url: &str| {
        let options = Join { url: url.into(), token: None, trust: Trust::Fingerprint([0; 32]) };
        join(options, hello("d1")).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(trouble("controller:7070").contains("http"));
    assert!(trouble("ftp://controller").contains("http"));
    assert!(trouble("").contains("address"));
    assert!(trouble("http://").contains("address"));
    let secret = trouble("https://me:sesame@controller") + &trouble("https://me:sesame@");
    assert!(secret.contains("--token") && !secret.contains("sesame"), "{secret}");
}
