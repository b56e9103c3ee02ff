//! The addresses of a lab's node and its pods, and the bridge on which they meet.
//!
//! The bridge's address is the machine's for the pods, and the only one that the node's servers listen on. It is also the first
//! address of services, which Kubernetes gives to its API server and tells every pod: so pods find it there without a proxy.
//! Nodes after the first one have a network namespace of their own, with a bridge that is connected to the lab's: all pods are on one network.
//! Nothing is forwarded and no firewall is touched: pods reach each other and this machine, and only pods in the machine's own
//! network (`hostNetwork`) reach others.

use std::ffi::OsString;
use std::fs;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::command::Programs;
use crate::error::LabError;
use crate::home::Home;

/// Where networks are looked for, 10.240.0.0/12, and how many are there.
const FIRST: u32 = 0x0AF0_0000;
const NETWORKS: u32 = 1 << (PREFIX - 12);
/// How many bits of an address name the network.
const PREFIX: u32 = 22;
/// The addresses of pods, by their distance from the first one.
const PODS: Range<usize> = 256..1023;
/// The machine's routes: a name, then a destination, and the mask as the eighth word, in the processor's order of bytes.
const ROUTES: &str = "/proc/net/route";
/// Where the kernel lists network interfaces.
const INTERFACES: &str = "/sys/class/net";
/// The most nodes of a lab: their numbers have one digit in the names of interfaces.
pub(super) const MOST_NODES: usize = 8;
/// How long a command on an interface may take.
const COMMAND: Duration = Duration::from_secs(30);

/// A network of 1024 addresses: the first quarter is for services, the first of them those of the nodes; the rest is for pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Network {
    /// The address that names it.
    first: Ipv4Addr,
    /// How many nodes share it; labs made before there could be several have one.
    #[serde(default = "one")]
    nodes: usize,
}

fn one() -> usize {
    1
}

impl Network {
    /// A free one for so many nodes. The search begins at a place that depends on the lab, as that for ports does.
    pub(crate) fn choose(home: &Home, nodes: usize) -> Result<Self, LabError> {
        if !(1..=MOST_NODES).contains(&nodes) {
            return Err(LabError::BadOption {
                option: "the number of nodes",
                value: nodes as u64,
                allowed: "1 to 8",
            });
        }
        let taken = routes();
        let begin = u32::try_from(home.hash() % u64::from(NETWORKS)).unwrap_or_default();
        let mut all = (begin..NETWORKS).chain(0..begin);
        let free = all.find_map(|number| {
            let network = Self { first: Ipv4Addr::from_bits(FIRST + (number << (32 - PREFIX))), nodes };
            (!taken.iter().any(|route| network.meets(*route))).then_some(network)
        });
        free.ok_or(LabError::NoFreeNetwork)
    }

    /// The machine's address, which is that of the first node.
    pub(crate) fn host(self) -> Ipv4Addr {
        self.node(0)
    }

    /// The address of a node.
    pub(crate) fn node(self, number: usize) -> Ipv4Addr {
        self.at(1 + number)
    }

    /// How many nodes there are.
    pub(crate) fn nodes(self) -> usize {
        self.nodes
    }

    /// The addresses of services.
    pub(crate) fn services(self) -> String {
        format!("{}/24", self.first)
    }

    /// All of it.
    pub(crate) fn range(self) -> String {
        format!("{}/{PREFIX}", self.first)
    }

    fn at(self, offset: usize) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.to_bits() + offset as u32)
    }

    /// What the plugins of the container network interface of a node are told.
    pub(super) fn plugins(self, home: &Home, number: usize) -> Value {
        let begin = |number| PODS.start + number * PODS.len() / self.nodes;
        let pods = json!({
            "subnet": self.range(),
            "rangeStart": self.at(begin(number)),
            "rangeEnd": self.at(begin(number + 1) - 1),
            "gateway": self.host(),
        });
        let addresses = json!({"type": "host-local", "ranges": [[pods]], "routes": [{"dst": "0.0.0.0/0"}]});
        let bridge = json!({"type": "bridge", "bridge": home.short_mark(), "ipam": addresses});
        json!({"cniVersion": "1.0.0", "name": home.short_mark(), "plugins": [bridge]})
    }

    /// Makes the bridge, unless it is there.
    pub(crate) fn make(self, home: &Home, programs: &Programs) -> Result<(), LabError> {
        let name = home.short_mark();
        if !exists(&name) {
            if routes().into_iter().any(|route| self.meets(route)) {
                return Err(LabError::NetworkTaken { range: self.range() });
            }
            let words = ["link", "add", &name, "address", &self.hardware(0), "type", "bridge"];
            programs.run("ip", &words, COMMAND)?;
        }
        let address = format!("{}/{PREFIX}", self.host());
        programs.run("ip", &["address", "replace", &address, "dev", &name], COMMAND)?;
        programs.run("ip", &["link", "set", &name, "up"], COMMAND).map(drop)
    }

    /// Makes the bridge of a node in a network namespace that has just been made, and connects it to the lab's.
    pub(super) fn connect(
        self,
        home: &Home,
        number: usize,
        space: &Path,
        programs: &Programs,
    ) -> Result<(), LabError> {
        let (bridge, outside, inside) = (home.short_mark(), link(home, number), "uplink");
        // What is left of an earlier one goes with its namespace, but not at once.
        disconnect(home, number, programs)?;
        let space_name = space.to_string_lossy();
        let words = [
            "link",
            "add",
            &outside,
            "master",
            &bridge,
            "type",
            "veth",
            "peer",
            inside,
            "netns",
            &space_name,
        ];
        programs.run("ip", &words, COMMAND)?;
        programs.run("ip", &["link", "set", &outside, "up"], COMMAND)?;
        let address = format!("{}/{PREFIX}", self.node(number));
        let there = |words: &[&str]| {
            let mut into = OsString::from("--net=");
            into.push(space);
            let words = std::iter::once("ip").chain(words.iter().copied()).map(OsString::from);
            let words: Vec<_> = std::iter::once(into).chain(words).collect();
            programs.run("nsenter", &words, COMMAND).map(drop)
        };
        there(&["link", "set", "lo", "up"])?;
        there(&["link", "add", &bridge, "address", &self.hardware(number), "type", "bridge"])?;
        there(&["link", "set", inside, "master", &bridge, "up"])?;
        there(&["address", "add", &address, "dev", &bridge])?;
        there(&["link", "set", &bridge, "up"])
    }

    /// The hardware address of a node's bridge. Without one of its own, a bridge takes that of a pod, and changes it when that goes.
    fn hardware(self, number: usize) -> String {
        let [_, b, c, _] = self.first.octets();
        format!("02:54:4d:{b:02x}:{c:02x}:{:02x}", 1 + number)
    }

    fn meets(self, (destination, mask): (u32, u32)) -> bool {
        let mask = mask & (u32::MAX << (32 - PREFIX));
        self.first.to_bits() & mask == destination & mask
    }
}

/// The lab's end of the link to a node.
fn link(home: &Home, number: usize) -> String {
    home.short_mark().replacen("tm", &format!("t{number}"), 1)
}

fn disconnect(home: &Home, number: usize, programs: &Programs) -> Result<(), LabError> {
    let link = link(home, number);
    match exists(&link) {
        true => programs.run("ip", &["link", "delete", &link], COMMAND).map(drop),
        false => Ok(()),
    }
}

/// Removes the bridge of a lab and the links to its nodes, if there are any. What was connected to it must be gone.
pub(super) fn remove(home: &Home, programs: &Programs) -> Result<(), LabError> {
    (1..MOST_NODES).try_for_each(|number| disconnect(home, number, programs))?;
    let name = home.short_mark();
    if !exists(&name) {
        return Ok(());
    }
    programs.run("ip", &["link", "delete", &name], COMMAND).map(drop)
}

fn exists(name: &str) -> bool {
    Path::new(INTERFACES).join(name).exists()
}

/// Where the machine's routes lead, but for the default ones: addresses and masks.
fn routes() -> Vec<(u32, u32)> {
    let text = fs::read_to_string(ROUTES).unwrap_or_default();
    text.lines().skip(1).filter_map(route).filter(|(_, mask)| *mask != 0).collect()
}

fn route(line: &str) -> Option<(u32, u32)> {
    let number = |word: &str| Some(u32::from_be(u32::from_str_radix(word, 16).ok()?));
    let mut words = line.split_whitespace().skip(1);
    Some((number(words.next()?)?, number(words.nth(5)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_room_for_services_and_pods() {
        let network = Network { first: Ipv4Addr::new(10, 250, 8, 0), nodes: 1 };
        assert_eq!(network.host(), Ipv4Addr::new(10, 250, 8, 1));
        assert_eq!(
            (network.services().as_str(), network.range().as_str()),
            ("10.250.8.0/24", "10.250.8.0/22")
        );
        assert_eq!(network.at(256), Ipv4Addr::new(10, 250, 9, 0));
        assert_eq!(network.at(1022), Ipv4Addr::new(10, 250, 11, 254));
    }

    #[test]
    fn pods_of_each_node_have_addresses_of_their_own() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::prepare(&place.path().join("lab")).unwrap();
        let ranges = |nodes| {
            let network = Network { first: Ipv4Addr::new(10, 250, 8, 0), nodes };
            let range = |number| {
                let plugins = network.plugins(&home, number);
                let range = &plugins["plugins"][0]["ipam"]["ranges"][0][0];
                ["rangeStart", "rangeEnd"].map(|end| range[end].as_str().unwrap().to_owned())
            };
            (0..nodes).map(range).collect::<Vec<_>>()
        };
        assert_eq!(ranges(1), [["10.250.9.0", "10.250.11.254"]]);
        let three = [
            ["10.250.9.0", "10.250.9.254"],
            ["10.250.9.255", "10.250.10.254"],
            ["10.250.10.255", "10.250.11.254"],
        ];
        assert_eq!(ranges(3), three);
        let old: Network = serde_json::from_str(r#"{"first": "10.250.8.0"}"#).unwrap();
        assert_eq!((old.nodes(), old.node(0), old.node(2)), (1, old.host(), Ipv4Addr::new(10, 250, 8, 3)));
    }

    #[test]
    fn networks_of_others_are_kept_clear_of() {
        let network = Network { first: Ipv4Addr::new(10, 250, 8, 0), nodes: 1 };
        let meets = |text: &str, prefix: u32| {
            let address: Ipv4Addr = text.parse().unwrap();
            network.meets((address.to_bits(), u32::MAX << (32 - prefix)))
        };
        assert!(meets("10.0.0.0", 8) && meets("10.250.8.0", 22) && meets("10.250.11.0", 24));
        assert!(meets("10.250.9.7", 32));
        assert!(!meets("10.250.12.0", 22) && !meets("10.251.0.0", 16) && !meets("192.0.2.0", 24));
        let line = "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0";
        let network = Ipv4Addr::new(192, 0, 2, 0).to_bits();
        if cfg!(target_endian = "little") {
            assert_eq!(route(line), Some((network, 0xFFFF_FF00)));
        }
        assert_eq!(route("Iface\tDestination"), None);
    }
}
