//! Bodies on the wire, counted: of requests that come in and of answers that go out.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::operation::Operation;
use crate::statistics::Counters;

/// The most bytes of an unwanted body that are read, so that the client gets to the answer instead of a reset.
const PATIENCE: u64 = 64 * 1024 * 1024;

/// A request's body on its way into the store.
pub(super) struct RequestBody {
    incoming: Option<Incoming>,
    meter: Arc<Meter>,
}

/// What the server knows of a request's body outside the store.
#[derive(Default)]
pub(super) struct Meter {
    bytes: AtomicU64,
    /// The body, if the store dropped it before its end.
    unread: Mutex<Option<Incoming>>,
}

impl RequestBody {
    pub(super) fn new(incoming: Incoming) -> (Self, Arc<Meter>) {
        let meter = Arc::new(Meter::default());
        (Self { incoming: Some(incoming), meter: Arc::clone(&meter) }, meter)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(incoming).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                self.meter.bytes.fetch_add(length as u64, Ordering::Relaxed);
            }
            Some(Err(_)) | None => self.incoming = None,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(incoming) = self.incoming.take().filter(|incoming| !incoming.is_end_stream()) {
            *self.meter.unread.lock().unwrap_or_else(PoisonError::into_inner) = Some(incoming);
        }
    }
}

impl Meter {
    /// Bytes that came so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Reads the part of the body that the store did not read.
    ///
    /// An answer to a client that is still sending is lost when the connection is closed on it: TCP resets it.
    pub(super) async fn drain(&self) {
        let unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(incoming) = unread {
            drain(incoming).await;
        }
    }
}

/// Discards a body, up to a limit or its first error.
pub(super) async fn drain(mut incoming: Incoming) {
    let mut left = PATIENCE;
    while let Some(Ok(frame)) =
        std::future::poll_fn(|context| Pin::new(&mut incoming).poll_frame(context)).await
    {
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

/// An answer's body on its way out.
pub(super) struct ReplyBody {
    inner: s3s::Body,
    /// Counts the bytes of a successful answer.
    meter: Option<(Arc<Counters>, Operation)>,
    cut: Option<Cut>,
}

/// A body that will be cut short.
struct Cut {
    left: u64,
    /// Whether the connection has had a chance to send its buffer.
    flushed: bool,
}

/// Why a body was cut short.
#[derive(Debug, thiserror::Error)]
#[error("the answer was broken off on purpose")]
struct BrokenOff;

impl ReplyBody {
    /// A body whose bytes are counted when `meter` is given, and which ends early when it is longer than `cut` bytes.
    pub(super) fn new(inner: s3s::Body, meter: Option<(Arc<Counters>, Operation)>, cut: Option<u64>) -> Self {
        let cut = cut.filter(|&cut| inner.size_hint().exact().is_none_or(|size| size > cut));
        Self { inner, meter, cut: cut.map(|left| Cut { left, flushed: false }) }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = s3s::StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, s3s::StdError>>> {
        if let Some(cut) = self.cut.as_mut().filter(|cut| cut.left == 0) {
            if !cut.flushed {
                // An error makes hyper close the connection with what it has buffered; waiting makes it send that.
                cut.flushed = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            return Poll::Ready(Some(Err(BrokenOff.into())));
        }
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
        let Ok(mut bytes) = frame.into_data() else { return Poll::Ready(None) };
        if let Some(cut) = &mut self.cut {
            bytes.truncate(usize::try_from(cut.left).unwrap_or(usize::MAX));
            cut.left -= bytes.len() as u64;
        }
        if let Some((counters, operation)) = &self.meter {
            counters.sent(*operation, bytes.len() as u64);
        }
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.cut.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
