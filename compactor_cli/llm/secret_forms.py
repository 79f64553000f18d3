"""Forms of secrets that are known by how they look: keys and tokens that their makers gave a prefix.

Sources: the makers' own documentation and the list of supported patterns of GitHub's secret scanning; lengths are
lower bounds where a maker names none. Each form has literals, found first and fast, and an expression that is
matched where one was found. No expression repeats a repetition, so all of them take linear time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """``expression`` is matched ``back_chars`` before a literal; its group ``s``, else all of it, is the secret."""

    kind: str
    literals: tuple[str, ...]
    expression: re.Pattern[str]
    back_chars: int = 0


# kind; literals; expression, a tail that follows the literal unless it names the literal itself.
_TAILS = (
    # docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html (unique identifiers)
    ("aws-key", "AKIA ASIA ABIA ACCA", r"[A-Z2-7]{16}(?![A-Za-z0-9])"),
    ("aws-bedrock-key", "ABSK", r"[A-Za-z0-9+/]{100,}={0,2}"),
    ("aws-bedrock-key", "bedrock-api-key-", r"[A-Za-z0-9+/=_-]{30,}"),
    # cloud.google.com/docs/authentication/api-keys, …/docs/authentication/token-types
    ("gcp-key", "AIza", r"[A-Za-z0-9_-]{35}"),
    ("gcp-token", "ya29.", r"[A-Za-z0-9_-]{20,}"),
    ("gcp-secret", "GOCSPX-", r"[A-Za-z0-9_-]{20,}"),
    # learn.microsoft.com/azure/storage/common/storage-account-keys-manage, …/service-bus-messaging/service-bus-sas
    ("azure-key", "AccountKey=", r"(?P<s>[A-Za-z0-9+/]{40,}={0,2})"),
    ("azure-key", "SharedAccessKey=", r"(?P<s>[A-Za-z0-9+/]{40,}={0,2})"),
    ("azure-signature", "&sig= ?sig=", r"(?P<s>[A-Za-z0-9%+/=_-]{30,})"),
    # github.blog/2021-04-05-behind-githubs-new-authentication-token-formats
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{30,255}"),
    ("github-token", "github_pat_", r"[A-Za-z0-9_]{22,255}"),
    # docs.gitlab.com/security/tokens/#token-prefixes
    (
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt-",
        r"[A-Za-z0-9_.-]{18,}",
    ),
    # api.slack.com/authentication/token-types
    ("slack-token", "xoxa- xoxb- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xoxc- xoxd- xapp-", r"[A-Za-z0-9.%-]{10,}"),
    ("slack-webhook", "hooks.slack.com/", r"(?P<s>(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,})"),
    ("discord-webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/", r"(?P<s>\d{15,}/[A-Za-z0-9_-]{40,})"),
    # docs.stripe.com/keys
    ("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_ whsec_", r"[A-Za-z0-9+/=]{10,}"),
    # Model providers: their consoles' keys
    ("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]{16,}"),
    ("openrouter-key", "sk-or-", r"[A-Za-z0-9_-]{16,}"),
    ("langfuse-key", "sk-lf-", r"[a-f0-9-]{20,}"),
    ("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[A-Za-z0-9_-]{16,}"),
    ("openai-key", "sk-", r"[A-Za-z0-9]{20,}(?![A-Za-z0-9])"),
    ("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]{30,}"),
    ("groq-key", "gsk_", r"[A-Za-z0-9]{40,}"),
    ("xai-key", "xai-", r"[A-Za-z0-9]{60,}"),
    ("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,}"),
    ("replicate-token", "r8_", r"[A-Za-z0-9]{37,}"),
    ("nvidia-key", "nvapi-", r"[A-Za-z0-9_-]{40,}"),
    ("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[a-f0-9_]{32,}"),
    ("tavily-key", "tvly-", r"[A-Za-z0-9_-]{20,}"),
    # the access-token pages of npm, PyPI and RubyGems
    ("npm-token", "npm_", r"[A-Za-z0-9]{36,}"),
    ("npm-token", ":_authToken= :_auth=", r"(?P<s>[A-Za-z0-9+/=_.-]{10,})"),
    ("pypi-token", "pypi-", r"[A-Za-z0-9_-]{50,}"),
    ("rubygems-key", "rubygems_", r"[a-f0-9]{48}"),
    ("docker-token", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{20,}"),
    # Others in GitHub's list
    ("sendgrid-key", "SG.", r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    ("twilio-key", "SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("mailgun-key", "key-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"[A-Fa-f0-9]{32}"),
    ("square-token", "sq0atp- sq0csp- EAAAE", r"[A-Za-z0-9_-]{22,}"),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{64}"),
    ("databricks-token", "dapi", r"[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])"),
    ("linear-key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{30,}"),
    ("notion-token", "ntn_", r"[A-Za-z0-9]{40,}"),
    ("figma-token", "figd_ figo_", r"[A-Za-z0-9_-]{20,}"),
    ("postman-key", "PMAK-", r"[A-Za-z0-9]{24}-[A-Za-z0-9]{34}"),
    ("atlassian-token", "ATATT3 ATCTT3 ATBB", r"[A-Za-z0-9_=-]{24,}"),
    ("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[A-Za-z0-9_.-]{30,}"),
    ("vault-token", "hvs. hvb. hvr.", r"[A-Za-z0-9_-]{24,}"),
    ("newrelic-key", "NRAK-", r"[A-Z0-9]{27}"),
    ("grafana-token", "glsa_ glc_", r"[A-Za-z0-9_+/=]{30,}"),
    ("sentry-token", "sntrys_ sntryu_", r"[A-Za-z0-9_+/=-]{40,}"),
    ("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_.=-]{30,}"),
    ("supabase-key", "sbp_ sb_secret_", r"[A-Za-z0-9_-]{20,}"),
    ("tailscale-key", "tskey-", r"[A-Za-z0-9-]{20,}"),
    ("flyio-token", "FlyV1 ", r"(?P<s>fm[12][ar]?_[A-Za-z0-9+/=,_-]{40,})"),
    ("alibaba-key", "LTAI", r"[A-Za-z0-9]{12,24}(?![A-Za-z0-9])"),
    ("tencent-key", "AKID", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    # age-encryption.org/v1
    ("age-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{58}"),
    # RFC 7519: two objects and a signature, each in base64url; an object begins {" and so eyJ
    ("jwt", "eyJ", r"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
)
# Forms whose literal is not at their beginning: kind, literal, characters before it, the whole expression.
_INNER = (
    # learn.microsoft.com/purview/sit-defn-azure-ad-client-secret
    ("azure-secret", "Q~", 4, r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    # core.telegram.org/bots/api#authorizing-your-bot; the number has 8 to 10 digits
    ("telegram-token", ":AA", 10, r"\d{10}:AA[A-Za-z0-9_-]{32,33}(?![A-Za-z0-9_-])"),
    ("telegram-token", ":AA", 9, r"\d{9}:AA[A-Za-z0-9_-]{32,33}(?![A-Za-z0-9_-])"),
    ("telegram-token", ":AA", 8, r"\d{8}:AA[A-Za-z0-9_-]{32,33}(?![A-Za-z0-9_-])"),
    # mailchimp.com/developer/marketing/guides/quick-start: 32 digits and the data centre
    ("mailchimp-key", "-us", 32, r"[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])"),
)


@lru_cache(maxsize=1)
def forms() -> tuple[Form, ...]:
    """All forms; those with longer prefixes before those that begin like them."""
    tails = tuple(
        Form(kind=kind, literals=tuple(names), expression=re.compile(f"(?:{'|'.join(map(re.escape, names))}){tail}"))
        for kind, names, tail in ((kind, _literals(names), tail) for kind, names, tail in _TAILS)
    )
    inner = (
        Form(kind=kind, literals=(literal,), back_chars=back, expression=re.compile(expression))
        for kind, literal, back, expression in _INNER
    )
    return (*tails, *inner)


def _literals(names: str) -> list[str]:
    """Written with spaces between; a literal that ends in one is alone."""
    return [names] if names.endswith(" ") else names.split()
