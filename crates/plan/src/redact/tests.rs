//! Secrets that are hidden, and all else that stays.

use super::{mask, redact};
use proptest::prelude::*;

#[test]
fn references_to_the_environment_stay() {
    for text in ["<s config=\"secretkey=${KEY};endpoint=http://h\"/>", "target:\n  secret_key: ${KEY}\n"] {
        assert_eq!(redact(text), text);
    }
    assert!(!redact("<s config=\"secretkey=${KEY}tail;e=1\"/>").contains("tail"));
}

#[test]
fn a_mask_hides_and_keeps_every_place() {
    let text = "<storage config=\"accesskey=AK;secretkey=sömething;endpoint=http://h\"/>\n";
    let masked = mask(text);
    assert!(!masked.contains("mething") && masked.contains("accesskey=AK"), "{masked}");
    assert_eq!((masked.len(), masked.find("endpoint")), (text.len(), text.find("endpoint")));
}

#[test]
fn secrets_of_xml_are_hidden_and_the_rest_is_kept() {
    let table = [
        (
            r#"<s config="accesskey=AK;secretkey=S+/=;endpoint=http://h" />"#,
            r#"<s config="accesskey=AK;secretkey=***;endpoint=http://h" />"#,
        ),
        (r#"<s config="secretkey=;endpoint=x"/>"#, r#"<s config="secretkey=;endpoint=x"/>"#),
        (
            r#"<s config="accesskey=a;secretkey=" /><w name="n"/>"#,
            r#"<s config="accesskey=a;secretkey=" /><w name="n"/>"#,
        ),
        (r#"<s config='secretKey=a"b;x=1'/>"#, r#"<s config='secretKey=***;x=1'/>"#),
        (r#"<s config="password=a'b c;x=1"/>"#, r#"<s config="password=***;x=1"/>"#),
        (r#"<s config="secretkey=a&amp;b;x=1"/>"#, r#"<s config="secretkey=***;x=1"/>"#),
        ("<s config=\"a=1;\n  password = pw ;\n b=2\"/>", "<s config=\"a=1;\n  password = *** ;\n b=2\"/>"),
        (r#"<a password="p=" name="x"/>"#, r#"<a password="***" name="x"/>"#),
        (
            r#"<!-- <a config="token=AUTH_x;y=1" /> don't --><b config="usertoken=t"/>"#,
            r#"<!-- <a config="token=***;y=1" /> don't --><b config="usertoken=***"/>"#,
        ),
        (
            r#"<s config="secretkey=<scretkey>;proxyhost=<p>"/>"#,
            r#"<s config="secretkey=***;proxyhost=<p>"/>"#,
        ),
        (
            r#"<s config="scretkey=typo;url=http://u:pw@h:80/x"/>"#,
            r#"<s config="scretkey=***;url=http://u:***@h:80/x"/>"#,
        ),
        (r#"<s config="secretkey=never closed"#, r#"<s config="secretkey=***"#),
        (
            "<s name=\"x config=\"accesskey=A;secretkey=S;y=1\" />",
            "<s name=\"x config=\"accesskey=A;secretkey=***;y=1\" />",
        ),
        (r#"<a config="username=test:tester;key=k"/>"#, r#"<a config="username=test:tester;key=***"/>"#),
    ];
    for (text, expected) in table {
        assert_eq!(redact(text), expected);
    }
}

#[test]
fn secrets_of_yaml_are_hidden_and_the_rest_is_kept() {
    let table = [
        ("secret_key: abc # why\nregion: r\n", "secret_key: \"***\" # why\nregion: r\n"),
        (
            "s3: {access_key: AK, secret_key: a b, region: r}",
            "s3: {access_key: AK, secret_key: \"***\", region: r}",
        ),
        ("{\"password\":\"a\\\"b\",\"x\":1}", "{\"password\":\"***\",\"x\":1}"),
        ("password: 'it''s'\nx: 1", "password: '***'\nx: 1"),
        ("a:\n  password: |\n    line 1\n\n    line 2\n  b: 1\n", "a:\n  password: |\n    ***\n  b: 1\n"),
        ("a:\n  password:\n    deep\n  b: 1\n", "a:\n  password:\n    \"***\"\n  b: 1\n"),
        ("a:\n  password: one\n    two\n  b: 1\n", "a:\n  password: \"***\"\n  b: 1\n"),
        ("- token: t\n  x: 1\n", "- token: \"***\"\n  x: 1\n"),
        ("p: &pw abc\npassword: *pw\nq: &pwd 1", "p: &pw \"***\"\npassword: *pw\nq: &pwd 1"),
        ("password: !abc\n", "password: \"***\"\n"),
        ("url: postgres://u:p;w@h/db", "url: postgres://u:***@h/db"),
        ("# https://abc@h/x", "# https://***@h/x"),
        ("endpoint: https://${NAME}@h/", "endpoint: https://${NAME}@h/"),
        ("endpoint: http://h:80, http://u:p@i:80", "endpoint: http://h:80, http://u:***@i:80"),
        ("config: \"accesskey=A;secretkey=S;x=1\"", "config: \"accesskey=A;secretkey=***;x=1\""),
        ("password:\r\nnext: 1\r\n", "password:\r\nnext: 1\r\n"),
        ("password: \"never closed\nnext: 1", "password: \"***\nnext: 1"),
    ];
    for (text, expected) in table {
        assert_eq!(redact(text), expected);
    }
}

/// Documents whose secret is `hunter2` in one or another spelling. `access_key` and what stands beside it stay.
const SPELLINGS: [&str; 24] = [
    "? secret_key\n: hunter2\naccess_key: AK\n",
    "? \"secret_key\"\n: hunter2\naccess_key: AK\n",
    "{? secret_key : hunter2, access_key: AK}",
    "\"secret\\x5fkey\": hunter2\naccess_key: AK\n",
    "{\"secret\\u005fkey\":\"hunter2\", \"access_key\": AK}",
    "name: &k secret_key\ntarget: {*k : hunter2, access_key: AK}\n",
    "x: &a {y: [hunter2]}\nsecret_key: *a\naccess_key: AK\n",
    "x: &a hunter2\ny: &b [*a]\npassword: *b\naccess_key: AK\n",
    "{access_key: AK, secret_key: # why\n hunter2, x: 1}",
    "{access_key: AK, secret_key: one\n hunter2\n three, x: 1}",
    "{access_key: AK, secret_key:\n\n  # why\n  hunter2}",
    "- access_key: AK\n- secret_key: one\n   hunter2\n\n   three\n",
    "access_key: AK\nsecret_key:\n# why\n  hunter2\n",
    "access_key: AK\nsecret_key: !!str &x hunter2\n",
    "access_key: AK\nsecret_key: [one, {two: hunter2}]\n",
    "access_key: AK\n!!binary c2VjcmV0X2tleQ==: hunter2\n",
    "access_key: AK\nendpoint: \"http://u\\x3ahunter2@h\"\n",
    "access_key: AK\nconfig: \"secret\\x6bey=hunter2\"\n",
    "arms: [{environment: {MINE: hunter2}, target: {access_key: AK, secret_key: '${MINE}'}}]\n",
    "<s config=\"accesskey=AK;secret&#107;ey=hunter2\"/>",
    "<s config=\"accesskey=AK;secretkey&#x3d;hunter2\"/>",
    "<s config=\"accesskey=AK&#59;secretkey=hunter2\"/>",
    "<s config=\"accesskey=AK;secretkey=one;hunter2\"/>",
    "; access_key: AK\n[j]\nhttp_s3_key=one two hunter2\nhttp_s3_keyid=x\n",
];

#[test]
fn secrets_are_hidden_however_they_are_spelled() {
    for text in SPELLINGS {
        let hidden = redact(text);
        assert!(!hidden.contains("hunter2") && hidden.contains("***"), "{text}\n{hidden}");
        assert!(hidden.contains("AK"), "{text}\n{hidden}");
        assert_eq!(redact(&hidden), hidden);
        let masked = mask(text);
        assert!(!masked.contains("hunter2") && masked.len() == text.len(), "{text}\n{masked}");
        assert_eq!(masked.matches('\n').count(), text.matches('\n').count());
    }
}

#[test]
fn what_is_redacted_can_still_be_read() {
    for text in SPELLINGS.iter().filter(|text| !text.starts_with(['<', ';'])) {
        let hidden = redact(text);
        assert!(tidemark_keys::tree::parse(&hidden).is_ok(), "{text}\n{hidden}");
    }
}

#[test]
fn a_document_that_is_wrong_hides_its_secrets_all_the_same() {
    for text in [
        "? secret_key\n: hunter2\n? secret_key\n: hunter2\n",
        "x: 1\nx: 2\n\"secret\\x5fkey\": hunter2\n",
        "\"secret\\x5fkey\": hunter2\nstages: [1, 2\n  x: {\n",
        "<a><s config=\"secret&#107;ey=hunter2\"/></b>",
    ] {
        let hidden = redact(text);
        assert!(!hidden.contains("hunter2"), "{text}\n{hidden}");
    }
}

proptest! {
    #[test]
    fn any_text_is_redacted_once_and_for_all(
        text in "(<?[a-z]{0,3}|secretkey|password|token|key|[=:;\"'&*|>#@/<{},\n\r\t -]|&amp;|://|-->|é|\\PC){0,24}"
    ) {
        let once = redact(&text);
        prop_assert_eq!(redact(&once), once);
    }

    #[test]
    fn no_secret_of_a_well_formed_attribute_is_left(
        secret in "[A-Za-z0-9+/=' .,:@{}#*!-]{1,30}", before in "[a-z]{1,8}", after in "[a-z]{1,8}"
    ) {
        let secret = format!("Q{secret}Z");
        let text = format!("<s a=\"{before}\" config=\"x={before};secretkey={secret};y={after}\"/>");
        let expected = format!("<s a=\"{before}\" config=\"x={before};secretkey=***;y={after}\"/>");
        prop_assert_eq!(redact(&text), expected);
    }
}
