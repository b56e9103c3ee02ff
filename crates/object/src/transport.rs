//! The seam between HTTP and the network: plain TCP, or TLS over it.

use crate::reactor::{Expired, Reactor, Ready, Socket};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use tidemark_load::engine::{OpenError, Tick};

/// How to speak TLS to one host.
#[derive(Clone)]
pub(crate) struct Tls {
    /// Whom to trust.
    pub config: Arc<ClientConfig>,
    /// Who the host must prove to be.
    pub name: ServerName<'static>,
}

/// Why a connection could not be made, or broke.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// The kernel's word.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The TLS library's word.
    #[error("{0}")]
    Tls(#[from] rustls::Error),
    /// The deadline passed.
    #[error("{0}")]
    Expired(#[from] Expired),
}

impl Broken {
    /// Whether it only means: not now.
    pub(crate) fn would_block(&self) -> bool {
        matches!(self, Broken::Io(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// There is no connection.
    pub(crate) fn gone() -> Self {
        Broken::Io(io::ErrorKind::NotConnected.into())
    }
}

/// A connection to a host.
pub(crate) struct Transport {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl Transport {
    /// Connects, TLS handshake included, before `deadline`.
    ///
    /// # Errors
    /// Why it could not be.
    pub(crate) async fn connect(
        reactor: &Rc<Reactor>,
        address: SocketAddr,
        tls: Option<&Tls>,
        deadline: Tick,
    ) -> Result<Self, Broken> {
        let socket = Socket::connect(reactor, address, deadline).await?;
        let tls = match tls {
            None => None,
            Some(tls) => {
                let connection = ClientConnection::new(Arc::clone(&tls.config), tls.name.clone())?;
                Some(Box::new(connection))
            }
        };
        let mut transport = Self { socket, tls };
        transport.shake_hands().await?;
        Ok(transport)
    }

    async fn shake_hands(&mut self) -> Result<(), Broken> {
        loop {
            let flushed = self.flush();
            let Some(tls) = &mut self.tls else { return Ok(()) };
            match flushed {
                Err(error) if error.would_block() => {
                    self.socket.ready(Ready::WRITE).await?;
                    continue;
                }
                flushed => flushed?,
            }
            if !tls.is_handshaking() {
                return Ok(());
            }
            match tls.read_tls(&mut &self.socket) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(_) => {
                    if let Err(error) = tls.process_new_packets() {
                        // The alert sends the server the reason; the connection is closed either way.
                        let _ = self.flush();
                        return Err(error.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.ready(Ready::READ).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The socket, to wait for.
    #[inline]
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Takes some of the slices' bytes to be sent; with TLS they are sent by [`Transport::flush`].
    ///
    /// # Errors
    /// [`Broken::would_block`] when there is no room.
    #[inline]
    pub(crate) fn send(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, Broken> {
        let Some(tls) = &mut self.tls else { return Ok(self.socket.send(slices)?) };
        let taken = tls.writer().write_vectored(slices)?;
        match self.flush() {
            Err(error) if taken > 0 && error.would_block() => {}
            flushed => flushed?,
        }
        Ok(taken)
    }

    /// Sends what was taken before and is still here.
    ///
    /// # Errors
    /// [`Broken::would_block`] when there is no room.
    #[inline]
    pub(crate) fn flush(&mut self) -> Result<(), Broken> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            tls.write_tls(&mut &self.socket)?;
        }
        Ok(())
    }

    /// Receives what has come; 0 bytes: the peer has closed its side.
    ///
    /// # Errors
    /// [`Broken::would_block`] when nothing has come; `UnexpectedEof` when TLS was cut off.
    #[inline]
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, Broken> {
        let Some(tls) = &mut self.tls else { return Ok(self.socket.receive(buffer)?) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Ok(read?),
            }
            tls.read_tls(&mut &self.socket)?;
            tls.process_new_packets()?;
        }
    }
}

/// Whom to trust: the system's authorities and those of `ca_file`; with `insecure`, anyone.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn tls_config(ca_file: Option<&Path>, insecure: bool) -> Result<Arc<ClientConfig>, OpenError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| OpenError(format!("cannot set up TLS: {error}")))?;
    if insecure {
        let verifier = Arc::new(Anyone(provider));
        return Ok(Arc::new(
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth(),
        ));
    }
    let mut roots = RootCertStore::empty();
    // A system without authorities is no error until a server needs one.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let unreadable = |error: &dyn std::fmt::Display| {
            OpenError(format!("cannot read certificates from {}: {error}", path.display()))
        };
        let mut found = false;
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
            roots
                .add(certificate.map_err(|error| unreadable(&error))?)
                .map_err(|error| unreadable(&error))?;
            found = true;
        }
        if !found {
            return Err(unreadable(&"it contains none; a PEM file is required"));
        }
    }
    if roots.is_empty() {
        return Err(OpenError(
            "this system has no certificate authorities: set ca_file, install ca-certificates, or accept any \
             certificate with insecure"
                .into(),
        ));
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| OpenError(format!("cannot set up TLS: {error}")))?;
    Ok(Arc::new(builder.with_webpki_verifier(verifier).with_no_client_auth()))
}

/// Believes any certificate; signatures are checked still, so that the connection is at least to its holder.
#[derive(Debug)]
struct Anyone(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
