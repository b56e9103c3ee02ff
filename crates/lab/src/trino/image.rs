//! An image of the lab's Trino, for pods: settings are where they are in the official image.

use std::path::Path;

use super::install;
use super::jdk::Jdk;
use crate::command::Programs;
use crate::error::LabError;
use crate::image::{Image, architecture};
use tidemark_trino::{CATALOG, GENERATORS};

/// Where the server is, in the official image.
const SERVER: &str = "/usr/lib/trino";
/// The user of the official image.
const USER: u32 = 1000;
/// How the launcher runs Java. A small pod needs a larger part of its memory beside the heap than the official image leaves: code and
/// classes of queries, and buffers of connections.
const JAVA: &str = "\
-XX:InitialRAMPercentage=25
-XX:MaxRAMPercentage=60
-XX:+ExitOnOutOfMemoryError
-XX:ReservedCodeCacheSize=256M
-Djdk.nio.maxCachedBufferSize=2000000
--enable-native-access=ALL-UNNAMED
--sun-misc-unsafe-memory-access=allow
";
const NODE: &str = "node.environment=tidemark\nnode.data-dir=/data/trino\n";

/// The image, under its full name, such as `docker.io/library/tidemark-trino:476`: the server with the plugins that the lab uses, fetched
/// if this user has none yet, and the Java of this machine.
///
/// # Errors
/// No Java, no Maven or an artifact that it does not give.
pub fn trino_image(name: &str, progress: &mut dyn FnMut(&str)) -> Result<Image, LabError> {
    let java = Jdk::find(None)?.home;
    let server = install::server(&Programs::installed(), progress)?;
    let launcher = format!("bin/linux-{}/launcher", architecture());
    let entry = format!(
        "#!/bin/sh\n# A node is named after its pod.\nexec {SERVER}/{launcher} run --etc-dir /etc/trino -Dnode.id=\"$HOSTNAME\" \"$@\"\n"
    );
    let mut image = Image::new(name)
        .entrypoint(&["/usr/lib/trino/bin/run-trino"])
        .user(&format!("{USER}:{USER}"))
        .variable("JAVA_HOME", &java.display().to_string())
        .variable("PATH", &format!("{}:/bin", java.join("bin").display()));
    image.program(Path::new("/bin/sh"), "/bin/sh")?;
    jdk(&mut image, &java)?;
    // The launcher knows its place by the script of the same name.
    for part in [launcher.as_str(), "bin/launcher", "bin/launcher.properties", "lib"] {
        image.tree(&server.join(part), Path::new(SERVER).join(part))?;
    }
    for plugin in [CATALOG].into_iter().chain(GENERATORS) {
        let part = Path::new("plugin").join(plugin);
        image.tree(&server.join(&part), Path::new(SERVER).join(&part))?;
    }
    image.text(Path::new(SERVER).join("bin/run-trino"), 0o755, entry);
    image.text("/etc/trino/jvm.config", 0o644, JAVA);
    image.text("/etc/trino/node.properties", 0o644, NODE);
    image.text("/etc/passwd", 0o644, format!("trino:x:{USER}:{USER}::/data/trino:/bin/sh\n"));
    image.text("/etc/group", 0o644, format!("trino:x:{USER}:\n"));
    for directory in ["/tmp", "/data/trino"] {
        image.directory(directory, 0o1777);
    }
    Ok(image)
}

/// Java, where it is on this machine.
fn jdk(image: &mut Image, home: &Path) -> Result<(), LabError> {
    for part in ["conf", "lib", "release"] {
        image.tree(&home.join(part), home.join(part))?;
    }
    // The machine itself is a library that is found beside the program.
    ["bin/java", "lib/server/libjvm.so"]
        .into_iter()
        .try_for_each(|program| image.program(&home.join(program), home.join(program)))
}
