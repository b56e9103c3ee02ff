//! The bucket that a run claims: awaited, and what its claim says of it.

use crate::cluster::Cluster;
use crate::error::PodsError;
use crate::made::Kind;
use crate::objects::Event;
use crate::running::Waiting;
use crate::trouble::{latest, said};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use std::time::{Duration, Instant};
use tidemark_keys::secret::Secret;
use tidemark_kubernetes::{BUCKET_VARIABLES, bucket_claim};

/// What claims buckets (<https://rook.io/docs/rook/latest-release/Storage-Configuration/Object-Storage-RGW/ceph-object-bucket-claim/>).
pub(crate) const CLAIM: Kind =
    Kind { name: "ObjectBucketClaim", group: "apis/objectbucket.io/v1alpha1", plural: "objectbucketclaims" };

/// How often it is looked whether a claim is bound.
const LOOK: Duration = Duration::from_millis(500);

/// A bucket that was claimed.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// What documents know it by: the variables [`BUCKET_VARIABLES`] and their values.
    pub variables: Vec<(&'static str, Secret)>,
}

impl Cluster {
    /// Waits until the bucket of a run is there.
    ///
    /// # Errors
    /// [`PodsError::NotJoined`], with what Kubernetes says of the claim, when it has failed or that takes longer than [`Waiting::most`];
    /// [`PodsError::Stopped`]; what the claim gave may not be read, or is not readable.
    pub(crate) fn bucket(&self, run: &str, waiting: &Waiting<'_>) -> Result<Bucket, PodsError> {
        let (name, begun) = (bucket_claim(run), Instant::now());
        let [settings, keys] = loop {
            let looked = self.claimed(&name);
            if (waiting.stopped)() {
                return Err(PodsError::Stopped);
            }
            let why = match lasting(looked)? {
                Claimed::Bound(both) => break both,
                Claimed::Failed => {
                    let said = self.said_of(&name);
                    return Err(PodsError::NotJoined(format!("the claim {name} has failed: {said}")));
                }
                Claimed::Unbound => None,
                Claimed::Unknown(error) => Some(error),
            };
            if begun.elapsed() >= waiting.most {
                let seconds = waiting.most.as_secs();
                let said = why.map_or_else(|| self.said_of(&name), |error| error.to_string());
                return Err(PodsError::NotJoined(format!(
                    "after {seconds} s the claim {name} has no bucket: {said}"
                )));
            }
            std::thread::sleep(LOOK);
        };
        let variables = BUCKET_VARIABLES.map(|variable| (variable, value(&settings, &keys, variable)));
        if let Some((missing, _)) = variables.iter().find(|(_, value)| value.is_none()) {
            return Err(PodsError::NotJoined(format!(
                "the claim {name} is bound, and neither its ConfigMap nor its Secret has {missing}"
            )));
        }
        let known = variables.into_iter().filter_map(|(variable, value)| Some((variable, value?)));
        Ok(Bucket { variables: known.collect() })
    }

    /// What has become of a claim; the ConfigMap and the Secret of one that is bound.
    fn claimed(&self, name: &str) -> Result<Claimed, PodsError> {
        let claim = self.get(CLAIM.group, CLAIM.plural, name)?;
        Ok(match claim["status"]["phase"].as_str() {
            Some("Bound") => {
                let both = ["configmaps", "secrets"].map(|plural| self.get("api/v1", plural, name));
                let [settings, keys] = both;
                Claimed::Bound([settings?, keys?])
            }
            Some("Failed") => Claimed::Failed,
            _ => Claimed::Unbound,
        })
    }

    fn get(&self, group: &str, plural: &str, name: &str) -> Result<Value, PodsError> {
        let path = format!("{}/{name}", self.client().path(group, plural));
        let asked = self.client().ask("GET", &path, None);
        asked.map_err(|failure| self.error(&format!("look at {plural} {name}"), failure))
    }

    /// The last that was said of a claim.
    fn said_of(&self, name: &str) -> String {
        let path = self.client().path("api/v1", "events");
        let of_claim = format!("fieldSelector=involvedObject.name%3D{name}");
        let events: Result<Vec<Event>, _> = self.client().list(&path, &of_claim);
        match events.map(|events| latest(&events, CLAIM.name, name).map(said)) {
            Ok(Some(said)) => said,
            Ok(None) => {
                "nobody says why; is there a provisioner for buckets of its class, and an object store?"
                    .into()
            }
            Err(failure) => format!("why is not known, as events cannot be listed: {failure}"),
        }
    }
}

/// What has become of a claim.
enum Claimed {
    /// It has a bucket: its ConfigMap and its Secret.
    Bound([Value; 2]),
    /// It gets none.
    Failed,
    /// It has none yet.
    Unbound,
    /// That could not be asked this time.
    Unknown(PodsError),
}

/// A refusal stays one; whatever else goes wrong may pass.
fn lasting(looked: Result<Claimed, PodsError>) -> Result<Claimed, PodsError> {
    match looked {
        Err(error @ (PodsError::Forbidden(_) | PodsError::Config(_))) => Err(error),
        Err(error) => Ok(Claimed::Unknown(error)),
        Ok(claimed) => Ok(claimed),
    }
}

/// What a claim's ConfigMap says as it is, or its Secret in base64.
fn value(settings: &Value, keys: &Value, variable: &str) -> Option<Secret> {
    let plain = settings["data"][variable].as_str().map(Secret::new);
    plain.or_else(|| {
        let bytes = BASE64_STANDARD.decode(keys["data"][variable].as_str()?).ok()?;
        Some(Secret::new(String::from_utf8(bytes).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tidemark_apiserver::Failure;

    #[test]
    fn a_hiccup_of_the_api_server_does_not_end_the_wait() {
        let of = |failure| lasting(Err(PodsError::of("https://a", "look at claims", failure)));
        let hiccups = [Failure::Away("reset".into()), Failure::Status(503, "busy".into())];
        for hiccup in hiccups {
            assert!(matches!(of(hiccup), Ok(Claimed::Unknown(PodsError::Away { .. }))));
        }
        let refused = Failure::Status(403, "user x cannot get resource".into());
        assert!(matches!(of(refused), Err(PodsError::Forbidden(_))));
        assert!(matches!(of(Failure::Status(401, String::new())), Err(PodsError::Config(_))));
    }

    #[test]
    fn what_a_claim_says_are_its_variables() {
        let settings = json!({"data": {"BUCKET_NAME": "tide-1", "BUCKET_PORT": "80"}});
        let keys = json!({"data": {"AWS_SECRET_ACCESS_KEY": BASE64_STANDARD.encode("hunter2"), "AWS_ACCESS_KEY_ID": "?"}});
        let of = |variable| value(&settings, &keys, variable).map(|value| value.reveal().to_owned());
        assert_eq!(of("BUCKET_NAME").as_deref(), Some("tide-1"));
        assert_eq!(of("AWS_SECRET_ACCESS_KEY").as_deref(), Some("hunter2"));
        assert_eq!((of("BUCKET_HOST"), of("AWS_ACCESS_KEY_ID")), (None, None));
        let bucket = Bucket { variables: vec![("AWS_SECRET_ACCESS_KEY", Secret::new("hunter2"))] };
        assert!(!format!("{bucket:?}").contains("hunter2"));
    }
}
