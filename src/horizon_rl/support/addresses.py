"""Names and addresses of machines, for what is served to browsers."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Say whether a name or address means this machine and no other."""
    return host.lower() == "localhost" or (
        is_address(host) and ip_address(host.strip("[]")).is_loopback
    )


def is_address(host: str) -> bool:
    """Say whether it is a number, which no one can make point elsewhere."""
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def page_url(host: str, port: int, path: str = "") -> str:
    """Return the address of a page; IPv6 in brackets."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/{path}"
