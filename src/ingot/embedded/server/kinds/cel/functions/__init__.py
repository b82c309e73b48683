"""What expressions can do in Kubernetes beyond CEL itself.

    lists         sum, min, max, isSorted, indexOf, lastIndexOf; sets.contains, sets.equivalent, sets.intersects
    urls          isURL, url
    quantities    isQuantity, quantity
    addresses     isIP, ip, isCIDR, cidr
    versions      isSemver, semver

A function that is missing here is unknown to the compiler, which names it. Missing are the named formats; comprehensions over two
variables; and `find` and `findAll`, because Python's regular expressions can take for ever and those of the library cannot tell
what they matched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cel_expr_python import cel


def extension() -> cel.CelExtension:
    from cel_expr_python import cel

    from ingot.embedded.server.kinds.cel.functions import addresses, lists, quantities, urls, versions

    made = [
        found for module in (lists, urls, quantities, addresses, versions) for found in module.functions()
    ]
    return cel.CelExtension("kubernetes", made)
