"""Network data to NetworkManager's keyfiles: nmstate's desired state (YAML or JSON), and OpenStack's network_data.json.

Pure: text in, files out. The same text always gives the same files. A part of it that is not understood is refused with its path
and name; nothing is dropped without a word. Values are checked before they become a line of a keyfile or the name of one.

    document, reading    text → plain values → fields, each taken by its name
    nmstate/             desired state → model            openstack/    network_data.json → model
    wiring, placing      who belongs to whom; who keeps routes, rules, name servers
    connections          model → sections → keyfile
"""

from ingot.formats.network.sources import keyfiles_of_network_data, keyfiles_of_nmstate, keyfiles_of_secret

__all__ = ["keyfiles_of_network_data", "keyfiles_of_nmstate", "keyfiles_of_secret"]
