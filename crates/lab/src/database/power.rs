//! The disk below the servers whose power can be cut, and the cut itself.
//!
//! The disk is a file system that this program serves in a process of its own ([`tidemark_powercut`]). What was not
//! synced is in that process's memory only. To cut the power is therefore to kill it.

use rustix::process::Signal;
use std::time::Duration;

use super::server::Site;
use crate::daemon::{self, Daemon, Under};
use crate::error::LabError;
use crate::mounts;
use crate::watch::Watch;

/// How long the disk may take to be mounted: it reads the names of all files first.
const MOUNT: Duration = Duration::from_secs(60);
/// How long the kernel may take to end a process that was killed.
const KILLING: Duration = Duration::from_secs(30);

/// Mounts the disk, if there is to be one and it is not mounted.
pub(super) fn mount(site: &Site, watch: &mut Watch<'_>) -> Result<(), LabError> {
    let Site { home, shape, programs, .. } = site;
    if !shape.power_cut {
        return Ok(());
    }
    if let Some(process) = Daemon::Disk.find(home)? {
        return watch.keep(Daemon::Disk, process);
    }
    // What a process that was killed has left behind.
    mounts::release(home, programs)?;
    watch.start(Daemon::Disk, Under::Us)?;
    watch.await_ready(Daemon::Disk, MOUNT, "is not mounted", || mounts::is_mounted(&home.disk()))
}

/// Unmounts the disk in an orderly way: nothing is lost. The servers must not be running.
pub(super) fn unmount(site: &Site, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    if site.shape.power_cut {
        daemon::stop(&site.home, &[Daemon::Disk], progress)?;
        mounts::release(&site.home, &site.programs)?;
    }
    Ok(())
}

/// Kills the servers, and every process that they have started.
pub(super) fn kill_servers(site: &Site, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    for daemon in site.shape.daemons().into_iter().filter(|daemon| *daemon != Daemon::Disk) {
        kill(site, daemon, progress)?;
    }
    Ok(())
}

/// Kills the servers and the disk below them, and mounts the disk again with what it holds.
pub(super) fn cut(site: &Site, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    if !site.shape.power_cut {
        return Err(LabError::NoPowerCut { dir: site.home.dir().to_owned() });
    }
    // First the disk: what the servers still do when they see their end coming must not reach it.
    kill(site, Daemon::Disk, progress)?;
    kill_servers(site, progress)?;
    mounts::release(&site.home, &site.programs)?;
    let mut watch = Watch::new(&site.home, &site.programs, progress);
    let mounted = mount(site, &mut watch);
    watch.conclude(mounted, || Ok(()))
}

fn kill(site: &Site, daemon: Daemon, progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    let Some(process) = daemon.find(&site.home)? else { return Ok(()) };
    progress(&format!("killing {daemon}"));
    let failed = || LabError::file("signal the process of", site.home.pid_file(daemon));
    let children = process.children().map_err(failed())?;
    for one in std::iter::once(&process).chain(&children) {
        one.signal(Signal::KILL).map_err(failed())?;
    }
    for one in std::iter::once(&process).chain(&children) {
        if !one.ended_within(KILLING).map_err(failed())? {
            return Err(LabError::WouldNotEnd { daemon, pid: one.pid() });
        }
        one.reap();
    }
    Ok(())
}
