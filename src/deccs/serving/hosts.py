"""Whom a local service believes: a web page must not reach it through a name that its owner has pointed here.

With DNS rebinding a page of ``evil.example`` lets that name lead to 127.0.0.1; for the browser it is then the same
site as the service. But the browser still says the name in the Host header. An address cannot be rebound.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from functools import lru_cache

ANY = "*"


@lru_cache(maxsize=256)
def is_known(host: bytes, names: frozenset[str]) -> bool:
    """Whether a Host header is an address, or one of these names; any port will do.

    >>> names = frozenset(["localhost"])
    >>> [is_known(host, names) for host in (b"localhost:80", b"127.0.0.1:8000", b"[::1]", b"evil.example:8000")]
    [True, True, True, False]
    """
    name = name_in(host)
    return name in names or is_address(name) or (ANY in names and bool(name))


def name_in(host: bytes) -> str:
    """A host without its port, in small letters.

    >>> name_in(b"Example.com:80"), name_in(b"[::1]:80"), name_in(b"::1")
    ('example.com', '::1', '::1')
    """
    text = host.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".") if text.count(":") == 1 else text.rstrip(".")


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    """Whether only this machine reaches a service that is bound to this name or address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return name == "localhost" or (is_address(name) and ipaddress.ip_address(name).is_loopback)


def names_for(host: str, more: Collection[str]) -> frozenset[str]:
    """The names by which a service that is bound to ``host`` may be asked."""
    return frozenset({"localhost", host.lower(), *(name.lower() for name in more)})


def is_same_site(origin: bytes, host: bytes) -> bool:
    """Whether a page of this origin is one that came from this host.

    >>> is_same_site(b"http://localhost:8000", b"localhost:8000"), is_same_site(b"null", b"localhost:8000")
    (True, False)
    """
    return origin.partition(b"://")[2].lower() == host.lower()
