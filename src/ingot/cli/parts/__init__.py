"""What the commands are made of.

One machine: which parts `ingot up` starts, what it gives them, and how it shows them coming up. `state` knows the folder, `plan`
the parts, `practice` the lab's hosts, `progress` decides what is worth telling, `screen` shows it on a terminal, `run` and
`follow` put it together: the one in the process that holds the parts, the other from outside.

The operator: `operating` runs it; `looking_after`, `backends`, `electing`, `webhook`, `switching` are its options.

Hosts: `api_access` finds the API, `errands` is what a person asks of a host, `following` waits for it, `host_report` and
`companions` tell about it.

    click.ClickException   everything a person has to read; raised at the edge, from the errors of the rooms
"""
