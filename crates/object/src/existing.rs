//! Objects that somebody else wrote, listed once when a run begins: the names and sizes travel in the plan, so that all who
//! carry it out choose from the same objects.

use crate::document::operation::of_existing;
use crate::failure::Failure;
use crate::job::{self, Existing, Http, Job, Listing, Target};
use crate::preflight::{patient, unanswered};
use crate::{s3, swift};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tidemark_load::engine::{Clock, OpenError};
use tidemark_load::source::SourcePlan;
use tidemark_measure::fault::Fault;
use tidemark_measure::pick::Pick;
use tidemark_measure::units;
use tidemark_plan::plan::{Plan, Work};
use tidemark_plan::selector::OPEN_END;
use tidemark_reactor::Reactor;

/// The most bytes that the listed objects of a plan take, which is sent to every driver as one message of at most 64 MiB.
const LISTED_MOST: usize = 16 << 20;

/// The bytes that an object takes in a plan besides its name: its size, and what stands between them.
const BESIDE_NAME: usize = 24;

/// A page of a listing.
pub(crate) struct Page {
    /// Names and sizes in bytes.
    pub(crate) objects: Vec<(String, u64)>,
    /// What the page after it begins after; `None`: there is none.
    pub(crate) next: Option<String>,
}

/// A slot that can list what a container holds.
pub(crate) trait Lists {
    /// Lists at most `most` objects whose names begin with `prefix`, from where the page before ended. None of the
    /// texts is encoded.
    async fn page(
        &mut self,
        container: &str,
        prefix: &str,
        most: u64,
        after: Option<&str>,
    ) -> Result<Page, Failure>;
}

/// Makes the listings that a plan's works need, each once. Gives a line for each: how many objects, and how large.
///
/// # Errors
/// One sentence: what cannot be listed, or has no objects, or fewer than the document names, and what to do.
pub(crate) fn survey(plan: &mut Plan, may_open_files: bool) -> Result<Vec<String>, String> {
    let mut known: Vec<(Target, Existing, Existing)> = Vec::new();
    let mut lines = Vec::new();
    let copies = works(plan).map(|job| job.actions.iter().filter(|action| wanted(action).is_some()).count());
    let budget = LISTED_MOST / copies.sum::<usize>().max(1);
    for work in plan.stages.iter_mut().flat_map(|stage| &mut stage.works) {
        let name = work.name.clone();
        let Some(job) = work.job.get_mut::<Job>() else { continue };
        let Job { target, actions } = job;
        for action in actions.iter_mut() {
            let Some((existing, listing)) = wanted(action) else { continue };
            let same =
                |(other, before, _): &&(Target, Existing, Existing)| other == target && before == existing;
            let listed = match known.iter().find(same) {
                Some((_, _, listed)) => listed.clone(),
                None => {
                    let listed = list(target, existing, listing, budget, may_open_files)
                        .map_err(|error| format!("work `{name}`: {}", target.mask().error(error)))?;
                    lines.push(listed.line);
                    known.push((target.clone(), existing.clone(), listed.existing.clone()));
                    listed.existing
                }
            };
            action.naming.existing = Some(listed);
        }
        settle(work).map_err(|error| format!("work `{name}`: {error}"))?;
    }
    Ok(lines)
}

fn works(plan: &Plan) -> impl Iterator<Item = &Job> {
    plan.stages.iter().flat_map(|stage| &stage.works).filter_map(Job::of)
}

/// What an action has listed, if that is yet to be done.
fn wanted(action: &job::Action) -> Option<(&Existing, &Listing)> {
    let existing = action.naming.existing.as_ref().filter(|existing| existing.keys.is_empty())?;
    Some((existing, existing.listing.as_ref()?))
}

struct Listed {
    existing: Existing,
    line: String,
}

fn list(
    target: &Target,
    existing: &Existing,
    listing: &Listing,
    budget: usize,
    may_open_files: bool,
) -> Result<Listed, OpenError> {
    let check = |http: &Http| match &http.ca_file {
        Some(file) if !may_open_files => Err(OpenError(format!(
            "a controller does not open {} to list the container '{}': run the document on a machine of yours",
            file.display(),
            existing.container
        ))),
        _ => Ok(patient(http)),
    };
    match target {
        Target::S3(target) => {
            let target = Arc::new(job::S3 { http: check(&target.http)?, ..target.clone() });
            let reactor = Reactor::new(Clock::starting_at(Instant::now()), target.http.timeout_ns)?;
            pages(s3::slots(&target, &reactor)?, existing, listing, budget, (&reactor, target.http.timeout_ns))
        }
        Target::Swift(target) => {
            let target = Arc::new(job::Swift { http: check(&target.http)?, ..target.clone() });
            let reactor = Reactor::new(Clock::starting_at(Instant::now()), target.http.timeout_ns)?;
            pages(swift::slots(&target, &reactor)?, existing, listing, budget, (&reactor, target.http.timeout_ns))
        }
        Target::Mock(_) | Target::Nothing | Target::Embedded(_) => Err(OpenError(
            "its target has nothing to list before the run: use an S3 or Swift target, or name the objects in a \
             file with `keys`"
                .into(),
        )),
    }
}

/// Lists page by page, at the first endpoint.
fn pages(
    slots: Vec<(String, impl Lists)>,
    existing: &Existing,
    listing: &Listing,
    budget: usize,
    (reactor, timeout_ns): (&Rc<Reactor>, u64),
) -> Result<Listed, OpenError> {
    let Some((url, mut slot)) = slots.into_iter().next() else {
        return Err(OpenError("no endpoint is set: add the server's URL".into()));
    };
    let Existing { container, .. } = existing;
    let (mut keys, mut sizes, mut room) = (Vec::new(), Vec::new(), budget);
    let mut after: Option<String> = None;
    let is_cut = 'pages: loop {
        let left = listing.limit - keys.len() as u64;
        let page = reactor.block_on(slot.page(container, &listing.prefix, left, after.as_deref()));
        let page = page.map_err(|failure| refused(container, &url, timeout_ns, &failure))?;
        let is_empty = page.objects.is_empty();
        for (key, bytes) in page.objects {
            let takes = key.len() + BESIDE_NAME;
            if keys.len() as u64 == listing.limit || takes > room {
                break 'pages true;
            }
            room -= takes;
            keys.push(key);
            sizes.push(bytes);
        }
        // A server that does not get on would be asked for ever.
        if page.next.is_none() || is_empty || page.next == after {
            break false;
        }
        if keys.len() as u64 == listing.limit {
            break true;
        }
        after = page.next;
    };
    let named = match listing.prefix.as_str() {
        "" => String::new(),
        prefix => format!(" that begin with '{prefix}'"),
    };
    if keys.is_empty() {
        return Err(OpenError(format!(
            "the container '{container}' at {url} has no objects{named}: write them first, or check `container` \
             and `prefix`"
        )));
    }
    let bytes = units::bytes(sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size)));
    let (count, first) = (units::count(keys.len() as u64), if is_cut { "the first " } else { "" });
    Ok(Listed {
        line: format!("container '{container}' at {url}: {first}{count} existing objects{named}, {bytes}"),
        existing: Existing { keys: keys.into(), sizes: sizes.into(), ..existing.clone() },
    })
}

fn refused(container: &str, url: &str, timeout_ns: u64, failure: &Failure) -> OpenError {
    let text = &failure.text;
    OpenError(match failure.fault {
        Fault::NotFound => format!(
            "the container '{container}' does not exist at {url}: `existing` reads what is there before the run; \
             check its name"
        ),
        Fault::Denied => format!(
            "{url} does not let these credentials list the container '{container}' ({text}): allow it, or name the \
             objects in a file with `keys`"
        ),
        _ => unanswered(url, timeout_ns, failure),
    })
}

/// Ends the open ends of a work's choices at the last object that was listed.
fn settle(work: &mut Work) -> Result<(), String> {
    let Some(job) = work.job.get::<Job>() else { return Ok(()) };
    let SourcePlan::Mix { choices, .. } = &mut work.load.source else { return Ok(()) };
    for (choice, label) in choices.iter_mut().zip(&mut work.labels) {
        let Some(action) = job.actions.get(usize::from(choice.action)) else { continue };
        let Some(existing) = action.naming.existing.as_ref().filter(|one| one.listing.is_some()) else {
            continue;
        };
        let count = existing.keys.len() as u64;
        close(&mut choice.items, count);
        let (low, high) = choice.items.bounds();
        if low > high || high > count {
            return Err(format!(
                "the listing of '{}' has objects 1 to {count}, and `objects` goes beyond: narrow it, or leave it out",
                existing.container
            ));
        }
        label.config = of_existing(&action.verb, choice);
    }
    Ok(())
}

/// An open end becomes `count`.
fn close(pick: &mut Pick, count: u64) {
    match pick {
        Pick::Uniform { high, .. } | Pick::Sequence { high, .. } | Pick::Shared { high, .. }
            if *high >= OPEN_END =>
        {
            *high = count;
        }
        Pick::Weighted(buckets) => {
            let open = buckets.iter_mut().filter(|bucket| bucket.high >= OPEN_END && bucket.low <= count);
            open.for_each(|bucket| bucket.high = count);
        }
        _ => {}
    }
}
