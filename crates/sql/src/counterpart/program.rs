//! The programs pgbench and sysbench on this machine.

use crate::job::Program;
use std::path::PathBuf;
use std::process::Command;

/// A program that can be used.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) program: Program,
    pub(crate) path: PathBuf,
    /// What it says of its version: `pgbench (PostgreSQL) 15.18`.
    pub(crate) version: String,
}

/// The variable that names another one than that in `PATH`, and what installs the program.
fn known(program: Program) -> (&'static str, &'static str) {
    match program {
        Program::Sysbench => ("TIDEMARK_SYSBENCH", "install the package `sysbench` (apt install sysbench)"),
        _ => (
            "TIDEMARK_PGBENCH",
            "install the package `postgresql`, which has pgbench (apt install postgresql)",
        ),
    }
}

/// Finds a program: the one that its variable names, or the first one in `PATH`.
///
/// # Errors
/// A sentence, when there is none or it does not run.
pub(crate) fn find(program: Program) -> Result<Found, String> {
    let (variable, remedy) = known(program);
    let named = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let in_path = || {
        let directories = std::env::var_os("PATH").unwrap_or_default();
        let mut paths = std::env::split_paths(&directories).map(|directory| directory.join(program.name()));
        paths.find(|path| path.is_file())
    };
    let Some(path) = named.or_else(in_path) else {
        return Err(format!("{} is not in PATH: {remedy}, or set {variable} to its path", program.name()));
    };
    at(program, path).map_err(|why| format!("{why}: {remedy}, or set {variable} to another one"))
}

/// The program at a path.
fn at(program: Program, path: PathBuf) -> Result<Found, String> {
    let shown = path.display();
    let output = Command::new(&path).arg("--version").env("LC_ALL", "C").output();
    let output = output.map_err(|error| format!("{shown} cannot be run: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let version = said.lines().next().unwrap_or_default().trim();
    if !output.status.success() || !version.starts_with(program.name()) {
        let why = String::from_utf8_lossy(&output.stderr);
        let why = why.lines().next().unwrap_or(version).trim();
        return Err(format!("{shown} does not say which {} it is ({why})", program.name()));
    }
    let version = version.to_owned();
    Ok(Found { program, path, version })
}

impl Found {
    /// What it is and where, for people.
    pub(crate) fn description(&self) -> String {
        format!("{} at {}", self.version, self.path.display())
    }

    /// The first number of its version: the 15 of 15.18.
    pub(crate) fn major(&self) -> Option<u32> {
        let words = self.version.split_whitespace();
        let number = words.into_iter().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
        number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_a_first_number() {
        let major = |version: &str| {
            Found { program: Program::Pgbench, path: "/p".into(), version: version.into() }.major()
        };
        assert_eq!(major("pgbench (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), Some(15));
        assert_eq!(major("pgbench (PostgreSQL) 17beta1"), Some(17));
        assert_eq!(major("sysbench 1.0.20"), Some(1));
        assert_eq!(major("sysbench"), None);
    }

    #[test]
    fn what_is_not_there_or_is_another_program_is_said() {
        let at = |path: &str| at(Program::Sysbench, path.into()).unwrap_err();
        assert!(at("/nonexistent/sysbench").contains("/nonexistent/sysbench cannot be run"));
        let other = at("/bin/true");
        assert!(other.contains("/bin/true does not say which sysbench it is"), "{other}");
    }
}
