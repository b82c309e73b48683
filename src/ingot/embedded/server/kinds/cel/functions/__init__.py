"""What expressions can do in Kubernetes beyond CEL itself.

    lists         sum, min, max, isSorted, indexOf, lastIndexOf; sets.contains, sets.equivalent, sets.intersects
    texts         find, findAll

A function that is missing here is unknown to the compiler, which names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cel_expr_python import cel


def extension() -> cel.CelExtension:
    from cel_expr_python import cel

    from ingot.embedded.server.kinds.cel.functions import lists, texts

    return cel.CelExtension("kubernetes", [*lists.functions(), *texts.functions()])
