//! Waiting until all of a layout is ready, or saying why it is not.

use crate::error::RookError;
use crate::kinds::{Object, name};
use crate::placed::Placed;
use crate::standing::{Standing, State, conditions, standing};
use serde_json::Value;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How often the resources are looked at.
const AGAIN: Duration = Duration::from_secs(1);
/// How many events of pods are quoted.
const MOST_EVENTS: usize = 5;

/// For how long something is waited for.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// For so long.
    pub most: Duration,
    /// And until this says that the user does not wait any longer.
    pub stopped: &'a dyn Fn() -> bool,
}

impl Patience<'_> {
    /// Waits a moment. Says whether time is over.
    ///
    /// # Errors
    /// [`RookError::Stopped`].
    pub(crate) fn is_over(&self, since: Instant) -> Result<bool, RookError> {
        if (self.stopped)() {
            return Err(RookError::Stopped);
        }
        if since.elapsed() >= self.most {
            return Ok(true);
        }
        std::thread::sleep(AGAIN.min(self.most.saturating_sub(since.elapsed())));
        Ok(false)
    }
}

impl Placed {
    /// Waits until all resources of the layout are ready, by what they say of themselves. Says what changes. An API server that is
    /// away for a while is waited for.
    ///
    /// # Errors
    /// [`RookError::NotReady`] with what explains it, [`RookError::Stopped`]; the API server refuses to tell.
    pub fn wait(&self, patience: Patience<'_>, say: &mut dyn FnMut(&str)) -> Result<(), RookError> {
        let since = Instant::now();
        let wanted = self.wanted()?;
        let osds = self.layout.needs().map(|needs| needs.osds());
        let mut said: HashMap<String, String> = HashMap::new();
        loop {
            let (all, trouble) = match self.standings(&wanted, osds) {
                Ok(all) => (all, None),
                Err(away @ RookError::Away { .. }) => (Vec::new(), Some(away.to_string())),
                Err(error) => return Err(error),
            };
            let unready = all.iter().filter(|one| one.state != State::Ready).count();
            for Standing { resource, state, text } in &all {
                let before = said.insert(resource.clone(), text.clone());
                // What is ready when it is first seen is no news.
                let is_news = before.as_ref() != Some(text) && (before.is_some() || *state != State::Ready);
                if is_news {
                    say(&format!("{resource}: {text}"));
                }
            }
            if let Some(trouble) = &trouble
                && said.insert(String::new(), trouble.clone()).as_ref() != Some(trouble)
            {
                say(trouble);
            }
            if trouble.is_none() && unready == 0 {
                return Ok(());
            }
            if patience.is_over(since)? {
                let why = trouble.map_or_else(|| self.explain(&all), |trouble| vec![trouble]);
                return Err(RookError::NotReady { after_s: patience.most.as_secs(), why });
            }
        }
    }

    fn standings(&self, wanted: &[Object], osds: Option<u64>) -> Result<Vec<Standing>, RookError> {
        let found = self.found()?;
        let of = |object: &Object| {
            let there = found.iter().find(|one| one.is(object));
            standing(object, there.map(|one| &one.value), osds)
        };
        Ok(wanted.iter().map(of).collect())
    }

    /// What explains that resources are not ready: their conditions, their latest events, and warnings of pods in the namespace.
    /// What cannot be asked for is left out: that they are not ready is said in any case.
    fn explain(&self, all: &[Standing]) -> Vec<String> {
        let found = self.found().unwrap_or_default();
        let events = self.events();
        let mut why = Vec::new();
        for Standing { resource, text, .. } in all.iter().filter(|one| one.state != State::Ready) {
            why.push(format!("{resource}: {text}"));
            let there = found.iter().find(|one| one.title() == *resource);
            let there = there.into_iter().flat_map(|one| self.said_of(&one.value, &events));
            why.extend(there.map(|line| format!("  {line}")));
        }
        let warnings = events.iter().filter(|event| {
            event["type"] == "Warning" && event["involvedObject"]["kind"].as_str() == Some("Pod")
        });
        let mut warnings: Vec<_> = warnings.collect();
        warnings.sort_by_key(|event| std::cmp::Reverse(at(event)));
        why.extend(warnings.into_iter().take(MOST_EVENTS).map(|event| {
            format!("Pod {}: {}", event["involvedObject"]["name"].as_str().unwrap_or_default(), words(event))
        }));
        why
    }

    /// What a resource's conditions and its latest event say.
    pub(crate) fn said_of(&self, value: &Value, events: &[Value]) -> Vec<String> {
        let mut all = conditions(value);
        let of = |event: &&Value| {
            let object = &event["involvedObject"];
            object["name"] == name(value) && object["uid"] == value["metadata"]["uid"]
        };
        let latest = events.iter().filter(of).max_by_key(|event| at(event));
        all.extend(latest.map(words));
        all
    }

    /// The events of the namespace, none if they cannot be had.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.list(&self.client.path("api/v1", "events"), "").unwrap_or_default()
    }
}

/// When it happened; later ones sort last.
fn at(event: &Value) -> String {
    let time = event["lastTimestamp"].as_str().or_else(|| event["eventTime"].as_str());
    time.unwrap_or_default().to_owned()
}

fn words(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or_default().trim().to_owned();
    format!("{}: {}", text("reason"), text("message"))
}
