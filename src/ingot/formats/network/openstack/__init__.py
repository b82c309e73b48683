"""Reading OpenStack's network_data.json: links, the networks on them, and services.

Ids of OpenStack's own objects (`vif_id`, `network_id`) ask for nothing, and are passed over.
"""

from ingot.formats.network.openstack.data import wanted_of_network_data

__all__ = ["wanted_of_network_data"]
