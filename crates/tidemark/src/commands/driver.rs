//! `tidemark driver`: runs load for a controller.

use crate::cli;
use crate::exit::{Exit, Stop};
use crate::remote;
use crate::signals::Signals;
use crate::terminal::Terminal;
use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::Read as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tidemark_control::event::StopRequest;
use tidemark_control::provenance;
use tidemark_fleet::driver::{self, Notice, Options};
use tidemark_fleet::helper;
use tidemark_fleet::link::Join;
use tidemark_fleet::link::client::join;
use tidemark_fleet::protocol::{self, Hello};
use tidemark_measure::host::Host;
use tidemark_plan::policy::Policy;

/// What starts the process of a run: this program, also after its file was replaced by another version's.
fn run_process() -> Command {
    let own = std::env::current_exe().ok().filter(|path| path.exists());
    let mut command = Command::new(own.unwrap_or_else(|| "/proc/self/exe".into()));
    // The driver alone speaks to the controller.
    command.arg("run-part").env_remove("TIDEMARK_TOKEN");
    command
}

/// Carries out a run for the driver that has started this process.
pub(crate) fn run_part() -> Result<Exit, Stop> {
    Signals::left_to_parent();
    helper::serve(tidemark_engines::registry()).map_err(Stop::usage)?;
    Ok(Exit::Done)
}

/// Joins a controller and runs its load, until the user stops it.
pub(crate) fn driver(arguments: &cli::Driver, terminal: Terminal) -> Result<Exit, Stop> {
    let own = provenance::host();
    let hello = Hello {
        protocol: protocol::VERSION,
        tidemark: env!("CARGO_PKG_VERSION").into(),
        name: arguments.name.clone().unwrap_or_else(|| own.name.clone()),
        machine: provenance::machine(),
        host: Host { name: arguments.node.clone().unwrap_or_else(|| own.name.clone()), ..own },
        instance: RandomState::new().build_hasher().finish(),
    };
    let url = arguments.join.clone();
    let (token, trust) = (remote::token(&arguments.reach)?, remote::trust(&arguments.reach)?);
    let link = join(Join { url: url.clone(), token, trust }, hello).map_err(Stop::usage)?;
    let policy =
        Policy { directories: arguments.allow_path.clone(), ceph_confs: arguments.allow_ceph_conf.clone() };
    if let Some(reason) = policy.contradiction() {
        return Err(Stop::usage(reason));
    }
    let options = Options {
        registry: tidemark_engines::registry(),
        policy: Some(policy),
        threads: arguments.threads,
        observes: true,
        process: Some(run_process),
        // What is allowed may be a device.
        scratch: arguments
            .allow_path
            .iter()
            .find(|path| path.is_dir() || !path.exists())
            .cloned()
            .unwrap_or_else(std::env::temp_dir),
    };
    let signals = Signals::listen();
    let orphan = Arc::new(AtomicBool::new(false));
    if arguments.embedded {
        let orphan = Arc::clone(&orphan);
        std::thread::spawn(move || {
            // The controller holds the other end as long as it lives.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            orphan.store(true, Ordering::Relaxed);
        });
    }
    // When the controller was last known to be there, as long as it is away.
    let away_since = Cell::new(Some(Instant::now()));
    let is_left = || {
        let is_over = |(since, most): (Instant, Duration)| since.elapsed() >= most;
        away_since.get().zip(arguments.leave_after).is_some_and(is_over)
    };
    let stop = || signals.stop_request() > StopRequest::None || orphan.load(Ordering::Relaxed) || is_left();
    let mut notify = |notice: Notice| {
        match &notice {
            Notice::Joined(_) | Notice::Reconnected => away_since.set(None),
            Notice::Unreachable(_) | Notice::Disconnected | Notice::SessionLost(_) => {
                away_since.set(away_since.get().or(Some(Instant::now())));
            }
            Notice::RunStarted(_) | Notice::RunEnded | Notice::Trouble(_) => {}
        }
        let text = match notice {
            Notice::Joined(_) if arguments.embedded => return,
            Notice::Joined(name) => format!("joined {name} at {url}; Ctrl-C ends this driver"),
            Notice::Unreachable(_) if arguments.embedded => return,
            Notice::Unreachable(trouble) => format!("{trouble}; trying again"),
            Notice::Disconnected => "the controller cannot be reached; measurements are kept for it".into(),
            Notice::Reconnected => "the controller is back; nothing was lost".into(),
            Notice::SessionLost(reason) => format!("this driver's part of the run has ended: {reason}"),
            Notice::RunStarted(_) | Notice::RunEnded if arguments.embedded => return,
            Notice::RunStarted(name) => format!("run `{name}` starts"),
            Notice::RunEnded => "the run has ended".into(),
            Notice::Trouble(text) => text,
        };
        terminal.remark(&text);
    };
    driver::serve(link, &options, &stop, &mut notify).map_err(Stop::not_ready)?;
    match (is_left(), arguments.leave_after) {
        (true, Some(most)) => Err(Stop::not_ready(format!(
            "the controller at {url} has been away for {} s, so this driver ends; check its address, and the way there",
            most.as_secs()
        ))),
        _ => Ok(Exit::Done),
    }
}
