//! Creating database servers, and starting those that do not run.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;
use std::time::Duration;

use super::power;
use super::record::Credentials;
use super::server::Site;
use crate::account::Account;
use crate::daemon::Daemon;
use crate::error::LabError;
use crate::home::{check_space, let_pass, make_directory};
use crate::watch::Watch;
use crate::{mounts, ports};

/// How long a server may take to answer: after a crash it first does again what its log has.
const ANSWER: Duration = Duration::from_secs(300);

/// Creates the servers in their empty home and starts them. If that fails, nothing is left running.
pub(super) fn create(
    site: &Site,
    credentials: &Credentials,
    progress: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let mut watch = Watch::new(&site.home, &site.programs, progress);
    let result = lay_out(site).and_then(|()| {
        power::mount(site, &mut watch)?;
        make_all(site, credentials, &mut watch)?;
        start_missing(site, credentials, &mut watch)
    });
    watch.conclude(result, || mounts::release(&site.home, &site.programs))
}

/// Starts what does not run. If that fails, what it started is stopped again.
pub(super) fn resume(
    site: &Site,
    credentials: &Credentials,
    progress: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    let mut watch = Watch::new(&site.home, &site.programs, progress);
    let result = power::mount(site, &mut watch).and_then(|()| start_missing(site, credentials, &mut watch));
    watch.conclude(result, || Ok(()))
}

/// Makes the directories. Data that lie elsewhere, or on the disk whose power can be cut, are behind links, so that
/// they have the same paths in every lab.
fn lay_out(site: &Site) -> Result<(), LabError> {
    let Site { home, shape, account, .. } = site;
    let_pass(home.dir())?;
    for private in [home.run(), home.logs()] {
        make_directory(&private)?;
    }
    make_directory(&home.confs())?;
    let_pass(&home.confs())?;
    make_directory(&home.sockets())?;
    let_pass(&home.sockets())?;
    site.give(&home.sockets())?;
    let (place, name) = match shape.power_cut {
        true => (home.store(), "store"),
        false => (home.all_data(), "data"),
    };
    match &shape.on {
        None => make_directory(&place)?,
        Some(on) => {
            let elsewhere = home.elsewhere(on, name);
            make_new(&elsewhere)?;
            symlink(&elsewhere, &place).map_err(LabError::file("link", &place))?;
        }
    }
    let needed = shape.server.server().least_bytes() * shape.ports.len() as u64;
    check_space(&place, needed)?;
    if shape.power_cut {
        make_directory(&home.disk())?;
        symlink(home.disk(), home.all_data()).map_err(LabError::file("link", home.all_data()))?;
    }
    if let Some(account) = account {
        let data = home.all_data();
        let real = data.canonicalize().map_err(LabError::file("find", &data))?;
        account.check_reach(&real)?;
        account.check_reach(&home.sockets())?;
    }
    Ok(())
}

/// Makes a directory that is not there yet, or is empty.
fn make_new(path: &Path) -> Result<(), LabError> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let mut entries = fs::read_dir(path).map_err(LabError::file("read", path))?;
            match entries.next() {
                None => Ok(()),
                Some(_) => Err(LabError::UnsuitableDirectory {
                    dir: path.to_owned(),
                    why: "it is not empty, and no lab's record names it".into(),
                }),
            }
        }
        made => made.map_err(LabError::file("create", path)),
    }
}

fn make_all(site: &Site, credentials: &Credentials, watch: &mut Watch<'_>) -> Result<(), LabError> {
    let server = site.shape.server.server();
    let_pass(&site.home.all_data())?;
    for instance in site.shape.instances() {
        watch.say(&format!("creating the data of {}", server.daemon(instance)));
        let data = site.home.data(instance);
        make_directory(&data)?;
        site.give(&data)?;
        write_conf(site, instance)?;
        server.create(site, instance, credentials)?;
    }
    Ok(())
}

fn write_conf(site: &Site, instance: usize) -> Result<(), LabError> {
    let server = site.shape.server.server();
    let path = site.home.server_conf(server.daemon(instance));
    fs::write(&path, server.conf(site, instance)).map_err(LabError::file("write", path))
}

fn start_missing(site: &Site, credentials: &Credentials, watch: &mut Watch<'_>) -> Result<(), LabError> {
    let Site { home, shape, account, .. } = site;
    let server = shape.server.server();
    let mut missing: Vec<(Daemon, u16)> = Vec::new();
    for instance in shape.instances() {
        let daemon = server.daemon(instance);
        match daemon.find(home)? {
            Some(process) => watch.keep(daemon, process)?,
            None => {
                write_conf(site, instance)?;
                server.clear_away(home, instance, shape.ports[instance])?;
                missing.push((daemon, shape.ports[instance]));
            }
        }
    }
    // Before anything is started, because it would have to be stopped again.
    missing.iter().try_for_each(|(daemon, port)| ports::check(*daemon, *port))?;
    for (daemon, _) in &missing {
        watch.start(*daemon, Account::under(account.as_ref()))?;
    }
    watch.say("waiting for the servers to answer");
    for instance in shape.instances() {
        let address = (Ipv4Addr::LOCALHOST, shape.ports[instance]).into();
        let answers = || {
            TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
                && site.ask(instance, credentials, "SELECT 1").is_ok()
        };
        watch.await_ready(server.daemon(instance), ANSWER, "does not answer", answers)?;
    }
    Ok(())
}
