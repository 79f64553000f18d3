"""Secrets as they are met, each in many wrappings; texts that only look like secrets; and the work it takes."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import string
import uuid
from collections.abc import Callable

import pytest

from compactor_cli.llm.redact import Redactor
from compactor_cli.llm.secret_forms import forms, secret_tables

# Made up anew from a seed, so that no scanner takes this file for a leak.
_RANDOM = random.Random(20_261)
_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


def made(length: int, alphabet: str = _ALNUM) -> str:
    return "".join(_RANDOM.choice(alphabet) for _ in range(length - 2)) + "a7"


def upper(length: int) -> str:
    return made(length, string.ascii_uppercase + "234567").upper().replace("7", "Q") if length else ""


def b64(size_bytes: int) -> str:
    return base64.b64encode(_RANDOM.randbytes(size_bytes)).decode()


def basic(size: int) -> str:
    return base64.b64encode(f"user{size}:{made(size)}".encode()).decode()


def key_bytes(kind: bytes, size_bytes: int) -> str:
    """A private key in DER as far as its first fields; the rest is noise."""
    body = b"\x02\x01\x00" + kind + _RANDOM.randbytes(size_bytes)
    return base64.b64encode(b"\x30\x82" + len(body).to_bytes(2, "big") + body).decode()


def folded(text: str, width: int = 64) -> str:
    return "\n".join(text[i : i + width] for i in range(0, len(text), width))


# Known by their form: these stand alone.
TOKENS: dict[str, str] = {
    **{f"aws {lead}": lead + upper(16) for lead in ("AKIA", "ASIA", "ABIA", "ACCA")},
    "gcp key": "AI" + "za" + made(35),
    "gcp token": "ya" + "29." + made(60),
    "gcp secret": "GOC" + "SPX-" + made(28),
    **{f"github {lead}": lead + "_" + made(36) for lead in ("ghp", "gho", "ghu", "ghs", "ghr")},
    "github fine-grained": "github" + "_pat_" + made(22) + "_" + made(59),
    **{f"gitlab {lead}": lead + "-" + made(20) for lead in ("glpat", "gldt", "glrt", "glptt")},
    **{f"slack {lead}": lead + "-" + made(12, "0123456789") + "-" + made(24) for lead in ("xoxb", "xoxp", "xoxa")},
    **{f"stripe {lead}": lead + "_" + made(24) for lead in ("sk_" + "live", "rk_" + "live", "sk_" + "test")},
    "stripe webhook": "wh" + "sec_" + made(32),
    "openai": "sk" + "-" + made(48),
    "openai project": "sk" + "-proj-" + made(100),
    "anthropic": "sk" + "-ant-api03-" + made(93) + "AA",
    "openrouter": "sk" + "-or-v1-" + made(64, _HEX),
    "langfuse": "sk" + "-lf-" + made(32, _HEX),
    "hugging face": "hf" + "_" + made(34),
    "groq": "gs" + "k_" + made(52),
    "xai": "xa" + "i-" + made(80),
    "perplexity": "pp" + "lx-" + made(48),
    "replicate": "r8" + "_" + made(37),
    "nvidia": "nv" + "api-" + made(64),
    "langsmith": "lsv2" + "_pt_" + made(32, _HEX) + "_" + made(10, _HEX),
    "tavily": "tv" + "ly-" + made(32),
    "npm": "np" + "m_" + made(36),
    "pypi": "py" + "pi-" + made(120),
    "rubygems": "rubygems" + "_" + made(48, _HEX),
    "docker": "dckr" + "_pat_" + made(27),
    "sendgrid": "S" + "G." + made(22) + "." + made(43),
    "twilio": "S" + "K" + made(32, _HEX),
    "mailgun": "ke" + "y-" + made(32, _HEX),
    "shopify": "shp" + "at_" + made(32, _HEX),
    "square": "sq0" + "atp-" + made(22),
    "digitalocean": "dop" + "_v1_" + made(64, _HEX),
    "databricks": "da" + "pi" + made(32, _HEX),
    "linear": "lin" + "_api_" + made(40),
    "notion": "nt" + "n_" + made(46),
    "figma": "fi" + "gd_" + made(40),
    "postman": "PM" + "AK-" + made(24) + "-" + made(34),
    "atlassian": "AT" + "ATT3" + made(100),
    "doppler": "dp" + ".pt." + made(43),
    "vault": "hv" + "s." + made(90),
    "newrelic": "NR" + "AK-" + upper(27),
    "grafana": "gl" + "sa_" + made(32) + "_" + made(8, _HEX),
    "sentry": "sntrys" + "_" + made(80),
    "planetscale": "pscale" + "_tkn_" + made(43),
    "supabase": "sb" + "p_" + made(40, _HEX),
    "tailscale": "ts" + "key-auth-" + made(30),
    "alibaba": "LT" + "AI" + made(20),
    "tencent": "AK" + "ID" + made(32),
    "age": "AGE-SECRET" + "-KEY-1" + upper(58),
    "jwt": ".".join(("eyJ" + made(30), "eyJ" + made(60), made(43))),
    "azure secret": made(3) + "8Q~" + made(34),
    "telegram": "123456789:" + "AA" + made(33),
    "mailchimp": made(32, _HEX) + "-us12",
    "1password": "ops" + "_eyJ" + made(260),
    "artifactory": "AK" + "Cp" + made(69),
    "contentful": "CF" + "PAT-" + made(43),
    "duffel": "duffel" + "_live_" + made(43),
    "dynatrace": "dt0" + "c01." + upper(24) + "." + upper(64),
    "easypost": "EZ" + "AK" + made(54),
    "facebook": "EA" + "AG" + made(120),
    "cerebras": "cs" + "k-" + made(48, string.ascii_lowercase + string.digits),
    "pinecone": "pc" + "sk_" + made(69),
    "together": "tgp" + "_v1_" + made(43),
    "heroku": "HR" + "KU-" + made(60),
    "terraform": "atlas" + "v1." + made(67),
    "hubspot": "pat" + "-na1-" + str(uuid.UUID(int=_RANDOM.getrandbits(128))),
    "infracost": "ic" + "o-" + made(32),
    "netlify": "nf" + "p_" + made(40),
    "openshift": "sha256" + "~" + made(43),
    "prefect": "pn" + "u_" + made(36),
    "pulumi": "pu" + "l-" + made(40, _HEX),
    "readme": "rd" + "me_" + made(70, string.ascii_lowercase + string.digits),
    "resend": "r" + "e_" + made(8) + "_" + made(24),
    "sendinblue": "xkey" + "sib-" + made(64, _HEX) + "-" + made(16),
    "shippo": "shippo" + "_live_" + made(40, _HEX),
    "sonar": "sq" + "p_" + made(40, _HEX),
    "typeform": "tf" + "p_" + made(59),
    "airtable": "pa" + "t" + made(14) + "." + made(64, _HEX),
    "clojars": "CLO" + "JARS_" + made(60, string.ascii_lowercase + string.digits),
    "bcrypt": "$2" + "b$12$" + made(53),
    "sha512-crypt": "$" + "6$" + made(16) + "$" + made(86),
    "md5-crypt": "$ap" + "r1$" + made(8) + "$" + made(22),
    "argon2": "$argon" + "2id$v=19$m=65536,t=3,p=4$" + made(22) + "$" + made(43),
    "django hash": "pbkdf2" + "_sha256$600000$" + made(22) + "$" + b64(32),
    "ldap hash": "{SS" + "HA}" + b64(28),
    "werkzeug hash": "scry" + "pt:32768:8:1$" + made(16) + "$" + made(128, _HEX),
}
# Known by their names: the value carries no information.
NAMED: dict[str, tuple[str, str]] = {
    "password word and number": ("password", made(10)),
    "password $": ("password", "pa$$" + made(5)),
    "password ()": ("db_password", "S3(" + made(4) + ")!"),
    "password {}": ("password", "x{" + made(6) + "}9"),
    "password #": ("DB_PASSWORD", made(6) + "#1%!"),
    "password =": ("password", made(8) + "=="),
    "DB_PASS": ("DB_PASS", made(10)),
    "dbPass": ("dbPass", made(10)),
    "SMTP_PASS": ("SMTP_PASS", made(16)),
    "passwd": ("passwd", made(12)),
    "pwd": ("pwd", made(12)),
    "passphrase": ("passphrase", made(16)),
    "Passwort": ("Passwort", made(12)),
    "Kennwort": ("kennwort", made(12)),
    "mot de passe": ("mot de passe", made(12)),
    "mot_de_passe": ("mot_de_passe", made(12)),
    "mdp": ("mdp", made(12)),
    "contraseña": ("contraseña", made(12)),
    "senha": ("senha", made(12)),
    "пароль": ("пароль", made(12)),
    "密码": ("密码", made(12)),
    "パスワード": ("パスワード", made(12)),
    **{f"base64 of {n} bytes": ("api_key", b64(n)) for n in (16, 17, 32, 33, 64)},
    **{f"secret of {n} bytes": ("client_secret", b64(n)) for n in (16, 32, 64)},
    **{f"token of {n} bytes": ("access_token", b64(n)) for n in (16, 32, 64)},
    "hex secret": ("client_secret", made(32, _HEX)),
    "secret key": ("SECRET_KEY", made(50)),
    "aws secret": ("aws_secret_access_key", made(40)),
    "aws session": ("AWS_SESSION_TOKEN", made(300)),
    "azure storage": ("AZURE_STORAGE_KEY", b64(64)),
    "azure account": ("AccountKey", b64(64)),
    "laravel": ("APP_KEY", "base64:" + b64(32)),
    "rails": ("RAILS_MASTER_KEY", made(32, _HEX)),
    "encryption": ("ENCRYPTION_KEY", b64(32)),
    "signing": ("signing_key", made(43)),
    "private key": ("private_key", made(64, _HEX)),
    "datadog": ("DD_API_KEY", made(32, _HEX)),
    "datadog app": ("DD_APP_KEY", made(40, _HEX)),
    "cloudflare": ("CLOUDFLARE_API_KEY", made(37, _HEX)),
    "mistral": ("MISTRAL_API_KEY", made(32)),
    "cohere": ("COHERE_API_KEY", made(40)),
    "algolia": ("ALGOLIA_ADMIN_KEY", made(32, _HEX)),
    "stripe-like": ("payment_secret", made(24)),
    "refresh": ("refresh_token", made(40)),
    "id token": ("id_token", made(120)),
    "csrf": ("csrf_token", made(32)),
    "bot": ("BOT_TOKEN", made(59)),
    "webhook": ("WEBHOOK_SECRET", made(40, _HEX)),
    "jwt secret": ("JWT_SECRET", made(48)),
    "session secret": ("SESSION_SECRET", made(48)),
    "django": ("SECRET_KEY", "django-insecure-" + made(40)),
    "credential": ("credential", made(30)),
    "kube": ("client-key-data", b64(48)),
    "wifi": ("wifi_password", made(14)),
    "vpn": ("vpn-password", made(14)),
    "suffix": ("DB_PASSWORD_PROD", made(14)),
    "numbered": ("DB_PASSWORD2", made(14)),
}
# Wrappings of a secret that stands alone.
ALONE: dict[str, Callable[[str], str]] = {
    "plain": lambda secret: f"use {secret} for it",
    "quoted": lambda secret: f"KEY='{secret}'",
    "json": lambda secret: json.dumps({"a": secret}),
    "json twice": lambda secret: json.dumps({"b": json.dumps({"a": secret})}),
    "json three times": lambda secret: json.dumps({"c": json.dumps({"b": json.dumps({"a": secret})})}),
    "lines": lambda secret: f"first\n  {secret}\nlast",
    "lines in json": lambda secret: json.dumps({"a": f"first\n{secret}\nlast"}),
    "url": lambda secret: f"https://api.example.org/v1?x=1&k={secret}&y=2",
    "user info": lambda secret: f"git clone https://oauth2:{secret}@git.example.org/a.git",
}
# Wrappings of a named value.
PAIRS: dict[str, Callable[[str, str], str]] = {
    "plain": lambda name, value: f"{name}={value}\nnext",
    "colon": lambda name, value: f"{name}: {value}\nnext",
    "quoted": lambda name, value: f'{name} = "{value}"',
    "single": lambda name, value: f"{name}: '{value}',",
    "json": lambda name, value: json.dumps({name: value, "x": 1}, ensure_ascii=False),
    "json twice": lambda name, value: json.dumps(
        {"b": json.dumps({name: value}, ensure_ascii=False)}, ensure_ascii=False
    ),
    "json 3": lambda name, value: json.dumps(
        {"c": json.dumps({"b": json.dumps({name: value}, ensure_ascii=False)}, ensure_ascii=False)}, ensure_ascii=False
    ),
    "lines": lambda name, value: f'a: 1\n{name}: "{value}"\nb: 2',
    "lines in json": lambda name, value: json.dumps({"a": f"x=1\n{name}='{value}'\ny=2"}, ensure_ascii=False),
    "field": lambda name, value: json.dumps({"name": name, "value": value}, ensure_ascii=False),
    "code": lambda name, value: f'os.environ["{name}"] = "{value}"',
}


def _url(secret: str) -> bool:
    return all(char in _ALNUM + "-_." for char in secret)


CASES = [
    *(
        pytest.param(wrap(secret), secret, id=f"{name}, {how}")
        for name, secret in TOKENS.items()
        for how, wrap in ALONE.items()
    ),
    *(
        pytest.param(wrap(name, value), value, id=f"{case}, {how}")
        for case, (name, value) in NAMED.items()
        for how, wrap in PAIRS.items()
        # Bare values in prose may as well be code.
        if how not in ("plain", "colon") or not set(value) & set("(){}$")
    ),
    *(
        pytest.param(f"https://x.example.org/?a=1&{name}={value}&b=2", value, id=f"{case}, url")
        for case, (name, value) in NAMED.items()
        if _url(value) and _url(name)
    ),
]


@pytest.mark.parametrize(("text", "secret"), CASES)
def test_a_secret_goes_whatever_it_is_wrapped_in(text: str, secret: str) -> None:
    clean = Redactor().redact(text)
    assert secret not in clean
    assert json.dumps(secret)[1:-1] not in clean


PARTED = [
    *(
        (name, secret)
        for name, secret in TOKENS.items()
        if len(secret) >= 24 and secret[0] not in "${" and ":" not in secret
    ),
    *((name, f"{key}={value}") for name, (key, value) in NAMED.items() if len(value) >= 32 and value.isalnum()),
]


@pytest.mark.parametrize("mark", ["\n", "\r\n", "\n    ", "\\n"], ids=["LF", "CRLF", "indented", "escaped"])
@pytest.mark.parametrize(("name", "secret"), PARTED, ids=[name for name, _ in PARTED])
def test_a_secret_that_a_line_break_parts_goes_with_both_parts(name: str, secret: str, mark: str) -> None:
    at = len(secret) - min(len(secret.partition("=")[2] or secret) // 3, 60)
    first, second = secret[:at], secret[at:]
    clean = Redactor().redact(f"it is {first}{mark}{second} and more")
    assert first[-8:] not in clean
    assert second[:8] not in clean
    assert clean.startswith("it is ")
    assert clean.endswith(" and more")


P = made(12)
BASIC = basic(12)
COLUMN, SESSION = made(32), made(26)
DER = key_bytes(b"\x02\x82\x01\x01", 600)
PEM = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{folded(DER)}\n-----END RSA {'PRIVATE'} KEY-----\n"
PLACES: dict[str, tuple[str, tuple[str, ...]]] = {
    "mysql -p": (f"mysql -h db -u root -p{P} shop", (P,)),
    "mysqldump -p": (f"mysqldump -uroot -p'{P}' shop", (P,)),
    "mariadb -p": (f"mariadb -u root -p{P}", (P,)),
    "sshpass": (f"sshpass -p '{P}' ssh host", (P,)),
    "redis-cli": (f"redis-cli -h cache -a {P} ping", (P,)),
    "mongo": (f"mongosh -u admin -p {P} db", (P,)),
    "docker login": (f"docker login -u bob -p {P} registry.example.org", (P,)),
    "az login": (f"az login --service-principal -u app -p {P}", (P,)),
    "ldapsearch": (f"ldapsearch -D cn=admin -w {P} -b dc=x", (P,)),
    "unzip": (f"unzip -P {P} a.zip", (P,)),
    "smbclient": (f"smbclient //host/share -U bob%{P}", (P,)),
    "openssl": (f"openssl rsa -in key.pem -passin pass:{P}", (P,)),
    "curl -u": (f"curl -sS -u bob:{P} https://example.org", (P,)),
    "--password": (f"tool --user bob --password {P} run", (P,)),
    "netrc": (f"machine git.example.org login bob password {P}", (P,)),
    "netrc lines": (f"machine git.example.org\n  login bob\n  password {P}\n", (P,)),
    "docker auth": (json.dumps({"auths": {"r.example.org": {"auth": BASIC}}}), (BASIC,)),
    "xml": (f"<user>bob</user><password>{P}</password>", (P,)),
    "xml word": ("<password>swordfish</password>", ("swordfish",)),
    "xml attribute": (f'<add key="DbPassword" value="{P}" />', (P,)),
    "csv": (f"user,password,mail\nbob,{P},b@example.org\nann,hunter2,a@example.org\n", (P, "hunter2")),
    "csv semicolons": (f"Benutzer;Passwort\nbob;{P}\n", (P,)),
    "tabs": (f"name\tapi_key\nprod\t{COLUMN}\n", (COLUMN,)),
    "table": (f"| user | password |\n|------|----------|\n| bob | {P} |\n| ann | hunter2 |\n", (P, "hunter2")),
    "csv in json": (json.dumps({"a": f"user,password\nbob,{P}\n"}), (P,)),
    "passphrase": ('passphrase = "correct horse battery staple"', ("correct horse", "staple")),
    "passphrase json": (json.dumps({"password": "correct horse battery staple"}), ("correct horse", "staple")),
    "passphrase bare": ("passphrase: correct horse battery staple\n", ("correct horse", "staple")),
    "yaml field": (f"- name: DB_PASSWORD\n  value: {P}\n", (P,)),
    "yaml block": (f"password:\n  {P}\n", (P,)),
    "setenv": (f'setenv("API_KEY", "{P}")', (P,)),
    "PHPSESSID": (f"PHPSESSID={SESSION}; path=/", (SESSION,)),
    "set-cookie": (f"Set-Cookie: sid={P}{P}; HttpOnly", (P + P,)),
    "bearer": (f'{{"headers": ["Authorization", "Bearer {P}{P}"]}}', (P + P,)),
    "pem": (f"a\n{PEM}b", tuple(DER[i : i + 40] for i in (0, 200, 500))),
    "pem without header": (f"a\n{folded(DER)}\nb", tuple(DER[i : i + 40] for i in (0, 200, 500))),
    "pem in one line": (f"key: {DER} end", tuple(DER[i : i + 40] for i in (0, 200, 500))),
    "pem without header, escaped": (json.dumps({"a": folded(DER)}), tuple(DER[i : i + 40] for i in (0, 256, 512))),
    "pem in base64": (
        "tls.key: " + base64.b64encode(PEM.encode()).decode(),
        (base64.b64encode(PEM.encode()).decode()[80:120],),
    ),
    "openssh": (base64.b64encode(b"openssh-key-v1\0" + _RANDOM.randbytes(300)).decode(), ("b3BlbnNzaC1rZXk",)),
    "german prose": (f"Das Passwort ist {P}, danke", (P,)),
    "french prose": (f"le mot de passe est {P}", (P,)),
    "connection string": (f"Server=db;User Id=sa;Password={P};Encrypt=yes", (P,)),
    "jdbc": (f"jdbc:mysql://db/shop?user=bob&password={P}&ssl=1", (P,)),
}


def test_there_are_at_least_150_kinds_of_secrets() -> None:
    assert len(TOKENS) + len(NAMED) + len(PLACES) >= 150


@pytest.mark.parametrize(("text", "secrets"), PLACES.values(), ids=PLACES.keys())
def test_a_secret_goes_for_where_it_stands(text: str, secrets: tuple[str, ...]) -> None:
    clean = Redactor().redact(text)
    assert "[REDACTED:" in clean
    assert not [secret for secret in secrets if secret in clean]


@pytest.mark.parametrize("size", range(1, 60))
def test_basic_credentials_go_whatever_their_padding(size: int) -> None:
    secret = basic(size)
    for text in (f"Authorization: Basic {secret}", json.dumps({"auth": secret}), f"-H 'Authorization: Basic {secret}'"):
        assert secret not in Redactor().redact(text), text


@pytest.mark.parametrize("size_bytes", [16, 64])
def test_keys_in_base64_go_whatever_their_padding(size_bytes: int) -> None:
    leaked = [key for key in (b64(size_bytes) for _ in range(40)) if key in Redactor().redact(f"API_KEY={key}\n")]
    assert not leaked


SHA = hashlib.sha256(b"x").hexdigest()
STAYS = [
    f"commit {SHA[:40]}\nAuthor: a",
    f"sha256:{SHA}  file.tar.gz",
    f"{SHA}  file.tar.gz",
    f"cache_key: {SHA}",
    f"cache-key = '{SHA}'",
    f"primary_key: {uuid.UUID(int=1 << 100)}",
    f"session_id: {uuid.UUID(int=1 << 99)}",
    "sessionId: 0190-abcd",
    f"request_id={uuid.UUID(int=1 << 98)}",
    '"public_key": "' + base64.b64encode(b"\x30\x82\x01\x22\x30\x0d" + bytes(range(80))).decode() + '"',
    "-----BEGIN CERTIFICATE-----\n"
    + folded(base64.b64encode(b"\x30\x82\x03\x00\x30\x82\x01\xe8\xa0" + bytes(200)).decode()),
    "integrity sha512-" + base64.b64encode(hashlib.sha512(b"x").digest()).decode(),
    "etag: " + hashlib.md5(b"x", usedforsecurity=False).hexdigest(),
    "data:image/png;base64," + base64.b64encode(bytes(range(250))).decode(),
    "pass: 12, fail: 0, skip: 3",
    "5 passed, 2 failed: pass=5",
    "if x:\n    pass\nelse:\n    pass",
    "def login(self, password: str, token: str | None = None) -> None:",
    "password = input('Password: ')",
    "password: Optional[str] = Field(default=None, description='The password of the user')",
    'label: "Password", placeholder: "Enter your password"',
    '{"password": {"type": "string", "description": "must be at least 8 characters"}}',
    '"errors": {"password": "is too short (minimum is 8 characters)"}',
    "const token = await getToken(user.id, scopes1);",
    "token = tokens[i + 1]; key = keys[j]",
    "for key, value in items: key = key.lower()",
    'key = "user_profile_settings"',
    'sort_key = "created_at_2024"',
    "key: ArrowDown, keyCode: 40",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "B" * 30 + " me@host",
    "name,token,pos\nThe,DET,0\ncat,NOUN,1\n",
    "| name | type | password |\n|---|---|---|\n| a | b | none |\n",
    "| option | default |\n|---|---|\n| password | none |\n",
    "git diff --stat\n a.py | 12 ++--\n password.py | 3 +-\n",
    "mysql -p shop",
    "mkdir -p /var/lib/mysql/data1",
    "mysql: mkdir -p /srv/mysql && chown -R mysql /srv/mysql",
    "docker login -p $TOKEN registry",
    "unzip -P $PASS a.zip",
    "Basic usage of the module: see below",
    "basic authentication1 is off",
    "author: Jane Doe, authors: 3",
    '"auth": "required"',
    '"auth": "bearerTokenAuth"',
    "export PASSWORD=$(pass show db/prod)",
    "echo $PASSWORD ${TOKEN} %SECRET% {{ api_key }} <password>",
    "PASSWORD=<password> TOKEN=xxxxxxxx",
    "SECRET_KEY = os.getenv('SECRET_KEY')",
    "password_hash = hash_password(raw)",
    "The password is stored hashed; the token is valid for 3600 seconds.",
    "Das Passwort ist falsch. Le mot de passe est incorrect.",
    "tokens: 1234, prompt_tokens: 100, token_count=55",
    "api_key_env: OPENAI_API_KEY",
    "https://example.org/password/reset?step=2",
    "src/secrets/token_store.py:118:5: E501 line too long",
    'names = [\n    "secret",\n    "password",\n    "cookie",\n    "authorization",\n]',
    'KEYS = ("S3_ACCESS_KEY", "S3_LOG_PROMPTS_1")',
    'raise Error(\n    param="key",\n    code=status.HTTP_404,\n)',
    "[REDACTED:password:1] and [REDACTED:github-token:2]",
]


@pytest.mark.parametrize("text", STAYS, ids=[text[:40] for text in STAYS])
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    redactor = Redactor()
    assert redactor.redact(text) == text


LITERALS = sorted(
    {
        *(literal for form in forms() for literal in form.literals),
        *(
            stem + tail
            for stem, _, _ in secret_tables()["stems"]
            for tail in ("", "=", ': "', "='", '\\": \\"', " is ")
        ),
        *(program for program, *_ in secret_tables()["programs"]),
        *("://", "://u:", "://u:p@", "a:b@", "-----", "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----\n"),
        *("eyJ.eyJ", "eyJaaaaaaaaa.eyJ", ".eyJ", "eyJaaaaaaaaa", "authorization: ", "authorization: bearer a1b2c3d4 "),
        *("bearer ", "basic ", "cookie: a=", "-u ", "--user a:", "MIIaaaa", "password,token\n", "password: a b c "),
        *(
            "\n",
            "\\n",
            "a\n",
            "=",
            '"',
            '\\"',
            "password=a1b2c3d4e5f6a1b2\n",
            "password|b\n",
            "ghp_aaaa\n",
            "a1b2c3d4e5f6\n",
        ),
    }
)
_SIZE_CHARS = 10_000
_STEPS_PER_CHAR = 400


@pytest.mark.parametrize("literal", LITERALS, ids=[repr(literal) for literal in LITERALS])
def test_the_steps_grow_with_the_text_and_no_faster(literal: str) -> None:
    steps = []
    for size in (_SIZE_CHARS, 2 * _SIZE_CHARS):
        redactor = Redactor()
        redactor.redact(literal * (size // len(literal)))
        steps.append(redactor.steps)
    assert steps[1] <= 2.2 * steps[0] + 1_000
    assert steps[1] <= _STEPS_PER_CHAR * 2 * _SIZE_CHARS


def test_no_expression_repeats_a_repetition_without_a_bound() -> None:
    """What the count of steps takes for granted: an expression fails within a fixed number of characters."""
    from re import _constants, _parser  # type: ignore[attr-defined]

    def unbounded(parsed: object) -> int:
        count = 0
        for operation, argument in parsed:  # type: ignore[attr-defined]
            if operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
                low, high, inner = argument
                del low
                assert not (high > 1_000 and unbounded(inner))
                count += (high > 20_000) + unbounded(inner)
            elif operation is _constants.SUBPATTERN:
                count += unbounded(argument[-1])
            elif operation is _constants.BRANCH:
                count += max(unbounded(branch) for branch in argument[1])
        return count

    for form in forms():
        assert unbounded(_parser.parse(form.expression.pattern)) <= 2, form.kind
