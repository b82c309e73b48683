"""Remediation: the host of a Machine whose node does not answer is switched off and on again.

steps          what comes next, told from what is written
startup        how long a Node may take until it is back
reconciling    the steps carried out
controller     what wakes whom
"""

from ingot.machines.remediation.controller import controllers

__all__ = ["controllers"]
