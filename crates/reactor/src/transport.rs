//! The seam between a protocol and the network: plain, or TLS over it.

use crate::reactor::{Expired, Reactor, Ready, Socket};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use tidemark_load::engine::Tick;

/// How to speak TLS to one host.
#[derive(Clone)]
pub struct Tls {
    /// Which certificates to accept.
    pub config: Arc<ClientConfig>,
    /// The name that the host must have a certificate for.
    pub name: ServerName<'static>,
}

/// Why a connection could not be made, or broke.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
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
    pub fn would_block(&self) -> bool {
        matches!(self, Broken::Io(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// There is no connection.
    pub fn gone() -> Self {
        Broken::Io(io::ErrorKind::NotConnected.into())
    }
}

/// A connection to a host.
pub struct Transport {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl Transport {
    /// Connects, TLS handshake included, before `deadline`.
    ///
    /// # Errors
    /// Why it could not be.
    pub async fn connect(
        reactor: &Rc<Reactor>,
        address: SocketAddr,
        tls: Option<&Tls>,
        deadline: Tick,
    ) -> Result<Self, Broken> {
        let mut transport = Self { socket: Socket::connect(reactor, address, deadline).await?, tls: None };
        if let Some(tls) = tls {
            transport.start_tls(tls).await?;
        }
        Ok(transport)
    }

    /// Connects to a Unix socket before `deadline`.
    ///
    /// # Errors
    /// Why it could not be.
    pub async fn connect_unix(reactor: &Rc<Reactor>, path: &Path, deadline: Tick) -> Result<Self, Broken> {
        Ok(Self { socket: Socket::connect_unix(reactor, path, deadline).await?, tls: None })
    }

    /// Speaks TLS from here on, handshake included: for protocols that ask for it in plain text first.
    ///
    /// # Errors
    /// Why the handshake failed.
    pub async fn start_tls(&mut self, tls: &Tls) -> Result<(), Broken> {
        let connection = ClientConnection::new(Arc::clone(&tls.config), tls.name.clone())?;
        self.tls = Some(Box::new(connection));
        self.shake_hands().await
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
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Takes some of the slices' bytes to be sent; with TLS they are sent by [`Transport::flush`].
    ///
    /// # Errors
    /// [`Broken::would_block`] when there is no room.
    #[inline]
    pub fn send(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, Broken> {
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
    pub fn flush(&mut self) -> Result<(), Broken> {
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
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, Broken> {
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
