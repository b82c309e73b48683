"""What can be counted of the back end."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge

ORPHANS: Final = Counter(
    "ingot_ironic_orphans",
    "Nodes that no host owned, and what became of them: given to the host that has the machine now, removed, or kept",
    ["outcome"],
)
PUSH_IS_HEARD: Final = Gauge(
    "ingot_ironic_push_heard", "1 while Ironic pushes; otherwise its nodes are listed every two seconds"
)
PUSH_GAPS: Final = Counter(
    "ingot_ironic_push_gaps", "How often something pushed was missed, and all nodes were listed for it"
)
PATCHES: Final = Gauge(
    "ingot_ironic_patch",
    "1 for each hook of the plugin inside Ironic that took hold, 0 for one that did not",
    ["patch"],
)
LISTS: Final = Counter("ingot_ironic_lists", "Lists of all nodes")
REQUESTS: Final = Counter("ingot_ironic_requests", "Requests to Ironic, by method", ["method"])
