//! What `up`, `status` and `down` refuse, and what they leave alone. Labs that run are tested in
//! `tests/it/ceph.rs`.

use std::fs;

use crate::command::tests::script;
use crate::layout::tests::media;
use crate::record::Shape;
use crate::record::tests::shape;
use crate::*;

/// A place for a lab, beside a directory of programs that all fail.
fn place() -> (tempfile::TempDir, LabOptions) {
    let directory = tempfile::tempdir().unwrap();
    let programs = directory.path().join("programs");
    fs::create_dir(&programs).unwrap();
    for name in [
        "ceph",
        "ceph-authtool",
        "ceph-mgr",
        "ceph-mon",
        "ceph-osd",
        "monmaptool",
        "radosgw",
        "radosgw-admin",
    ] {
        script(&programs.join(name), "#!/bin/sh\necho 'out of order' >&2\nexit 1\n");
    }
    let mut options = LabOptions::new(directory.path().join("lab"));
    options.program_path = Some(programs.into());
    (directory, options)
}

/// A finished lab that does not run.
fn stopped_lab() -> (tempfile::TempDir, LabOptions) {
    let (directory, options) = place();
    let home = Home::prepare(&options.dir).unwrap();
    let secret = || "SECRET".to_owned();
    let credentials = Credentials {
        user: "tidemark".into(),
        access_key: secret(),
        secret_key: secret(),
        swift_user: "tidemark:swift".into(),
        swift_key: secret(),
    };
    Record { shape: shape(), credentials: Some(credentials) }.save(&home).unwrap();
    (directory, options)
}

fn refusal(options: &LabOptions) -> LabError {
    up(options, &mut |_| {}).unwrap_err()
}

#[test]
fn without_the_programs_nothing_is_created() {
    let (_directory, mut options) = place();
    options.program_path = Some(OsString::new());
    let error = refusal(&options);
    assert!(matches!(&error, LabError::MissingPrograms { names, .. } if names.len() == 8), "{error}");
    assert!(!options.dir.exists());
}

#[test]
fn invalid_options_are_refused() {
    let (_directory, options) = place();
    let error = refusal(&LabOptions { osds: Some(0), ..options.clone() });
    assert_eq!(error.to_string(), "the number of OSDs is 0, but must be from 1 to 16");
    let error = refusal(&LabOptions { osd_bytes: Some(4096), ..options.clone() });
    assert!(error.to_string().contains("at least 1 GiB"), "{error}");
    let error = refusal(&LabOptions { gateway_port: Some(0), ..options.clone() });
    assert!(error.to_string().contains("from 1 to 65535"), "{error}");
    let error = refusal(&LabOptions { gateways: Some(17), ..options.clone() });
    assert_eq!(error.to_string(), "the number of gateways is 17, but must be from 1 to 16");
    let error = refusal(&LabOptions { gateways: Some(2), gateway_port: Some(65_535), ..options.clone() });
    assert!(error.to_string().contains("with as many after it"), "{error}");
    let error = refusal(&LabOptions { slow_iops: Some(49), ..options.clone() });
    assert_eq!(
        error.to_string(),
        "the limit of a slow device in writes per second is 49, but must be at least 50"
    );
    let error = refusal(&LabOptions { slow_bandwidth: Some(999_999), ..options.clone() });
    assert!(error.to_string().contains("at least 1 MB/s"), "{error}");
    let error = refusal(&LabOptions { metadata_bytes: Some(1), ..options.clone() });
    assert!(error.to_string().contains("at least 256 MiB"), "{error}");
    let error = refusal(&LabOptions { cache_bytes: Some(1), ..options });
    assert!(error.to_string().contains("at least 1 GiB"), "{error}");
}

#[test]
fn a_layout_with_devices_needs_more_than_a_plain_one() {
    let (_directory, options) = place();
    let error = refusal(&LabOptions { layout: Some(Layout::Baseline), ..options.clone() });
    let LabError::LayoutImpossible { layout: Layout::Baseline, why } = &error else { panic!("{error}") };
    // There is no losetup in the path; without root, that is reported first.
    assert!(why.contains("sudo") || why.contains("losetup"), "{why}");
    assert!(!options.dir.exists());
}

#[test]
fn a_taken_port_is_named() {
    let (_directory, mut options) = place();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    options.gateway_port = Some(port);
    let error = refusal(&options).to_string();
    assert!(error.contains(&format!("ss -ltnp 'sport = {port}'")), "{error}");
}

#[test]
fn a_failed_creation_is_recognised_and_repeated() {
    let (_directory, options) = place();
    let error = refusal(&options);
    assert!(error.to_string().starts_with("`ceph-authtool "), "{error}");
    assert!(error.to_string().ends_with("out of order"), "{error}");
    let status = status(&options.dir).unwrap();
    assert!(!status.complete && status.is_down() && !status.is_up());
    assert!(matches!(Lab::open(&options.dir), Err(LabError::Unfinished { .. })));
    let mut said = Vec::new();
    up(&options, &mut |text| said.push(text.to_owned())).unwrap_err();
    assert_eq!(said[0], "removing an unfinished lab");
    down(&options.dir, true, &mut |_| {}).unwrap();
    assert!(!options.dir.exists());
}

#[test]
fn a_lab_keeps_its_shape() {
    let (_directory, options) = stopped_lab();
    let error = refusal(&LabOptions { osds: Some(5), ..options.clone() }).to_string();
    assert!(error.contains("the number of OSDs 3, not 5") && error.contains("lab down"), "{error}");
    let error = refusal(&LabOptions { osd_bytes: Some(2 << 30), ..options.clone() }).to_string();
    assert!(error.contains("10737418240, not 2147483648"), "{error}");
    let home = Home::find(&options.dir).unwrap();
    let moved = adapt(&home, shape(), &LabOptions { gateway_port: Some(7480), ..options.clone() }).unwrap();
    assert_eq!(moved, Shape { gateway_ports: vec![7480], ..shape() });
    let error = refusal(&LabOptions { gateways: Some(3), ..options.clone() }).to_string();
    assert!(error.contains("the number of gateways 1, not 3") && error.contains("lab down"), "{error}");
    let two = Shape { gateway_ports: vec![27_480, 27_500], ..shape() };
    let moved = adapt(&home, two, &LabOptions { gateway_port: Some(7480), ..options }).unwrap();
    assert_eq!(moved.gateway_ports, [7480, 7481]);
}

#[test]
fn limits_may_change_and_devices_may_not() {
    let (_directory, options) = stopped_lab();
    let home = Home::find(&options.dir).unwrap();
    let laid_out = Shape { media: Some(media(Layout::Reference2)), ..shape() };
    let slower = LabOptions { slow_iops: Some(70), ..options.clone() };
    let adapted = adapt(&home, laid_out.clone(), &slower).unwrap().media.unwrap();
    assert_eq!((adapted.limits.iops, adapted.limits.bandwidth), (70, 40_000_000));
    let other = LabOptions { layout: Some(Layout::Baseline), ..options.clone() };
    let error = adapt(&home, laid_out.clone(), &other).unwrap_err().to_string();
    assert!(error.contains("has the layout reference-2, not baseline"), "{error}");
    let larger = LabOptions { cache_bytes: Some(2 << 30), ..options };
    let error = adapt(&home, laid_out, &larger).unwrap_err().to_string();
    assert!(error.contains("1073741824, not 2147483648"), "{error}");
}

#[test]
fn a_stopped_lab_has_a_status_and_can_be_opened() {
    let (_directory, options) = stopped_lab();
    let status = status(&options.dir).unwrap();
    assert!(status.complete && status.is_down() && !status.is_up() && !status.gateways[0].answers);
    assert_eq!(status.daemons.len(), 6);
    assert_eq!(status.health, None);
    let json = serde_json::to_value(&status).unwrap();
    assert_eq!(json["daemons"][2], serde_json::json!({"daemon": "osd.0", "pid": null, "state": "stopped"}));
    assert!(!json.to_string().contains("SECRET"));
    let lab = Lab::open(&options.dir).unwrap();
    assert_eq!(lab.endpoint(), "http://127.0.0.1:27480");
    assert_eq!(lab.swift_auth_url(), "http://127.0.0.1:27480/auth/v1.0");
    assert_eq!(lab.pid(Daemon::Gateway(0)).unwrap(), None);
    assert!(!format!("{lab:?}").contains("SECRET"));
}

#[test]
fn without_a_lab_nothing_is_stopped_or_removed() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("notes"), "mine").unwrap();
    let mut said = Vec::new();
    down(directory.path(), true, &mut |text| said.push(text.to_owned())).unwrap();
    assert!(said[0].starts_with("there is no lab in "), "{said:?}");
    assert!(directory.path().join("notes").exists());
    assert!(matches!(status(directory.path()), Err(LabError::NoLab { .. })));
}

#[test]
fn a_lab_with_a_damaged_record_can_still_be_purged() {
    let (_directory, options) = stopped_lab();
    fs::write(options.dir.join("lab.json"), "{").unwrap();
    assert!(matches!(refusal(&options), LabError::BadRecord { .. }));
    down(&options.dir, true, &mut |_| {}).unwrap();
    assert!(!options.dir.exists());
}
