//! An image of this machine's PostgreSQL, for pods: what the official image is told, it is told, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::{POSTGRES, Programs};
use crate::error::LabError;
use crate::image::Image;

/// What runs in a pod.
const ENTRYPOINT: &str = include_str!("postgres_image.sh");
/// The user of the official image.
const USER: u32 = 999;
/// How long the server's installation may take to say where it is.
const ASK: Duration = Duration::from_secs(30);

/// The image, under its full name, such as `docker.io/library/tidemark-postgres:15`.
///
/// # Errors
/// This machine has no PostgreSQL, or not all of it.
pub fn postgres_image(name: &str) -> Result<Image, LabError> {
    let programs = Programs::installed();
    programs.check(&POSTGRES)?;
    let found = programs.path("postgres")?;
    let server = found.canonicalize().map_err(LabError::file("find", &found))?;
    let directory = server.parent().unwrap_or(Path::new("/"));
    let own = programs.and_in(directory);
    let said = own.run("pg_config", &["--pkglibdir", "--sharedir"], ASK)?;
    let mut places = said.lines().map(PathBuf::from);
    let (libraries, shared) = (places.next().unwrap_or_default(), places.next().unwrap_or_default());

    // Where they were built to look for each other.
    let mut image = Image::new(name)
        .entrypoint(&["/bin/postgres-entrypoint"])
        .user(&format!("{USER}:{USER}"))
        .variable("PATH", &format!("{}:/bin", directory.display()))
        .variable("PGDATA", "/var/lib/postgresql/data");
    for program in ["postgres", "initdb"] {
        image.program(&directory.join(program), directory.join(program))?;
    }
    // `initdb` runs the server through a shell.
    image.program(Path::new("/bin/sh"), "/bin/sh")?;
    for entry in fs::read_dir(&libraries).map_err(LabError::file("read", &libraries))? {
        let library = entry.map_err(LabError::file("read", &libraries))?.path();
        // Compiling queries takes a compiler of a hundred megabytes; a server without it runs them as they are.
        let is_taken =
            library.extension().is_some_and(|kind| kind == "so") && !library.ends_with("llvmjit.so");
        if is_taken {
            image.program(&library, &library)?;
        }
    }
    image.tree(&shared, &shared)?;
    image.text("/bin/postgres-entrypoint", 0o755, ENTRYPOINT);
    image.text("/etc/passwd", 0o644, format!("postgres:x:{USER}:{USER}::/var/lib/postgresql:/bin/sh\n"));
    image.text("/etc/group", 0o644, format!("postgres:x:{USER}:\n"));
    for directory in ["/tmp", "/var/run/postgresql", "/var/lib/postgresql"] {
        image.directory(directory, 0o1777);
    }
    Ok(image)
}
