//! The proofs of a stage's drivers as one.

use tidemark_judge::evidence;
use tidemark_measure::record::{DeviceUse, DriverIo, Proof};

/// What a driver says for its part of a stage.
pub(crate) struct Told {
    /// Its number in the run.
    pub(crate) driver: usize,
    pub(crate) name: String,
    /// What tells its machine from others; empty where that is not known.
    pub(crate) machine: String,
    pub(crate) host: String,
    pub(crate) proof: Proof,
}

/// So many drivers that say the same are named.
const NAMED_MOST: usize = 4;

/// What several drivers say: each statement once, with the names of those who make it.
fn named(said: &[(&str, &[String])]) -> Vec<String> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for (driver, texts) in said {
        for text in *texts {
            match all.iter_mut().find(|(known, _)| known == text) {
                Some((_, drivers)) => drivers.push(driver),
                None => all.push((text, vec![driver])),
            }
        }
    }
    let from = |drivers: &[&str]| match drivers {
        [only] => format!("driver {only}"),
        all if all.len() == said.len() => "each driver".into(),
        [first @ .., last] if drivers.len() <= NAMED_MOST => {
            format!("drivers {} and {last}", first.join(", "))
        }
        many => format!("drivers {} and {} more", many[..NAMED_MOST].join(", "), many.len() - NAMED_MOST),
    };
    all.into_iter().map(|(text, drivers)| format!("{}: {text}", from(&drivers))).collect()
}

/// Joins the proofs of several drivers: each statement has the names of those who make it. A device of a machine that several of them are on has counted
/// for all of them, and counts once.
pub(crate) fn join(mut proofs: Vec<Told>, remarks: Vec<String>) -> Option<Proof> {
    if proofs.len() < 2 {
        let Told { mut proof, .. } = proofs.pop()?;
        proof.setup.extend(remarks);
        return Some(proof);
    }
    let mut all = Proof { direct: true, setup: remarks, ..Proof::default() };
    let texts = |of: fn(&Proof) -> &[String]| {
        proofs.iter().map(|told| (told.name.as_str(), of(&told.proof))).collect::<Vec<_>>()
    };
    all.setup.extend(named(&texts(|proof| &proof.setup)));
    all.unchecked = named(&texts(|proof| &proof.unchecked));
    let machines: Vec<String> = proofs.iter().map(|told| told.machine.clone()).collect();
    let mut devices: Vec<(String, DeviceUse)> = Vec::new();
    let has_volumes = |told: &&Told| told.proof.own.is_some();
    let apart = proofs.iter().filter(has_volumes).count() > 1;
    for Told { driver, name, machine, host, proof } in proofs {
        all.cache = proof.cache;
        all.direct &= proof.direct;
        all.add_figures(proof.figures);
        all.add_tables(proof.tables);
        all.unchecked.extend(evidence::not_joined(&evidence::join(&mut all.evidence, proof.evidence)));
        // The OSDs of a cluster count for all of its clients; who ended last has seen most of it.
        match (&mut all.osds, proof.osds) {
            (Some(known), Some(used)) => known.cover(&used),
            (known, used) => *known = known.take().or(used),
        }
        if let Some(own) = proof.own {
            let sum = all.own.get_or_insert_default();
            sum.read_bytes = sum.read_bytes.saturating_add(own.read_bytes);
            sum.written_bytes = sum.written_bytes.saturating_add(own.written_bytes);
            if apart {
                all.drivers.push(DriverIo { driver: driver as u32, own });
            }
        }
        let shared = !machine.is_empty() && machines.iter().filter(|other| **other == machine).count() > 1;
        let place = if shared { &host } else { &name };
        for device in proof.devices {
            let key = if shared {
                format!("{machine} {}", device.device)
            } else {
                format!("{name}:{}", device.device)
            };
            match devices.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => known.cover(device),
                None => {
                    let named = format!("{place}:{}", device.device);
                    devices.push((key, DeviceUse { device: named, ..device }));
                }
            }
        }
    }
    all.devices = devices.into_iter().map(|(_, device)| device).collect();
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_measure::record::{Evidence, OsdUse, OwnIo, QueryUse, TablesUse};

    /// What a driver on a machine says.
    fn told(driver: usize, machine: &str, proof: Proof) -> Told {
        let name = ["a", "b", "c"][driver].to_owned();
        Told { driver, name, machine: machine.into(), host: format!("host-{machine}"), proof }
    }

    #[test]
    fn a_device_of_one_machine_counts_once_and_what_processes_moved_adds_up() {
        let proof = |volume: &str, written_bytes| {
            let device = DeviceUse {
                device: "vda".into(),
                volumes: vec![volume.into()],
                written_bytes,
                ..DeviceUse::default()
            };
            let own = OwnIo { read_bytes: 1, written_bytes: 40 };
            Proof { devices: vec![device], own: Some(own), direct: true, ..Proof::default() }
        };
        let of = |machines: [&str; 3]| {
            let proofs =
                [("/v-a", 100), ("/v-b", 103), ("/v-c", 90)].map(|(volume, bytes)| proof(volume, bytes));
            let all = (0..)
                .zip(machines)
                .zip(proofs)
                .map(|((driver, machine), proof)| told(driver, machine, proof));
            join(all.collect(), Vec::new()).unwrap()
        };
        let devices = |proof: &Proof| {
            proof
                .devices
                .iter()
                .map(|one| (one.device.clone(), one.volumes.len(), one.written_bytes))
                .collect::<Vec<_>>()
        };
        let two = of(["one", "one", "two"]);
        assert_eq!(devices(&two), [("host-one:vda".to_owned(), 2, 103), ("c:vda".to_owned(), 1, 90)]);
        assert_eq!(two.own, Some(OwnIo { read_bytes: 3, written_bytes: 120 }));
        assert_eq!(
            two.drivers.iter().map(|one| (one.driver, one.own.written_bytes)).collect::<Vec<_>>(),
            [(0, 40), (1, 40), (2, 40)]
        );
        assert_eq!(devices(&of(["", "", ""])).len(), 3, "machines that are not known are taken for several");
    }

    #[test]
    fn the_osds_of_a_cluster_have_counted_what_the_last_driver_saw() {
        let of = |written_bytes| {
            let used = OsdUse { osds: 3, copies: 2, written_bytes, ..OsdUse::default() };
            Proof { osds: Some(used), ..Proof::default() }
        };
        let proofs = [of(10), of(30), Proof::default()];
        let all = (0..).zip(proofs).map(|(driver, proof)| told(driver, "one", proof)).collect();
        let used = join(all, Vec::new()).unwrap().osds.unwrap();
        assert_eq!((used.osds, used.copies, used.written_bytes), (3, 2, 30));
    }

    #[test]
    fn what_drivers_say_is_said_once_with_their_names() {
        let of = |setup: &[&str], unchecked: &[&str]| Proof {
            setup: setup.iter().map(|text| (*text).into()).collect(),
            unchecked: unchecked.iter().map(|text| (*text).into()).collect(),
            ..Proof::default()
        };
        let proofs = [of(&["dropped"], &["x"]), of(&["dropped"], &["x", "y"]), of(&["dropped", "z"], &[])];
        let all = (0..).zip(proofs).map(|(driver, proof)| told(driver, "one", proof)).collect();
        let joined = join(all, vec!["own".into()]).unwrap();
        assert_eq!(joined.setup, ["own", "each driver: dropped", "driver c: z"]);
        assert_eq!(joined.unchecked, ["drivers a and b: x", "driver b: y"]);
        let x = ["x".to_owned()];
        let names = ["a", "b", "c", "d", "e", "f"].map(|name| (name, &x[..]));
        let mut most = names.to_vec();
        most.push(("g", &[]));
        assert_eq!(named(&most), ["drivers a, b, c, d and 2 more: x"]);
    }

    #[test]
    fn streams_of_several_drivers_are_one_work_and_what_one_committed_is_there() {
        let query = |stream| QueryUse { stream, took_ns: u64::from(stream), ..QueryUse::default() };
        let asked = |streams: &[u32]| TablesUse {
            work: "load".into(),
            queries: streams.iter().copied().map(query).collect(),
            ..TablesUse::default()
        };
        let one = Proof { tables: vec![asked(&[1, 3])], ..Proof::default() };
        let commits: Evidence = serde_json::from_str(r#"{"commits": ["c1"]}"#).unwrap();
        let other = Proof { tables: vec![asked(&[2])], evidence: commits.clone(), ..Proof::default() };
        let joined = join(vec![told(0, "one", one), told(1, "two", other)], Vec::new()).unwrap();
        assert_eq!((joined.tables, joined.evidence), (vec![asked(&[1, 2, 3])], commits));
    }
}
