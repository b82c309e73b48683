"""The spine, measured: from nothing to a provisioned host.

coming_up     `ingot up --detach` on an empty folder
one_host      Ingot against a script, on one Ironic
room          the Ironic, API and servers that both of them use
with_ingot    one host by Ingot
bare_script   one host by a script, which is all that a person would write: a program of its own
by_script     what that script is told, and what comes back
records       whether both did the same
run           what is known of one run
tables        how it is printed
"""
