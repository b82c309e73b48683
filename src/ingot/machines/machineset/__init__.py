"""MachineSets: a number of machines that are all alike, kept.

selecting      which machines a selector means
members        who belongs to a set, joins, leaves, goes first; what new machines are called and look like
counting       what the status says
autoscaling    as many machines as there are hosts
whose          whether MachineSets are ours at all
known          what is followed
settling       the machines brought to what is wanted
reconciling    a pass over one set
controller     what wakes a set
"""

from ingot.machines.machineset.controller import controller
from ingot.machines.machineset.whose import WhoseSets

__all__ = ["WhoseSets", "controller"]
