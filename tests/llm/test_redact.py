"""Secrets: found by form and by place, replaced by stable placeholders; and what must stay."""

from __future__ import annotations

import itertools
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor_cli.llm.redact import Redactor
from compactor_cli.llm.secret_forms import forms

LETTERS = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZ"
UPPER = "ABCD2345EFGH6723IJKL"
HEX = "0a1b2c3d4e5f6789"


def made(alphabet: str, length: int) -> str:
    """Made up, so that no scanner takes this file for a leak."""
    return "".join(itertools.islice(itertools.cycle(alphabet), length))


def lines(*words: str) -> str:
    return "\n".join(words)


FORMS = [
    ("aws-key", "AKIA" + made(UPPER, 16)),
    ("aws-key", "ASIA" + made(UPPER, 16)),
    ("gcp-key", "AIza" + made(LETTERS, 35)),
    ("gcp-token", "ya29." + made(LETTERS, 60)),
    ("gcp-secret", "GOCSPX-" + made(LETTERS, 28)),
    ("azure-secret", "abc8Q~" + made(LETTERS, 34)),
    ("github-token", "ghp_" + made(LETTERS, 36)),
    ("github-token", "gho_" + made(LETTERS, 36)),
    ("github-token", "github_pat_" + made(LETTERS, 22) + "_" + made(LETTERS, 59)),
    ("gitlab-token", "glpat-" + made(LETTERS, 20)),
    ("slack-token", "xoxb-" + made(HEX, 12) + "-" + made(LETTERS, 24)),
    ("slack-token", "xapp-1-" + made(UPPER, 11) + "-" + made(HEX, 30)),
    ("stripe-key", "sk_live_" + made(LETTERS, 24)),
    ("stripe-key", "rk_test_" + made(LETTERS, 24)),
    ("openai-key", "sk-" + made(LETTERS, 48)),
    ("openai-key", "sk-proj-" + made(LETTERS, 80) + "_-" + made(LETTERS, 20)),
    ("anthropic-key", "sk-ant-api03-" + made(LETTERS, 93) + "AA"),
    ("openrouter-key", "sk-or-v1-" + made(HEX, 64)),
    ("huggingface-token", "hf_" + made(LETTERS, 34)),
    ("npm-token", "npm_" + made(LETTERS, 36)),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc" + made(LETTERS, 60)),
    ("docker-token", "dckr_pat_" + made(LETTERS, 27)),
    ("sendgrid-key", "SG." + made(LETTERS, 22) + "." + made(LETTERS, 43)),
    ("twilio-key", "SK" + made(HEX, 32)),
    ("telegram-token", "123456789:AA" + made(LETTERS, 33)),
    ("mailchimp-key", made(HEX, 32) + "-us12"),
    ("digitalocean-token", "dop_v1_" + made(HEX, 64)),
    ("vault-token", "hvs." + made(LETTERS, 40)),
    ("age-key", "AGE-SECRET-KEY-1" + made(UPPER, 58)),
    ("jwt", "eyJ" + made(LETTERS, 20) + ".eyJ" + made(LETTERS, 40) + "." + made(LETTERS, 43)),
]
AROUND = [
    "{}",
    "key: {}.",
    '"{}"',
    "\\n{}\\n",
    "export X={};",
    "中文{}中文",
    "\x1b[31m{}\x1b[0m",
    "({})",
    "`{}`",
    "a\n{}\nb",
]


@pytest.mark.parametrize(("kind", "secret"), FORMS, ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(FORMS)])
def test_a_secret_is_known_by_its_form_wherever_it_stands(kind: str, secret: str) -> None:
    for around in AROUND:
        redactor = Redactor()
        text = redactor.redact(around.format(secret))
        assert secret not in text, around
        assert f"[REDACTED:{kind}:1]" in text, around
        assert redactor.counts == {kind: 1}, around


PASS = made(LETTERS, 12)
PLACES = [
    ("password", "password = '{}'", "hunter2"),
    ("password", "password: {}\n", "hunter2"),
    ("password", '{{"password": "{}", "user": "bob"}}', "correcthorse"),
    ("password", '{{\\"passwd\\": \\"{}\\"}}', "corr3cthorse"),
    ("password", "DB_PASSWORD={}", "changeme"),
    ("password", "PGPASSWORD={} psql -h db", "foobar"),
    ("password", "mysql --password={} shop", "s3cret!"),
    ("password", "tool --password {} --verbose", "s3cret!"),
    ("password", "my password is {}, please", "hunter2"),
    ("password", "密码：{}", "abc12345"),
    ("password", "postgres://bob:{}@db:5432/shop", "s3cr3t"),
    ("password", "postgres://bob:{}@db:5432/shop", "with/slash#1"),
    ("password", "redis://:{}@cache", "pw"),
    ("password", "https://bob:{}@example.org/x?y=1", "p@ss"),
    ("password", "Server=db;User Id=sa;Password={};Encrypt=yes", "Qwerty1!"),
    ("password", "curl -u bob:{} https://example.org", "pa55word"),
    ("token", "https://{}@git.example.org/a.git", made(HEX, 40)),
    ("token", "token: {}", made(LETTERS, 24)),
    ("token", "access_token={}&state=xyz", made(LETTERS, 24)),
    ("token", "tool --token {} --dry-run", made(LETTERS, 24)),
    ("secret", 'client_secret = "{}"', made(HEX, 32)),
    ("secret", "SECRET_KEY={}", "django-insecure-9$%x!abc"),
    ("api-key", "aws_secret_access_key = {}", made(LETTERS, 20) + "/" + made(LETTERS, 19)),
    ("api-key", "x-api-key: {}", made(LETTERS, 20)),
    ("api-key", "OPENAI_API_KEY='{}'", made(LETTERS, 20)),
    ("authorization", "Authorization: Bearer {}", made(LETTERS, 30)),
    ("authorization", "-H 'authorization: Basic {}'", "dXNlcjpwYXNz"),
    ("authorization", '"Authorization": "token {}"', made(HEX, 40)),
    ("cookie", "Cookie: {}", "session=" + made(HEX, 32) + "; theme=dark"),
    ("azure-key", "AccountName=a;AccountKey={};EndpointSuffix=core", made(LETTERS, 86) + "=="),
    ("azure-signature", "https://x.blob.core.windows.net/c?sv=1&sig={}", made(LETTERS, 43) + "%3D"),
    ("slack-webhook", "https://hooks.slack.com/{}", "services/T000/B000/" + made(LETTERS, 24)),
    ("npm-token", "//registry.example.org/:_authToken={}", made(HEX, 36)),
]


@pytest.mark.parametrize(("kind", "place", "secret"), PLACES, ids=[place[:30] for _, place, _ in PLACES])
def test_a_secret_is_known_by_its_place(kind: str, place: str, secret: str) -> None:
    text = Redactor().redact(place.format(secret))
    assert secret not in text
    assert text == place.format(f"[REDACTED:{kind}:1]")


BODY = [made(LETTERS, 64), made(LETTERS[::-1], 64), made(LETTERS, 23) + "="]
RSA, PGP = "RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"
BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
KEYS = {
    "whole": lines("before", BEGIN, *BODY, END, "after"),
    "escaped": "before\n" + "\\n".join((BEGIN, *BODY, END)) + "\nafter",
    "line numbers": lines("before", f"  1→{BEGIN}", *(f"  {n}→{part}" for n, part in enumerate(BODY, 2)), END, "after"),
    "in a diff": lines("before", f"+{BEGIN}", *(f"+{part}" for part in BODY), f"+{END}", "after"),
    "headers": lines("before", BEGIN, "Proc-Type: 4,ENCRYPTED", "", *BODY, END, "after"),
    "no end": lines("before", BEGIN, *BODY, "", "after"),
    "no begin": lines("before", *BODY, END, "after"),
    "PGP": lines("before", BEGIN.replace(RSA, PGP), "", *BODY, END.replace(RSA, PGP), "after"),
}


@pytest.mark.parametrize("text", KEYS.values(), ids=KEYS.keys())
def test_private_keys_go_as_a_block(text: str) -> None:
    clean = Redactor().redact(text)
    assert not [part for part in BODY if part in clean]
    assert clean.count("[REDACTED:private-key:1]") == 1
    assert clean.startswith("before\n")
    assert clean.endswith("after")


STAYS = [
    "commit 8f3e2a1c9d4b5e6f7a8b9c0d1e2f3a4b5c6d7e8f",
    f"id {uuid.UUID(int=0x550E8400E29B41D4A716446655440000)}",
    "sha256:" + made(HEX, 64),
    "sha512-" + made(LETTERS, 86) + "==",
    "index 1a2b3c4..5d6e7f8 100644",
    "/home/me/.secrets/token/abc123def456/password.txt",
    "src/auth/token_store.py:118: def get_token(self) -> str:",
    "max_tokens: 16000, input_tokens=12345678, total_tokens: 999999",
    "tokenizer = AutoTokenizer.from_pretrained('gpt2-medium-1234')",
    "token = self.request.headers.get('X-Token-1')",
    "password = getpass.getpass()",
    "password=self.password, token=args.token, secret=os.environ['SECRET_1']",
    "password=$DB_PASSWORD token=${TOKEN_1} api_key={{ api_key_1 }}",
    "api_key=<your-api-key-1> password: ****** token: sk-...",
    '{"type": "object", "properties": {"password": {"type": "string"}}}',
    '"password": "string"',
    "The password is wrong and the token is expired.",
    "ANTHROPIC_API_KEY=sk-ant-... OPENAI_API_KEY=sk-...",
    "docker run -u 1000:1000 image",
    "http://localhost:8080/@scope/package",
    "git@github.com:owner/name.git ssh://git@host:22/x",
    "https://example.org/a?page=2&sort=asc#top",
    "task-force-abcdefghijklmnopqrstuv disk-0123456789abcdefghij",
    "ssh-rsa AAAAB3NzaC1yc2E" + made(LETTERS, 80),
    "data:image/png;base64," + made(LETTERS, 200),
    "call_" + made(LETTERS, 24) + " toolu_01" + made(LETTERS, 22) + " msg_01" + made(LETTERS, 22),
    "req_011" + made(LETTERS, 21) + " chatcmpl-" + made(LETTERS, 29),
    "-----BEGIN CERTIFICATE-----\n" + made(LETTERS, 64) + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + made(LETTERS, 64) + "\n-----END PUBLIC KEY-----",
    "[compact/1 transcript=0123456789abcdef records=4-120/160 tokens=1 end=ffffffffffffffff state=0123456789abcdef]",
]


@pytest.mark.parametrize("text", STAYS, ids=[text[:30] for text in STAYS])
def test_what_is_no_secret_stays(text: str) -> None:
    redactor = Redactor()
    assert redactor.redact(text) == text
    assert not redactor.counts


def test_the_same_secret_has_the_same_number_everywhere() -> None:
    one, other = FORMS[6][1], "ghp_" + made(LETTERS[::-1], 36)
    redactor = Redactor()
    first = redactor.redact(f"{one} and {other} and {one}")
    assert first == "[REDACTED:github-token:1] and [REDACTED:github-token:2] and [REDACTED:github-token:1]"
    assert redactor.redact(f"again {other}") == "again [REDACTED:github-token:2]"
    assert redactor.counts == {"github-token": 4}


def test_a_secret_known_by_its_place_is_found_in_all_texts_before_and_after() -> None:
    texts = ("use Tr0ub4dor&3 to log in", "password: Tr0ub4dor&3", "Tr0ub4dor&3 did not work")
    assert Redactor().redact_all(texts) == (
        "use [REDACTED:password:1] to log in",
        "password: [REDACTED:password:1]",
        "[REDACTED:password:1] did not work",
    )


def test_a_word_used_as_a_password_stays_a_word_elsewhere() -> None:
    texts = ("postgres://postgres:postgres@localhost/app", "start postgres first")
    assert Redactor().redact_all(texts)[1] == "start postgres first"


def test_secrets_in_use_are_found_whatever_their_form() -> None:
    assert Redactor(["plain-key"]).redact("it says plain-key here") == "it says [REDACTED:own-key:1] here"


def test_an_overlap_is_one_secret_of_the_kind_that_says_more() -> None:
    token = FORMS[6][1]
    assert Redactor().redact(f"GITHUB_TOKEN={token}") == "GITHUB_TOKEN=[REDACTED:github-token:1]"
    assert Redactor().redact(f"https://bob:{token}@github.com") == "https://bob:[REDACTED:github-token:1]@github.com"


SNIPPETS = st.one_of(
    st.sampled_from([secret for _, secret in FORMS]),
    st.sampled_from([place.format(secret) for _, place, secret in PLACES]),
    st.sampled_from(
        [*KEYS.values(), BEGIN, END, *STAYS, "password=", "token: ", "://u:", "@", "sk-", "-----", "\\n", "\n"]
    ),
    st.text(max_size=30),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(SNIPPETS, max_size=8), st.sampled_from(["", " ", "\n"]))
def test_redacting_never_fails_and_again_changes_nothing(snippets: list[str], glue: str) -> None:
    redactor = Redactor()
    once = redactor.redact(glue.join(snippets))
    assert redactor.redact(once) == once


@pytest.mark.parametrize(
    "kind", ["a", "=", "://", "token=", "password: ", "-----BEGIN PRIVATE KEY-----\n", "eyJ.", "AKIA", "a:b@"]
)
def test_no_text_is_hard(kind: str) -> None:
    # Anything worse than linear would take minutes.
    assert Redactor().redact(kind * (300_000 // len(kind)))


def test_every_form_has_an_expression_that_can_match_at_its_literals() -> None:
    assert len(forms()) > 50
    for form in forms():
        assert form.literals
        assert all(literal and "|" not in literal for literal in form.literals)
