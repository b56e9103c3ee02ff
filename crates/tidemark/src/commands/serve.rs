//! `tidemark serve`: the controller, and the driver that is started with it.

use super::outcome::open_store;
use crate::cli::{self, TokenRole};
use crate::exit::{Exit, Stop};
use crate::signals::Signals;
use crate::terminal::Terminal;
use std::cell::RefCell;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidemark_control::event::StopRequest;
use tidemark_control::provenance;
use tidemark_controller::Controller;
use tidemark_controller::api::Role;
use tidemark_controller::controller::{self, Secrets};
use tidemark_fleet::link::access::{Access, Left};
use tidemark_fleet::{Fleet, fleet};
use tidemark_plan::secret::Secret;
use tidemark_serve::{Options, OwnToken, Ready, Security, Tls};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs that do not end within this are abandoned: what was measured is in the store, and the next start reports it.
const LONGEST_END: Duration = Duration::from_secs(20);

/// Serves until the user stops it.
pub(crate) fn serve(
    arguments: &cli::Serve,
    store: Option<PathBuf>,
    terminal: Terminal,
) -> Result<Exit, Stop> {
    // Every driver, client and browser is a socket.
    tidemark_load::open_files::limit();
    let path = store.unwrap_or_else(tidemark_store::default_path);
    let name = arguments.name.clone().unwrap_or_else(|| provenance::host().name);
    let security = security(arguments, &path);
    let given = arguments.tokens.as_deref().map(given).transpose()?.unwrap_or_default();
    let fleet = Fleet::new(fleet::Options {
        name: name.clone(),
        version: VERSION.into(),
        silent_after: Duration::from_secs(2),
        gone_after: Duration::from_secs(30),
    });
    let options = controller::Options {
        registry: tidemark_engines::registry(),
        name: name.clone(),
        version: VERSION.into(),
        store: path.clone(),
        secrets: Secrets {
            directory: arguments.secrets.clone(),
            bound: arguments.bind_secret.iter().cloned().collect(),
        },
        queue_most: arguments.queue,
    };
    let controller = Controller::start(options, Arc::clone(&fleet)).map_err(Stop::not_ready)?;
    let signals = Signals::listen();
    let made = Made::new(arguments, &security)?;
    let wants_first = matches!(security, Security::Tokens { tls: Some(_) }) && given.is_empty();
    let options = Options {
        listen: arguments.listen,
        security,
        own: made.all().into_iter().chain(given).collect(),
        allow_insecure: arguments.insecure,
        name,
        version: VERSION.into(),
        origins: arguments.origin.clone(),
        limits: tidemark_serve::Limits::default(),
    };
    let (mut own, mut left, trouble) = (None, None, RefCell::new(None));
    // Not before: where nothing can listen, nobody needs a token.
    let ready = |ready: Ready| {
        left = made.leave(&ready, terminal);
        announce(&ready, arguments, left.is_some(), terminal);
        match wants_first.then(|| first_token(&path, terminal)).transpose() {
            Err(stop) => *trouble.borrow_mut() = Some(stop),
            Ok(_) => own = made.driver.as_ref().map(|token| OwnDriver::start(arguments, &ready, token)),
        }
    };
    let mut end = End { controller: Arc::clone(&controller), going: None };
    let stop = || {
        if trouble.borrow().is_some() {
            return true;
        }
        signals.stop_request() > StopRequest::None
            && (end.is_over(terminal) || signals.stop_request() > StopRequest::Finish)
    };
    let served = tidemark_serve::serve(options, Arc::clone(&controller), fleet, ready, stop);
    controller.shut_down();
    drop((own, left));
    served.map_err(Stop::not_ready)?;
    trouble.into_inner().map_or(Ok(Exit::Done), Err)
}

fn security(arguments: &cli::Serve, store: &Path) -> Security {
    if arguments.tls_cert.is_none() {
        if arguments.open || arguments.insecure {
            return Security::Open;
        }
        if arguments.listen.ip().is_loopback() && !arguments.secure {
            return Security::Tokens { tls: None };
        }
    }
    let beside = store.parent().map(PathBuf::from).unwrap_or_default();
    let tls = match (arguments.tls_cert.clone(), arguments.tls_key.clone()) {
        (Some(certificate), Some(key)) => Tls::Files { certificate, key },
        _ => Tls::SelfSigned { directory: beside.join("tls") },
    };
    Security::Tokens { tls: Some(tls) }
}

/// Tokens that whoever runs the controller has made, in files that are named after roles.
fn given(directory: &Path) -> Result<Vec<OwnToken>, Stop> {
    let mut given = Vec::new();
    let known = [
        ("operator", "operator", Role::Operator),
        ("viewer", "viewer", Role::Viewer),
        ("driver", "*", Role::Driver),
    ];
    for (file, name, role) in known {
        let path = directory.join(file);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            text => text.map_err(|error| Stop::usage(format!("cannot read {}: {error}", path.display())))?,
        };
        let token = OwnToken::given(text.trim(), name, role).ok_or_else(|| {
            Stop::usage(format!("the token in {} can be guessed: use at least 16 characters", path.display()))
        })?;
        given.push(token);
    }
    match given.is_empty() {
        true => Err(Stop::usage(format!(
            "--tokens: {} has none of the files `operator`, `viewer` and `driver`",
            directory.display()
        ))),
        false => Ok(given),
    }
}

/// The tokens of this start: for the driver on this host, and on loopback for whoever else is this user.
struct Made {
    driver: Option<OwnToken>,
    /// For people, and for drivers of any name.
    user: Option<(OwnToken, OwnToken)>,
}

impl Made {
    fn new(arguments: &cli::Serve, security: &Security) -> Result<Self, Stop> {
        let make = |name: &str, role| {
            let random =
                |error| Stop::not_ready(format!("cannot read random numbers from the system: {error}"));
            OwnToken::new(name, role).map_err(random)
        };
        let has_file =
            arguments.listen.ip().is_loopback() && !matches!(security, Security::Tokens { tls: Some(_) });
        let user = match has_file {
            true => Some((make(&user_name(), Role::Operator)?, make("*", Role::Driver)?)),
            false => None,
        };
        Ok(Self {
            driver: (!arguments.no_driver).then(|| make(&arguments.driver_name, Role::Driver)).transpose()?,
            user,
        })
    }

    fn all(&self) -> Vec<OwnToken> {
        let user = self.user.iter().flat_map(|(operator, driver)| [operator, driver]);
        self.driver.iter().chain(user).cloned().collect()
    }

    /// Leaves the user's tokens where the command line and drivers find them.
    fn leave(&self, ready: &Ready, terminal: Terminal) -> Option<Left> {
        let (operator, driver) = self.user.as_ref()?;
        let secret = |token: &OwnToken| Secret::new(token.reveal());
        let access = Access { operator: (!ready.open).then(|| secret(operator)), driver: secret(driver) };
        let left = access.leave(ready.address).inspect_err(|error| {
            terminal.remark(&format!(
                "cannot leave tokens for your command line: {error}; create some with `tidemark token`"
            ));
        });
        left.ok()
    }
}

/// Who runs this, as the audit log has it.
fn user_name() -> String {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.is_empty() && name.chars().all(|one| one.is_ascii_graphic()))
        .unwrap_or_else(|| "local".to_owned())
}

/// The end of a controller: it interrupts running submissions while drivers and viewers are still connected.
struct End {
    controller: Arc<Controller>,
    /// Since when, and the thread that does it.
    going: Option<(Instant, JoinHandle<()>)>,
}

impl End {
    /// Begins it at the first call; whether it is over, or has taken too long.
    fn is_over(&mut self, terminal: Terminal) -> bool {
        let (since, thread) = self.going.get_or_insert_with(|| {
            let active = self.controller.overview().active;
            let going = active.iter().map(|one| format!("w{}", one.id)).collect::<Vec<_>>();
            terminal.remark(&match going.is_empty() {
                true => "ending".to_owned(),
                false => {
                    format!("stopping: {} is interrupted; what was measured is kept", going.join(", "))
                }
            });
            let controller = Arc::clone(&self.controller);
            (Instant::now(), std::thread::spawn(move || controller.shut_down()))
        });
        thread.is_finished() || since.elapsed() > LONGEST_END
    }
}

/// Where the controller is, and how drivers join it.
fn announce(ready: &Ready, arguments: &cli::Serve, has_left_tokens: bool, terminal: Terminal) {
    let url = ready.url();
    terminal.remark(&format!("serving {url}; press Ctrl-C to stop"));
    if ready.open {
        terminal.remark(match ready.address.ip().is_loopback() {
            true => "nobody logs in: everyone on this machine is an operator",
            false => "nobody logs in: everyone who reaches this address is an operator",
        });
    }
    if ready.renewed {
        terminal.remark("the certificate was made again, for this address and host: drivers and clients need its new --trust");
    }
    if let Some(login) = &ready.login {
        terminal.remark(&format!("log in, once: {login} (`tidemark login` prints another)"));
    }
    let url = url.trim_end_matches('/');
    let mut join = format!("tidemark driver --join {url}");
    if let Some(fingerprint) = &ready.fingerprint {
        join += &format!(" --trust sha256:{fingerprint} ");
    }
    if !has_left_tokens {
        join = format!("{} --token-file FILE --name NAME", join.trim_end());
    }
    terminal.remark(&format!("drivers join with: {join}"));
    if !has_left_tokens {
        terminal.remark("their tokens, one for each name: tidemark token add NAME --role driver > FILE");
    }
    if arguments.no_driver {
        terminal.remark("no driver on this host: runs wait until one joins");
    }
}

/// At the first start with TLS: a token for a person, shown once.
fn first_token(store: &Path, terminal: Terminal) -> Result<(), Stop> {
    let mut store = open_store(Some(store.to_owned()))?;
    let tokens = store.tokens().map_err(Stop::not_ready)?;
    let role = TokenRole::Operator.name();
    if tokens.iter().any(|token| token.role == role) {
        return Ok(());
    }
    let text = store.add_token(role, role).map_err(Stop::not_ready)?;
    terminal.remark("operator token, shown only once (see `tidemark token`):");
    terminal.print(&text);
    Ok(())
}

/// The driver on the controller's host: a process of its own, so that neither disturbs the other. It ends
/// with the controller, however that ends: its standard input is closed then.
struct OwnDriver {
    ended: Arc<AtomicBool>,
    child: Arc<Mutex<Option<Child>>>,
    keeper: Option<JoinHandle<()>>,
}

impl OwnDriver {
    fn start(arguments: &cli::Serve, ready: &Ready, token: &OwnToken) -> Self {
        let mut words = vec!["driver".to_owned(), "--embedded".into(), "--name".into()];
        words.extend([arguments.driver_name.clone(), "--join".into()]);
        words
            .push(ready.url().trim_end_matches('/').replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]"));
        if let Some(fingerprint) = &ready.fingerprint {
            words.extend(["--trust".into(), format!("sha256:{fingerprint}")]);
        }
        for path in &arguments.allow_path {
            words.extend(["--allow-path".into(), path.display().to_string()]);
        }
        for conf in &arguments.allow_ceph_conf {
            words.extend(["--allow-ceph-conf".into(), conf.display().to_string()]);
        }
        if let Some(threads) = arguments.threads {
            words.extend(["--threads".into(), threads.to_string()]);
        }
        let (ended, child) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let keeper = std::thread::spawn({
            let (ended, child) = (Arc::clone(&ended), Arc::clone(&child));
            let token = token.clone();
            move || keep(&words, &token, &ended, &child)
        });
        Self { ended, child, keeper: Some(keeper) }
    }
}

/// Starts the driver, and again whenever it has ended.
fn keep(words: &[String], token: &OwnToken, ended: &AtomicBool, kept: &Mutex<Option<Child>>) {
    while !ended.load(Ordering::Relaxed) {
        let started = std::env::current_exe().and_then(|program| {
            let mut command = Command::new(program);
            // Its own group: Ctrl-C is for the controller, which first interrupts running submissions.
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
            command.env("TIDEMARK_TOKEN", token.reveal()).spawn()
        });
        let locked = || kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(child) = started {
            *locked() = Some(child);
            // One that was taken away is being stopped.
            while let Some(Ok(None)) = locked().as_mut().map(Child::try_wait) {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

impl Drop for OwnDriver {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut child) = child {
            drop(child.stdin.take());
            let until = Instant::now() + Duration::from_secs(5);
            while let Ok(None) = child.try_wait()
                && Instant::now() < until
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            // It has ended, or does not react.
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}
