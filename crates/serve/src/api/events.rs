//! Live data: server-sent events. A reader that is too slow misses some and is told so; it holds up nobody.

use crate::answer::ApiError;
use crate::app::App;
use crate::auth::Viewer;
use crate::body::Query;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tidemark_controller::api::{Live, Trouble};
use tidemark_controller::controller::Event;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use utoipa::IntoParams;

/// How often something is sent when there is nothing to say.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Which events.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// The submission to follow; without it, overviews only.
    #[param(minimum = 0)]
    submission: Option<u64>,
}

/// Streams events: the overview now and whenever it changes, and all events of one submission.
#[utoipa::path(
    get, path = "/events", tag = "controller", params(Wanted),
    responses(
        (status = 200, description = "Server-sent events: `event` names the variant of `Live`, `data` is its content as JSON",
         body = Live, content_type = "text/event-stream"),
        (status = 404, description = "Not found", body = Trouble),
    )
)]
pub(super) async fn events(
    State(app): State<Arc<App>>,
    Viewer(caller): Viewer,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Sent, Infallible>>>, ApiError> {
    // First the ear, then the overview: nothing lies between the two that would be in neither.
    let events = app.controller.events();
    let overview = app
        .with_controller(move |controller| {
            if let Some(id) = wanted.submission {
                controller.submission(id)?;
            }
            Ok(controller.overview())
        })
        .await?;
    let mut first = VecDeque::from([sent(None, &Live::Overview(Box::new(overview)))]);
    if headers.contains_key("last-event-id") {
        // What happened while the connection was away is not told again.
        first.push_back(sent(None, &Live::Missed(0)));
    }
    let own = app.clone();
    let void = async move { own.guard.until_void(&headers, &caller).await };
    let reader = Reader {
        first,
        void: Box::pin(void),
        events,
        wanted: wanted.submission,
        stopping: app.stopping.clone(),
        _guard: app.metrics.reader(),
    };
    let stream =
        stream::unfold(reader, async |mut reader| reader.next().await.map(|event| (Ok(event), reader)));
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Somebody who listens.
struct Reader {
    first: VecDeque<Sent>,
    events: broadcast::Receiver<Arc<Event>>,
    wanted: Option<u64>,
    stopping: watch::Receiver<bool>,
    /// Comes when the reader may not look on any more.
    void: Pin<Box<dyn Future<Output = ()> + Send>>,
    _guard: crate::metrics::ReaderGuard,
}

impl Reader {
    async fn next(&mut self) -> Option<Sent> {
        if let Some(event) = self.first.pop_front() {
            return Some(event);
        }
        loop {
            let received = tokio::select! {
                received = self.events.recv() => received,
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
                () = &mut self.void => return None,
            };
            match received {
                Ok(event) if self.wants(&event) => return Some(sent(Some(event.id), &event.live)),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => return Some(sent(None, &Live::Missed(missed))),
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn wants(&self, event: &Event) -> bool {
        matches!(event.live, Live::Overview(_))
            || (event.submission.is_some() && event.submission == self.wanted)
    }
}

fn sent(id: Option<u64>, live: &Live) -> Sent {
    let (name, data) = match live {
        Live::Overview(overview) => ("overview", json(overview)),
        Live::Second(second) => ("second", json(second)),
        Live::Stages(stages) => ("stages", json(stages)),
        Live::Nodes(nodes) => ("nodes", json(nodes)),
        Live::Trouble(trouble) => ("trouble", json(trouble)),
        Live::Mark(mark) => ("mark", json(mark)),
        Live::Board(board) => ("board", json(board)),
        Live::Ended(submission) => ("ended", json(submission)),
        Live::Missed(missed) => ("missed", json(missed)),
    };
    let event = Sent::default().event(name).data(data);
    match id {
        Some(id) => event.id(id.to_string()),
        None => event,
    }
}

/// JSON without line ends.
fn json(content: &impl Serialize) -> String {
    serde_json::to_string(content).unwrap_or_else(|_| "null".into())
}
