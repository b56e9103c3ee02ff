//! The places of connections: so many at a time, and whose place a new one takes when all are taken.
//!
//! Whoever has shown no token yet gives way to whoever comes, so that connections that only wait keep nobody out. Viewers and drivers
//! that introduce themselves have a share of the places each, and a token a share of those: there are always places left for operators.
//! A driver that was let in needs none: the fleet counts its drivers.

use crate::answer::ApiError;
use axum::http::StatusCode;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidemark_controller::api::Role;
use tokio::sync::Notify;

/// What part of the places those of a role may take, and what part those of one token: sixteenths. One is left for those who come.
const fn shares(role: Role) -> (usize, usize) {
    match role {
        Role::Viewer => (6, 1),
        Role::Driver => (6, 3),
        Role::Operator => (3, 2),
    }
}

/// All places.
pub(crate) struct Places {
    most: usize,
    held: Mutex<Held>,
    /// A place was given back.
    freed: Notify,
}

#[derive(Default)]
struct Held {
    last: u64,
    /// By number: the oldest first.
    connections: BTreeMap<u64, Connection>,
}

struct Connection {
    network: IpAddr,
    /// Whose it is, once that is known.
    owner: Option<(Role, String)>,
    ends: Arc<Notify>,
}

/// The place of a connection; free again when it is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    ends: Arc<Notify>,
}

impl Places {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, held: Mutex::default(), freed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from this network; waits while all are taken by those who do not give way.
    pub(crate) async fn take(self: &Arc<Self>, network: IpAddr) -> Place {
        loop {
            let freed = self.freed.notified();
            if let Some(place) = self.try_take(network) {
                return place;
            }
            freed.await;
        }
    }

    fn try_take(self: &Arc<Self>, network: IpAddr) -> Option<Place> {
        let mut held = self.lock();
        if held.connections.len() >= self.most {
            let gives_way = held.unknown_of_the_busiest_network()?;
            held.end(gives_way);
        }
        held.last += 1;
        let (number, ends) = (held.last, Arc::new(Notify::new()));
        held.connections.insert(number, Connection { network, owner: None, ends: ends.clone() });
        Some(Place { places: self.clone(), number, ends })
    }

    /// Waits until all are free.
    pub(crate) async fn all_free(&self) {
        loop {
            let freed = self.freed.notified();
            if self.lock().connections.is_empty() {
                return;
            }
            freed.await;
        }
    }
}

impl Held {
    /// Ends a connection; its place is free at once.
    fn end(&mut self, number: u64) {
        if let Some(connection) = self.connections.remove(&number) {
            connection.ends.notify_one();
        }
    }

    /// The oldest connection that has shown no token, of the network that has most of them.
    fn unknown_of_the_busiest_network(&self) -> Option<u64> {
        let unknown = || self.connections.iter().filter(|(_, connection)| connection.owner.is_none());
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        unknown().for_each(|(_, connection)| *counts.entry(connection.network).or_default() += 1);
        let (busiest, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        unknown().find(|(_, connection)| connection.network == busiest).map(|(number, _)| *number)
    }

    /// Connections of a role, and of a name if one is given: the oldest first.
    fn of<'a>(&'a self, role: Role, name: Option<&'a str>) -> impl Iterator<Item = u64> + 'a {
        let is_meant = move |connection: &Connection| {
            let owner = connection.owner.as_ref();
            owner.is_some_and(|(own, by)| *own == role && name.is_none_or(|name| name == by))
        };
        self.connections.iter().filter(move |(_, connection)| is_meant(connection)).map(|(number, _)| *number)
    }
}

impl Place {
    /// Whose connection it is. Beyond a share an older connection of the same share ends, but drivers are to come again: those that
    /// are there are about to be let in.
    pub(crate) fn owned_by(&self, role: Role, name: &str) -> Result<(), ApiError> {
        let mut held = self.places.lock();
        let Some(own) = held.connections.get(&self.number) else { return Ok(()) };
        if own.owner.as_ref().is_some_and(|(known, by)| *known == role && by == name) {
            return Ok(());
        }
        let (of_role, of_token) = shares(role);
        let share = |sixteenths: usize| (self.places.most * sixteenths / 16).max(1);
        for (most, name) in [(share(of_token), Some(name)), (share(of_role), None)] {
            let others: Vec<u64> = held.of(role, name).collect();
            if others.len() < most {
                continue;
            }
            if role == Role::Driver {
                let message = "too many drivers are joining: try again later";
                return Err(ApiError {
                    after: Some(Duration::from_secs(1)),
                    ..ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)
                });
            }
            others.first().into_iter().for_each(|oldest| held.end(*oldest));
        }
        if let Some(own) = held.connections.get_mut(&self.number) {
            own.owner = Some((role, name.to_owned()));
        }
        Ok(())
    }

    /// Waits until the connection has to end, because another one took its place.
    pub(crate) async fn taken(&self) {
        self.ends.notified().await;
    }

    /// Gives the place back, of a connection that goes on and is counted elsewhere.
    pub(crate) fn leave(&self) {
        self.places.lock().connections.remove(&self.number);
        self.places.freed.notify_waiters();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    fn is_over(place: &Place) -> bool {
        !place.places.lock().connections.contains_key(&place.number)
    }

    #[test]
    fn those_who_only_wait_give_way_and_the_crowd_before_others() {
        let places = Places::new(16);
        let lonely = places.try_take(network(1)).unwrap();
        let crowd: Vec<Place> = (0..15).map(|_| places.try_take(network(2)).unwrap()).collect();
        let more: Vec<Place> = (0..15).map(|_| places.try_take(network(2)).unwrap()).collect();
        assert!(crowd.iter().all(is_over) && !is_over(&lonely), "the oldest of the crowd ended");
        lonely.owned_by(Role::Operator, "olga").unwrap();
        drop(places.try_take(network(3)).unwrap());
        assert_eq!(more.iter().filter(|place| is_over(place)).count(), 1);
        assert_eq!(places.lock().connections.len(), 15);
    }

    #[test]
    fn there_are_always_places_for_operators() {
        let places = Places::new(64);
        let mut kept = Vec::new();
        for (role, tokens) in [(Role::Viewer, 40), (Role::Driver, 40)] {
            for token in 0..tokens {
                for _ in 0..10 {
                    let Some(place) = places.try_take(network(1)) else { panic!("no place is left") };
                    let _ = place.owned_by(role, &format!("token-{token}"));
                    kept.push(place);
                }
            }
        }
        let count = |role, name: Option<&str>| places.lock().of(role, name).count();
        assert_eq!((count(Role::Viewer, None), count(Role::Viewer, Some("token-39"))), (24, 4));
        assert_eq!((count(Role::Driver, None), count(Role::Driver, Some("token-0"))), (24, 10));
        for _ in 0..100 {
            let place = places.try_take(network(1)).expect("somebody gives way");
            place.owned_by(Role::Operator, "olga").unwrap();
            kept.push(place);
        }
        assert_eq!(count(Role::Operator, Some("olga")), 8, "one token has its share of them, too");
    }

    #[test]
    fn a_place_is_free_when_it_is_left() {
        let places = Places::new(1);
        let place = places.try_take(network(1)).unwrap();
        place.owned_by(Role::Operator, "olga").unwrap();
        assert!(places.try_take(network(2)).is_none());
        place.leave();
        let other = places.try_take(network(2)).unwrap();
        drop(place);
        assert!(!is_over(&other), "it is left once");
    }
}
