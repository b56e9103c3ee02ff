//! Whoever takes the port of a controller that has ended gets nothing, and commands nobody.

use crate::common::Place;
use crate::common::fleet::{Controller, Process, wait};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use tidemark_fleet::link::proof::Key;

const SECRET: &str = "hunter2hunter2";

/// A load that goes on for longer than any test waits; its document has a secret.
fn document() -> String {
    format!(
        "name: long\ndrivers: {{lost_after: 4s}}\n\
         target: {{kind: s3, endpoints: ['http://127.0.0.1:1'], access_key: k, secret_key: {SECRET}}}\n\
         stages:\n- init: {{containers: 1-1}}\n"
    )
}

/// The same as a load on nothing, which no storage can end.
fn endless() -> String {
    "name: endless\ndrivers: {lost_after: 4s}\ntarget: {kind: mock}\nstages:\n\
     - name: main\n  load: {workers: 1, rate: 10/s, for: 3600s, containers: 1-1, operations: [{put: {objects: 1-9, sizes: 1KiB}}]}\n"
        .to_owned()
}

/// The tokens that a controller has left: of its user, and of drivers.
fn left(place: &Place, address: SocketAddr) -> [String; 2] {
    let hosts = std::fs::read_dir(place.path("state/tidemark/controllers")).unwrap();
    let file = hosts.map(|host| host.unwrap().path().join(address.to_string())).find(|path| path.exists());
    let text = std::fs::read_to_string(file.unwrap()).unwrap();
    let token = |role: &str| text.lines().find_map(|line| line.strip_prefix(role)).unwrap().trim().to_owned();
    [token("operator"), token("driver")]
}

fn address(controller: &Controller<'_>) -> SocketAddr {
    controller.url.trim_start_matches("http://").parse().unwrap()
}

/// Somebody who listens where a controller was, and passes all that comes on to another one.
struct Impostor {
    /// What came, connection by connection.
    got: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Impostor {
    /// `token`: puts this token in the place of every other; without one, bytes are passed on as they are.
    fn at(address: SocketAddr, there: SocketAddr, token: Option<String>) -> Self {
        let listener = wait("the port", || TcpListener::bind(address).ok());
        let got: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let kept = Arc::clone(&got);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let number = {
                    let mut got = kept.lock().unwrap();
                    got.push(Vec::new());
                    got.len() - 1
                };
                let (kept, token) = (Arc::clone(&kept), token.clone());
                std::thread::spawn(move || pass_on(stream, there, token.as_deref(), &kept, number));
            }
        });
        Self { got }
    }

    fn got(&self) -> Vec<Vec<u8>> {
        self.got.lock().unwrap().clone()
    }

    /// Asserts that none of these came, over any connection.
    fn never_got(&self, texts: &[&str]) {
        for bytes in self.got() {
            let came = String::from_utf8_lossy(&bytes).to_lowercase();
            for text in texts {
                assert!(!came.contains(&text.to_lowercase()), "`{text}` came: {came}");
            }
        }
    }
}

/// Passes a connection on, until either side ends it.
fn pass_on(
    mut client: TcpStream,
    there: SocketAddr,
    token: Option<&str>,
    kept: &Mutex<Vec<Vec<u8>>>,
    number: usize,
) {
    let Ok(mut server) = TcpStream::connect(there) else { return };
    let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = client.read(&mut part) {
        kept.lock().unwrap()[number].extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&part[..count]).into_owned();
        let bytes = match token {
            Some(token) if text.starts_with("GET ") || text.starts_with("POST ") => {
                forged(&text, token).into_bytes()
            }
            _ => part[..count].to_vec(),
        };
        if server.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Both);
}

/// A request as somebody with this token would make it.
fn forged(request: &str, token: &str) -> String {
    let line = |line: &str| match line.split_once(':').map(|(name, _)| name.to_ascii_lowercase()).as_deref() {
        Some("authorization") => format!("authorization: Bearer {token}"),
        Some("tidemark-token-id") => format!("tidemark-token-id: {}", Key::of(token).id()),
        _ => line.to_owned(),
    };
    request.split("\r\n").map(line).collect::<Vec<_>>().join("\r\n")
}

/// Waits until a process ends: its exit code and standard error.
fn end(process: &mut Process) -> (Option<i32>, String) {
    let code = wait("the end of a process", || process.child.try_wait().unwrap()).code();
    // Its last lines may be on their way.
    let printed =
        wait("its last words", || Some(process.said()).filter(|printed| printed.contains("tidemark: ")));
    (code, printed)
}

/// What commands print that ask the controller at `url`, and give it something.
fn commands(place: &Place, url: &str, more: &[&str]) -> Vec<(Option<i32>, String)> {
    let path = place.write("secret.yaml", &document());
    let all = [&["submit", path.to_str().unwrap()][..], &["status"], &["cancel", "1"], &["login"]];
    let ask = |words: &&[&str]| {
        let output = place.command(&[*words, &["--controller", url], more].concat()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    all.iter().map(ask).collect()
}

#[test]
fn after_a_kill_whoever_takes_the_port_gets_no_token_no_document_and_no_driver() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut controller = Controller::start(&place, &["--no-driver"]);
    let (here, url) = (address(&controller), controller.url.clone());
    let tokens = left(&place, here);
    let given = place.tidemark(&["token", "add", "d2", "--role", "driver"]).stdout.trim().to_owned();
    let mut driver = controller.driver("d1", &[]);
    let mut other = controller.driver("d2", &["--token", &given]);
    controller.wait_for_drivers(2);
    controller.process.kill();

    let theirs = Controller::start(&elsewhere, &["--no-driver"]);
    let [_, their_token] = left(&elsewhere, address(&theirs));
    let impostor = Impostor::at(here, address(&theirs), Some(their_token));
    for process in [&mut driver, &mut other] {
        let (code, printed) = end(process);
        assert!(code == Some(3) && printed.contains("did not prove that it"), "{code:?} {printed}");
        assert_eq!(printed.matches("joined ").count(), 1, "{printed}");
    }
    let own = place.tidemark(&["token", "add", "olga", "--role", "operator"]).stdout.trim().to_owned();
    for more in [&[][..], &["--token", &own]] {
        for (code, printed) in commands(&place, &url, more) {
            assert!(code == Some(3) && printed.contains("did not prove that it"), "{code:?} {printed}");
        }
    }
    assert_eq!(theirs.status()["drivers"].as_array().unwrap().len(), 0, "they have a driver");
    let [operator, driver] = &tokens;
    impostor.never_got(&[operator, driver, &given, &own, SECRET, "bearer", "authorization"]);
    // A request for a proof, and nothing else: not even a handshake, as there was no proof.
    let got = impostor.got();
    assert!(got.len() >= 10, "{} connections", got.len());
    for bytes in got {
        let text = String::from_utf8(bytes).expect("one head of a request");
        assert!(text.starts_with("GET /api/v1/tls HTTP/1.1\r\n") && text.len() < 400, "{text}");
    }
}

#[test]
fn after_a_clean_end_nothing_is_sent_to_whoever_takes_the_port() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut controller = Controller::start(&place, &["--no-driver"]);
    let (here, url) = (address(&controller), controller.url.clone());
    let mut driver = controller.driver("d1", &[]);
    controller.wait_for_drivers(1);
    let pid = controller.process.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    wait("the end of the controller", || controller.process.child.try_wait().unwrap());

    let theirs = Controller::start(&elsewhere, &["--open", "--no-driver"]);
    let impostor = Impostor::at(here, address(&theirs), None);
    let (code, printed) = end(&mut driver);
    assert!(code == Some(3) && printed.contains("has ended"), "{code:?} {printed}");
    for (code, printed) in commands(&place, &url, &[]) {
        assert!(
            code == Some(3) && printed.contains("without a token it cannot prove that it is one"),
            "{code:?} {printed}"
        );
    }
    assert!(impostor.got().iter().all(Vec::is_empty), "something was sent");
    // With `--insecure` it connects to anybody.
    place.tidemark(&["status", "--insecure", "--controller", &url]);
    let got = impostor.got();
    assert!(got.iter().any(|bytes| bytes.starts_with(b"GET /api/v1/overview ")), "nothing was sent");
}

#[test]
fn a_run_goes_on_for_as_long_as_its_document_allows_before_its_driver_ends() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let mut controller = Controller::start(&place, &["--no-driver"]);
    let here = address(&controller);
    let mut driver = controller.driver("d1", &[]);
    controller.wait_for_drivers(1);
    let id = controller.submit(&endless(), &[]);
    wait("load", || controller.submission(id)["stage"].as_str()?.ends_with("main").then_some(()));
    controller.process.kill();
    let theirs = Controller::start(&elsewhere, &["--open", "--no-driver"]);
    let impostor = Impostor::at(here, address(&theirs), None);
    let (code, printed) = end(&mut driver);
    assert!(code == Some(3), "{code:?} {printed}");
    let tried = printed.find("did not prove that it").unwrap_or_else(|| panic!("{printed}"));
    assert!(printed[tried..].contains("trying again"), "the run went on: {printed}");
    impostor.never_got(&["authorization", "bearer"]);
}

/// A tunnel of SSH is the same thing, made by somebody who may.
#[test]
fn a_relay_to_the_controller_sees_no_token_and_no_document() {
    let place = Place::new();
    let mut controller = Controller::start(&place, &["--no-driver"]);
    let (here, url) = (address(&controller), controller.url.clone());
    let token = |name: &str, role: &str| {
        place.tidemark(&["token", "add", name, "--role", role]).stdout.trim().to_owned()
    };
    let (d1, olga) = (token("d1", "driver"), token("olga", "operator"));
    let _driver = controller.driver("d1", &["--token", &d1]);
    controller.wait_for_drivers(1);
    controller.process.kill();

    let mut again = Controller::start(&place, &["--no-driver"]);
    let impostor = Impostor::at(here, address(&again), None);
    again.wait_for_drivers(1);
    again.access = vec![("TIDEMARK_TOKEN", olga.clone())];
    let path = place.write("secret.yaml", &document());
    let submitted =
        place.tidemark(&["submit", path.to_str().unwrap(), "--token", &olga, "--controller", &url]);
    assert!(submitted.code == 0 && submitted.stdout.contains("accepted as w1"), "{}", submitted.stderr);
    again.wait_for_end(1);
    assert!(impostor.got().len() >= 2);
    impostor.never_got(&[&d1, &olga, SECRET, "bearer", "authorization", "access_key"]);
    // Whoever was let in by a token that a controller left is not, by another start of it.
    let stale = place.tidemark(&["status", "--controller", &url]);
    assert!(stale.code == 3 && stale.stderr.contains("did not prove that it"), "{}", stale.stderr);
}
